"""What charts say where they are pointed at: inside the chart, as text, and only where told."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonspark.page.bars import Bars, Series, draw_bars
from anonspark.page.heat_map import HeatMap, draw_heat_map
from anonspark.page.lines import Line, Lines, draw_lines
from anonspark.page.svg import WIDTH
from anonspark.page.tips import Place, tips, words_of

BARS = Bars(
    "hours",
    ["below 20", "20 and more"],
    [Series("original", [40.0, 60.0]), Series("release", [45.0, 55.0])],
    "share of the records (%)",
    "value (integer)",
)


def said(svg: str) -> list[list[str]]:
    """Return the lines of each place of a chart."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    return [(one.text or "").split("\n") for one in root.findall(".//path/title")]


def test_each_row_of_bars_says_its_words() -> None:
    words = [words_of("below 20", {"original": "40 records", "release": "45 records"}), ["<more>"]]
    svg = draw_bars(replace(BARS, words=words), "one", "about")
    assert said(svg) == [["below 20", "original: 40 records", "release: 45 records"], ["<more>"]]


def test_a_chart_that_is_told_nothing_says_nothing() -> None:
    line = Line("a", [(1.0, 2.0)])
    for svg in (
        draw_bars(BARS, "one", "about"),
        draw_heat_map(HeatMap("t", ["a", "b"], np.eye(2)), "about"),
        draw_lines(Lines("t", [line], "k", "loss", logarithmic=False), "about"),
    ):
        assert "tips" not in svg
        assert 'role="img"' in svg.partition(">")[0]


def test_one_text_stands_beside_its_name() -> None:
    assert words_of("17 to 25", {"release": "1,240 records"}) == ["17 to 25: 1,240 records"]


def test_places_across_share_a_chart_of_lines_without_a_gap() -> None:
    lines = [Line("a", [(1.0, 0.2), (2.0, 0.1), (4.0, 0.0)]), Line("b", [(2.0, 0.3)])]
    words = {1.0: ["one"], 2.0: ["two"], 4.0: ["four"]}
    svg = draw_lines(Lines("t", lines, "k", "loss", logarithmic=True, words=words), "about")
    assert said(svg) == [["one"], ["two"], ["four"]]
    areas = [(int(left), int(right)) for left, right in re.findall(r'"M(\d+) \d+H(\d+)V', svg)]
    assert [right for _, right in areas] == [*(left for left, _ in areas[1:]), round(WIDTH)]


def test_cells_say_their_words() -> None:
    words = {(0, 1): "a and b: 0.20", (1, 0): "a and b: 0.20"}
    matrix = np.array([[1, 0.2], [0.2, 1]])
    svg = draw_heat_map(HeatMap("t", ["a", "b"], matrix, words), "about")
    assert said(svg) == [["a and b: 0.20"]] * 2


@given(words=st.lists(st.text(max_size=90), min_size=1, max_size=3))
def test_words_stay_text(words: list[str]) -> None:
    (drawn,) = said(tips([Place(1.0, 2.0, 24.0, 10.0, words)]))
    assert drawn == ["".join(c if c.isprintable() else " " for c in one) for one in words]
