"""Microaggregation against slow references, and its guarantees."""

from __future__ import annotations

import csv
import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import references
from cases import one_by_day
from data_sets import ADULT
from hypothesis import given
from hypothesis import strategies as st
from references import k_alone, no_values

from anonspark.core.queries import Domain, Queries, draw_queries
from anonspark.core.uniform_mass import Runs, Spread, spread_out
from anonspark.kernels.bin_shares import spread_over_bins
from anonspark.kernels.microaggregation import form_groups, microaggregate, spread_for_queries
from anonspark.kernels.order_cutting import cut_order, cut_where_best, hilbert_keys
from anonspark.kernels.refinement import refine_groups

Codes = npt.NDArray[np.int64]
Points = npt.NDArray[np.float64]
Groups = list[tuple[int, ...]]

PASSES = 20


def as_groups(order: Codes, starts: Codes) -> Groups:
    return [tuple(order[start:stop].tolist()) for start, stop in itertools.pairwise(starts)]


def groups_of(codes: Codes, points: Points, hashes: Codes, k: int) -> Groups:
    values, requirements = references.no_values(len(codes)), references.k_alone(k).requirements
    return as_groups(*microaggregate(codes, points, hashes, values, requirements, PASSES))


def refined(points: Points, order: Codes, starts: Codes, k: int, passes: int) -> Any:
    requirements = references.k_alone(k).requirements
    values = references.no_values(len(points))
    return refine_groups(points, values, order, starts, requirements, passes, 2)


def cost(points: Points, groups: Groups) -> float:
    return references.global_certainty_penalty(points, np.ones(points.shape[1]), groups)


def contents(codes: Codes, hashes: Codes, groups: Groups) -> Counter[tuple[object, ...]]:
    """Count the groups by what is in them, without regard to the numbers of the records."""
    return Counter(
        tuple(sorted((*map(int, codes[i]), int(hashes[i])) for i in group)) for group in groups
    )


def check(groups: Groups, n: int, k: int) -> None:
    """Check what is promised of every result."""
    assert sorted(record for group in groups for record in group) == list(range(n))
    if n < 2 * k:
        assert len(groups) == min(n, 1)
    else:
        assert all(k <= len(group) < 2 * k for group in groups)


def random_points(seed: int, n: int, d: int) -> Points:
    return np.random.default_rng(seed).random((n, d))


def distinct(codes: Codes) -> Codes:
    return np.arange(len(codes)) * 7919 % 100_003


# The references


def optimal_cost(points: Points, order: list[int], k: int) -> float:
    """Return the cost of the best way to cut an order, by trying all of them."""
    if not order:
        return 0.0
    sizes = range(k, min(2 * k - 1, len(order)) + 1)
    return min(
        (
            cost(points, [tuple(order[:size])]) + optimal_cost(points, order[size:], k)
            for size in sizes
        ),
        default=math.inf,
    )


