"""The hospital of docs/recipients.md: files are written, commands run, figures compared."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
from helpers import command
from places import REPOSITORY

PAGE = REPOSITORY / "docs" / "recipients.md"
BLOCK = re.compile(r"<!-- (file: (?P<name>\S+)|run|prints) -->\n\n```\w+\n(?P<text>.*?)\n```", re.S)


def told(printed: str) -> list[list[str]]:
    """Return the words of what was printed, without what depends on a ledger's random key."""
    found = []
    for line in printed.splitlines():
        words = line.split()
        # The loss of a later month depends on who of an atom is withheld.
        if len(words) == 5 and re.fullmatch(r"0\.\d{4}", words[-1]):
            words = words[:3]
        if words and "key" not in words and set("".join(words)) - {"─"}:
            found.append(words)
    return found


def run(capsys: pytest.CaptureFixture[str], line: str) -> str:
    """Run a command of the page, and return what it prints."""
    program, *arguments = shlex.split(line)
    if program == "python":
        sys.argv = arguments
        runpy.run_path(arguments[0])
        return ""
    done = command(capsys, *arguments)
    assert done.code == 0, done.err
    return done.out


def test_the_hospital(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    months, printed = 0, ""
    for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        text = block["text"]
        if block["name"]:
            (tmp_path / block["name"]).write_text(f"{text}\n", encoding="utf-8")
        elif block[1] == "run":
            printed = "".join(run(capsys, line) for line in text.splitlines())
        else:
            months += 1
            assert told(printed) == told(text)
    assert months == 3
    assert len(list((tmp_path / "releases").glob("*/*/manifest.json"))) == 9
