"""Sorts, order statistics, canonical orders and draws of records, against other sorting."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.kernels.canon import draw
from anonspark.kernels.canonical_order import sort_groups
from anonspark.kernels.order_cutting import hilbert_keys
from anonspark.kernels.paths import priority
from anonspark.kernels.selection import select, select_float
from anonspark.kernels.sorting import sort_stably


def places(values: np.ndarray) -> list[int]:
    order = np.empty(len(values), np.int64)
    sort_stably(values, order)
    return [int(place) for place in order]


@given(
    st.lists(
        st.one_of(st.sampled_from([0.0, -0.0, 1.0, -1.5]), st.floats(allow_nan=False)), max_size=300
    )
)
def test_any_numbers(values: list[float]) -> None:
    assert places(np.array(values, np.float64)) == sorted(
        range(len(values)), key=values.__getitem__
    )


@pytest.mark.parametrize("n", [1, 2, 16, 17, 255, 256, 257, 1000, 5000])
@pytest.mark.parametrize("kinds", [1, 3, 10**9])
def test_many_numbers(n: int, kinds: int) -> None:
    random = np.random.default_rng(n + kinds)
    for values in (
        random.integers(0, kinds, n) / 7,
        # One far value: all others are in one bucket.
        np.append(random.integers(0, kinds, n - 1) / 7, 1e300),
        np.arange(n)[::-1] / 3.0,
    ):
        assert places(values) == np.argsort(values, kind="stable").tolist()


INT64 = np.iinfo(np.int64)


def drawn(codes: np.ndarray, hashes: np.ndarray, order: np.ndarray, most: int) -> list[int]:
    n = len(order)
    places = draw(
        codes,
        hashes,
        order,
        hashes[order],
        0,
        n,
        np.uint64(11),
        most,
        np.empty(n, np.uint64),
        np.empty(n, np.int64),
    )
    return [int(record) for record in order[places]]


def expected(codes: np.ndarray, hashes: np.ndarray, most: int) -> list[tuple[int, list[int]]]:
    """Return hash and codes of the records drawn: of equal hashes the first by codes."""
    best: dict[int, list[int]] = {}
    for own, row in zip(hashes.tolist(), codes.tolist(), strict=True):
        best[own] = min(best.get(own, row), row)
    by_priority = sorted(best, key=lambda own: int(priority(own, np.uint64(11))))
    return [(own, best[own]) for own in by_priority[:most]]


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 400),
    contents=st.sampled_from([1, 3, 40, 10**9]),
    most=st.integers(1, 100),
)
def test_the_smallest_priorities_each_hash_once(
    seed: int, n: int, contents: int, most: int
) -> None:
    random = np.random.default_rng(seed)
    hashes = random.integers(0, contents, n) * 7919
    codes = random.integers(0, 3, (n, 2))
    records = drawn(codes, hashes, random.permutation(n), most)
    found = [(int(hashes[record]), codes[record].tolist()) for record in records]
    assert found == expected(codes, hashes, most)


@pytest.mark.parametrize("contents", [20, 2_000, 10**15])
def test_many_records(contents: int) -> None:
    random = np.random.default_rng(contents)
    hashes = random.integers(INT64.min, INT64.max, min(contents, 50_000))
    hashes = hashes[random.integers(0, len(hashes), 50_000)]
    codes = (hashes % 1000)[:, None].copy()
    records = drawn(codes, hashes, np.arange(50_000), 30)
    assert [int(hashes[record]) for record in records] == [
        own for own, _ in expected(codes, hashes, 30)
    ]


few_values = st.integers(-2, 2)
all_values = st.one_of(few_values, st.integers(INT64.min, INT64.max))


@given(st.lists(all_values, min_size=1, max_size=200), st.data())
def test_every_rank_of_integers_as_sorted(values: list[int], data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, len(values) - 1))
    assert select(np.array(values, np.int64), 0, len(values), rank) == sorted(values)[rank]


@given(
    st.lists(
        st.one_of(st.sampled_from([0.0, 1.0, -1.5]), st.floats(allow_nan=False)),
        min_size=1,
        max_size=200,
    ),
    st.data(),
)
def test_every_rank_of_floats_as_sorted(values: list[float], data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, len(values) - 1))
    assert select_float(np.array(values), 0, len(values), rank) == sorted(values)[rank]


@given(st.lists(all_values, min_size=2, max_size=60), st.data())
def test_only_the_slice_counts_and_is_permuted(values: list[int], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(values) - 1))
    stop = data.draw(st.integers(start + 1, len(values)))
    rank = data.draw(st.integers(0, stop - start - 1))
    scratch = np.array(values, np.int64)
    assert select(scratch, start, stop, rank) == sorted(values[start:stop])[rank]
    assert scratch[:start].tolist() == values[:start]
    assert scratch[stop:].tolist() == values[stop:]
    assert sorted(scratch[start:stop].tolist()) == sorted(values[start:stop])


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(np.zeros(300_000, np.int64), id="all equal"),
        pytest.param(np.arange(300_000), id="ascending"),
        pytest.param(np.arange(300_000)[::-1], id="descending"),
        pytest.param(np.abs(np.arange(300_000) - 150_000), id="valley"),
        pytest.param(np.arange(300_000) % 2, id="two values"),
        pytest.param(np.repeat([INT64.min, INT64.max], 150_000), id="the extremes"),
    ],
)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0], ids=["smallest", "median", "largest"])
def test_large_arrays(values: np.ndarray, share: float) -> None:
    rank = int(share * (len(values) - 1))
    assert select(values.astype(np.int64), 0, len(values), rank) == np.sort(values)[rank]


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


@pytest.mark.parametrize(
    ("d", "bits"), [(1, 1), (1, 10), (2, 1), (2, 6), (3, 4), (4, 3), (5, 2), (7, 1), (12, 1)]
)
def test_the_curve_visits_every_cell_once_and_steps_to_a_neighbor(d: int, bits: int) -> None:
    cells = np.array(list(itertools.product(range(2**bits), repeat=d)), np.int64)

    keys = hilbert_keys(np.ascontiguousarray(cells.T), bits)

    assert sorted(keys.tolist()) == list(range(2 ** (d * bits)))
    curve = cells[np.argsort(keys)]
    assert not curve[0].any()
    assert (np.abs(np.diff(curve, axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize("d", [2, 3, 5])
def test_a_coarser_grid_gives_the_leading_digits(d: int) -> None:
    """What makes the curve local: it fills a coarse cell before it goes to the next one."""
    fine = np.random.default_rng(1).integers(0, 2**9, (d, 500))

    # The curve through the coarse grid is the same but for the names of the axes, so that equal
    # coarse cells, not equal keys, are compared.
    leading = hilbert_keys(fine, 9) >> (3 * d)
    coarse = [tuple(cell) for cell in (fine >> 3).T.tolist()]

    assert len(set(zip(leading.tolist(), coarse, strict=True))) == len(set(coarse))
    assert len(set(leading.tolist())) == len(set(coarse))


@pytest.mark.parametrize(("d", "bits"), [(62, 1), (31, 2), (20, 3), (6, 10)])
def test_keys_of_many_axes_fit_62_bits(d: int, bits: int) -> None:
    cells = np.random.default_rng(2).integers(0, 2**bits, (d, 1000))
    cells[:, 0] = 0
    cells[:, 1] = 2**bits - 1

    keys = hilbert_keys(cells, bits)

    assert keys.min() >= 0
    assert keys.max() < 2 ** (d * bits)
    assert len(set(keys.tolist())) == len({tuple(cell) for cell in cells.T.tolist()})


def test_no_cells() -> None:
    assert len(hilbert_keys(np.empty((3, 0), np.int64), 4)) == 0
