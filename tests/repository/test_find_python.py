"""Which Python a clone is set up with."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from places import REPOSITORY

# Is of the version and, asked whether it is slow, answers as told.
_STUB = """#!/bin/bash
case "$2" in
  *version_info*) echo {version} ;;
  *) exit {slow} ;;
esac
"""
_SYSTEMS = sorted(Path("/usr/bin").glob("python3.[0-9][0-9]"))


def found(folder: Path, *, version: str = "3.11", slow: bool | None = None) -> str:
    """Run it where the PATH has one folder, with a Python in it or none."""
    if slow is not None:
        stub = folder / "python3"
        stub.write_text(_STUB.format(version=version, slow=int(not slow)))
        stub.chmod(0o755)
    command = ["/bin/bash", str(REPOSITORY / "tools" / "find_python.sh")]
    done = subprocess.run(
        command, env={"PATH": str(folder)}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_the_first_of_the_path(tmp_path: Path) -> None:
    for system in [*_SYSTEMS, Path("/usr/bin/python3.11")]:
        version = system.name.removeprefix("python")
        assert found(tmp_path, version=version, slow=False) == str(tmp_path / "python3")


def test_no_system_has_another_version(tmp_path: Path) -> None:
    assert found(tmp_path, version="3.99", slow=True) == str(tmp_path / "python3")


def test_make_says_what_is_missing_where_there_is_none(tmp_path: Path) -> None:
    assert found(tmp_path) == "python3"


@pytest.mark.skipif(not _SYSTEMS, reason="the system has no Python")
def test_the_one_of_the_system_where_the_first_is_slow(tmp_path: Path) -> None:
    system = _SYSTEMS[0]
    asks = "import ensurepip, pathlib, sysconfig as s\n"
    asks += "print(pathlib.Path(s.get_path('include'), 'Python.h').exists())"
    done = subprocess.run([system, "-c", asks], capture_output=True, text=True, check=False)
    complete = done.stdout.strip() == "True"
    expected = system if complete else tmp_path / "python3"
    assert found(tmp_path, version=system.name.removeprefix("python"), slow=True) == str(expected)
