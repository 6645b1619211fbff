"""The hospital of docs/tutorial-attributes.md: files are written, commands run, texts compared."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
from helpers import Outcome, command
from places import REPOSITORY

PAGE = REPOSITORY / "docs" / "tutorial-attributes.md"
BLOCK = re.compile(
    r"<!-- (?P<kind>file|run|prints|drawn|ends with|refused)(: (?P<of>\S+))? -->\n\n"
    r"```\w+\n(?P<text>.*?)\n```",
    re.S,
)
# What tables are drawn with.
FRAME = re.compile("[\u2500-\u257f]+")
DAY = re.compile(r"20\d\d-\d\d-\d\d")


def told(printed: str, *, drawn: bool = False) -> list[list[str]]:
    """Return the words of what was printed, without days, places and what is drawn."""
    found = []
    for line in printed.splitlines():
        words = FRAME.sub(" ", DAY.sub("DAY", line)).split()
        if drawn and len(words) == 2 and words[0].isdigit():
            words = words[:1]
        if words and words[0] != "Written:":
            found.append(words)
    return found


def run(capsys: pytest.CaptureFixture[str], line: str) -> Outcome:
    """Run a command of the page, and return what it prints."""
    program, *arguments = shlex.split(line)
    if program == "python":
        sys.argv = arguments
        runpy.run_path(arguments[0])
        return Outcome(0, "", "")
    return command(capsys, *arguments)


def test_the_hospital_asks_and_publishes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    printed, compared = "", 0
    for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        kind, text = block["kind"], block["text"]
        if kind == "file":
            (tmp_path / block["of"]).write_text(f"{text}\n", encoding="utf-8")
        elif kind in ("run", "refused"):
            done = [run(capsys, line) for line in text.splitlines()]
            assert {one.code for one in done} == {int(block["of"] or 0)}, done[-1].err
            printed = "".join(one.out if one.code == 0 else one.err for one in done)
        else:
            compared += 1
            own = told(printed, drawn=kind == "drawn")
            expected = told(text, drawn=kind == "drawn")
            assert (own[-len(expected) :] if kind == "ends with" else own) == expected
    assert compared == 6
    assert (tmp_path / "out" / "release" / "manifest.json").exists()
