"""The hospitals of docs/tutorial-holders.md: files are written, commands run, figures compared."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import pytest
from pages import followed, words_of
from places import REPOSITORY

PAGE = REPOSITORY / "docs" / "tutorial-holders.md"

# What the learners of another processor may change.
_CLOSE = 0.02
_FIGURE = re.compile(r"(\+-|[+-])?0\.\d{4}")


def told(printed: str) -> list[list[str]]:
    """Return the words of what was printed, without the random id of the union."""
    return words_of(re.sub(r"^\s*Union [0-9a-f]{12}$", "Union", printed, flags=re.M))


def alike(found: list[list[str]], expected: list[list[str]]) -> bool:
    """Return whether words are the same, and figures of models near."""

    def same(one: str, other: str) -> bool:
        if one == other:
            return True
        if not (_FIGURE.fullmatch(one) and _FIGURE.fullmatch(other)):
            return False
        figures = (float(text.removeprefix("+-")) for text in (one, other))
        return math.isclose(*figures, abs_tol=_CLOSE)

    return len(found) == len(expected) and all(
        len(one) == len(other) and all(map(same, one, other))
        for one, other in zip(found, expected, strict=True)
    )


def test_the_three_hospitals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    compared = 0
    for kind, printed, text in followed(PAGE, tmp_path, capsys):
        compared += 1
        found, expected = told(printed), told(text)
        if kind == "ends with":
            assert alike(found[-len(expected) :], expected), printed
        else:
            assert found == expected
    assert compared == 4
