"""Sections of the report: risk of re-identification, and classes by size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from anonspark.core.figure_text import percent
from anonspark.presentation.blocks import Block, Chart, Section, Table, Text
from anonspark.presentation.charts import Bars, Line, Lines, Series, bar_chart, draw_lines
from anonspark.presentation.svg import words_of
from anonspark.reporting.evidence import (
    SHARE,
    Disclosure,
    Evidence,
    Row,
    percent_or_nothing,
    prosecutor_of,
    round_percent,
)

_MOST_BINS = 14


def class_sizes(evidence: Evidence) -> Section | None:
    """Show how large the classes are, or return None if the proof does not know."""
    sizes = evidence.verification.published.sizes
    if not sizes:
        return None
    bins = size_bins(sizes, evidence.k)
    labels = [label for label, _, _ in bins]
    classes = [float(number) for _, number, _ in bins]
    chart = bar_chart(
        "class-sizes",
        Bars(
            "Classes by size",
            labels,
            [Series("classes", classes)],
            "classes",
            "records in a class",
            words=[
                [
                    f"Classes of {label} records: {number:,}",
                    f"records in them: {evidence.rules.count(records)}",
                ]
                for label, number, records in bins
            ],
        ),
        f"Bar chart: number of classes by the number of records in a class. {len(bins)} bars, "
        f"from {labels[0]} to {labels[-1]} records.",
        Table(
            "Classes by size",
            ("records in a class", "classes", "records"),
            [
                [label, f"{number:,}", evidence.rules.count(records)]
                for label, number, records in bins
            ],
        ),
    )
    return Section(
        "class-sizes",
        "Class sizes",
        [
            Text("A class is all records with the same published quasi-identifiers. Larger "
                 "classes hide people better and show less detail."),
            chart,
        ],
    )  # fmt: skip


def size_bins(sizes: Mapping[int, int], k: int) -> list[tuple[str, int, int]]:
    """Group classes by size into bins with k records or more: label, classes and records.

    >>> size_bins({5: 3, 6: 1, 9: 2}, k=5)
    [('5', 3, 15), ('6', 1, 6), ('9', 2, 18)]
    """
    starts = _size_starts(k, max(sizes))
    merged: list[list[int]] = []
    for index, low in enumerate(starts):
        high = starts[index + 1] - 1 if index + 1 < len(starts) else max(low, *sizes)
        inside = [size for size in sizes if low <= size <= high]
        classes = sum(sizes[size] for size in inside)
        records = sum(size * sizes[size] for size in inside)
        if merged and merged[-1][3] < k:
            merged[-1][1:] = high, merged[-1][2] + classes, merged[-1][3] + records
        elif classes:
            merged.append([low, high, classes, records])
    bins = []
    for low, high, classes, records in merged:
        label = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        bins.append((f"up to {high:,}" if low < k else label, classes, records))
    return bins


def _size_starts(k: int, largest: int) -> list[int]:
    """Return the first size of each bin. All sizes below k are one bin."""
    if largest - k < _MOST_BINS:
        starts = list(range(k, largest + 1))
    elif largest < 3 * k:
        starts = list(range(k, largest + 1, -(-(largest - k + 1) // _MOST_BINS)))
    else:
        multiples = (factor * 10**power for power in range(12) for factor in (1, 1.5, 2, 3, 5, 7))
        starts = [int(k * multiple) for multiple in multiples if k * multiple <= largest]
    return sorted({1, *starts})


THRESHOLDS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75)
"""Probabilities that the curve has points at."""


def share_above(sizes: Mapping[int, int], threshold: float) -> float:
    """Return the share of the records, or people, whose probability exceeds a threshold.

    ``sizes`` has the number of groups of each size, of records that look alike or of their people.

    >>> share_above({1: 5, 10: 2}, 0.2)
    0.2
    """
    total = sum(size * groups for size, groups in sizes.items())
    above = sum(size * groups for size, groups in sizes.items() if 1 / size > threshold)
    return above / total


def risk_curve(evidence: Evidence) -> Section | None:
    """Show the share of records, or people, whose risk exceeds each threshold, before and after."""
    if not evidence.hidden_among:
        return None
    tables = {"release": evidence.hidden_among}
    _, what = evidence.at_risk
    original = evidence.figures.original
    # The people of the original are not counted, so its records cannot be compared with people.
    if original is not None and original.sizes and not evidence.people:
        tables = {"original": dict(original.sizes), **tables}
    shares = {name: _shares_above(sizes, evidence.rules) for name, sizes in tables.items()}
    alike = "people whose records look alike" if evidence.people else "records that look alike"
    text = (
        f"An attacker who knows all quasi-identifiers of a person finds the {alike}, and takes one "
        f"of them: the fewer they are, the higher the risk. The curve has the share of the {what} "
        f"above each probability. Shares are rounded to multiples of k = {evidence.k:,} {what}."
    )
    if evidence.people:
        text += " A person with records in several classes counts in each of them."
    return Section("risk-curve", "Risk curve", [Text(text), _curve(shares, what)])


def _shares_above(sizes: Mapping[int, int], rules: Disclosure) -> list[float]:
    """Return the share above each threshold, rounded to multiples of k.

    >>> _shares_above({10: 4}, Disclosure(10))[4:7]
    [1.0, 0.0, 0.0]
    """
    people = sum(size * groups for size, groups in sizes.items())
    return [rules.rounded_share(share_above(sizes, bound), people) for bound in THRESHOLDS]


def _curve(shares: Mapping[str, Sequence[float]], what: str) -> Chart:
    """Draw the share above each threshold as a line for each table."""
    title = f"{what.capitalize()} above each threshold of risk"
    # In percent, and one column of the rows for each table.
    across = [100 * threshold for threshold in THRESHOLDS]
    rows = [list(map(round_percent, row)) for row in zip(THRESHOLDS, *shares.values(), strict=True)]
    lines = [
        Line(name, [(x, 100 * share) for x, share in zip(across, of_table, strict=True)])
        for name, of_table in shares.items()
    ]
    words = {
        x: words_of(
            f"probability above {threshold}",
            {name: f"{cell} of the {what}" for name, cell in zip(shares, cells, strict=True)},
        )
        for x, (threshold, *cells) in zip(across, rows, strict=True)
    }
    up = f"share of the {what} above it (%)"
    chart = Lines(title, lines, "probability to be found (%)", up, logarithmic=True, words=words)
    description = (
        f"Line chart: share of the {what} whose probability to be found exceeds a threshold, at "
        f"{len(THRESHOLDS)} thresholds, in the {' and in the '.join(shares)}."
    )
    return Chart(draw_lines(chart, description), Table(title, ("threshold", *shares), rows))


_ATTACKERS = {
    "prosecutor": "knows that the person is in the release",
    "journalist": "knows the population",
    "marketer": "wants as many people as possible",
    "outsider": "individual risk by sampling weights, an estimate: does not know who was sampled",
}


def risk(evidence: Evidence) -> Section | None:
    """Show how likely people are re-identified, before and after."""
    after = evidence.verification.risk
    if not after:
        return None
    figures = evidence.figures
    sides: list[tuple[str, Sequence[Row], int]] = [("release", after, evidence.at_risk[0])]
    if figures.original is not None and evidence.risk_before:
        sides.insert(0, ("original", evidence.risk_before, figures.original.rows))
    threshold, average = (float(str(after[0][key])) for key in ("threshold", "accepted_average"))
    accepted = f" At most {round_percent(average)} on average is accepted."
    blocks: list[Block] = [
        Text(_what_is_at_risk(evidence, round_percent(threshold)) + accepted),
        _risk_chart(sides, evidence, threshold),
    ]
    alike = _alike(evidence)
    if alike is not None:
        blocks.append(alike)
    return Section("risk", "Risk before and after", blocks)


def _risk_table(sides: Sequence[tuple[str, Sequence[Row], int]], evidence: Evidence) -> Table:
    """Show the risk from each attacker, before and after, as a table."""
    rules, (_, what) = evidence.rules, evidence.at_risk
    rows = [
        [
            f"{name}: {row['attacker']}",
            _ATTACKERS.get(row["attacker"], ""),
            percent_or_nothing(row.get("highest")),
            percent_or_nothing(row.get("average")),
            *(
                "" if row.get(figure) is None else rules.share(row[figure], people, what)
                for figure in ("at_risk", "unique")
            ),
        ]
        for name, risks, people in sides
        for row in risks
        if row["attacker"] != "journalist" or row.get("population")
    ]
    columns = ("attacker", "who", "highest", "average", f"{what} at risk", f"unique {what}")
    return Table("Risk of re-identification", columns, rows)


def _risk_chart(
    sides: Sequence[tuple[str, Sequence[Row], int]], evidence: Evidence, threshold: float
) -> Chart:
    """Draw the prosecutor's risk before and after, with the limit."""
    rules, (_, what) = evidence.rules, evidence.at_risk
    labels = ["highest", "average", f"{what} at risk"]
    series, texts = [], {}
    for name, risks, people in sides:
        prosecutor = prosecutor_of(risks)
        if prosecutor is None:
            continue
        at_risk = rules.rounded_share(float(prosecutor.get("at_risk") or 0.0), people)
        values = [float(prosecutor["highest"]), float(prosecutor["average"]), at_risk]
        series.append(Series(name, [100 * value for value in values]))
        at_risk_text = rules.share(float(prosecutor.get("at_risk") or 0.0), people, what)
        texts[name] = [percent(values[0]), percent(values[1]), at_risk_text]
    return bar_chart(
        "risk",
        Bars(
            "Risk of re-identification",
            labels,
            series,
            f"probability, or share of the {what} (%)",
            "prosecutor",
            limit=100.0,
            marks=[(100 * threshold, "limit")],
            words=[
                words_of(label, {name: cells[number] for name, cells in texts.items()})
                for number, label in enumerate(labels)
            ],
        ),
        "Bar chart: highest and average probability of re-identification, and the share of the "
        f"{what} at risk, in percent.",
        _risk_table(sides, evidence),
    )


