"""Sums of figures: exact, so the order of the classes and their tasks do not matter."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal, localcontext

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonspark.layers.generalize.figures import exact_sums

PENALTIES = st.floats(0, 1)
VALUES = st.lists(PENALTIES | st.floats(0, 2**40) | st.integers(0, 2**50).map(float), max_size=20)
PLACES = Decimal("1e-15")


def rounded(value: float) -> Decimal:
    with localcontext(prec=60):
        return Decimal(value).quantize(PLACES, ROUND_HALF_EVEN)


@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(values: list[float], random: object) -> None:
    (whole,) = exact_sums(np.array(values))
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    parts = [exact_sums(np.array(shuffled[start : start + 3]))[0] for start in range(0, 20, 3)]
    with localcontext(prec=60):
        assert sum(parts, Decimal(0)) == whole
        # A unit in the last place for each number: the product of a fraction is rounded, too.
        expected = sum(map(rounded, values), Decimal(0))
        assert abs(whole - expected) <= PLACES * len(values)


def test_sums_of_many_do_not_overflow() -> None:
    values = np.full(200_000, 0.999_999_999_999_999)
    assert exact_sums(values) == [Decimal("199999.999999999800000")]
    assert exact_sums(np.full(500, 2.0**53)) == [Decimal(500 * 2**53)]


def test_groups_are_summed_apart() -> None:
    values = np.array([0.25, 0.5, 1.75, 3.0])
    assert exact_sums(values, [0, 1, 3]) == [Decimal("0.25"), Decimal("2.25"), Decimal(3)]
    assert exact_sums(np.zeros(0)) == [Decimal(0)]
