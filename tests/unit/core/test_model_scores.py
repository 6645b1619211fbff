"""Scores of models and their differences: printed examples, and slow references."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score, roc_auc_score

from anonspark.core.model_scores import (
    STEPS,
    Difference,
    accuracy,
    accuracy_difference,
    area_covariance,
    area_difference,
    area_under_curve,
    area_variance,
    f1_scores,
    joined_products,
    macro_f1,
    placements,
    precisions,
    recalls,
    split_products,
    steps_of,
    weighted_mean,
)

Integers = npt.NDArray[np.int64]

POSITIVES = ((0.8, 0.4, 0.35), (0.9, 0.3, 0.6))
NEGATIVES = ((0.1, 0.4, 0.3, 0.2), (0.2, 0.5, 0.1, 0.6))


def counted(labels: Integers, steps: Integers) -> Integers:
    counts = np.zeros((2, STEPS + 1), np.int64)
    np.add.at(counts, (labels, steps), 1)
    return counts


def compared(
    labels: Integers, first: Integers, second: Integers, parts: int = 1
) -> tuple[Integers, Integers, list[int]]:
    """Return counts of the steps of two models, and the products of their placements."""
    counts = counted(labels, first), counted(labels, second)
    places = [placements(one) for one in counts]
    products = []
    for label in (0, 1):
        own = [
            split_products(places[0][label][first[part]], places[1][label][second[part]])
            for part in np.array_split(np.flatnonzero(labels == label), parts)
        ]
        high, low = (sum(sums) for sums in zip(*own, strict=True))
        products.append(joined_products(high, low))
    return *counts, products


def slow_delong(
    labels: Sequence[int], first: Sequence[float], second: Sequence[float]
) -> tuple[float, float, npt.NDArray[np.float64]]:
    """Return both areas, and their covariances, pair by pair as the paper says it."""
    areas, of_positives, of_negatives = [], [], []
    for scores in (first, second):
        positives = [one for one, label in zip(scores, labels, strict=True) if label]
        negatives = [one for one, label in zip(scores, labels, strict=True) if not label]
        right = np.array([[(x > y) + (x == y) / 2 for y in negatives] for x in positives])
        areas.append(float(right.mean()))
        of_positives.append(right.mean(axis=1))
        of_negatives.append(right.mean(axis=0))
    covariances = np.cov(of_positives) / len(of_positives[0])
    return *areas, covariances + np.cov(of_negatives) / len(of_negatives[0])


def example() -> tuple[Integers, Integers, Integers]:
    labels = np.array([1] * 3 + [0] * 4)
    first, second = (
        steps_of(np.array([*up, *down])) for up, down in zip(POSITIVES, NEGATIVES, strict=True)
    )
    return labels, first, second


def test_the_printed_areas_variances_and_covariance() -> None:
    first, second, products = compared(*example())
    assert area_under_curve(first) == 0.875
    assert area_under_curve(second) == pytest.approx(0.791667, abs=5e-7)
    variances = [area_variance(first), area_variance(second)]
    covariance = area_covariance(first, second, products)
    assert None not in (*variances, covariance)
    figures = [float(one) for one in (*variances, covariance) if one is not None]
    assert figures == pytest.approx([0.0208333, 0.0381944, 0.0078125], abs=5e-8)
    found = area_difference(first, second, products)
    assert found is not None
    assert found.difference == pytest.approx(0.791667 - 0.875, abs=5e-7)
    assert found.standard_error == pytest.approx(0.208333, abs=5e-7)
    assert found.low == pytest.approx(found.difference - 1.96 * 0.208333, abs=2e-6)
    assert found.verdict == "no difference shown"


def test_the_printed_difference_of_accuracies() -> None:
    found = accuracy_difference(1000, 40, 30)
    assert found.difference == -0.010
    assert found.standard_error == pytest.approx(0.0083606, abs=5e-8)
    assert found.verdict == "no difference shown"
    assert accuracy_difference(1000, 40, 10).verdict == "loses"
    assert accuracy_difference(1000, 10, 40).verdict == "gains"
    # All records, one way: nothing is left to chance.
    assert accuracy_difference(5, 5, 0) == Difference(-1.0, 0.0, -1.0, -1.0, "loses")


CASES: Any = st.lists(
    st.tuples(st.sampled_from([0, 1]), st.integers(0, 12), st.integers(0, 12)),
    min_size=4,
    max_size=60,
).filter(lambda rows: 2 <= sum(row[0] for row in rows) <= len(rows) - 2)


@given(CASES, st.integers(1, 5))
def test_areas_and_their_errors_are_those_of_slow_references(
    rows: list[tuple[int, int, int]], parts: int
) -> None:
    labels, first, second = (np.array(column) for column in zip(*rows, strict=True))
    counts, others, products = compared(labels, first * 800, second * 800, parts)
    before, after, covariances = slow_delong(labels, first, second)
    assert area_under_curve(counts) == pytest.approx(roc_auc_score(labels, first), abs=1e-12)
    assert area_under_curve(counts) == pytest.approx(before, abs=1e-12)
    found = area_difference(counts, others, products)
    assert found is not None
    assert found.difference == pytest.approx(after - before, abs=1e-12)
    variance = covariances[0, 0] + covariances[1, 1] - 2 * covariances[0, 1]
    assert found.standard_error == pytest.approx(math.sqrt(max(0, variance)), abs=1e-7)
    # Swapped, the sign alone changes; of a model and itself there is nothing.
    swapped = area_difference(others, counts, products)
    assert swapped is not None
    assert (swapped.difference, swapped.standard_error) == (-found.difference, found.standard_error)
    itself = area_difference(*compared(labels, first, first, parts))
    assert itself == Difference(0.0, 0.0, 0.0, 0.0, "no difference shown")


@given(st.integers(1, 500), st.integers(0, 500), st.integers(0, 500))
def test_swapped_models_change_the_sign_alone(rest: int, one: int, other: int) -> None:
    records = rest + one + other
    found, swapped = (
        accuracy_difference(records, one, other),
        accuracy_difference(records, other, one),
    )
    assert found.difference == -swapped.difference
    assert found.standard_error == swapped.standard_error
    assert accuracy_difference(records, 0, 0).standard_error == 0
    # The standard error of the mean of -1, 0 and 1, as it is with n beneath.
    values = np.repeat([-1.0, 1.0, 0.0], [one, other, rest])
    assert found.standard_error == pytest.approx(values.std() / math.sqrt(records), abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=50))
def test_scores_are_those_of_scikit_learn(rows: list[tuple[int, int]]) -> None:
    truth, predicted = (list(column) for column in zip(*rows, strict=True))
    confusion = np.zeros((4, 4), np.int64)
    np.add.at(confusion, (truth, predicted), 1)
    options: Any = {"labels": [0, 1, 2, 3], "zero_division": 0}
    assert accuracy(confusion) == accuracy_score(truth, predicted)
    there = sorted({*truth, *predicted})
    expected = f1_score(truth, predicted, labels=there, average="macro", zero_division=0)
    assert macro_f1(confusion) == pytest.approx(expected, abs=1e-12)
    for scores, theirs in (
        (f1_scores, f1_score),
        (precisions, precision_score),
        (recalls, recall_score),
    ):
        each = theirs(truth, predicted, average=None, **options)
        assert scores(confusion) == pytest.approx(each)
        weighted = theirs(truth, predicted, average="weighted", **options)
        assert weighted_mean(scores(confusion), confusion) == pytest.approx(weighted, abs=1e-12)


def test_probabilities_are_rounded_down() -> None:
    found = steps_of(np.array([0.0, 0.00009, 0.0001, 0.35, 0.99995, 1.0]))
    assert found.tolist() == [0, 0, 1, 3500, 9999, 10000]


def test_a_class_without_records_and_one_with_a_single_record() -> None:
    labels = np.array([1, 1, 1])
    first, second, products = compared(labels, np.array([1, 2, 3]), np.array([3, 2, 1]))
    assert area_under_curve(first) is None
    assert area_difference(first, second, products) is None
    labels = np.array([1, 0, 0])
    first, second, products = compared(labels, np.array([2, 1, 3]), np.array([3, 2, 1]))
    found = area_difference(first, second, products)
    assert found == Difference(0.5, None, None, None, None)


def test_sums_that_64_bits_cannot_hold() -> None:
    many = 10**9
    steps = np.zeros((2, STEPS + 1), np.int64)
    steps[0, 10], steps[1, 10], steps[1, 20] = many, many, many
    assert area_under_curve(steps) == 0.75
    # Half of the records of class 1 are placed at 1, half at 1/2; those of class 0 at 3/4 each.
    variance = area_variance(steps)
    assert variance is not None
    assert float(variance) == pytest.approx(1 / 16 / (2 * many), rel=1e-8)
    places = np.array([2 * many - 1], np.int64)
    assert joined_products(*split_products(places, places)) == (2 * many - 1) ** 2
