"""What a release is worth in a sentence, and counts of an original and of models."""

from __future__ import annotations

import datetime
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from helpers import local_table
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix, roc_auc_score
from toy_engine import ToyEngine

from anonspark.core.model_scores import STEPS, area_under_curve
from anonspark.core.queries import draw_queries
from anonspark.labels.regions import PublishedAttribute
from anonspark.utility import original as describing
from anonspark.utility.models import (
    Learning,
    Measure,
    ModelLoss,
    Score,
    compare_predictions,
    count_predictions,
)
from anonspark.utility.original import describe_original
from anonspark.utility.workload import (
    WorkloadError,
    count_queries,
    describe_usefulness,
    estimate_queries,
    kept_of,
)

WORKLOAD = WorkloadError(1000, ["age"], [], 0.05, 30.2, 0.0123, 0.02, 0.001, 0.034)


def learned(
    original: float,
    loss: float,
    error: float | None = 0.005,
    *,
    measure: Measure = "roc_auc",
    held_out: bool = True,
    records: int = 900,
    majority: float = 0.6,
) -> Learning:
    """Return what was learned by two learners, of which the second is better on the original."""
    area = original if measure == "roc_auc" else None
    accuracy = original if measure == "accuracy" else 0.8
    scores = [
        Score("original", "logistic regression", 0.1, 0.1, 0.1, 0.1, 0.1, 0.1),
        Score("original", "random forest", accuracy, 0.4, 0.4, 0.4, 0.6, area),
        Score(
            "release", "random forest", accuracy - loss, 0.4, 0.4, 0.4, 0.6, area and area - loss
        ),
    ]
    best = ModelLoss(measure, "random forest", "random forest", loss, error)
    return Learning("ill", 2, held_out, records, 0, majority, scores, [], best, None)


def test_what_is_gained_over_guessing_counts() -> None:
    kept = kept_of(learned(0.9, 0.02))
    assert kept is not None
    assert (kept.guessing, kept.original) == (0.5, 0.9)
    assert kept.release == pytest.approx(0.88)
    assert kept.share == pytest.approx(0.95)
    assert kept.low == pytest.approx(0.95 - 1.96 * 0.005 / 0.4)
    assert kept.high == pytest.approx(0.95 + 1.96 * 0.005 / 0.4)
    assert describe_usefulness(None, learned(0.9, 0.02)) == (
        "a model trained on the release is 95.0% as good as on the original (95% interval 92.5% "
        "to 97.4%, ROC AUC 0.8800 compared with 0.9000, guessing 0.5000)"
    )


def test_of_many_classes_the_most_frequent_one_is_what_guessing_is_right_with() -> None:
    kept = kept_of(learned(0.7, 0.05, measure="accuracy"))
    assert kept is not None
    assert (kept.guessing, kept.share) == (0.6, pytest.approx(0.5))
    assert "accuracy 0.6500 compared with 0.7000, guessing 0.6000" in describe_usefulness(
        None, learned(0.7, 0.05, measure="accuracy")
    )


def test_who_has_seen_the_test_is_told_so() -> None:
    assert "flattering" in describe_usefulness(None, learned(0.9, 0.0, held_out=False))
    assert "flattering" not in describe_usefulness(None, learned(0.9, 0.0))


def test_a_release_that_tells_nothing_has_no_share() -> None:
    kept = kept_of(learned(0.9, 0.4))
    assert kept is not None
    assert kept.share == pytest.approx(0.0)
    assert "no better than guessing" in describe_usefulness(None, learned(0.9, 0.41))


def test_an_original_that_tells_nothing_has_none_to_compare_with() -> None:
    kept = kept_of(learned(0.5, 0.1))
    assert kept is not None
    assert (kept.share, kept.low, kept.high) == (None, None, None)
    assert "models cannot be compared" in describe_usefulness(None, learned(0.5, 0.1))


TOO_FEW = "there are too few test records to measure how good a model trained on the release is"


def test_of_a_wide_interval_no_share_is_told() -> None:
    few = learned(0.69, -0.0253, 0.127, records=150, held_out=False)
    kept = kept_of(few)
    assert kept is not None
    assert not kept.enough
    assert describe_usefulness(None, few) == (
        f"{TOO_FEW} (ROC AUC 0.7153 compared with 0.6900, difference +0.0253 ±0.2489, guessing "
        "0.5000, flattering because the release has seen the test records)"
    )
    # A quarter of what the original's model gains is the most.
    narrow, wide = 0.25 * 0.4 / 1.96 - 1e-9, 0.25 * 0.4 / 1.96 + 1e-9
    assert "80.0% as good" in describe_usefulness(None, learned(0.9, 0.08, narrow))
    assert TOO_FEW in describe_usefulness(None, learned(0.9, 0.08, wide))


@pytest.mark.parametrize("loss", [0.0, 0.5])
def test_of_few_records_an_error_of_nothing_is_no_certainty(loss: float) -> None:
    assert TOO_FEW in describe_usefulness(None, learned(0.9, loss, 0.0, records=99))
    assert TOO_FEW not in describe_usefulness(None, learned(0.9, loss, 0.0, records=100))
    assert TOO_FEW in describe_usefulness(None, learned(0.9, loss, None))
    for majority in (0.01, 0.99):
        rare = learned(0.9, loss, 0.0, majority=majority)
        assert TOO_FEW in describe_usefulness(None, rare)
    many = learned(0.9, loss, 0.0, measure="accuracy", majority=0.01)
    assert TOO_FEW not in describe_usefulness(None, many)


@given(
    original=st.floats(0.4, 1.0),
    loss=st.floats(-0.5, 0.5),
    error=st.none() | st.floats(0.0, 0.5),
    records=st.integers(1, 10_000),
    majority=st.floats(0.0, 1.0),
)
def test_a_share_is_told_with_a_narrow_interval_or_not_at_all(
    original: float, loss: float, error: float | None, records: int, majority: float
) -> None:
    found = learned(original, loss, error, records=records, majority=majority)
    kept = kept_of(found)
    assert kept is not None
    if "as good as on the original" in describe_usefulness(None, found):
        assert kept.low is not None
        assert kept.high is not None
        assert kept.high - kept.low <= 0.5 + 1e-9
        assert records >= 100


def test_sentences_say_which_counts_are_exact_and_how_far_others_are_off() -> None:
    assert kept_of(None) is None
    ranges = (
        "ounts by ranges of quasi-identifiers are off by 2.0% on average, half of them by 1.2% at "
        "most"
    )
    assert describe_usefulness(WORKLOAD, None) == f"c{ranges}"
    filtered = replace(WORKLOAD, filters=["income", "illness"])
    exact = "counts of published records by unchanged columns (income, illness) are exact"
    assert describe_usefulness(filtered, None) == f"{exact}. C{ranges}"
    both = describe_usefulness(WORKLOAD, learned(0.9, 0.02))
    assert both.startswith("a model trained on the release is 95.0% as good as on the original")
    assert both.endswith(f". C{ranges}")


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
