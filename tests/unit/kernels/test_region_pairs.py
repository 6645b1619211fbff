"""Pairs of regions that meet, and points in pairs, against comparing everything with everything."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonspark.kernels.region_pairs import match_payloads, sum_candidates
from anonspark.kernels.region_search import build_region_tree
from anonspark.release.region_matching import code_regions

CODES = 9

Sets = list[list[set[int]]]

# Its seed is drawn, and not each number that comes of it.
chances = st.randoms(use_true_random=True)


def drawn_regions(chance: random.Random, count: int, d: int) -> Sets:
    """Draw regions: of each dimension a set of codes, now and then an empty one."""

    def one() -> set[int]:
        if chance.random() < 0.5:
            low = chance.randrange(CODES)
            return set(range(low, min(low + chance.randrange(4), CODES)))
        return {code for code in range(CODES) if chance.random() < 0.3}

    return [[one() for _ in range(d)] for _ in range(count)]


def runs_of(codes: set[int]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for code in sorted(codes):
        if found and found[-1][1] == code - 1:
            found[-1] = (found[-1][0], code)
        else:
            found.append((code, code))
    return tuple(found)


def arrays_of(regions: Sets) -> tuple[np.ndarray, ...]:
    d = len(regions[0])
    numbers = np.arange(len(regions))
    coded = [([runs_of(region[j]) for region in regions], numbers) for j in range(d)]
    return code_regions(coded, len(regions))


def tree_of(arrays: tuple[np.ndarray, ...], count: int) -> tuple[np.ndarray, ...]:
    low, high = (np.ascontiguousarray(ends[:count]) for ends in arrays[:2])
    return build_region_tree(low, high)


@given(st.integers(1, 40), st.integers(1, 20), st.integers(1, 3), chances)
def test_pairs_that_meet(count: int, others: int, d: int, chance: random.Random) -> None:
    regions = drawn_regions(chance, count + others, d)
    cells = [sorted(chance.sample(range(6), chance.randrange(1, 5))) for _ in regions]
    starts = np.cumsum([0, *map(len, cells)])
    payloads = np.array([value for own in cells for value in own])
    arrays = arrays_of(regions)
    expected = set()
    pairs = 0
    for region in range(count, count + others):
        for own in range(count):
            if all(a & b for a, b in zip(regions[own], regions[region], strict=True)):
                pairs += 1
                expected |= {
                    (starts[own] + cells[own].index(v), starts[region] + cells[region].index(v))
                    for v in set(cells[own]) & set(cells[region])
                }
    first, second = np.empty(len(expected), np.int32), np.empty(len(expected), np.int32)
    tree = tree_of(arrays, count)
    last = count + others
    found = match_payloads(*arrays, *tree, count, last, starts, payloads, first, second)
    assert found == (pairs, len(expected))
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == expected


@given(st.integers(1, 30), st.integers(1, 30), chances)
def test_candidates(count: int, others: int, chance: random.Random) -> None:
    regions = drawn_regions(chance, count, 2), drawn_regions(chance, others, 1)
    sides = []
    for own in regions:
        arrays = arrays_of(own)
        sides.append((*arrays, *tree_of(arrays, len(own))))
    points = np.array([[chance.randrange(CODES) for _ in range(3)] for _ in range(25)], np.int32)
    keys = sorted(chance.sample(range(count * others), chance.randrange(1, count * others + 1)))
    figures = np.array([chance.randrange(1, 9) for _ in keys])
    values = np.array([[chance.choice([-1, 0, 1]), 3] for _ in keys])
    sums, only = sum_candidates(
        np.ascontiguousarray(points[:, :2]), *sides[0],
        np.ascontiguousarray(points[:, 2:]), *sides[1], np.array(keys), figures, values,
    )  # fmt: skip
    for place, point in enumerate(points.tolist()):
        held = [
            index
            for index, key in enumerate(keys)
            if all(
                code in own for code, own in zip(point[:2], regions[0][key // others], strict=True)
            )
            and point[2] in regions[1][key % others][0]
        ]
        assert sums[place] == sum(figures[held])
        for j in range(2):
            left = {values[index][j] for index in held}
            expected = -2 if not left else left.pop() if len(left) == 1 else -1
            assert only[place, j] == expected
