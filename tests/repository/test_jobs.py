"""The entries of ``spark-submit`` take what the commands take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from anonspark import __version__

JOBS = Path(__file__).parents[2] / "jobs"


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["command.py", "--version"], 0, __version__),
        (["command.py", "verify", "--help"], 0, "anonspark verify [OPTIONS]"),
        (["command.py", "no-such-command"], 2, "no-such-command"),
        (["anonymize.py", "--help"], 0, "anonspark run [OPTIONS]"),
        (["anonymize.py", "gone.yaml"], 2, "gone.yaml: no such file"),
    ],
)
def test_an_entry_is_its_command(
    arguments: list[str], code: int, told: str, tmp_path: Path
) -> None:
    command = [sys.executable, JOBS / arguments[0], *arguments[1:]]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == code
    assert told in done.stdout + done.stderr
