"""The customers of docs/tutorial-models.md: files are written, commands run, figures compared."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from pages import followed, words_of
from places import REPOSITORY

PAGE = REPOSITORY / "docs" / "tutorial-models.md"

# What sums of other processors may change, of figures and of shares in percent.
_CLOSE = {"": 0.0005, "%": 0.3}

_FIGURE = re.compile(r"(?P<sign>\+-|[+-]?)(?P<size>\d+\.\d+)(?P<unit>%?)[;,)]*")


def lines_of(printed: str) -> list[list[str]]:
    """Return the words of each line of a table or a sentence, without its frame."""
    # The last figure of a setting is its seconds.
    lines = words_of(printed.replace(" %", "%"))
    return [line[:-1] if "k=" in " ".join(line) else line for line in lines]


def agree(one: list[str], other: list[str]) -> bool:
    """Return whether two lines have the same words, and figures that are close."""
    return len(one) == len(other) and all(
        left == right or are_close(left, right) for left, right in zip(one, other, strict=True)
    )


def are_close(one: str, other: str) -> bool:
    """Return whether two words are figures that are close."""
    left, right = _FIGURE.fullmatch(one), _FIGURE.fullmatch(other)
    if left is None or right is None or left["unit"] != right["unit"]:
        return False
    sizes = [
        -float(found["size"]) if found["sign"] == "-" else float(found["size"])
        for found in (left, right)
    ]
    return abs(sizes[0] - sizes[1]) <= _CLOSE[left["unit"]]


def test_the_customers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setenv("COLUMNS", "200")
    blocks = 0
    for _, printed, expected in followed(PAGE, tmp_path, capsys):
        blocks += 1
        found = iter(lines_of(printed))
        # All lines of the page are printed, in its order; others may lie between them.
        for line in lines_of(expected):
            assert any(agree(line, one) for one in found), line
    assert blocks == 8
    orders = (tmp_path / "arranged" / "orders.yaml").read_text(encoding="utf-8")
    learned = re.findall(r"- (\w+)", orders)
    declared = re.findall(r"order: \[(.*?)\]", (tmp_path / "arranged.yaml").read_text())
    assert learned == [value for order in declared for value in order.split(", ")]
