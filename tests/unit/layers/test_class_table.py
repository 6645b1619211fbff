"""Classes: their names, the order of their rows, and exact sums of their figures."""

from __future__ import annotations

import hashlib
from collections import Counter
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from statistics import median

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from anonspark.engine.protocol import TASK
from anonspark.layers.generalize.figures import exact_sums
from anonspark.layers.publish.class_table import _in_digits, _InOrder, _published_names
from anonspark.release.derived_figures import Totals

NAMES = st.lists(st.integers(0, 2**64 - 1), max_size=20)


@given(staged=NAMES)
def test_names_are_the_first_digits_of_hashes(staged: list[int]) -> None:
    names = _in_digits(_published_names(np.array(staged, np.uint64)))
    names.validate(full=True)
    expected = [hashlib.sha256(f"{one:016x}".encode()).hexdigest()[:16] for one in staged]
    assert names.to_pylist() == expected


@given(names=NAMES.filter(bool), cut=st.integers(0, 20))
def test_rows_are_in_the_order_of_the_texts(names: list[int], cut: int) -> None:
    sent = pa.RecordBatch.from_pydict(
        {
            "class_id": pa.array(np.array(names, np.uint64).view(np.int64)),
            "size": range(len(names)),
            TASK: pa.repeat(pa.scalar(0, pa.int32()), len(names)),
        }
    )
    schema = pa.schema([("run_id", pa.string()), ("class_id", pa.string()), ("n", pa.int64())])
    cut = min(cut, len(names))
    (found,) = _InOrder("a-run", schema)(iter([sent.slice(0, cut), sent.slice(cut)]))
    expected = sorted((f"{name:016x}", place) for place, name in enumerate(names))
    assert found.to_pydict() == {
        "run_id": ["a-run"] * len(names),
        "class_id": [name for name, _ in expected],
        "n": [place for _, place in expected],
    }


def test_no_class_makes_no_row_group() -> None:
    assert list(_InOrder("a-run", pa.schema([]))(iter([]))) == []


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
