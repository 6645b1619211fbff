"""Local outlier factors against scikit-learn, the slow reference and one another."""

from __future__ import annotations

import math

import numpy as np
import pytest
import references
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from references import distance_matrix
from sklearn.neighbors import LocalOutlierFactor

from anonspark.kernels.nearest_neighbors import (
    build_tree,
    distance,
    neighbor_distances,
    points_within,
)
from anonspark.kernels.separation import _with_all_pairs, _with_tree, local_outlier_factors


def ones(n: int) -> np.ndarray:
    return np.ones(n, np.int64)


def two_clusters(n: int, d: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    points = random.normal(size=(n, d))
    points[: n // 3] = points[: n // 3] * 0.05 + 2
    return points


@st.composite
def weighted_points(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    """Draw distinct points on a small grid, their weights, and a number of neighbours."""
    d = draw(st.integers(1, 3))
    coordinate = st.one_of(st.integers(0, 3), st.integers(0, 4096).map(lambda step: step / 64))
    rows = draw(st.lists(st.tuples(*[coordinate] * d), min_size=1, max_size=40, unique=True))
    weight = st.one_of(st.just(1), st.integers(1, 4))
    weights = np.array(draw(st.lists(weight, min_size=len(rows), max_size=len(rows))), np.int64)
    if weights.sum() < 2:
        weights[0] = 2
    neighbors = draw(st.integers(1, int(weights.sum()) - 1))
    return np.array(rows, np.float64).reshape(-1, d), weights, neighbors


@pytest.mark.parametrize("d", [1, 2, 5])
@cases(__file__, "n", "neighbors")
def test_equals_scikit_learn(n: int, neighbors: int, d: int) -> None:
    points = two_clusters(n, d, seed=n + d)
    expected = LocalOutlierFactor(n_neighbors=neighbors, algorithm="kd_tree").fit(points)
    np.testing.assert_allclose(
        local_outlier_factors(points, ones(n), neighbors),
        -expected.negative_outlier_factor_,
        rtol=1e-9,
    )


@given(weighted_points())
def test_equals_the_reference_with_records_repeated(
    drawn: tuple[np.ndarray, np.ndarray, int],
) -> None:
    points, weights, neighbors = drawn
    expected = references.local_outlier_factors(np.repeat(points, weights, axis=0), neighbors)
    # All records of a point have the same factor: the last one of each will do.
    expected = expected[np.cumsum(weights) - 1]
    np.testing.assert_allclose(
        local_outlier_factors(points, weights, neighbors), expected, rtol=1e-9
    )


@given(weighted_points())
def test_all_pairs_and_tree_agree(drawn: tuple[np.ndarray, np.ndarray, int]) -> None:
    points, weights, neighbors = drawn
    np.testing.assert_allclose(
        _with_all_pairs(points, weights, neighbors),
        _with_tree(points, weights, neighbors),
        rtol=1e-12,
    )


@pytest.mark.parametrize("weighted", [False, True], ids=["records", "weights"])
@pytest.mark.parametrize("neighbors", [1, 10, 300])
def test_all_pairs_and_tree_agree_on_many_points(neighbors: int, weighted: bool) -> None:
    points = two_clusters(1200, 3, seed=8)
    weights = np.random.default_rng(8).integers(1, 6, 1200) if weighted else ones(1200)
    np.testing.assert_allclose(
        _with_all_pairs(points, weights, neighbors),
        _with_tree(points, weights, neighbors),
        rtol=1e-12,
    )


def test_closed_form_on_three_points() -> None:
    # As in scikit-learn's test_lof_values.
    factors = local_outlier_factors(np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 1.0]]), ones(3), 2)
    s_0 = 2.0 * np.sqrt(2.0) / (1.0 + np.sqrt(2.0))
    s_1 = (1.0 + np.sqrt(2.0)) * (1.0 / (4.0 * np.sqrt(2.0)) + 1.0 / (2.0 + 2.0 * np.sqrt(2.0)))
    np.testing.assert_allclose(factors, [s_0, s_1, s_1], rtol=1e-9)


def test_the_outlier_has_the_largest_factor() -> None:
    points = np.array([[0.0], [0.1], [0.2], [0.3], [5.0]])
    factors = local_outlier_factors(points, ones(5), 2)
    assert np.argmax(factors) == 4
    assert factors[4] > 10


