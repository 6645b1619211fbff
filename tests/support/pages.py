"""Pages of the documentation that can be followed: files are written, commands run.

A comment before a block of code says what becomes of it: ``file: NAME`` is written, ``run`` is run,
``refused: CODE`` is run and ends with that code. Any other one, as ``prints``, holds what the
commands before it print.
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest
from commands import Outcome, command

_BLOCK = re.compile(
    r"<!-- (?P<kind>file|run|refused|prints|drawn|ends with)(?:: (?P<of>\S+))? -->\n\n"
    r"```\w+\n(?P<text>.*?)\n```",
    re.S,
)

# What tables are drawn with.
_FRAME = re.compile("[\u2500-\u257f]+")


_VARIABLE = re.compile(r"[A-Z_]+=")


class Shown(NamedTuple):
    """What a page says that commands print, and what they did."""

    kind: str
    printed: str
    expected: str


def followed(page: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Shown]:
    """Follow a page in the folder that is the working directory."""
    printed = ""
    for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        kind, text = block["kind"], block["text"]
        if kind == "file":
            (folder / block["of"]).write_text(f"{text}\n", encoding="utf-8")
        elif kind in ("run", "refused"):
            done = [_run(capsys, line) for line in text.splitlines()]
            assert {one.code for one in done} == {int(block["of"] or 0)}, done[-1].err
            printed = "".join(one.err if one.code else one.out for one in done)
        else:
            yield Shown(kind, printed, text)


def words_of(printed: str) -> list[list[str]]:
    """Return the words of each line that has any, without the frames of tables."""
    lines = [_FRAME.sub(" ", line).split() for line in printed.splitlines()]
    return [words for words in lines if words]


def _run(capsys: pytest.CaptureFixture[str], line: str) -> Outcome:
    """Run a command of a page, with the variables of the environment that it begins with."""
    words = shlex.split(line)
    given = dict(word.split("=", 1) for word in takewhile(_VARIABLE.match, words))
    program, *arguments = words[len(given) :]
    with patch.dict(os.environ, given):
        return _run_program(capsys, program, arguments)


def _run_program(capsys: pytest.CaptureFixture[str], program: str, arguments: list[str]) -> Outcome:
    if program == "python":
        sys.argv = arguments
        runpy.run_path(arguments[0])
        return Outcome(0, "", "")
    return command(capsys, *arguments)
