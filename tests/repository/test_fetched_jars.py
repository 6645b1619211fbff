"""Files of Maven's registry come as they were locked, or not at all."""

from __future__ import annotations

import hashlib
import runpy
from pathlib import Path
from typing import Any

import pytest
from places import REPOSITORY

FETCH_JARS: dict[str, Any] = runpy.run_path(str(REPOSITORY / "tools" / "fetch_jars.py"))


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    folder = tmp_path / "registry" / "org" / "example" / "thing" / "1.0"
    folder.mkdir(parents=True)
    (folder / "thing-1.0-all.jar").write_bytes(b"right")
    return tmp_path / "registry"


@pytest.mark.parametrize(
    ("content", "version", "told"),
    [
        (b"right", "1.0", ""),
        (b"wrong", "1.0", "SHA-256 is"),
        (b"right", "2.0", "cannot be fetched"),
    ],
)
def test_a_file_of_the_lock(
    registry: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: bytes,
    version: str,
    told: str,
) -> None:
    lock = tmp_path / "jars.lock"
    sha256 = hashlib.sha256(content).hexdigest()
    lock.write_text(f"# A comment.\n{sha256} org.example:thing:{version}:all\n")
    monkeypatch.setenv("MAVEN", registry.as_uri())
    folder = tmp_path / "jars"
    for _ in ("fetched", "there already"):
        assert FETCH_JARS["main"](str(lock), str(folder)) == (1 if told else 0)
        assert told in capsys.readouterr().err
        assert [one.name for one in folder.iterdir()] == ([] if told else ["thing-1.0-all.jar"])


def test_the_lock_can_be_read() -> None:
    locked = FETCH_JARS["read_lock"]((REPOSITORY / "tests/systems/jars.lock").read_text())
    assert "hadoop-client-minicluster-3.4.2.jar" in {one.file for one in locked}
    assert all(len(one.sha256) == 64 for one in locked)
    assert len({one.file for one in locked}) == len(locked)
