"""The hospitals of docs/tutorial-holders.md: files are written, commands run, figures compared."""

from __future__ import annotations

import math
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
from helpers import command
from places import REPOSITORY

PAGE = REPOSITORY / "docs" / "tutorial-holders.md"
BLOCK = re.compile(
    r"<!-- (file: (?P<name>\S+)|run|prints|prints at the end) -->\n\n```\w+\n(?P<text>.*?)\n```",
    re.S,
)


def told(printed: str) -> list[list[str]]:
    """Return the words of what was printed, without rules and the random id of the union."""
    lines = [
        re.sub(r"^Union [0-9a-f]{12}$", "Union", line.strip()) for line in printed.splitlines()
    ]
    return [words for line in lines if set("".join(words := line.split())) - set("─━┏┓┗┛┡┩└┘┳┻╇┴")]


def alike(found: list[list[str]], expected: list[list[str]]) -> bool:
    """Return whether words are the same, and figures of models within two hundredths."""

    def same(one: str, other: str) -> bool:
        figures = all(re.fullmatch(r"0\.\d{4}", word) for word in (one, other))
        return one == other or (figures and math.isclose(float(one), float(other), abs_tol=0.02))

    return len(found) == len(expected) and all(
        len(one) == len(other) and all(map(same, one, other))
        for one, other in zip(found, expected, strict=True)
    )


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


def test_the_three_hospitals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    compared, printed = 0, ""
    for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        text = block["text"]
        if block["name"]:
            (tmp_path / block["name"]).write_text(f"{text}\n", encoding="utf-8")
        elif block[1] == "run":
            printed = "".join(run(capsys, line) for line in text.splitlines())
        elif block[1] == "prints":
            compared += 1
            assert told(printed) == told(text)
        else:
            compared += 1
            expected = told(text)
            assert alike(told(printed)[-len(expected) :], expected), printed
    assert compared == 4
