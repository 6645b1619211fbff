"""Queries of the KD-tree against all distances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references import distance_matrix

from anonspark.kernels.nearest_neighbors import (
    build_tree,
    distance,
    neighbor_distances,
    points_within,
)

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
