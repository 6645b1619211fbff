"""Sections of the report: loss, rounds, and values before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anonspark.core.figure_text import figure_texts, percent
from anonspark.core.labels import KIND_WORDS
from anonspark.engine.protocol import Engine
from anonspark.engine.protocol import Table as EngineTable
from anonspark.errors import ConfigurationError, DataError
from anonspark.presentation.blocks import Block, Chart, Section, Table, Text
from anonspark.presentation.charts import Bars, Series, bar_chart
from anonspark.presentation.svg import words_of
from anonspark.release.manifest import Manifest
from anonspark.reporting.evidence import (
    SHARE,
    Disclosure,
    Evidence,
    hides_original,
    percent_or_nothing,
)
from anonspark.reporting.marginals import Marginal
from anonspark.utility.evaluation import open_evaluation, require_holdout_used
from anonspark.utility.models import Learning


def loss(evidence: Evidence) -> Section | None:
    """Show the loss of each quasi-identifier, or return None without the metrics."""
    rows = evidence.losses
    if not rows:
        return None
    names = [str(row["attribute"]) for row in rows]
    penalties = [float(row["ncp"]) for row in rows]
    words = [
        [f"{name}: {percent(penalty)} of its range left open"]
        for name, penalty in zip(names, penalties, strict=True)
    ]
    bars = Bars(
        "Mean certainty penalty",
        names,
        [Series("certainty penalty", [100 * penalty for penalty in penalties])],
        "part of the attribute's range left open (%)",
        "quasi-identifier",
        words=words,
    )
    description = "Bar chart: mean certainty penalty of each quasi-identifier in percent. "
    chart = bar_chart("loss", bars, description + _extremes(names, penalties), _losses(evidence))
    text = (
        "The certainty penalty is the part of an attribute's range that a published value leaves "
        "open, on average over the records: 0% is the exact value, 100% reveals nothing."
    )
    return Section("loss", "Loss of each attribute", [Text(text), chart])


def _losses(evidence: Evidence) -> Table:
    """List all figures of loss, a row for each quasi-identifier."""
    rows, rules = evidence.losses, evidence.rules
    weights = figure_texts([row.get("weight") for row in rows])
    precisions = figure_texts([row.get("precision") for row in rows], 3)
    missing = _missing([row.get("missing_rows", 0) for row in rows], rules)
    columns = {
        "attribute": [str(row["attribute"]) for row in rows],
        "kind": [KIND_WORDS.get(row["kind"], "") for row in rows],
        "weight": weights,
        "certainty penalty": [percent(row["ncp"]) for row in rows],
        "ILoss": [percent(row["iloss"]) for row in rows],
        "loss": [percent_or_nothing(row.get("loss")) for row in rows],
        "precision": precisions,
        "generalized records": [
            rules.share(row["generalized_share"], evidence.counted_rows) for row in rows
        ],
        "missing in the input": missing,
    }
    cells = list(zip(*columns.values(), strict=True))
    return Table("Loss of each quasi-identifier", list(columns), cells)


def _missing(missing: Sequence[int | None], rules: Disclosure) -> list[str]:
    """Write how many values of each attribute are missing. None is withheld."""
    # With a single count hidden, the sum of all counts could reveal it.
    if any(count is None or rules.hides(count) for count in missing):
        return ["withheld"] * len(missing)
    counts = [int(count or 0) for count in missing]
    # Minus the records that were dropped, exact counts would show how many lack two values.
    if len(counts) > 1:
        return [f"about {rules.rounded(count):,}" if count else "0" for count in counts]
    return [f"{count:,}" for count in counts]


def _extremes(names: Sequence[str], values: Sequence[float]) -> str:
    if not names:
        return ""
    most, least = int(np.argmax(values)), int(np.argmin(values))
    return (
        f"Largest: {names[most]} with {percent(values[most])}. "
        f"Smallest: {names[least]} with {percent(values[least])}."
    )


def rounds(evidence: Evidence) -> Section | None:
    """Show the records and the loss of each round, or return None without the metrics."""
    rows = [row for row in evidence.rounds if row["gcp_total"] is not None]
    if not rows:
        return None
    rules = evidence.rules
    # If too few records are left over at the end to be shown, each round is shown without them.
    last = int(rows[-1]["outlier_rows"])
    hidden = last if rules.hides(last) else 0
    steps = _rounds_shown(evidence, hidden)
    cells = [
        [
            step.label,
            f"{step.finished + step.left_over:,}",
            rules.count(step.finished),
            rules.count(step.left_over),
            f"{step.classes:,}",
            percent(step.loss),
        ]
        for step in steps
    ]
    blocks: list[Block] = [
        Text("Each round puts records into classes and leaves the others to the next round: those "
             "far from their group, or those that found no class."),
        _records_chart(steps, rules, cells),
        _penalties_chart(steps, cells),
    ]  # fmt: skip
    if hidden or evidence.counts.get("rows_left_out", 0) is None:
        blocks.append(
            Text(f"In the end {rules.few} records were left over, which the figures leave out.")
        )
    return Section("rounds", "Rounds", blocks)


def _records_chart(steps: Sequence[_Round], rules: Disclosure, cells: list[list[str]]) -> Chart:
    """Draw for each round the records put into classes and left over."""
    finished, left_over = (
        [0 if rules.hides(count) else count for count in counts]
        for counts in ([step.finished for step in steps], [step.left_over for step in steps])
    )
    words = [
        [
            step.label,
            f"put into classes: {rules.count(step.finished)} records",
            f"left over: {rules.count(step.left_over)} records",
        ]
        for step in steps
    ]
    return bar_chart(
        "rounds",
        Bars(
            "Records of each round",
            [step.label for step in steps],
            [Series("put into classes", finished), Series("left over", left_over)],
            "records",
            "round",
            stacked=True,
            words=words,
        ),
        f"Stacked bar chart: records of {len(steps)} rounds, put into classes and left over.",
        Table("Records of each round", _ROUND_COLUMNS, cells),
    )


def _penalties_chart(steps: Sequence[_Round], cells: list[list[str]]) -> Chart:
    """Draw the mean certainty penalty of the classes of each round."""
    labels, losses = [step.label for step in steps], [step.loss for step in steps]
    return bar_chart(
        "rounds-loss",
        Bars(
            "Certainty penalty of each round's classes",
            labels,
            [Series("certainty penalty", [100 * loss for loss in losses])],
            "mean part of the range left open (%)",
            "round",
            words=[
                [f"{step.label}: {percent(step.loss)} of the range left open"] for step in steps
            ],
        ),
        "Bar chart: mean certainty penalty of the classes of each round in percent. "
        + _extremes(labels, losses),
        Table("Certainty penalty of each round", _ROUND_COLUMNS, cells),
    )


_ROUND_COLUMNS = (
    "round",
    "records",
    "put into classes",
    "left over",
    "classes",
    "certainty penalty",
)


class _Round(NamedTuple):
    label: str
    finished: int
    left_over: int
    classes: int
    loss: float


def _rounds_shown(evidence: Evidence, hidden: int) -> list[_Round]:
    """Return the rows of each round, less the hidden records that all of them left over."""
    weights = sum(float(row.get("weight") or 1.0) for row in evidence.attributes) or 1.0
    rows = []
    for row in evidence.rounds:
        finished = int(row["normal_rows"])
        loss = float(row["gcp_total"]) / (finished * weights) if finished else 0.0
        left_over = int(row["outlier_rows"]) - hidden
        rows.append(_Round(f"round {row['round']}", finished, left_over, int(row["classes"]), loss))
    return rows


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
    """Draw the shares of an attribute's values in the release, and in the original if given."""
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
    """Write the tip of a bar. Of few records it shows no share."""
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
    """Score models trained on a release and on its original, or return None without a target.

    Costs as much as the models of ``anonspark evaluate``. Counts and associations are not measured.
    Raises ConfigurationError without an original, or if the release withholds the values of records
    that it leaves out, DataError if a figure would be about fewer than k records or the test
    records have one class only, and as :func:`anonspark.utility.evaluation.evaluate`.
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
    """Raise DataError if scores would reveal fewer than k people, or test records have one class.

    A share of test records reveals their number, such as that of the most frequent class, and
    accuracies if they are shown.
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
