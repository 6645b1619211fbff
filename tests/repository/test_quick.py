"""``make quick`` checks what changed, and says what it did not test."""

from __future__ import annotations

import runpy
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from places import REPOSITORY

QUICK: dict[str, Any] = runpy.run_path(str(REPOSITORY / "tools" / "quick.py"))


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--initial-branch", "main")
    for name in ("kept.py", "edited.py", "removed.py"):
        (tmp_path / name).write_text("1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--message", "first")
    return tmp_path


def test_changed_are_committed_edited_and_new_files(repository: Path) -> None:
    git(repository, "switch", "--create", "branch")
    (repository / "committed.py").write_text("2\n")
    git(repository, "add", ".")
    git(repository, "commit", "--message", "second")
    (repository / "edited.py").write_text("2\n")
    (repository / "new.py").write_text("2\n")
    (repository / "removed.py").unlink()
    changed = [str(path) for path in QUICK["changed_files"](repository, "main")]
    assert changed == ["committed.py", "edited.py", "new.py"]
    # Where there is no such branch, what is not committed counts.
    changed = [str(path) for path in QUICK["changed_files"](repository, "no-such-branch")]
    assert changed == ["edited.py", "new.py"]


def test_the_tests_of_a_changed_module_come_before_those_of_its_room() -> None:
    changed = [
        Path("anonspark/cli/engine_runner.py"),
        Path("anonspark/errors.py"),
        Path("docs/architecture.md"),
        Path("tests/releases/test_union.py"),
        Path("tests/unit/core/test_encoding.py"),
        Path("tests/unit/core/test_hierarchies.yaml"),
    ]
    tests, left = QUICK["tests_of"](changed, REPOSITORY)
    assert tests == [
        "tests/unit/cli/test_engine_runner.py",
        "tests/unit/core/test_encoding.py",
        "tests/unit/core/test_hierarchies.py",
        "tests/unit/cli",
    ]
    assert left == ["anonspark/errors.py", "tests/releases/test_union.py"]


def test_checks_end_or_are_stopped() -> None:
    programs = {
        "pass": 0,
        "raise SystemExit(3)": 3,
        "import time; time.sleep(60)": None,
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); signal.pause()": None,
    }
    checks = [QUICK["_start"]("one", [sys.executable, "-c", program]) for program in programs]
    assert QUICK["_wait"](checks, time.monotonic() + 2) == list(programs.values())
    for check in checks:
        assert check.process.poll() is not None
        check.output.close()
