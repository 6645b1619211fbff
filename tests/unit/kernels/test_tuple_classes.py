"""Rolling up distinct tuples and judging their classes, against dictionaries."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from lattice_tables import random_table

from anonspark.core.criteria import Criteria
from anonspark.kernels.tuple_classes import find_utility_classes, raise_column, score_classes
from anonspark.layers.partition.lattice.distributed import Packing


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
