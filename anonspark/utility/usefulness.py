"""What a release is worth, in one sentence: how good its models are beside the original's."""

from __future__ import annotations

from dataclasses import dataclass

from anonspark.utility.models import Learning, Measure
from anonspark.utility.workload import WorkloadError

_Z = 1.96

_MEASURES: dict[Measure, str] = {"accuracy": "accuracy", "roc_auc": "ROC AUC"}


@dataclass(frozen=True)
class Kept:
    """What the best model that learns from a release keeps of the original's best one.

    Parameters
    ----------
    target : str
        What was predicted.
    measure : str
        ``roc_auc`` for two classes, ``accuracy`` for more.
    original, release, guessing : float
        Scores of the best models, and of somebody who knows nothing but the most frequent class.
    share : float or None
        What the release's model gains over guessing, as a share of what the original's gains: 1 is
        as good, 0 is worth nothing. None where the original's models gain nothing.
    low, high : float or None
        1.96 standard errors of the difference of the scores around the share; None where there are
        none.
    held_out : bool
        Whether the test records were no part of the original. Else the share flatters.
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


def kept_of(learning: Learning | None) -> Kept | None:
    """Return what a release's best model keeps of the original's, None where none were trained."""
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
    if gain > 0:
        share = 1.0 - loss.loss / gain
        if loss.standard_error is not None:
            margin = _Z * loss.standard_error / gain
            low, high = share - margin, share + margin
    return Kept(
        target=learning.target,
        measure=loss.measure,
        original=original,
        release=original - loss.loss,
        guessing=guessing,
        share=share,
        low=low,
        high=high,
        held_out=learning.held_out,
    )


def describe_usefulness(workload: WorkloadError | None, learning: Learning | None) -> str:
    """Say in one sentence what a release is worth.

    Parameters
    ----------
    workload : WorkloadError or None
        Errors of counts; they are told where no models were trained.
    learning : Learning or None

    Returns
    -------
    str
        Without a full stop; with the interval of the test records, where there is one.
    """
    kept = kept_of(learning)
    if kept is not None:
        return _of_models(kept)
    if workload is not None:
        return (
            f"half of all counts that are taken from the release are off by {workload.median:.1%} "
            f"at most, three quarters by {workload.third_quartile:.1%} at most"
        )
    return "nothing was measured"


def _of_models(kept: Kept) -> str:
    name = _MEASURES[kept.measure]
    scores = f"{name} {kept.release:.4f} beside {kept.original:.4f}, guessing {kept.guessing:.4f}"
    if kept.share is None:
        return (
            f"nothing can be said of models: those of the original tell {kept.target} no better "
            f"than guessing does ({scores})"
        )
    seen = "" if kept.held_out else "; flattering, for the release has seen the test records"
    if kept.share <= 0:
        return (
            f"a model trained on the release tells {kept.target} no better than guessing does "
            f"({scores}{seen})"
        )
    margin = ""
    if kept.low is not None and kept.high is not None:
        margin = f"95 % interval {max(kept.low, 0.0):.1%} to {kept.high:.1%}; "
    return (
        f"a model trained on the release is {kept.share:.1%} as good as on the original "
        f"({margin}{scores}{seen})"
    )
