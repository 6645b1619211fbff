"""Section of the report: how useful a release is, in words, and in what models learn from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anonspark.core.model_scores import describe_utility
from anonspark.presentation.blocks import Block, Chart, Section, Table, Text
from anonspark.presentation.charts import Bars, Series, bar_chart
from anonspark.presentation.svg import words_of
from anonspark.reporting.evidence import Disclosure, Evidence, round_percent
from anonspark.reporting.figures import Figures
from anonspark.utility.models import Learning
from anonspark.utility.workload import MEASURES, describe_usefulness, kept_of


def utility_sentences(
    counts: Mapping[str, Any],
    attributes: Sequence[Mapping[str, Any]],
    figures: Figures,
    rules: Disclosure,
) -> list[str]:
    """Describe the usefulness of a release in sentences.

    ``counts`` is the row of the table ``summary``, and ``attributes`` are the rows of that table.
    """
    sentences = []
    if counts.get("utility_score") is not None:
        sentences.append(f"The usefulness is {describe_utility(counts)}.")
    lost = counts.get("association_loss")
    if lost is not None:
        sentences.append(
            "Of the information that the quasi-identifiers have about the target, "
            f"{round_percent(max(0.0, float(lost)))} is lost (association)."
            if float(lost) <= 1
            else "Nothing is left of the information that the quasi-identifiers have about the "
            "target. Conclusions from the release would mislead (association)."
        )
    hidden = [row for row in attributes if row["ncp"] is None]
    if hidden:
        sentences.append("How much was lost is not shown, because means hide bounds.")
    elif len(attributes) > 1:
        ordered = sorted(attributes, key=lambda row: (row["loss"], row["position"]))
        best, worst = ordered[0], ordered[-1]
        sentences.append(
            f"Kept best is {best['attribute']}, of which {round_percent(best['loss'])} of the "
            f"range is left open. Most was lost of {worst['attribute']}, with "
            f"{round_percent(worst['loss'])}."
        )
    distances = [
        (distance(rules.shares(marginal.before), rules.shares(marginal.after)), marginal.attribute)
        for marginal in figures.marginals
        if marginal.before is not None
    ]
    if distances:
        largest, name = max(distances)
        middle = float(np.median([share for share, _ in distances]))
        sentences.append(
            f"{name} changed most: {round_percent(largest)} of the records moved to another bin of "
            f"its chart, or out of it (median column: {round_percent(middle)})."
        )
    if not sentences:
        sentences.append("The release came without its metrics, and no original was given.")
    return sentences


def distance(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the total variation distance of two distributions, 0 to 1.

    >>> distance([0.5, 0.5, 0.0], [0.25, 0.5, 0.25])
    0.25
    """
    return sum(abs(first - second) for first, second in zip(before, after, strict=True)) / 2


def usefulness(evidence: Evidence) -> Section:
    """Say in words what the release is good for, and show what models learn from it."""
    if evidence.manifest.parts:
        explanation = (
            "This release is a union of releases of several holders. A union has no original, and "
            "no run made it: the metrics and the report of each part show what it lost."
        )
        return Section("utility", "How useful it is", [Text(explanation)])
    sentences = utility_sentences(
        evidence.counts, evidence.attributes, evidence.figures, evidence.rules
    )
    blocks: list[Block] = [Text(sentence) for sentence in sentences]
    if evidence.learning is not None:
        blocks = [*_models(evidence.learning, evidence.rules), *blocks]
    return Section("utility", "How useful it is", blocks)


def sentence_of(learning: Learning) -> str:
    """Return the first sentence of ``anonspark evaluate`` about models."""
    sentence = describe_usefulness(None, learning)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _models(learning: Learning, rules: Disclosure) -> list[Block]:
    records = f"about {rules.rounded(learning.test_records):,}"
    how = (
        f"How that was measured: models that learn {learning.target} were trained on the original, "
        f"and again on the release. Both were tested on {records} records "
    )
    how += (
        "that were put aside before (option --holdout)."
        if learning.held_out
        else "of the original, which the original's models have not seen. The release holds what "
        "became of them, so the figures flatter it. Records that were put aside before the run "
        "give fair ones (option --holdout)."
    )
    return [Text(sentence_of(learning)), Text(how), _scores(learning)]


def _scores(learning: Learning) -> Chart:
    """Compare learners trained on the original and on the release, as bars above a table.

    A learner has two bars, whose tip has the difference, and a row that adds the verdict. A line
    in the chart and the last row show what guessing would score.
    """
    kept_score = kept_of(learning)
    if kept_score is None:
        raise TypeError("a learning without a loss")
    name = MEASURES[kept_score.measure]
    by_side = {
        side: {
            score.learner: float(getattr(score, kept_score.measure))
            for score in learning.scores
            if score.trained_on == side
        }
        for side in ("original", "release")
    }
    rows, tips = [], []
    for pair in learning.differences:
        gap = getattr(pair, kept_score.measure)
        margin = "" if gap.standard_error is None else f" ±{1.96 * gap.standard_error:.4f}"
        scores = {side: f"{values[pair.learner]:.4f}" for side, values in by_side.items()}
        difference = f"{gap.difference:+z.4f}{margin}"
        rows.append([pair.learner, *scores.values(), difference, gap.verdict or "too few records"])
        tips.append([*words_of(pair.learner, scores), f"difference: {difference}"])
    guessing = f"{kept_score.guessing:.4f}"
    rows.append(["guessing", guessing, guessing, "", ""])
    learners = [model.learner for model in learning.differences]
    title = f"Models that learn {learning.target}"
    return bar_chart(
        "models",
        Bars(
            title,
            learners,
            [Series(side, [values[key] for key in learners]) for side, values in by_side.items()],
            f"{name}, 1 is perfect",
            "learner",
            limit=1.0,
            marks=[(kept_score.guessing, "guessing")],
            words=tips,
        ),
        f"Bar chart: {name} of {len(learners)} learners trained on the original and on the "
        f"release, compared with {guessing} for guessing.",
        Table(
            f"{title}: {name}",
            ("learner", "original", "release", "difference, +-1.96 standard errors", "the release"),
            rows,
        ),
    )
