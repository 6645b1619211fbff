"""Looking at an original and counting in it, and counts of what models predict."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pyarrow as pa
import pytest
from helpers import local_table
from sklearn.metrics import confusion_matrix, roc_auc_score
from toy_engine import ToyEngine

from anonspark.core.model_scores import STEPS, area_under_curve
from anonspark.core.queries import draw_queries
from anonspark.labels.regions import PublishedAttribute
from anonspark.utility import original as describing
from anonspark.utility.models import compare_predictions, count_predictions
from anonspark.utility.original import describe_original
from anonspark.utility.workload import count_queries, estimate_queries

ROWS = 500
BORN = datetime.date(2000, 1, 1)


def people() -> pa.Table:
    random = np.random.default_rng(1)
    age = random.integers(18, 80, ROWS)
    return pa.table(
        {
            "age": pa.array(age, mask=random.random(ROWS) < 0.1),
            "born": [BORN + datetime.timedelta(days=int(days)) for days in age],
            "job": random.choice(["clerk", "cook", "?"], ROWS),
        }
    )


@pytest.mark.parametrize("drawn", [ROWS, 100])
def test_neither_tasks_nor_order_matter(monkeypatch: pytest.MonkeyPatch, drawn: int) -> None:
    monkeypatch.setattr(describing, "_DRAWN", drawn)
    table, engine = people(), ToyEngine()
    published = [
        PublishedAttribute("age", "integer", "interval", ("age",)),
        PublishedAttribute("born", "date", "interval", ("born",)),
    ]
    release = pa.table(
        {
            "age": ["missing" if age is None else str(age) for age in table["age"].to_pylist()],
            "born": [str(day) for day in table["born"].to_pylist()],
            "job": table["job"],
        }
    )
    found = []
    for tasks in (1, 3):
        original = engine.spread(table, tasks)
        axes, (job,), rows = describe_original(original, published, ["job"], {}, ["?"])
        assert rows == ROWS
        assert [axis.missing for axis in axes] == [table["age"].null_count, 0]
        assert job.texts == ("clerk", "cook")
        assert job.missing == table["job"].to_pylist().count("?")
        queries = draw_queries(
            [axis.domain for axis in axes], [job.domain], count=50, selectivity=0.2
        )
        counted = count_queries(original, axes, [job], queries, ["?"])
        # The release tells everything.
        told = estimate_queries(engine.spread(release, tasks), axes, [job], queries, ["?"])
        np.testing.assert_allclose(told, counted, atol=1e-6)
        found.append((*(axis.domain.values.tolist() for axis in axes), counted.tolist()))
    assert found[0] == found[1]
    assert (len(found[0][0]) < len(set(table["age"].drop_null().to_pylist()))) == (drawn < ROWS)


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
