"""Sorts, draws, bytes and distinct tuples of kernels, against slow references."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from lattice_tables import random_table
from references import xxhash64_of_bytes

from anonspark.core.criteria import Criteria
from anonspark.kernels.canon import draw
from anonspark.kernels.canonical_order import sort_groups
from anonspark.kernels.label_reading import read_plain_labels
from anonspark.kernels.order_cutting import hilbert_keys
from anonspark.kernels.paths import priority
from anonspark.kernels.selection import select, select_float
from anonspark.kernels.sorting import sort_stably
from anonspark.kernels.tuple_classes import find_utility_classes, raise_column, score_classes
from anonspark.kernels.xxhash import hash_half_words, hash_one_value, hash_texts, hash_words
from anonspark.layers.partition.lattice.distributed import Packing


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


NUMBER, DAY = r"-?\d+(?:\.\d+)?", r"\d{4}-\d{2}-\d{2}"
digits = st.text("0123456789", min_size=1, max_size=9)
number = st.builds(
    "{}{}{}".format, st.sampled_from(["", "-"]), digits, st.just("") | digits.map(".{}".format)
)
day = st.dates().map(date.isoformat) | st.sampled_from(["2023-02-29", "2024-02-30", "0000-01-01"])
other = st.text("0123456789-./[]*", max_size=12)


def label(value: st.SearchStrategy[str], divider: str) -> st.SearchStrategy[str]:
    interval = st.tuples(value, value).map(lambda ends: f"[{ends[0]}{divider}{ends[1]}]")
    return value | interval | other


def read(value: str, *, days: bool) -> float:
    if days:
        return float(date.fromisoformat(value).toordinal() - date(1970, 1, 1).toordinal())
    if sum(one.isdigit() for one in value) > 15:
        raise ValueError("more digits than are read")
    return float(value)


def ends(text: str, *, days: bool) -> tuple[float, float]:
    value, divider = (DAY, "/") if days else (NUMBER, "-")
    found = re.fullmatch(rf"\[({value}){divider}({value})\]|({value})", text)
    if found is None:
        return np.nan, np.nan
    try:
        low, high = (read(found[one] or found[3], days=days) for one in (1, 2))
    except ValueError:
        return np.nan, np.nan
    return (low, high) if low <= high else (np.nan, np.nan)


@given(data=st.data(), days=st.booleans())
def test_labels_are_read_as_python_reads_them(data: Any, days: bool) -> None:
    own = label(day, "/") if days else label(number, "-")
    labels = data.draw(st.lists(own, max_size=20))
    encoded = [one.encode() for one in labels]
    offsets = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    low, high = np.zeros(len(labels)), np.zeros(len(labels))

    read_plain_labels(np.frombuffer(b"".join(encoded), np.uint8), offsets, days, low, high)

    expected = np.array([ends(one, days=days) for one in labels]).reshape(-1, 2)
    np.testing.assert_array_equal(np.stack([low, high], axis=1), expected)


_ALL = np.empty(0, np.bool_)
_SEEDS = some.integers(0, 2**64 - 1)


@given(some.lists(some.tuples(some.binary(max_size=80), _SEEDS, some.booleans()), max_size=8))
def test_texts_of_any_length(rows: list[tuple[bytes, int, bool]]) -> None:
    texts = [text for text, _, _ in rows]
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    data = np.frombuffer(b"".join(texts), np.uint8)
    hashes = np.array([seed for _, seed, _ in rows], np.uint64)
    valid = np.array([there for _, _, there in rows], np.bool_)
    hash_texts(offsets, data, np.empty(0, np.int32), valid, hashes)
    assert hashes.tolist() == [
        xxhash64_of_bytes(text, seed) if there else seed for text, seed, there in rows
    ]


def test_rows_that_share_texts() -> None:
    offsets, data = np.array([0, 1, 3], np.int64), np.frombuffer(b"abc", np.uint8)
    hashes = np.array([42, 42, 43], np.uint64)
    hash_texts(offsets, data, np.array([1, 0, 1], np.int32), _ALL, hashes)
    assert hashes.tolist() == [
        xxhash64_of_bytes(b"bc", 42),
        xxhash64_of_bytes(b"a", 42),
        xxhash64_of_bytes(b"bc", 43),
    ]


@given(some.lists(some.tuples(some.integers(-(2**63), 2**63 - 1), _SEEDS), max_size=8))
def test_numbers_hash_as_their_bytes(rows: list[tuple[int, int]]) -> None:
    seeds = [seed for _, seed in rows]
    words = np.array([value for value, _ in rows], np.int64)
    halves = words.astype(np.int32)
    hashes = np.array(seeds, np.uint64)
    hash_words(words, _ALL, hashes)
    assert hashes.tolist() == [
        xxhash64_of_bytes(word.tobytes(), seed) for word, seed in zip(words, seeds, strict=True)
    ]
    hashes = np.array(seeds, np.uint64)
    hash_half_words(halves, _ALL, hashes)
    assert hashes.tolist() == [
        xxhash64_of_bytes(half.tobytes(), seed) for half, seed in zip(halves, seeds, strict=True)
    ]


def test_nulls_leave_hashes_as_they_are() -> None:
    hashes = np.array([1, 2], np.uint64)
    hash_words(np.zeros(2, np.int64), np.array([False, False]), hashes)
    hash_half_words(np.zeros(2, np.int32), np.array([False, False]), hashes)
    assert hashes.tolist() == [1, 2]


def test_one_value_some_times_over() -> None:
    hashes, expected = np.array([1, 2], np.uint64), np.array([1, 2], np.uint64)
    hash_one_value(7, 3, hashes)
    for _ in range(3):
        hash_half_words(np.array([7, 7], np.int32), _ALL, expected)
    assert hashes.tolist() == expected.tolist()


@given(
    table=arrays(
        np.int32, st.tuples(st.integers(1, 60), st.integers(1, 4)), elements=st.integers(0, 5)
    ),
    data=st.data(),
)
def test_raising_a_column(table: np.ndarray, data: st.DataObject) -> None:
    codes, counts = np.unique(table, axis=0, return_counts=True)
    column = data.draw(st.integers(0, table.shape[1] - 1))
    coarser = np.array(sorted(data.draw(st.lists(st.integers(0, 3), min_size=6, max_size=6))))
    expected: Counter[tuple[int, ...]] = Counter()
    for row, count in zip(codes.tolist(), counts.tolist(), strict=True):
        row[column] = int(coarser[row[column]])
        expected[tuple(row)] += count
    raised, sums = raise_column(
        np.ascontiguousarray(codes), counts, column, coarser.astype(np.int32)
    )
    assert raised.tolist() == [list(row) for row in sorted(expected)]
    assert sums.tolist() == [expected[row] for row in sorted(expected)]


def test_many_groups_become_one() -> None:
    # More segments than a power of two, of different lengths.
    random = np.random.default_rng(2)
    codes, counts = np.unique(
        random.integers(0, (1000, 40, 3), (20_000, 3)).astype(np.int32), axis=0, return_counts=True
    )
    one = np.zeros(1000, np.int32)
    raised, sums = raise_column(np.ascontiguousarray(codes), counts, 0, one)
    assert raised.tolist() == [[0, a, b] for a in range(40) for b in range(3)]
    for (_, a, b), found in zip(raised.tolist(), sums.tolist(), strict=True):
        assert found == counts[(codes[:, 1] == a) & (codes[:, 2] == b)].sum()


@pytest.mark.parametrize("kinds", [(), ("distinct",), ("entropy", "equal distance")])
def test_classes_are_judged_by_the_definitions(kinds: tuple[str, ...]) -> None:
    random = np.random.default_rng(3)
    for _ in range(60):
        table = random_table(random, *kinds, missing=True)
        tuples = table.tuples
        d = len(tuples.levels)
        expected = [
            len(rows) for rows in table.classes(tuples.levels).values() if table.satisfies(rows)
        ]
        requirements = table.criteria.requirements
        rows, sizes = find_utility_classes(tuples.codes, tuples.counts, d, requirements)
        assert sorted(sizes.tolist()) == sorted(expected)
        groups = tuples.codes[rows, :d]
        assert len(np.unique(groups, axis=0)) == len(rows)
        score = tuples.score(table.criteria, by_group=True)
        assert score.utility_classes == len(expected)
        first = table.domain.first_groups(tuples.levels)
        for column in range(d):
            for group in range(table.domain.groups(tuples.levels)[column]):
                own = sizes[groups[:, column] == group].sum()
                assert score.groups[first[column] + group] == own
        without = tuples.score(table.criteria, by_group=False)
        assert without[:5] == score[:5]
        assert len(without.groups) == 0


def test_no_tuple_at_all() -> None:
    nothing = np.zeros((0, 2), np.int32), np.zeros(0, np.int64)
    rows, sizes = find_utility_classes(*nothing, 2, Criteria(2).requirements)
    assert len(rows) == len(sizes) == 0
    raised, sums = raise_column(*nothing, 1, np.zeros(3, np.int32))
    assert raised.shape == (0, 2)
    assert len(sums) == 0


def test_squares_of_many_records_do_not_overflow() -> None:
    codes = np.arange(3, dtype=np.int32).reshape(-1, 1)
    counts = np.array([3_000_000_000, 4_000_000_000, 1], np.int64)
    none = np.zeros(0, np.int64)
    *_, low, high, kept_low, kept_high = score_classes(
        codes, counts, 1, Criteria(2).requirements, none, none
    )
    assert low + (high << 32) == 9 * 10**18 + 16 * 10**18 + 1
    assert kept_low + (kept_high << 32) == 9 * 10**18 + 16 * 10**18


@given(st.lists(st.sampled_from([1, 2, 3, 1000, 2**31 - 1]), min_size=1, max_size=12), st.data())
def test_packing_and_unpacking(radices: list[int], data: st.DataObject) -> None:
    packing = Packing(tuple(radices))
    rows = data.draw(
        st.lists(st.tuples(*(st.integers(0, radix - 1) for radix in radices)), max_size=5)
    )
    codes = np.array(rows, np.int32).reshape(-1, len(radices))
    words = packing.pack(codes)
    assert len(words) == packing.words
    assert all(word.dtype == np.int64 and (word >= 0).all() for word in words)
    assert packing.unpack(words).tolist() == codes.tolist()
    assert len(set(zip(*(word.tolist() for word in words), strict=True))) == len(set(rows))


def test_packing_uses_as_few_words_as_it_can() -> None:
    assert Packing((2**31 - 1, 2**31 - 1)).words == 1
    assert Packing((2**31 - 1, 2**31 - 1, 2)).words == 1
    assert Packing((2**31 - 1, 2**31 - 1, 3)).words == 2
    assert Packing(()).words == 0
