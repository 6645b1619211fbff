"""Pages of the documentation that can be followed: files are written, commands run."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import command

_BLOCK = re.compile(
    r"<!-- (?:file: (?P<name>\S+)|(?P<what>run|prints)) -->\n\n```\w+\n(?P<text>.*?)\n```", re.S
)


def followed(
    page: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[tuple[str, str]]:
    """Follow a page in the folder that is the working directory.

    Yields
    ------
    printed : str
        By the last commands.
    expected : str
        What the page says that they print.
    """
    printed = ""
    for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["name"]:
            (folder / block["name"]).write_text(f"{block['text']}\n", encoding="utf-8")
        elif block["what"] == "run":
            printed = "".join(_run(capsys, line) for line in block["text"].splitlines())
        else:
            yield printed, block["text"]


def _run(capsys: pytest.CaptureFixture[str], line: str) -> str:
    """Run a command of a page, and return what it prints."""
    program, *arguments = shlex.split(line)
    if program == "python":
        sys.argv = arguments
        runpy.run_path(arguments[0])
        return ""
    done = command(capsys, *arguments)
    assert done.code == 0, done.err
    return done.out
