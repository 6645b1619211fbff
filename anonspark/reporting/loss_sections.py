"""Sections of the report: what was lost of each attribute, and in each round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anonspark.core.figure_text import figure_texts, percent
from anonspark.core.kinds import KIND_WORDS
from anonspark.presentation.bars import Bars, Series, bar_chart
from anonspark.presentation.blocks import Block, Section, Table, Text
from anonspark.reporting.disclosure import Disclosure, percent_or_nothing
from anonspark.reporting.evidence import Evidence


def loss(evidence: Evidence) -> Section | None:
    """Show the loss of each quasi-identifier, or return None without the metrics."""
    rows = evidence.losses
    if not rows:
        return None
    missing = [row.get("missing_rows", 0) for row in rows]
    names = [str(row["attribute"]) for row in rows]
    weights, precisions = (
        figure_texts([row.get(name) for row in rows], digits)
        for name, digits in (("weight", 4), ("precision", 3))
    )
    cells = [
        [
            str(row["attribute"]),
            KIND_WORDS.get(row["kind"], ""),
            weight,
            percent(row["ncp"]),
            percent(row["iloss"]),
            percent_or_nothing(row.get("loss")),
            precision,
            evidence.rules.share(row["generalized_share"], evidence.counted_rows),
            rows_missing,
        ]
        for row, weight, precision, rows_missing in zip(
            rows, weights, precisions, _missing(missing, evidence.rules), strict=True
        )
    ]
    chart = bar_chart(
        "loss",
        Bars(
            "Mean certainty penalty",
            names,
            [Series("certainty penalty", [100 * float(row["ncp"]) for row in rows])],
            "part of the attribute's range left open (%)",
            "quasi-identifier",
            words=[
                [f"{name}: {percent(row['ncp'])} of its range left open"]
                for name, row in zip(names, rows, strict=True)
            ],
        ),
        "Bar chart: mean certainty penalty of each quasi-identifier in percent. "
        + _extremes(names, [float(row["ncp"]) for row in rows]),
        Table(
            "Loss of each quasi-identifier",
            ("attribute", "kind", "weight", "certainty penalty", "ILoss", "loss", "precision",
             "generalized records", "missing in the input"),
            cells,
        ),
    )  # fmt: skip
    return Section(
        "loss",
        "Loss of each attribute",
        [
            Text("The certainty penalty is the part of an attribute's range that a published value "
                 "leaves open, on average over the records: 0% is the exact value, 100% reveals "
                 "nothing."),
            chart,
        ],
    )  # fmt: skip


def _missing(missing: Sequence[int | None], rules: Disclosure) -> list[str]:
    """Return how many values of each attribute are missing, as text. None is withheld."""
    # With one of them hidden, the sum of all of them could tell it.
    if any(count is None or rules.hides(count) for count in missing):
        return ["withheld"] * len(missing)
    counts = [int(count or 0) for count in missing]
    # Less the records that were dropped, they would tell how many lack two values.
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
    # Records left over at the end may be too few to tell of: then each round is told without them.
    last = int(rows[-1]["outlier_rows"])
    hidden = last if rules.hides(last) else 0
    steps = _rounds_shown(evidence, hidden)
    labels, losses = [step.label for step in steps], [step.loss for step in steps]
    shown = [
        [0 if rules.hides(count) else count for count in counts]
        for counts in ([step.finished for step in steps], [step.left_over for step in steps])
    ]
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
        bar_chart(
            "rounds",
            Bars(
                "Records of each round",
                labels,
                [Series("put into classes", shown[0]), Series("left over", shown[1])],
                "records",
                "round",
                stacked=True,
                words=[
                    [
                        step.label,
                        f"put into classes: {rules.count(step.finished)} records",
                        f"left over: {rules.count(step.left_over)} records",
                    ]
                    for step in steps
                ],
            ),
            f"Stacked bar chart: records of {len(rows)} rounds, put into classes and left over.",
            Table("Records of each round", _ROUND_COLUMNS, cells),
        ),
        bar_chart(
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
        ),
    ]  # fmt: skip
    if hidden or evidence.counts.get("rows_left_out", 0) is None:
        blocks.append(
            Text(f"In the end {rules.few} records were left over, which the figures leave out.")
        )
    return Section("rounds", "Rounds", blocks)


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
    """Return the rows of each round, some records that all of them left over left out."""
    weights = sum(float(row.get("weight") or 1.0) for row in evidence.attributes) or 1.0
    each = []
    for row in evidence.rounds:
        finished = int(row["normal_rows"])
        loss = float(row["gcp_total"]) / (finished * weights) if finished else 0.0
        left_over = int(row["outlier_rows"]) - hidden
        each.append(_Round(f"round {row['round']}", finished, left_over, int(row["classes"]), loss))
    return each
