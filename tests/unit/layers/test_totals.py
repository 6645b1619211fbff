"""Figures of a release that the sizes of its classes tell."""

from __future__ import annotations

from collections import Counter
from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from anonspark.release.derived_figures import Totals

SIZES = st.lists(st.integers(1, 40) | st.integers(1, 10**12), min_size=1, max_size=30)


def totals_of(sizes: list[int]) -> Totals:
    return Totals(Counter(sizes))


@given(SIZES)
def test_the_median_is_that_of_the_classes(sizes: list[int]) -> None:
    assert totals_of(sizes).median_class_size == median(sizes)


@given(SIZES, SIZES)
def test_rounds_are_added_up(one: list[int], other: list[int]) -> None:
    both = totals_of(one) + totals_of(other)
    assert both.median_class_size == median(one + other)
    assert both.squares == sum(size**2 for size in one + other)
