"""The canonical order of records against sorted()."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonspark.kernels.canonical_order import sort_groups

INT64 = np.iinfo(np.int64)

value = st.one_of(st.integers(-1, 1), st.integers(INT64.min, INT64.max))


@st.composite
def grouped_records(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    d = draw(st.integers(1, 3))
    rows = draw(st.lists(st.lists(value, min_size=d, max_size=d), min_size=1, max_size=120))
    n = len(rows)
    hashes = draw(st.lists(value, min_size=n, max_size=n))
    order = draw(st.permutations(range(n)))
    inner = draw(st.sets(st.integers(0, n), max_size=5))
    starts = sorted({0, n} | inner)
    return (
        np.array(rows, np.int64),
        np.array(hashes, np.int64),
        np.array(order, np.int64),
        np.array(starts, np.int64),
    )


@given(grouped_records())
def test_each_group_as_sorted(
    records: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    codes, hashes, order, starts = records
    before = order.copy()
    sort_groups(codes, hashes, order, starts)
    for start, stop in itertools.pairwise(starts):
        group = order[start:stop].tolist()
        assert sorted(group) == sorted(before[start:stop].tolist())
        # Stable, so that sorted() gives the very same records even where two are equal.
        expected = sorted(before[start:stop].tolist(), key=lambda i: (*codes[i], hashes[i]))
        assert group == expected


def test_many_records_in_one_group() -> None:
    random = np.random.default_rng(5)
    codes = random.integers(0, 4, (20_000, 2))
    hashes = random.integers(INT64.min, INT64.max, 20_000)
    order = random.permutation(20_000)
    sort_groups(codes, hashes, order, np.array([0, 20_000]))
    assert order.tolist() == np.lexsort((hashes, codes[:, 1], codes[:, 0])).tolist()


def test_no_record_at_all() -> None:
    order = np.empty(0, np.int64)
    sort_groups(np.empty((0, 2), np.int64), order, order, np.array([0]))
    assert len(order) == 0
