"""Figures as texts, alone and in columns."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.figure_text import figure_text, figure_texts, percent


@cases(__file__, "value", "text")
def test_a_figure(value: object, text: str) -> None:
    assert figure_text(value) == text


@cases(__file__, "part", "whole", "text", "short")
def test_a_share(part: float, whole: float, text: str, short: str) -> None:
    assert percent(part, whole) == text
    assert percent(part, whole, short=True) == short


def test_figures_of_other_types() -> None:
    others = (Decimal(1234567), Decimal("0.5"), np.int64(1234), np.float32(0.5))
    assert list(map(figure_text, others)) == ["1,234,567", "0.5", "1,234", "0.5"]


def test_three_digits_of_thousands_are_no_powers_of_ten() -> None:
    assert figure_text(1234.5, 3) == "1,234"


def test_the_largest_of_a_column_says_how_many_decimals_all_have() -> None:
    assert figure_texts([0.2, 0.12346, None, 0.0004]) == ["0.2000", "0.1235", "", "0.0004"]
    assert figure_texts([0.5, 12.25]) == ["0.50", "12.25"]
    assert figure_texts([0.5, 0.25, 3]) == ["0.50", "0.25", "3"]
    assert figure_texts([2.0, 4.0, math.inf]) == ["2", "4", "inf"]
    assert figure_texts([0.5, 12345.6]) == ["0", "12,346"]
    assert figure_texts([0.0, 1e-9]) == ["0", "0"]
    assert figure_texts([]) == []


@given(st.floats(1e-6, 1e12), st.integers(1, 6))
def test_a_text_is_as_near_as_its_digits(value: float, digits: int) -> None:
    found = float(figure_text(value, digits).replace(",", ""))
    assert found == pytest.approx(value, rel=0.5001 * 10 ** (1 - digits), abs=0)


@given(st.lists(st.floats(-1e6, 1e6), max_size=6))
def test_decimals_of_a_column_stand_below_each_other(values: list[float]) -> None:
    texts = figure_texts(values)
    places = {len(re.sub(r"^[^.]*", "", one)) for one in texts}
    assert len(places) <= 1
