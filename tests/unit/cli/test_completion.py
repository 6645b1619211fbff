"""Completion in the shell: commands and options, quickly, without what takes long to import."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import shellingham
from helpers import command

COMPLETE = "import sys; from anonspark.cli.application import main\n"
SLOW = ("numba", "numpy", "pyarrow", "pyspark", "pandas")


def completed(words: str, place: int) -> tuple[list[str], list[str]]:
    """Return what a shell is offered, and which slow packages that has imported."""
    script = f"{COMPLETE}main([])\nprint(*sys.modules, file=sys.stderr)"
    asked = {
        "_ANONSPARK_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | asked, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), [name for name in SLOW if name in done.stderr.split()]


def test_commands_and_options() -> None:
    assert completed("anonspark ch", 1) == (["check"], [])
    offered, slow = completed("anonspark run --", 2)
    assert {"--set", "--details", "--resume", "--json"} <= set(offered)
    assert slow == []


def test_the_script_of_a_shell(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shellingham, "detect_shell", lambda: ("bash", "/bin/bash"))
    outcome = command(capsys, "--show-completion")
    assert outcome.code == 0, outcome.err
    assert "complete -o default -F _anonspark_completion anonspark" in outcome.out

    def unknown() -> tuple[str, str]:
        raise shellingham.ShellDetectionFailure

    monkeypatch.setattr(shellingham, "detect_shell", unknown)
    outcome = command(capsys, "--show-completion")
    assert outcome.code == 6
    assert outcome.err.splitlines()[-1].startswith("error: completion: the shell was not recog")
