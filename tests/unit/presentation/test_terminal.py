"""Blocks on a terminal: no figure is cut, and nothing of others acts on it."""

from __future__ import annotations

import io

import pytest

from anonspark.cli.command import Terminal
from anonspark.presentation.blocks import Table, Text
from anonspark.presentation.card import Card
from anonspark.presentation.terminal import Block, show_blocks


def shown(*blocks: Block) -> list[str]:
    console = Terminal(file=io.StringIO(), soft_wrap=True, width=80)
    show_blocks(console, blocks)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


@pytest.fixture(autouse=True)
def _columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_numbers_stand_to_the_right_and_texts_to_the_left() -> None:
    table = Table("People", ["name", "age", "share"], [["Ada", 1815, "9.5%"], ["Bo", 7, ""]])
    assert table.numbers == [False, True, True]
    lines = [line.rstrip() for line in shown(table)]
    assert lines[1:] == [
        "name    age  share",
        "──────────────────",
        "Ada   1,815   9.5%",
        "Bo        7",
    ]


@pytest.mark.parametrize("columns", [3, 6, 9, 14])
def test_no_number_is_cut_however_many_columns_there_are(columns: int) -> None:
    numbers = [123_456_789 + place for place in range(columns)]
    names = [f"a figure of the kind {place}" for place in range(columns)]
    long = "a name of many words which is folded where there is no room for all of them"
    lines = shown(Table("Wide", ["what", *names], [[long, *numbers], ["short", *numbers]]))
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    assert all(text.count(f"{number:,}") == 2 for number in numbers)


def test_a_line_is_folded_below_its_figure() -> None:
    words = " ".join(["word"] * 30)
    first, *lines = shown(Card("Title", "it holds", True, [("records", words), ("classes", 7)]))
    assert first == "Title: it holds"
    assert max(map(len, lines)) <= 80
    assert [line[:13] for line in lines] == ["  records    ", *[" " * 13] * 2, "  classes    "]


def test_headings_and_folded_lines_hide_credentials_and_control_characters() -> None:
    secret = "jdbc:postgresql://host/db?password=hunter2&" + "x" * 70
    lines = shown(
        Table("", ["the long heading \x1b[31m of it", "n"], [["a", 1]]),
        Card("T", "v", None, [("where", secret)]),
        Text("\x1b[2J"),
    )
    assert "hunter2" not in "".join(lines).replace(" ", "")
    assert "\x1b" not in "".join(lines)
