"""The entries of ``spark-submit`` take what the commands take."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from cases import cases

from anonspark import __version__

JOBS = Path(__file__).parents[2] / "jobs"


def test_an_entry_is_started(tmp_path: Path) -> None:
    command = [sys.executable, JOBS / "command.py", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0
    assert __version__ in done.stdout + done.stderr


@cases(__file__, "arguments", "code", "told")
def test_an_entry_is_its_command(
    arguments: list[str],
    code: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(JOBS / arguments[0]), run_name="__main__")
    assert ended.value.code == code
    captured = capsys.readouterr()
    assert told in captured.out + captured.err
