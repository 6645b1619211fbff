"""Local outlier factors against scikit-learn, the slow reference and one another."""

from __future__ import annotations

import numpy as np
import pytest
import references
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import LocalOutlierFactor

from anonspark.kernels.separation import (
    _with_all_pairs,
    _with_tree,
    local_outlier_factors,
)


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
