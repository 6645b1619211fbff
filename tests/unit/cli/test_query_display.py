"""Answers to questions on a terminal."""

from __future__ import annotations

import io

from anonspark.cli.display import answer_blocks
from anonspark.cli.terminal import Terminal
from anonspark.presentation.terminal import show_blocks
from anonspark.reading.counting import Count, Counts
from anonspark.reading.published import Answer


def shown(answer: Answer) -> str:
    """Return what a terminal with colours is sent."""
    file = io.StringIO()
    terminal = Terminal(file=file, force_terminal=True, color_system="truecolor")
    show_blocks(terminal, answer_blocks(answer))
    return file.getvalue()


def test_numbers_are_not_highlighted_in_pieces() -> None:
    count = Count(8825.9, 7798, 10226, 30162)
    assert shown(Answer("", count, None, None, 1366)) == (
        "about 8,825.9 of 30,162 records. For certain at least 7,798 and at most 10,226\n"
        "records that were left out of the release are not counted: 1,366\n"
    )
    exact = Count(1234.0, 1234, 1234, 30162)
    assert shown(Answer("", exact, None, None, 0)) == "1,234 of 30,162 records, exactly\n"


def test_groups_are_not_highlighted_either() -> None:
    count = Count(8825.9, 7798, 10226, 30162)
    groups = Counts({"<=50K": count, 1234: count, None: count})
    _, _, *rows = shown(Answer("", count, "income", groups, None)).splitlines()
    assert len(rows) == 5
    assert not any("\x1b" in row for row in rows)


def test_counts_print_a_line_for_each_value() -> None:
    counts = Counts({"Female": Count(8825.9, 7798, 10226, 30162), None: Count(12, 12, 12, 30162)})
    assert repr(counts) == "Female   8,825.9 (certain: 7,798 to 10,226)\nmissing  12"
    assert counts["Female"].lower == 7798
