"""The tree of regions, pairs of regions, and matchings, against looking at everything."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from references import slow_matching

from anonspark.kernels.region_pairs import match_payloads, sum_candidates
from anonspark.kernels.region_search import (
    build_region_tree,
    count_points,
    match_groups,
    sum_shares,
)
from anonspark.labels.region_matching import code_regions

# Of each region, of each dimension: the codes that it holds, as runs.
Runs = list[tuple[int, int]]
Region = list[Runs]

INT32 = np.iinfo(np.int32)


def arrays(regions: list[Region], d: int) -> tuple[np.ndarray, ...]:
    """Return regions as the kernels take them, with their tree."""
    low = np.empty((len(regions), d), np.int32)
    high = np.empty((len(regions), d), np.int32)
    gaps = np.full((len(regions), d), -1, np.int32)
    offsets, runs = [0], []
    for i, region in enumerate(regions):
        for j, own in enumerate(region):
            low[i, j], high[i, j] = (own[0][0], own[-1][1]) if own else (1, 0)
            if len(own) > 1:
                gaps[i, j] = len(offsets) - 1
                runs += own
                offsets.append(len(runs))
    return (
        low,
        high,
        gaps,
        np.array(offsets, np.int64),
        np.array(runs, np.int32).reshape(-1, 2),
        *build_region_tree(low, high),
    )


def slow_regions(regions: list[Region], point: list[int]) -> list[int]:
    return [
        number
        for number, region in enumerate(regions)
        if all(
            any(first <= code <= last for first, last in runs)
            for runs, code in zip(region, point, strict=True)
        )
    ]


@st.composite
def runs_of_codes(draw: st.DrawFn) -> Runs:
    """Draw runs in order, apart from each other; sometimes none."""
    code = st.one_of(st.integers(0, 12), st.sampled_from([INT32.min, INT32.max]))
    ends = sorted(draw(st.sets(code, max_size=6)))
    runs = [(a, b) for a, b in zip(ends[::2], ends[1::2], strict=False) if draw(st.booleans())]
    return runs or [(code, code) for code in ends[:1]]


@st.composite
def searches(draw: st.DrawFn) -> tuple[int, list[Region], list[list[int]]]:
    d = draw(st.integers(1, 4))
    region = st.lists(runs_of_codes(), min_size=d, max_size=d)
    regions = draw(st.lists(region, max_size=40))
    code = st.one_of(st.integers(-1, 13), st.sampled_from([INT32.min, INT32.max]))
    points = draw(st.lists(st.lists(code, min_size=d, max_size=d), max_size=20))
    return d, regions, points


@given(searches())
def test_every_region_that_holds_a_point_is_found(
    search: tuple[int, list[Region], list[list[int]]],
) -> None:
    d, regions, points = search
    prepared = arrays(regions, d)
    codes = np.array(points, np.int32).reshape(-1, d)
    counts = np.zeros(len(regions), np.int64)
    count_points(codes, *prepared, counts)
    shares = np.arange(len(regions)) / 7 + 0.1
    sums = sum_shares(codes, *prepared, shares)
    expected = np.zeros(len(regions), np.int64)
    for place, point in enumerate(points):
        holding = slow_regions(regions, point)
        expected[holding] += 1
        assert sums[place] == sum(sorted(shares[holding].tolist()))
    np.testing.assert_array_equal(counts, expected)


def test_sums_do_not_depend_on_the_order_of_regions() -> None:
    generator = np.random.default_rng(3)
    low = generator.integers(0, 3, (500, 3)).astype(np.int32)
    regions = [[[(int(a), int(a) + 3)] for a in row] for row in low]
    shares = generator.random(500)
    points = generator.integers(0, 6, (200, 3)).astype(np.int32)
    sums = sum_shares(points, *arrays(regions, 3), shares)
    order = generator.permutation(500)
    shuffled = [regions[i] for i in order]
    assert (sums == sum_shares(points, *arrays(shuffled, 3), shares[order])).all()
    assert sums.max() > 1


def test_identical_and_nested_boxes_do_not_deepen_the_tree() -> None:
    count = 20_000
    low = np.zeros((count, 2), np.int32)
    high = np.zeros((count, 2), np.int32)
    low[: count // 2, 0] = -np.arange(count // 2)
    high[: count // 2, 0] = np.arange(count // 2)
    members, nodes, node_low, node_high = build_region_tree(low, high)
    assert sorted(members.tolist()) == list(range(count))
    leaves = nodes[nodes[:, 2] < 0]
    sizes = leaves[:, 1] - leaves[:, 0]
    assert sizes.sum() == count
    assert sizes.max() <= 8
    assert (node_low[0] == low.min(axis=0)).all()
    assert (node_high[0] == high.max(axis=0)).all()


def test_regions_of_a_grid_are_found_in_few_steps() -> None:
    # 90,000 boxes that tile a square: looking at all of them would be 9 * 10^9 comparisons.
    side = 300
    first = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2) * 10
    low = np.ascontiguousarray(first, np.int32)
    high = low + 9
    gaps = np.full_like(low, -1)
    runs = np.zeros((0, 2), np.int32)
    generator = np.random.default_rng(5)
    points = generator.integers(0, side * 10, (100_000, 2)).astype(np.int32)
    regions = (low, high, gaps, np.zeros(1, np.int64), runs, *build_region_tree(low, high))
    counts = np.zeros(len(low), np.int64)
    count_points(points, *regions, counts)
    assert counts.sum() == len(points)
    # One region each, so that the sum is its number.
    found = sum_shares(points, *regions, np.arange(len(low), dtype=np.float64)).astype(np.int64)
    assert (low[found] == points // 10 * 10).all()


@st.composite
def groups_of_points(
    draw: st.DrawFn,
) -> tuple[int, list[Region], list[list[list[int]]], list[dict[int, int]]]:
    """Draw regions and, of each group, its points and the room of its places."""
    d, regions, _ = draw(searches())
    code = st.integers(0, 12)
    points = st.lists(st.lists(code, min_size=d, max_size=d), max_size=12)
    regions += [[[(0, 12)]] * d] * draw(st.integers(0, 2))
    number = st.integers(0, max(len(regions) - 1, 0))
    places = st.dictionaries(number, st.integers(1, 4), max_size=40 if regions else 0)
    groups = draw(st.integers(1, 4))
    return (
        d,
        regions,
        [draw(points) for _ in range(groups)],
        [draw(places) for _ in range(groups)],
    )


@given(groups_of_points(), st.integers(0, 40))
def test_groups_are_matched_as_well_as_can_be(
    drawn: tuple[int, list[Region], list[list[list[int]]], list[dict[int, int]]], most_pairs: int
) -> None:
    d, regions, groups, rooms = drawn
    prepared = arrays(regions, d)
    codes = np.array([point for group in groups for point in group], np.int32).reshape(-1, d)
    first_points = np.cumsum([0, *map(len, groups)])
    first_places = np.cumsum([0, *map(len, rooms)])
    places = np.array([place for room in rooms for place in sorted(room)], np.int64)
    room = np.array([own[place] for own in rooms for place in sorted(own)], np.int64)
    arguments = (codes, first_points, first_places, places, room)
    held, holding, matched = match_groups(*arguments, 1000, *prepared)
    _, _, bounded = match_groups(*arguments, most_pairs, *prepared)
    for number, (group, own) in enumerate(zip(groups, rooms, strict=True)):
        names = sorted(own)
        choices = [
            [place for place, name in enumerate(names) if name in slow_regions(regions, point)]
            for point in group
        ]
        assert holding[first_points[number] : first_points[number + 1]].tolist() == [
            len(choice) for choice in choices
        ]
        assert held[first_places[number] : first_places[number + 1]].tolist() == [
            sum(place in choice for choice in choices) for place in range(len(names))
        ]
        expected = slow_matching(choices, [own[name] for name in names])
        assert matched[number] == expected
        pairs = sum(map(len, choices))
        known = pairs <= most_pairs or all(len(choice) < 2 for choice in choices)
        assert bounded[number] == (expected if known else -1)


def test_a_long_way_is_found_in_a_large_group() -> None:
    # Point i lies in the regions i and i + 1, the last one in its own only: as every point takes
    # the first region it can, the last one needs all the others to move.
    count = 20_000
    low = np.arange(count, dtype=np.int32)[:, None]
    points = np.append(np.arange(1, count), 0).astype(np.int32)[:, None]
    high = low + 1
    gaps = np.full_like(low, -1)
    regions = (low, high, gaps, np.zeros(1, np.int64), np.zeros((0, 2), np.int32))
    held, holding, matched = match_groups(
        points,
        np.array([0, count]),
        np.array([0, count]),
        np.arange(count),
        np.ones(count, np.int64),
        10**6,
        *regions,
        *build_region_tree(low, high),
    )
    assert holding.tolist() == [2] * (count - 1) + [1]
    assert held.sum() == 2 * count - 1
    assert matched.tolist() == [count]


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
