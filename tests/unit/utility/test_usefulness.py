"""The sentence that tells what a release is worth."""

from __future__ import annotations

import pytest

from anonspark.utility.models import Learning, Measure, ModelLoss, Score
from anonspark.utility.usefulness import describe_usefulness, kept_of
from anonspark.utility.workload import WorkloadError

WORKLOAD = WorkloadError(1000, ["age"], [], 0.05, 30.2, 0.0123, 0.02, 0.001, 0.034)


def learned(
    original: float,
    loss: float,
    error: float | None = 0.005,
    *,
    measure: Measure = "roc_auc",
    held_out: bool = True,
) -> Learning:
    """Return what was learned by two learners, of which the second is better on the original."""
    area = original if measure == "roc_auc" else None
    accuracy = original if measure == "accuracy" else 0.8
    scores = [
        Score("original", "logistic regression", 0.1, 0.1, 0.1, 0.1),
        Score("original", "random forest", accuracy, 0.4, 0.6, area),
        Score("release", "random forest", accuracy - loss, 0.4, 0.6, area and area - loss),
    ]
    best = ModelLoss(measure, "random forest", "random forest", loss, error)
    return Learning("ill", 2, held_out, 900, 0, 0.6, scores, [], best, None)


def test_what_is_gained_over_guessing_counts() -> None:
    kept = kept_of(learned(0.9, 0.02))
    assert kept is not None
    assert (kept.guessing, kept.original) == (0.5, 0.9)
    assert kept.release == pytest.approx(0.88)
    assert kept.share == pytest.approx(0.95)
    assert kept.low == pytest.approx(0.95 - 1.96 * 0.005 / 0.4)
    assert kept.high == pytest.approx(0.95 + 1.96 * 0.005 / 0.4)
    assert describe_usefulness(WORKLOAD, learned(0.9, 0.02)) == (
        "a model trained on the release is 95.0% as good as on the original (95 % interval 92.5% "
        "to 97.4%; ROC AUC 0.8800 beside 0.9000, guessing 0.5000)"
    )


def test_of_many_classes_the_most_frequent_one_is_what_guessing_is_right_with() -> None:
    kept = kept_of(learned(0.7, 0.05, measure="accuracy"))
    assert kept is not None
    assert (kept.guessing, kept.share) == (0.6, pytest.approx(0.5))
    assert "accuracy 0.6500 beside 0.7000, guessing 0.6000" in describe_usefulness(
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
    assert "nothing can be said of models" in describe_usefulness(None, learned(0.5, 0.1))


def test_without_an_error_there_is_no_interval() -> None:
    assert "interval" not in describe_usefulness(None, learned(0.9, 0.02, None))


def test_without_models_counts_are_told() -> None:
    assert kept_of(None) is None
    assert describe_usefulness(WORKLOAD, None) == (
        "half of all counts that are taken from the release are off by 1.2% at most, three "
        "quarters by 3.4% at most"
    )