def optimal_groups(points: Points, order: list[int], k: int, unit: int = 1) -> Groups:
    """Return the best way to cut an order at multiples of ``unit``, prefix by prefix."""
    places = [*range(0, len(order) - unit + 1, unit)]
    places[len(order) // unit :] = [len(order)]
    best: dict[int, tuple[float, Groups]] = {0: (0.0, [])}
    for stop in places[1:]:
        ways = [(math.inf, Groups())]
        for start in places:
            if k <= stop - start < 2 * k:
                group = tuple(order[start:stop])
                total, groups = best[start]
                ways.append((total + cost(points, [group]), [*groups, group]))
        best[stop] = min(ways, key=lambda way: way[0])
    return best[len(order)][1]


def grown_groups(points: Points, k: int) -> Groups:
    """Grow groups of k from the record furthest from the mean; the last ones join the cheapest."""
    mean = points.mean(axis=0)
    rest = set(range(len(points)))
    groups: list[list[int]] = []
    while len(rest) >= k:
        group = [max(rest, key=lambda i: float(((points[i] - mean) ** 2).sum()))]
        rest -= set(group)
        while len(group) < k:
            low, high = points[group].min(axis=0), points[group].max(axis=0)
            nearest = min(
                rest,
                key=lambda i: float(
                    (np.maximum(points[i], high) - np.minimum(points[i], low)).sum()
                ),
            )
            group.append(nearest)
            rest.remove(nearest)
        groups.append(group)
    # The kernel fills the place of a record that is taken with the last one, so the order in which
    # these join is its own; tests leave at most one over.
    for record in rest:
        joined = min(
            groups,
            key=lambda group: cost(points, [(*group, record)]) - cost(points, [tuple(group)]),
        )
        joined.append(record)
    return [tuple(group) for group in groups]


def curve_groups(points: Points, k: int) -> Groups:
    low = points.min(axis=0)
    widest = (points.max(axis=0) - low).max()
    cells = ((points - low) / widest * 1023).astype(np.int64)
    order = np.argsort(hilbert_keys(np.ascontiguousarray(cells.T), 10), kind="stable")
    return optimal_groups(points, order.tolist(), k)


def best_cut_groups(points: Points, k: int) -> Groups:
    """Cut in two where records times edges sum to the least, not too near the ends, and again."""

    def cut(group: list[int]) -> Groups:
        n = len(group)
        if n < 2 * k:
            return [tuple(group)]
        fewest = k * max(1, int(n // k * 0.1))
        ways = []
        for j in range(points.shape[1]):
            order = sorted(group, key=lambda i: (points[i, j], i))
            if points[order[0], j] == points[order[-1], j]:
                continue
            for place in range(n - fewest, fewest - 1, -1):
                if place // k + (n - place) // k == n // k:
                    parts = [tuple(order[:place]), tuple(order[place:])]
                    ways.append((cost(points, parts), order, place))
        if not ways:
            return [tuple(group[i : i + k]) for i in range(0, n - 2 * k + 1, k)] + [
                tuple(group[n // k * k - k :])
            ]
        _, order, place = min(ways, key=lambda way: way[0])
        return cut(order[:place]) + cut(order[place:])

    return cut(list(range(len(points))))


# Cutting an order


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("n", range(1, 13))
def test_an_order_is_cut_at_the_lowest_cost(n: int, k: int) -> None:
    points = random_points(100 * n + k, n, 3)
    order = np.random.default_rng(n).permutation(n)

    starts, total = cut_order(np.ascontiguousarray(points.T), order, k)

    assert total == pytest.approx(optimal_cost(points, order.tolist(), k))
    if n >= k:
        assert cost(points, as_groups(order, starts)) == pytest.approx(total)
        assert all(k <= size < 2 * k for size in np.diff(starts))


@pytest.mark.parametrize(("k", "unit"), [(63, 1), (64, 2), (100, 3), (500, 15)])
def test_for_large_k_an_order_is_cut_at_multiples_of_a_unit(k: int, unit: int) -> None:
    points = random_points(k, 6 * k + 1, 2)
    order = np.argsort(points[:, 0])

    starts, total = cut_order(np.ascontiguousarray(points.T), order, k)

    groups = as_groups(order, starts)
    check(groups, len(points), k)
    assert groups == optimal_groups(points, order.tolist(), k, unit)
    assert cost(points, groups) == pytest.approx(total)


def test_of_equal_costs_the_last_group_of_an_order_is_the_smallest() -> None:
    starts, total = cut_order(np.ones((1, 7)), np.arange(7), 2)

    assert starts.tolist() == [0, 3, 5, 7]
    assert total == 0.0


def test_two_groups_of_large_k_that_no_multiple_of_the_unit_divides_are_not_cut() -> None:
    starts, total = cut_order(np.ones((1, 200)), np.arange(200), 100)

    assert starts.tolist() == [0, 200]
    assert total == np.inf


# Cutting where it costs least


@pytest.mark.parametrize(
    ("axes", "k", "expected"),
    [
        ([[0, 1, 2, 10, 18, 19, 20]], 3, [(0, 1, 2, 3), (4, 5, 6)]),
        ([[0, 0, 1, 1], [0, 1, 0, 1]], 2, [(0, 1), (2, 3)]),
    ],
    ids=["the last position", "the first axis"],
)
def test_of_equal_costs_one_is_always_taken(
    axes: list[list[float]], k: int, expected: Groups
) -> None:
    assert as_groups(*cut_where_best(np.array(axes, np.float64), k)) == expected


@pytest.mark.parametrize(
    ("n", "k"), [(1, 2), (9, 1), (40, 2), (41, 4), (60, 5), (131, 3), (90, 30)]
)
@pytest.mark.parametrize("d", [1, 2, 8])
def test_records_are_cut_where_it_costs_least(n: int, k: int, d: int) -> None:
    points = random_points(n + d, n, d)
    points[:, d // 2] = np.floor(points[:, d // 2] * 4)

    order, starts = cut_where_best(np.ascontiguousarray(points.T), k)

    found = as_groups(order, starts)
    assert sorted(len(group) for group in found) == sorted(
        len(group) for group in best_cut_groups(points, k)
    )
    assert cost(points, found) == pytest.approx(cost(points, best_cut_groups(points, k)))
    check(found, n, k)
    assert len(found) == max(1, n // k)


def test_of_many_axes_the_eight_widest_are_cut() -> None:
    points = random_points(1, 400, 12)
    narrow = points[:, 8:].copy()
    points[:, 8:] *= 1e-6

    order, starts = cut_where_best(np.ascontiguousarray(points.T), 5)
    without, _ = cut_where_best(np.ascontiguousarray(points[:, :8].T), 5)

    check(as_groups(order, starts), 400, 5)
    assert np.mean(order == without) > 0.5
    assert np.ptp(narrow[order[:5]]) > 0.5


@pytest.mark.parametrize("d", [0, 2])
def test_equal_records_are_cut_into_groups_of_k(d: int) -> None:
    _, starts = cut_where_best(np.ones((d, 23)), 5)

    assert starts.tolist() == [0, 5, 10, 15, 23]


# Forming


@pytest.mark.parametrize(("n", "k"), [(40, 2), (41, 4), (60, 5), (61, 10), (90, 30)])
@pytest.mark.parametrize("d", [1, 2, 4])
def test_groups_are_grown_or_cut_from_the_curve_or_where_it_costs_least(
    n: int, k: int, d: int
) -> None:
    points = random_points(n + d, n, d)

    groups = as_groups(*form_groups(points, k))

    expected = min(
        [grown_groups(points, k), curve_groups(points, k), best_cut_groups(points, k)],
        key=lambda way: cost(points, way),
    )
    assert {frozenset(group) for group in groups} == {frozenset(group) for group in expected}


@pytest.mark.parametrize("k", [3, 40, 700, 3000])
def test_groups_of_many_cells(k: int) -> None:
    n = 20_011
    points = random_points(k, n, 3)

    order, starts = form_groups(points, k)

    check(as_groups(order, starts), n, k)


# Refining


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(4, 40),
    d=st.integers(1, 4),
    k=st.integers(1, 6),
    values=st.sampled_from([3, 10, 1000]),
)
def test_no_swap_and_no_move_lowers_the_cost_any_further(
    seed: int, n: int, d: int, k: int, values: int
) -> None:
    points = np.random.default_rng(seed).integers(0, values, (n, d)) / values
    order, starts = form_groups(points, k)
    before = cost(points, as_groups(order, starts))
    if len(starts) > 12:  # One cell, so that each pair of groups is looked at.
        k = 6
        order, starts = form_groups(points, k)
        before = cost(points, as_groups(order, starts))

    groups = as_groups(*refined(points, order, starts, k, 20))

    total = cost(points, groups)
    check(groups, n, k)
    assert total <= before + 1e-9
    for a, b in itertools.permutations(range(len(groups)), 2):
        others = [group for place, group in enumerate(groups) if place not in (a, b)]
        for x in groups[a]:
            left = tuple(i for i in groups[a] if i != x)
            if len(left) >= k and len(groups[b]) < 2 * k - 1:
                assert cost(points, [*others, left, (*groups[b], x)]) >= total - 1e-6
            for y in groups[b]:
                rest = tuple(i for i in groups[b] if i != y)
                assert cost(points, [*others, (*left, y), (*rest, x)]) >= total - 1e-6


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_refining_keeps_records_and_never_costs_more(rounds: int) -> None:
    points = random_points(5, 3000, 4)
    random = np.random.default_rng(6).permutation(3000)
    # Groups as a privacy criterion may have merged them: up to any size.
    starts = np.array([0, 7, 14, 40, 1000, *range(1010, 3001, 10)])

    order, new_starts = refined(points, random, starts, 7, rounds)

    groups = as_groups(order, new_starts)
    assert sorted(order.tolist()) == list(range(3000))
    assert min(len(group) for group in groups) >= 7
    before = cost(points, as_groups(random, starts))
    assert cost(points, groups) < before if rounds else cost(points, groups) == before


# The whole


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(0, 300),
    d=st.integers(1, 6),
    k=st.integers(1, 25),
    values=st.sampled_from([1, 2, 5, 1000]),
)
def test_groups_hold_every_record_once_whatever_the_order(
    seed: int, n: int, d: int, k: int, values: int
) -> None:
    generator = np.random.default_rng(seed)
    codes = generator.integers(0, values, (n, d))
    hashes = generator.integers(0, max(1, n // 2), n)
    points = codes / 500.0
    shuffled = generator.permutation(n)

    groups = groups_of(codes, points, hashes, k)
    again = groups_of(codes[shuffled], points[shuffled], hashes[shuffled], k)

    check(groups, n, k)
    assert contents(codes, hashes, groups) == contents(codes[shuffled], hashes[shuffled], again)
    for group in groups:
        content = [(*codes[i].tolist(), int(hashes[i])) for i in group]
        assert content == sorted(content)


@pytest.mark.parametrize("k", [10, 100])
def test_larger_blocks_do_not_depend_on_the_order(k: int) -> None:
    generator = np.random.default_rng(3)
    codes = np.column_stack(
        [
            generator.integers(0, 1000, 12_000),
            generator.integers(0, 3, 12_000),
            generator.geometric(0.3, 12_000),
        ]
    )
    points = codes / codes.max(axis=0)
    hashes = generator.integers(0, 2**62, 12_000)
    shuffled = generator.permutation(12_000)

    groups = groups_of(codes, points, hashes, k)
    again = groups_of(codes[shuffled], points[shuffled], hashes[shuffled], k)

    check(groups, 12_000, k)
    assert contents(codes, hashes, groups) == contents(codes[shuffled], hashes[shuffled], again)


@pytest.mark.parametrize("n", [0, 1, 4, 5, 9, 10, 11])
def test_few_records(n: int) -> None:
    points = random_points(n, n, 2)
    codes = (points * 1000).astype(np.int64)

    check(groups_of(codes, points, distinct(codes), 5), n, 5)


@pytest.mark.parametrize("d", [1, 5, 20, 70])
def test_any_number_of_attributes_some_of_them_constant_or_missing(d: int) -> None:
    codes = np.random.default_rng(d).integers(0, 100, (500, d))
    codes[:, ::3] = 7
    points = codes / 99.0
    points[codes == 50] = 2.0
    points[:, -1] *= 40.0

    check(groups_of(codes, points, distinct(codes), 4), 500, 4)


@pytest.mark.parametrize("k", [10, 1000])
def test_many_equal_records(k: int) -> None:
    codes = np.zeros((200_000, 3), np.int64)

    requirements = references.k_alone(k).requirements
    order, starts = microaggregate(
        codes,
        codes.astype(float),
        np.arange(200_000),
        references.no_values(200_000),
        requirements,
        PASSES,
    )

    assert len(np.unique(order)) == 200_000
    assert set(np.diff(starts).tolist()) == {k}


def test_duplicates_that_fill_groups_cost_nothing() -> None:
    codes = np.repeat(np.random.default_rng(4).integers(0, 1000, (20, 3)), 5000, axis=0)
    points = codes / 1000.0

    groups = groups_of(codes, points, distinct(codes), 10)

    check(groups, len(codes), 10)
    assert cost(points, groups) == 0.0


def test_huge_groups() -> None:
    points = random_points(9, 60_000, 2)
    codes = (points * 1e9).astype(np.int64)

    groups = groups_of(codes, points, distinct(codes), 10_000)

    check(groups, 60_000, 10_000)
    # Four slabs, the least that a cut along one axis could do, would cost 1.25 each.
    assert cost(points, groups) < 1.2 * len(points)


# In the order in which queries are drawn.
ADULT_ATTRIBUTES = sorted(ADULT.quasi_identifiers)


def spread(points: Points, weights: Points) -> Points:
    below = (points[None, :, :] < points[:, None, :]).sum(axis=1)
    equal = (points[None, :, :] == points[:, None, :]).sum(axis=1)
    ranks: Points = (below + equal / 2) / max(1, len(points))
    return points + weights * 0.08 * ranks


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(0, 40),
    d=st.integers(1, 4),
    values=st.sampled_from([1, 3, 1000]),
)
def test_a_share_of_the_rank_is_added(seed: int, n: int, d: int, values: int) -> None:
    generator = np.random.default_rng(seed)
    points = generator.integers(0, values, (n, d)) / values
    weights = generator.random(d)

    found = spread_for_queries(points, weights)

    assert found == pytest.approx(spread(points, weights))
    shuffled = generator.permutation(n)
    assert (spread_for_queries(points[shuffled], weights) == found[shuffled]).all()


@pytest.fixture(scope="module")
def adult(adult_path: Path) -> tuple[Codes, Codes]:
    with adult_path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    codes = np.array([[int(row[name]) for name in ADULT_ATTRIBUTES] for row in rows], np.int64)
    return codes, np.array([row["income"].strip() == ">50K" for row in rows], np.int64)


@pytest.fixture(scope="module")
def queries(adult: tuple[Codes, Codes]) -> Queries:
    """The 1,000 queries that ``anonspark evaluate`` asks."""
    codes, rich = adult
    places = np.floor(np.arange(1001) * (len(codes) - 1) / 1000 + 0.5).astype(int)
    domains = []
    for column in np.sort(codes, axis=0).T:
        values, counts = np.unique(column[places].astype(float), return_counts=True)
        domains.append(Domain(values, counts / 1001, evenly=False))
    shares = np.bincount(rich) / len(rich)
    incomes = Domain(np.arange(2.0), shares, evenly=True)
    return draw_queries(domains, [incomes], count=1000, selectivity=0.05)


@pytest.fixture(scope="module")
def truth(adult: tuple[Codes, Codes], queries: Queries) -> Points:
    """How many records each query asks for."""
    codes, rich = adult
    found = []
    for query in range(len(queries)):
        first, last = queries.low[-1, query], queries.high[-1, query]
        chosen = (first <= rich) & (rich <= last)
        for j in np.flatnonzero(queries.asked[:-1, query]):
            first, last = queries.low[j, query], queries.high[j, query]
            chosen &= (first <= codes[:, j]) & (codes[:, j] <= last)
        found.append(chosen.sum())
    return np.array(found, np.float64)


def median_error(
    adult: tuple[Codes, Codes], queries: Queries, truth: Points, order: Codes, starts: Codes
) -> float:
    codes, rich = adult
    low = np.minimum.reduceat(codes[order], starts[:-1])
    high = np.maximum.reduceat(codes[order], starts[:-1])
    each = np.add.reduceat(np.eye(2)[rich[order]], starts[:-1])
    errors = []
    for query, true in enumerate(truth.tolist()):
        shares = np.ones(len(low))
        for j in np.flatnonzero(queries.asked[:-1, query]):
            first, last = queries.low[j, query], queries.high[j, query]
            common = np.minimum(high[:, j], last) - np.maximum(low[:, j], first) + 1
            shares *= np.maximum(common, 0) / (high[:, j] - low[:, j] + 1)
        first, last = int(queries.low[-1, query]), int(queries.high[-1, query])
        estimate = (shares * each[:, first : last + 1].sum(axis=1)).sum()
        errors.append(abs(estimate - true) / max(true, 0.001 * len(codes)))
    return float(np.median(errors))


# k: the best error of the other models, the error, the cost.
FIGURES = {
    5: (0.0218, 0.017966, 1405.795),
    10: (0.0423, 0.016698, 2506.667),
    50: (0.1125, 0.063858, 6407.522),
}


@pytest.mark.parametrize("k", one_by_day(50, 10, 5))
def test_figures_of_adult(
    adult: tuple[Codes, Codes], queries: Queries, truth: Points, k: int
) -> None:
    best_of_the_others, expected_error, expected_cost = FIGURES[k]
    codes, _ = adult
    # In the order of the papers, which decides ties.
    ordered = np.ascontiguousarray(codes[:, [0, 3, 1, 2, 4]])
    points = (ordered - ordered.min(axis=0)) / np.ptp(ordered, axis=0)
    hashes = np.arange(len(codes))

    def measured_at(positions: Points) -> tuple[float, float]:
        """Return the median error and the cost of the groups that are formed by some positions."""
        values, requirements = no_values(len(ordered)), k_alone(k).requirements
        order, starts = microaggregate(ordered, positions, hashes, values, requirements, PASSES)
        own, first = points[order], starts[:-1]
        widths = np.maximum.reduceat(own, first) - np.minimum.reduceat(own, first)
        cost = float((np.diff(starts) * widths.sum(axis=1)).sum())
        return median_error(adult, queries, truth, order, starts), cost

    plain_error, plain_cost = measured_at(points)
    error, cost = measured_at(spread_for_queries(points, np.ones(5)))
    assert error <= 1.1 * best_of_the_others
    assert error < plain_error
    assert cost <= 1.05 * plain_cost
    assert error == pytest.approx(expected_error, abs=1e-6)
    assert cost == pytest.approx(expected_cost, abs=0.001)


UNIT = 2.0**-30


def units(spread: Spread, edges: Any) -> Any:
    below = spread.shares(np.full(len(edges), -np.inf), edges)
    missing = spread.missing[:, None]
    up_to = np.concatenate([np.zeros((len(missing), 1)), below, 1 - missing], axis=1)
    shares = np.concatenate([np.maximum(np.diff(up_to, axis=1), 0.0), missing], axis=1)
    return np.rint(shares / UNIT).astype(np.int64)


@given(st.data())
def test_sums_are_those_of_shares(data: Any) -> None:
    whole = data.draw(st.booleans())
    value = st.integers(-9, 9).map(float) if whole else st.integers(-90, 90).map(lambda n: n / 7)
    interval = st.tuples(value, value).map(lambda ends: (tuple(sorted(ends)),))
    regions = data.draw(
        st.lists(
            st.builds(Runs, interval, st.booleans()) | st.just(Runs((), missing=True)), min_size=1
        )
    )
    spread = spread_out(regions, whole=whole)
    edges = np.array(sorted(data.draw(st.sets(value, max_size=6))), np.float64)
    numbers = np.array(data.draw(st.lists(st.integers(0, len(regions) - 1), max_size=9)), np.int64)
    counts = np.random.default_rng(len(numbers)).integers(0, 50, (len(numbers), 3))
    sums = np.zeros((len(edges) + 2, 3), np.int64)

    ends = (spread.low, spread.high, spread.points, spread.total, spread.missing)
    spread_over_bins(*ends, edges, numbers, counts, UNIT, sums)

    np.testing.assert_array_equal(sums, units(spread, edges)[numbers].T @ counts)
