"""Describe in one sentence how good a release's models are, compared with the original's."""

from __future__ import annotations

from dataclasses import dataclass

from anonspark.utility.models import Learning, Measure
from anonspark.utility.workload import WorkloadError

_Z = 1.96

LEAST_TEST_RECORDS = 100
"""Fewest test records for a share."""

LEAST_OF_A_CLASS = 10
"""Fewest test records of each of two classes for a share."""

LARGEST_MARGIN = 0.25
"""Nor where 1.96 standard errors are a larger part of what the original's model gains."""

MEASURES: dict[Measure, str] = {"accuracy": "accuracy", "roc_auc": "ROC AUC"}
"""The names of the measures."""


@dataclass(frozen=True)
class KeptScore:
    """The share of the score of the original's best model that a release's best one keeps.

    Parameters
    ----------
    target : str
        What was predicted.
    measure : str
        ``roc_auc`` for two classes, ``accuracy`` for more.
    original, release, guessing : float
        Scores of the best models, and of always guessing the most frequent class.
    share : float or None
        What the release's model gains over guessing, as a share of what the original's gains: 1 is
        as good, 0 is worth nothing. None where the original's models gain nothing.
    low, high : float or None
        1.96 standard errors of the difference of the scores around the share. None where there are
        none.
    held_out : bool
        Whether the test records were no part of the original. Else the share flatters.
    test_records : int
    margin : float or None
        1.96 standard errors of the difference of the scores. None where there are none.
    enough : bool
        Whether there are enough test records for a share: :data:`LEAST_TEST_RECORDS`, of each of
        two classes :data:`LEAST_OF_A_CLASS`, and so many that the interval reaches no farther than
        :data:`LARGEST_MARGIN` to each side.
    """

    target: str
    measure: Measure
    original: float
    release: float
    guessing: float
    share: float | None
    low: float | None
    high: float | None
    held_out: bool
    test_records: int
    margin: float | None
    enough: bool


def kept_of(learning: Learning | None) -> KeptScore | None:
    """Return the score that a release's best model keeps, or None if none were trained."""
    if learning is None or learning.loss is None:
        return None
    loss = learning.loss
    guessing = 0.5 if loss.measure == "roc_auc" else learning.majority
    original = next(
        float(getattr(score, loss.measure))
        for score in learning.scores
        if (score.trained_on, score.learner) == ("original", loss.original)
    )
    gain = original - guessing
    share = low = high = None
    margin = None if loss.standard_error is None else _Z * loss.standard_error
    if gain > 0:
        share = 1.0 - loss.loss / gain
        if margin is not None:
            low, high = share - margin / gain, share + margin / gain
    return KeptScore(
        target=learning.target,
        measure=loss.measure,
        original=original,
        release=original - loss.loss,
        guessing=guessing,
        share=share,
        low=low,
        high=high,
        held_out=learning.held_out,
        test_records=learning.test_records,
        margin=margin,
        enough=_are_enough(learning, loss.measure)
        and margin is not None
        and (gain <= 0 or margin <= LARGEST_MARGIN * gain),
    )


def _are_enough(learning: Learning, measure: Measure) -> bool:
    """Return whether a standard error can be relied on, for few records may have none at all."""
    if learning.test_records < LEAST_TEST_RECORDS:
        return False
    rarer = min(learning.majority, 1.0 - learning.majority) * learning.test_records
    return measure == "accuracy" or round(rarer) >= LEAST_OF_A_CLASS


def describe_usefulness(workload: WorkloadError | None, learning: Learning | None) -> str:
    """Describe in one sentence what a release is worth.

    Parameters
    ----------
    workload : WorkloadError or None
        Errors of counts. They are reported where no models were trained.
    learning : Learning or None

    Returns
    -------
    str
        Without a full stop. With the interval of the test records, where there is one.
    """
    score = kept_of(learning)
    if score is not None:
        return _of_models(score)
    if workload is not None:
        return (
            "half of all counts that are taken from the release are off by "
            f"{workload.median:.1%} at most, three quarters by "
            f"{workload.third_quartile:.1%} at most"
        )
    return "nothing was measured"


def _of_models(score: KeptScore) -> str:
    name = MEASURES[score.measure]
    scores = f"{name} {score.release:.4f} compared with {score.original:.4f}"
    guessing = f"guessing {score.guessing:.4f}"
    seen = "" if score.held_out else ", flattering because the release has seen the test records"
    if not score.enough:
        difference = f"difference {score.release - score.original:+z.4f}"
        if score.margin is not None:
            difference += f" ±{score.margin:.4f}"
        return (
            "there are too few test records to measure how good a model trained on the release is "
            f"({scores}, {difference}, {guessing}{seen})"
        )
    if score.share is None:
        return (
            f"models cannot be compared, because those of the original predict {score.target} no "
            f"better than guessing ({scores}, {guessing})"
        )
    if score.share <= 0:
        return (
            f"a model trained on the release predicts {score.target} no better than guessing "
            f"({scores}, {guessing}{seen})"
        )
    margin = ""
    if score.low is not None and score.high is not None:
        margin = f"95% interval {max(score.low, 0.0):.1%} to {score.high:z.1%}, "
    return (
        f"a model trained on the release is {score.share:z.1%} as good as on the original "
        f"({margin}{scores}, {guessing}{seen})"
    )