def test_duplicates_are_counted_not_stored() -> None:
    points = np.array([[0.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    factors = local_outlier_factors(points, np.full(3, 1_000_000), 1_999_999)
    assert np.isfinite(factors).all()
    assert np.argmax(factors) == 2


@pytest.mark.parametrize("neighbors", [1, 3, 6])
@pytest.mark.parametrize("compute", [_with_all_pairs, _with_tree], ids=["all pairs", "tree"])
def test_records_at_one_point(compute: object, neighbors: int) -> None:
    factors = compute(np.array([[0.25, 0.5]]), np.array([7]), neighbors)  # type: ignore[operator]
    np.testing.assert_allclose(factors, [1.0])


@pytest.mark.parametrize("compute", [_with_all_pairs, _with_tree], ids=["all pairs", "tree"])
def test_clouds_denser_than_the_neighbourhood(compute: object) -> None:
    points = np.array([[0.0], [1.0], [2.0]])
    weights = np.array([5, 5, 1])
    factors = compute(points, weights, 3)  # type: ignore[operator]
    expected = references.local_outlier_factors(np.repeat(points, weights, axis=0), 3)
    np.testing.assert_allclose(factors, expected[[0, 5, 10]], rtol=1e-9)
    assert factors[2] > 1e9


@pytest.mark.parametrize("compute", [_with_all_pairs, _with_tree], ids=["all pairs", "tree"])
def test_distances_that_underflow(compute: object) -> None:
    # The neighbour of 0 is at a distance of 0 after rounding, and beyond a cut of the tree.
    points = np.concatenate([np.arange(-599.0, 1), [1e-170], np.arange(1.0, 600)])[:, None]
    factors = compute(points, ones(len(points)), 1)  # type: ignore[operator]
    assert np.isfinite(factors).all()
    np.testing.assert_allclose(factors, _with_all_pairs(points, ones(len(points)), 1), rtol=1e-12)


# Steps of 1/64: many exact ties among distances, and none of the squares underflows.
coordinate = st.one_of(st.integers(0, 3), st.integers(-(10**6), 10**6).map(lambda step: step / 64))


@st.composite
def distinct_points(draw: st.DrawFn, largest: int = 150) -> np.ndarray:
    d = draw(st.integers(1, 4))
    rows = draw(st.lists(st.tuples(*[coordinate] * d), min_size=1, max_size=largest, unique=True))
    return np.array(rows, np.float64).reshape(-1, d)


def brute_force_distances(points: np.ndarray, weights: np.ndarray, neighbors: int) -> list[float]:
    everything = distance_matrix(points)
    result = []
    for query, row in enumerate(everything):
        counts = weights.copy()
        counts[query] -= 1
        result.append(np.sort(np.repeat(row, counts))[neighbors - 1])
    return result


@given(distinct_points())
def test_the_tree_holds_every_point_once_on_the_right_side(points: np.ndarray) -> None:
    members, nodes, splits = build_tree(points)
    assert sorted(members.tolist()) == list(range(len(points)))
    for node, (start, stop, axis, right) in enumerate(nodes.tolist()):
        if axis < 0:
            continue
        left_stop = nodes[node + 1, 1]
        assert (nodes[node + 1, 0], nodes[right, 0], nodes[right, 1]) == (start, left_stop, stop)
        assert abs((left_stop - start) - (stop - left_stop)) <= 1
        assert (points[members[start:left_stop], axis] <= splits[node]).all()
        assert (points[members[left_stop:stop], axis] >= splits[node]).all()


@given(distinct_points(), st.data())
def test_points_within_a_radius(points: np.ndarray, data: st.DataObject) -> None:
    tree = build_tree(points)
    everything = distance_matrix(points)
    query = data.draw(st.integers(0, len(points) - 1), label="query")
    # A radius that is the distance of some point exactly: the boundary belongs to the ball.
    radius = everything[query, data.draw(st.integers(0, len(points) - 1), label="boundary")]
    found = np.empty(len(points), np.int64)
    lengths = np.empty(len(points))
    count = points_within(points, *tree, query, radius, found, lengths)
    assert sorted(found[:count].tolist()) == np.flatnonzero(everything[query] <= radius).tolist()
    assert lengths[:count].tolist() == everything[query, found[:count]].tolist()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_points_within_every_radius_of_a_grid(d: int) -> None:
    # Whole numbers: points lie exactly on the cuts and exactly on the boundary of the balls.
    axes = np.meshgrid(*[np.arange(math.ceil(200 ** (1 / d)), dtype=np.float64)] * d)
    points = np.stack([axis.ravel() for axis in axes], axis=1)
    points = np.ascontiguousarray(np.random.default_rng(d).permutation(points))
    tree = build_tree(points)
    everything = distance_matrix(points)
    found, lengths = np.empty(len(points), np.int64), np.empty(len(points))
    for query, row in enumerate(everything):
        for radius in np.unique(row):
            count = points_within(points, *tree, query, radius, found, lengths)
            assert count == (row <= radius).sum()


@given(distinct_points(), st.data())
def test_distance_of_the_nth_nearest_record(points: np.ndarray, data: st.DataObject) -> None:
    n = len(points)
    weight = st.one_of(st.just(1), st.integers(1, 5))
    weights = np.array(data.draw(st.lists(weight, min_size=n, max_size=n), label="weights"))
    if weights.sum() < 2:
        weights[0] = 2
    neighbors = data.draw(st.integers(1, int(weights.sum()) - 1), label="neighbors")
    measured = neighbor_distances(points, weights, neighbors, *build_tree(points))
    assert measured.tolist() == brute_force_distances(points, weights, neighbors)


@pytest.mark.parametrize("neighbors", [1, 4, 99, 1499])
def test_many_points(neighbors: int) -> None:
    points = np.random.default_rng(1).normal(size=(1500, 3)) ** 3
    measured = neighbor_distances(points, np.ones(1500, np.int64), neighbors, *build_tree(points))
    sample = np.arange(0, 1500, 100)
    lengths = np.sqrt(((points[sample, None] - points[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose(measured[sample], np.sort(lengths, axis=1)[:, neighbors], rtol=1e-14)


def test_distance_is_euclidean() -> None:
    assert distance(np.array([[1.0, 2.0], [4.0, 6.0]]), 0, 1) == 5.0