def _what_is_at_risk(evidence: Evidence, threshold: str) -> str:
    """Explain which attacker the figures are about, and when a record or a person is at risk."""
    text = ""
    if not any(row.get("population") for row in evidence.verification.risk):
        text = "No population was given, so a journalist finds as much as the prosecutor. "
    if not evidence.people:
        text += (
            "The probability that an attacker who knows all quasi-identifiers of a person finds "
            f"the person's record. At risk is a record whose probability exceeds {threshold}."
        )
        for row in evidence.verification.risk:
            if row.get("expected") is not None:
                text += (
                    " The individual risk is that from an outsider, who does not know who was "
                    "sampled. Sampling weights estimate the population, and calibrated weights "
                    "estimate small classes poorly: it is no bound. You can expect "
                    f"{row['expected']:,.2f} re-identifications among {evidence.rows:,} records."
                )
        return text
    text += (
        "The probability that an attacker who knows all quasi-identifiers of a person takes the "
        "right one of the people whose records are in the class. At risk is a person whose "
        f"probability exceeds {threshold}. A person with records in several classes counts in each "
        "of them."
    )
    if evidence.figures.original is not None:
        text += " The people of the original were not counted, so the risk before is not shown."
    return text


def _alike(evidence: Evidence) -> Chart | None:
    """Show how many records are alike in all quasi-identifiers, before and after."""
    k, rules = evidence.k, evidence.rules
    original = evidence.figures.original
    sizes = evidence.verification.published.sizes
    if original is None or not sizes:
        return None
    starts = sorted({1, 2, max(2, k // 2), k, 2 * k, 5 * k, 20 * k})
    labels = [
        f"{low:,}" if high - low == 1 else f"{low:,} to {high - 1:,}"
        for low, high in pairwise(starts)
    ] + [f"{starts[-1]:,} and more"]
    tables = []
    for table in (original.sizes, sizes):
        counts = [0] * len(starts)
        for size, groups in table.items():
            counts[int(np.searchsorted(starts, size, "right")) - 1] += size * groups
        tables.append(counts)
    series, cells = [], []
    for name, counts in zip(("original", "release"), tables, strict=True):
        shares = rules.shares(counts)
        series.append(Series(name, [100 * share for share in shares]))
        cells.append(list(map(rules.rounded_text, counts)))
    return bar_chart(
        "alike",
        Bars(
            "Records that look alike",
            labels,
            series,
            SHARE,
            "records with equal quasi-identifiers",
            words=[
                words_of(
                    f"{label} alike",
                    {
                        side.name: f"{column[number]} records"
                        for side, column in zip(series, cells, strict=True)
                    },
                )
                for number, label in enumerate(labels)
            ],
        ),
        "Bar chart: share of the records by how many records have the same quasi-identifiers, in "
        "the original and in the release.",
        Table(
            "Records by how many have the same quasi-identifiers",
            ("records that look alike", "original: records", "release: records"),
            [[label, *pair] for label, *pair in zip(labels, *cells, strict=True)],
        ),
    )
