"""Counts of what models predict, and the differences of models, in any number of tasks."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from helpers import local_table
from sklearn.metrics import confusion_matrix, roc_auc_score

from anonspark.core.model_scores import STEPS, area_under_curve
from anonspark.utility.predictions import compare_predictions, count_predictions

ROWS = 500


def predictions(classes: int, *models: str) -> pa.Table:
    """Return classes, and what models predict that are right more often than not."""
    random = np.random.default_rng(classes)
    labels = random.integers(0, classes, ROWS)
    columns = {"label": labels.astype(np.float64)}
    for model in models:
        told = np.where(random.random(ROWS) < 0.7, labels, random.integers(0, classes, ROWS))
        probability = np.zeros(ROWS)
        if classes == 2:
            probability = np.round((told + random.random(ROWS)) / 2, 2)
        columns |= {model: told.astype(np.float64), f"{model} probability": probability}
    return pa.table(columns)


@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("classes", [2, 5])
def test_predictions_are_counted_and_compared(classes: int, parts: int) -> None:
    table = predictions(classes, "first", "second")
    rows = local_table(table, parts)
    found = count_predictions(rows, ["first", "second"], classes)
    labels = table["label"].to_numpy()
    right = []
    for name, own in found.items():
        told = table[name].to_numpy()
        right.append(told == labels)
        np.testing.assert_array_equal(own.confusion, confusion_matrix(labels, told))
        assert (own.steps is None) == (classes > 2)
        if own.steps is not None:
            assert own.steps.shape == (2, STEPS + 1)
            area = roc_auc_score(labels, table[f"{name} probability"].to_numpy())
            assert area_under_curve(own.steps) == pytest.approx(area, abs=1e-12)
    pairs = [("first", "second"), ("second", "first"), ("first", "first")]
    compared, swapped, itself = compare_predictions(rows, pairs, found)
    change = right[1].astype(float) - right[0]
    accuracy, area = compared
    assert accuracy.difference == pytest.approx(change.mean(), abs=1e-12)
    assert accuracy.standard_error == pytest.approx(change.std() / math.sqrt(ROWS), abs=1e-12)
    assert (area is None) == (classes > 2)
    for one, other, same in zip(compared, swapped, itself, strict=True):
        if one is None or other is None or same is None:
            continue
        assert (one.difference, one.standard_error) == (-other.difference, other.standard_error)
        assert (same.difference, same.standard_error) == (0, 0)


def test_the_printed_differences_in_parts() -> None:
    columns = {
        "label": [1.0] * 3 + [0.0] * 4,
        "first": [1.0, 0, 0, 0, 0, 0, 0],
        "first probability": [0.8, 0.4, 0.35, 0.1, 0.4, 0.3, 0.2],
        "second": [1.0, 0, 1, 0, 1, 0, 1],
        "second probability": [0.9, 0.3, 0.6, 0.2, 0.5, 0.1, 0.6],
    }
    for parts in (1, 7):
        rows = local_table(pa.table(columns), parts)
        found = count_predictions(rows, ["first", "second"], 2)
        ((accuracy, area),) = compare_predictions(rows, [("first", "second")], found)
        assert accuracy.difference == pytest.approx(-1 / 7)
        assert area is not None
        assert area.difference == pytest.approx(0.791667 - 0.875, abs=5e-7)
        assert area.standard_error == pytest.approx(0.208333, abs=5e-7)
