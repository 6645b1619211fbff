"""The section of docs/reproduction.md that is written alone."""

from __future__ import annotations

from places import REPOSITORY
from reproduction_page import LEARNING, with_learning

PAGE = (REPOSITORY / "docs" / "reproduction.md").read_text()


def test_the_page_has_the_section_and_todays_head() -> None:
    assert PAGE.count(f"\n{LEARNING}\n") == 1
    assert with_learning(PAGE, None, PAGE) == PAGE


def test_a_section_takes_the_place_of_the_older_one() -> None:
    rest, _, _ = PAGE.partition(f"\n{LEARNING}\n")
    new = with_learning(PAGE, [LEARNING, "Nothing was measured."], PAGE)
    assert new == f"{rest}\n{LEARNING}\n\nNothing was measured.\n"


def test_a_page_made_anew_keeps_the_section_where_data_lack() -> None:
    rest, _, _ = PAGE.partition(f"\n{LEARNING}\n")
    assert with_learning(rest, None, PAGE) == PAGE
    without = with_learning(rest, None, rest)
    assert LEARNING not in without
    assert PAGE.startswith(without.rstrip("\n"))
