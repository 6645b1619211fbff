"""Rolling up distinct tuples and judging their classes, against dictionaries."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from lattice_tables import random_table

from anonspark.full_domain.distributed import Packing
from anonspark.kernels.tuple_classes import count_groups, judge_classes, roll_up
from anonspark.privacy.criteria import Criteria

KEEP = np.zeros(0, np.int32)


@given(
    codes=arrays(
        np.int32, st.tuples(st.integers(0, 40), st.integers(1, 4)), elements=st.integers(0, 5)
    ),
    data=st.data(),
)
def test_roll_up(codes: np.ndarray, data: st.DataObject) -> None:
    n, c = codes.shape
    counts = np.array(data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n)), np.int64)
    maps, first, parts = [], np.full(c, -1, np.int64), []
    for column in range(c):
        own = data.draw(st.one_of(st.none(), st.lists(st.integers(0, 2), min_size=6, max_size=6)))
        maps.append(own or list(range(6)))
        if own is not None:
            first[column] = len(parts)
            parts += own
    expected: Counter[tuple[int, ...]] = Counter()
    for row, count in zip(codes.tolist(), counts.tolist(), strict=True):
        expected[tuple(maps[column][code] for column, code in enumerate(row))] += count
    rolled, sums = roll_up(codes, counts, np.array(parts, np.int32), first)
    found = dict(zip(map(tuple, rolled.tolist()), sums.tolist(), strict=True))
    assert len(found) == len(rolled)
    assert found == dict(expected)
    # In the order of their first appearance.
    assert list(found) == list(expected)


def test_many_tuples_with_equal_low_bits() -> None:
    # Long runs in the hash table: codes that differ in high bits only.
    codes = (np.arange(50_000, dtype=np.int32) * 4096 % 2**30).reshape(-1, 1)
    codes = np.repeat(codes, 2, axis=0)
    rolled, sums = roll_up(codes, np.ones(len(codes), np.int64), KEEP, np.full(1, -1))
    assert len(rolled) == len(np.unique(codes))
    assert sums.sum() == len(codes)


@pytest.mark.parametrize("kinds", [(), ("distinct",), ("entropy", "equal distance")])
def test_classes_are_judged_by_the_definitions(kinds: tuple[str, ...]) -> None:
    random = np.random.default_rng(3)
    for _ in range(60):
        table = random_table(random, *kinds, missing=True)
        tuples = table.tuples
        d = len(tuples.levels)
        members, sizes, satisfied = judge_classes(
            tuples.codes, tuples.counts, d, table.criteria.requirements
        )
        expected = sorted(
            (len(rows), table.satisfies(rows)) for rows in table.classes(tuples.levels).values()
        )
        assert sorted(zip(sizes.tolist(), satisfied.tolist(), strict=True)) == expected
        groups = tuples.codes[members, :d]
        assert len(np.unique(groups, axis=0)) == len(members)
        first = table.domain.first_groups(tuples.levels)
        counted = count_groups(
            tuples.codes, members, sizes, satisfied, first, sum(table.domain.groups(tuples.levels))
        )
        for column in range(d):
            for group in range(table.domain.groups(tuples.levels)[column]):
                own = satisfied & (groups[:, column] == group)
                assert counted[first[column] + group] == sizes[own].sum()


def test_no_tuple_at_all() -> None:
    members, sizes, satisfied = judge_classes(
        np.zeros((0, 2), np.int32), np.zeros(0, np.int64), 2, Criteria(2).requirements
    )
    assert len(members) == len(sizes) == len(satisfied) == 0


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
