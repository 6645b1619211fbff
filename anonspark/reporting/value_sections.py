"""Sections of the report: values before and after, and what models learn."""

from __future__ import annotations

from anonspark.core.figure_text import percent
from anonspark.engine.protocol import Engine
from anonspark.engine.protocol import Table as EngineTable
from anonspark.errors import ConfigurationError, DataError
from anonspark.presentation.bars import Bars, Series, bar_chart
from anonspark.presentation.blocks import Chart, Section, Table, Text
from anonspark.presentation.tips import words_of
from anonspark.release.manifest import Manifest
from anonspark.reporting.disclosure import SHARE, Disclosure
from anonspark.reporting.evidence import Evidence, hides_original
from anonspark.reporting.marginals import Marginal
from anonspark.utility.evaluation import open_evaluation, require_holdout_used
from anonspark.utility.models import Learning


def marginals(evidence: Evidence) -> Section | None:
    """Show how the values of each quasi-identifier are distributed, before and after."""
    marginals = evidence.figures.marginals
    if not marginals:
        return None
    rules = evidence.rules
    text = (
        "How often the values of each quasi-identifier are. A published interval or set counts in "
        "equal parts towards everything that it covers. A published mean counts where it lies. "
        f"Counts are rounded to multiples of k = {rules.k:,}, and bins with fewer records are "
        "joined with others."
    )
    if evidence.withholds_values:
        text += (
            " Only the release is shown, because a comparison with the original would describe "
            "the records that found no class."
        )
    elif evidence.manifest.style == "mean":
        text += " Only the release is shown: the original would show what means hide."
    elif any(marginal.before is None for marginal in marginals):
        text += " Without the original only the release is shown (option --original)."
    return Section(
        "marginals",
        "Values before and after",
        [Text(text), *(_marginal(item, index, rules) for index, item in enumerate(marginals))],
    )


def _marginal(marginal: Marginal, index: int, rules: Disclosure) -> Chart:
    tables = [("original", marginal.before), ("release", marginal.after)]
    series, columns, numbers = [], [marginal.kind], []
    for name, counts in tables:
        if counts is None:
            continue
        shares = rules.shares(counts)
        series.append(Series(name, [100 * share for share in shares]))
        columns += [f"{name}: records", f"{name}: share"]
        texts = map(rules.rounded_text, counts)
        numbers.append(list(zip(texts, map(percent, shares), strict=True)))
    rows = [
        [label, *(cell for table in numbers for cell in table[number])]
        for number, label in enumerate(marginal.labels)
    ]
    words = [
        words_of(
            label,
            {
                side.name: _people_and_share(*cells[number], rules)
                for side, cells in zip(series, numbers, strict=True)
            },
        )
        for number, label in enumerate(marginal.labels)
    ]
    description = (
        f"Bar chart: distribution of {marginal.attribute} in the "
        f"{' and in the '.join(side.name for side in series)}, {len(rows)} bars."
    )
    return bar_chart(
        f"marginal-{index}",
        Bars(
            marginal.attribute,
            marginal.labels,
            series,
            SHARE,
            f"value ({marginal.kind})",
            words=words,
        ),
        description,
        Table(f"Distribution of {marginal.attribute}", columns, rows),
    )


def _people_and_share(people: str, share: str, rules: Disclosure) -> str:
    """Return what a bar says. Of few records no more than that."""
    return f"{people} records" if people == rules.few else f"{people} records, {share}"


_TRAINED_ON = ("original", "release")


def learn(
    engine: Engine,
    release: str,
    manifest: Manifest,
    original: EngineTable | None,
    target: str | None,
    holdout: EngineTable | str | None,
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
        What to learn. None learns nothing.
    holdout : Table, str or None
        As of :func:`anonspark.utility.evaluation.evaluate`.

    Returns
    -------
    Learning or None
        With a loss. None without a target.

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
    What ``anonspark evaluate`` costs for its models. Counts and associations are not measured.
    """
    require_holdout_used(target, holdout)
    if target is None:
        return None
    if original is None:
        raise ConfigurationError(
            "--target: found no --original. Models are trained on the release and on the table "
            "that it was made of. Name it also"
        )
    if hides_original(manifest):
        raise ConfigurationError(
            f"--target: {release} withholds the values of the records that it leaves out, or hides "
            "values behind means, and models of the original would describe them. Leave --target "
            "out, and keep what anonspark evaluate shows to yourself"
        )
    learning = open_evaluation(engine, release, original, target, holdout).learning(_TRAINED_ON)
    if learning is None:
        raise TypeError("a target, and nothing learned")
    require_many(learning, Disclosure(manifest.k))
    return learning


def require_many(learning: Learning, rules: Disclosure) -> None:
    """Refuse scores that would be about fewer than k people.

    A share of test records is as good as a count of them: that of the most frequent class, and
    accuracies where they are shown.

    Raises
    ------
    DataError
        If it would, or the test records have one class only.
    """
    records, key = learning.test_records, "--holdout" if learning.held_out else "--original"
    if learning.loss is None:
        raise DataError(
            f"{key}: {learning.without_area or 'models cannot be scored'}. Expected test records "
            f"with several values of {learning.target!r}. Give more records, or leave --target out"
        )
    shares = [1.0, learning.majority]
    if learning.loss.measure == "accuracy":
        shares += [score.accuracy for score in learning.scores]
    if any(rules.hides(round(part * records)) for share in shares for part in (share, 1.0 - share)):
        raise DataError(
            f"{key}: scores of models that learn {learning.target!r} would tell of {rules.few} "
            f"test records. Expected k = {rules.k:,} or none of each kind. Give more records, or "
            "leave --target out"
        )
