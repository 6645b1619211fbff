"""Positions spread for queries against a slow reference, and what they do to counts of Adult."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from cases import one_by_day
from data_sets import ADULT
from hypothesis import given
from hypothesis import strategies as st
from references import k_alone, no_values

from anonspark.core.queries import Domain, Queries, draw_queries
from anonspark.kernels.microaggregation import microaggregate, spread_for_queries

# In the order in which queries are drawn.
ADULT_ATTRIBUTES = sorted(ADULT.quasi_identifiers)

PASSES = 20

Codes = npt.NDArray[np.int64]
Points = npt.NDArray[np.float64]


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
    adult: tuple[Codes, Codes],
    queries: Queries,
    truth: Points,
    k: int,
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
