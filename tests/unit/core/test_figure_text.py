"""Figures as texts, alone and in columns, and labels of floats as NumPy writes them."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.figure_text import figure_text, figure_texts, percent
from anonspark.core.labels import value_labels


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


def expected(values: np.ndarray) -> list[str]:
    return [str(value).removesuffix(".0") for value in values]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_of_64_bits(numbers: list[float]) -> None:
    values = np.array(numbers)
    assert value_labels(pa.array(values), "float").to_pylist() == expected(values)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_of_32_bits(numbers: list[float]) -> None:
    values = np.array(numbers, np.float32)
    assert value_labels(pa.array(values), "float").to_pylist() == expected(values)


@pytest.mark.parametrize("width", [np.float32, np.float64])
def test_numbers_around_the_ends_of_what_arrow_writes_alike(width: type[np.floating]) -> None:
    random = np.random.default_rng(0)
    ends = np.array([1e-4, 1e-3, 0.1, 1.0, 1e5, 1e6, 1e7, 1e15, 1e16, 0.0], width)
    near = [np.nextafter(ends, width(sign * np.inf)) for sign in (-1, 1)]
    sizes = np.exp(random.uniform(np.log(1e-5), np.log(1e7), 20_000))
    rounded = np.round(sizes, 2)
    values = np.concatenate([ends, *near, sizes, rounded]).astype(width)
    values[::2] *= -1
    assert value_labels(pa.array(values), "float").to_pylist() == expected(values)
