"""Normal and outlier records of a group against the slow reference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import references
from hypothesis import given, settings
from hypothesis import strategies as st

from anonspark.kernels.canonical_order import sort_groups
from anonspark.kernels.local_outlier_factor import local_outlier_factors
from anonspark.kernels.separation import separate_outliers

INT64 = np.iinfo(np.int64)


def normal_records(
    codes: np.ndarray,
    hashes: np.ndarray,
    groups: list[list[int]],
    k: int,
    neighbors: int,
    scale: float = 1.0,
) -> list[set[int]]:
    """Run the kernel as a task does; return the normal records of each group."""
    order = np.array([i for group in groups for i in group], np.int64)
    starts = np.cumsum([0, *map(len, groups)]).astype(np.int64)
    sort_groups(codes, hashes, order, starts)
    normal = separate_outliers(codes, codes / scale, order, starts, k, neighbors)
    return [
        set(order[start:stop][normal[start:stop]].tolist())
        for start, stop in itertools.pairwise(starts)
    ]


def factors_of_records(points: np.ndarray, neighbors: int) -> np.ndarray:
    """Return the kernel's factors a record: ties must be ties to the last bit on both sides."""
    distinct, place, weights = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    return local_outlier_factors(distinct, weights.astype(np.int64), neighbors)[place.ravel()]


@st.composite
def groups_of_records(
    draw: st.DrawFn,
) -> tuple[np.ndarray, np.ndarray, list[list[int]], int, int]:
    """Draw records with many ties, in some groups of k records at least."""
    d = draw(st.integers(1, 3))
    k = draw(st.integers(1, 6))
    coordinate = st.one_of(st.integers(0, 3), st.integers(0, 1000))
    groups: list[list[int]] = []
    rows: list[list[int]] = []
    for _ in range(draw(st.integers(1, 3))):
        size = draw(st.integers(max(k, 2), 30))
        groups.append(list(range(len(rows), len(rows) + size)))
        row = st.lists(coordinate, min_size=d, max_size=d)
        rows += draw(st.lists(row, min_size=size, max_size=size))
    hash_values = st.lists(
        st.integers(INT64.min, INT64.max), min_size=len(rows), max_size=len(rows), unique=True
    )
    neighbors = draw(st.integers(1, 8))
    return np.array(rows, np.int64), np.array(draw(hash_values), np.int64), groups, k, neighbors


@settings(deadline=None)
@given(groups_of_records())
def test_same_records_as_the_reference(
    drawn: tuple[np.ndarray, np.ndarray, list[list[int]], int, int],
) -> None:
    codes, hashes, groups, k, neighbors = drawn
    # 1024 divides exactly: the reference measures the very same distances.
    found = normal_records(codes, hashes, groups, k, neighbors, 1024)
    expected = [
        set(
            references.separate_outliers(
                codes, codes / 1024, hashes, group, k, neighbors, factors_of_records
            )
        )
        for group in groups
    ]
    assert found == expected
    assert [len(normal) for normal in found] == [min(k, len(group)) for group in groups]


@settings(deadline=None)
@given(groups_of_records(), st.randoms(use_true_random=False))
def test_independent_of_the_order_of_records(
    drawn: tuple[np.ndarray, np.ndarray, list[list[int]], int, int], random: object
) -> None:
    codes, hashes, groups, k, neighbors = drawn
    found = normal_records(codes, hashes, groups, k, neighbors, 1024)
    shuffled = [list(group) for group in groups]
    for group in shuffled:
        random.shuffle(group)  # type: ignore[attr-defined]
    assert normal_records(codes, hashes, shuffled, k, neighbors, 1024) == found


@pytest.mark.parametrize("seed", range(5))
def test_same_records_as_the_reference_without_ties(seed: int) -> None:
    # Here the reference computes its own factors: nothing is taken from the kernel.
    random = np.random.default_rng(seed)
    codes = random.integers(0, 2**30, (120, 3))
    groups = [list(range(50)), list(range(50, 57)), list(range(57, 120))]
    hashes = random.integers(INT64.min, INT64.max, 120)
    found = normal_records(codes, hashes, groups, 7, 6, 2**30)
    for normal, group in zip(found, groups, strict=True):
        expected = references.separate_outliers(codes, codes / 2**30, hashes, group, 7, 6)
        assert normal == set(expected)


def test_groups_of_k_records_stay_whole() -> None:
    codes = np.array([[0], [1], [50], [0], [1]])
    found = normal_records(codes, np.arange(5), [[0, 1, 2], [3, 4]], 3, 2)
    assert found == [{0, 1, 2}, {3, 4}]


def test_the_far_record_is_the_outlier() -> None:
    codes = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [90, 90]])
    assert normal_records(codes, np.arange(5), [[4, 3, 2, 1, 0]], 4, 3, 90) == [{0, 1, 2, 3}]


def test_ties_go_by_content() -> None:
    # All four corners of a square have the same factor: the first one by values is the reference,
    # and of its two neighbours at the same distance the first one by values stays.
    codes = np.array([[1, 1], [1, 0], [0, 1], [0, 0]])
    assert normal_records(codes, np.arange(4), [[0, 1, 2, 3]], 2, 2) == [{3, 2}]


def test_ties_of_equal_records_go_by_hash() -> None:
    codes = np.array([[5, 5], [5, 5], [5, 5], [5, 5]])
    hashes = np.array([3, -7, 12, 0])
    assert normal_records(codes, hashes, [[0, 1, 2, 3]], 2, 1) == [{1, 3}]


def test_distances_that_underflow() -> None:
    # The points differ, yet the squares of their distances are 0.
    codes = np.array([[0], [1], [1], [1], [2]])
    order = np.arange(5)
    normal = separate_outliers(codes, codes * 1e-200, order, np.array([0, 5]), 3, 2)
    assert normal.sum() == 3


@pytest.mark.parametrize("k", [1, 5, 100_000])
def test_many_equal_records(k: int) -> None:
    n = 200_000
    hashes = np.random.default_rng(0).permutation(n)
    found = normal_records(np.full((n, 4), 7), hashes, [list(range(n))], k, max(k - 1, 1))
    assert found == [set(np.flatnonzero(hashes < k).tolist())]


@pytest.mark.parametrize("k", [5, 1000, 50_000])
def test_many_records_at_few_points(k: int) -> None:
    n = 200_000
    random = np.random.default_rng(2)
    points = random.integers(0, 1000, (50, 3))
    codes = points[random.integers(0, 50, n)]
    (normal,) = normal_records(codes, random.permutation(n), [list(range(n))], k, k - 1, 1000)
    assert len(normal) == k
    # Whole points, from the nearest outwards, save for the last one.
    _, of_record, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    taken = np.bincount(of_record.ravel()[list(normal)], minlength=len(counts))
    assert ((taken == 0) | (taken == counts)).sum() >= len(counts) - 1
