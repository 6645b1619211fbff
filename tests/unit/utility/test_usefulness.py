"""The sentence that tells what a release is worth."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.utility.models import Learning, Measure, ModelLoss, Score
from anonspark.utility.workload import WorkloadError, describe_usefulness, kept_of

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
    exact = "counts of published records by income and illness alone are exact"
    assert describe_usefulness(filtered, None) == f"{exact}. C{ranges}"
    both = describe_usefulness(WORKLOAD, learned(0.9, 0.02))
    assert both.startswith("a model trained on the release is 95.0% as good as on the original")
    assert both.endswith(f". C{ranges}")
