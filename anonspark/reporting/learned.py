"""What models learn from a release and from its original, as far as a report may tell it."""

from __future__ import annotations

from anonspark.engine.protocol import Engine, Table
from anonspark.errors import ConfigurationError, DataError
from anonspark.release.manifest import Manifest
from anonspark.reporting.disclosure import Disclosure
from anonspark.reporting.evidence import hides_original
from anonspark.utility.evaluation import open_evaluation, require_holdout_used
from anonspark.utility.models import Learning

_TRAINED_ON = ("original", "release")


def learn(
    engine: Engine,
    release: str,
    manifest: Manifest,
    original: Table | None,
    target: str | None,
    holdout: Table | str | None,
) -> Learning | None:
    """Train models on a release and on its original, and score them.

    Parameters
    ----------
    engine : Engine
    release : str
        Its directory.
    manifest : Manifest
    original : Table or None
    target : str or None
        What to learn; None learns nothing.
    holdout : Table, str or None
        As of :func:`anonspark.utility.evaluation.evaluate`.

    Returns
    -------
    Learning or None
        With a loss; None without a target.

    Raises
    ------
    ConfigurationError
        If there is no original, if the release withholds the values of the records that it leaves
        out, or as :func:`anonspark.utility.evaluation.evaluate`.
    DataError
        If a figure would be about fewer than k records, if the test records have one class only,
        or as :func:`anonspark.utility.evaluation.evaluate`.

    Notes
    -----
    What ``anonspark evaluate`` costs for its models; counts and associations are not measured.
    """
    require_holdout_used(target, holdout)
    if target is None:
        return None
    if original is None:
        raise ConfigurationError(
            "--target: found no --original; models are trained on the release and on the table "
            "that it was made of; name that, too"
        )
    if hides_original(manifest):
        raise ConfigurationError(
            f"--target: {release} withholds the values of the records that it leaves out, or hides "
            "values behind means, and models of the original would describe them; leave --target "
            "out, and keep what anonspark evaluate shows to yourself"
        )
    learning = open_evaluation(engine, release, original, target, holdout).learning(_TRAINED_ON)
    if learning is None:
        raise TypeError("a target, and nothing learned")
    require_many(learning, Disclosure(manifest.k))
    return learning


def require_many(learning: Learning, rules: Disclosure) -> None:
    """Refuse what would tell of fewer than k people.

    A share of test records is as good as a count of them: that of the most frequent class, and
    accuracies where they are what is told.

    Parameters
    ----------
    learning : Learning
    rules : Disclosure

    Raises
    ------
    DataError
        If it would, or the test records have one class only.
    """
    records, key = learning.test_records, "--holdout" if learning.held_out else "--original"
    if learning.loss is None:
        raise DataError(
            f"{key}: {learning.without_area or 'models cannot be scored'}; expected test records "
            f"with several values of {learning.target!r}; give more records, or leave --target out"
        )
    shares = [1.0, learning.majority]
    if learning.loss.measure == "accuracy":
        shares += [one.accuracy for one in learning.scores]
    if any(rules.hides(round(one * records)) for own in shares for one in (own, 1.0 - own)):
        raise DataError(
            f"{key}: scores of models that learn {learning.target!r} would tell of {rules.few} "
            f"test records; expected k = {rules.k:,} or none of each kind; give more records, or "
            "leave --target out"
        )
