"""Sections of the report about what became of the data: sizes, loss, rounds, values, risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from anonspark.page.bars import Bars, Series, bar_chart
from anonspark.page.blocks import Block, Chart, Section, Table, Text
from anonspark.page.heat_map import HeatMap, draw_heat_map
from anonspark.page.tips import words_of
from anonspark.reporting.disclosure import Disclosure, percent
from anonspark.reporting.evidence import Evidence, Row, figure_text
from anonspark.reporting.marginals import Marginal
from anonspark.reporting.wording import utility_sentences

_SHARE = "share of the records (%)"

_MOST_BINS = 14

_ATTACKERS = {
    "prosecutor": "knows that the person is in the release",
    "journalist": "knows the population",
    "marketer": "wants as many people as possible",
}


def utility(evidence: Evidence) -> Section:
    """Say in words what the release is good for."""
    if evidence.manifest.parts:
        told = (
            "This release is a union of releases of several holders. A union has no original, and "
            "no run made it: what each part lost stands in its own metrics and its own report."
        )
        return Section("utility", "How useful it is", [Text(told)])
    sentences = utility_sentences(
        evidence.counts, evidence.attributes, evidence.figures, evidence.rules
    )
    return Section("utility", "How useful it is", [Text(sentence) for sentence in sentences])


def class_sizes(evidence: Evidence) -> Section | None:
    """Show how large the classes are, as far as the proof tells."""
    sizes = {int(size): int(classes) for size, classes in evidence.verification.get("sizes") or ()}
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
            Text("A class is all records with the same published quasi-identifiers. Larger classes "
                 "hide people better and tell less."),
            chart,
        ],
    )  # fmt: skip


def size_bins(sizes: Mapping[int, int], k: int) -> list[tuple[str, int, int]]:
    """Return bins of class sizes: label, classes, records; each with k records or more."""
    starts = _size_starts(k, max(sizes))
    found: list[list[int]] = []
    for place, low in enumerate(starts):
        high = starts[place + 1] - 1 if place + 1 < len(starts) else max(low, *sizes)
        inside = [size for size in sizes if low <= size <= high]
        classes = sum(sizes[size] for size in inside)
        records = sum(size * sizes[size] for size in inside)
        if found and found[-1][3] < k:
            found[-1][1:] = high, found[-1][2] + classes, found[-1][3] + records
        elif classes:
            found.append([low, high, classes, records])
    bins = []
    for low, high, classes, records in found:
        label = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        bins.append((f"up to {high:,}" if low < k else label, classes, records))
    return bins


def _size_starts(k: int, largest: int) -> list[int]:
    """Return where bins of class sizes begin; what is below k is one bin."""
    if largest - k < _MOST_BINS:
        own = list(range(k, largest + 1))
    elif largest < 3 * k:
        own = list(range(k, largest + 1, -(-(largest - k + 1) // _MOST_BINS)))
    else:
        multiples = (factor * 10**power for power in range(12) for factor in (1, 1.5, 2, 3, 5, 7))
        own = [int(k * multiple) for multiple in multiples if k * multiple <= largest]
    return sorted({1, *own})


def loss(evidence: Evidence) -> Section | None:
    """Show what was lost of each quasi-identifier; None without the metrics."""
    rows = evidence.attributes
    if not rows:
        return None
    missing = [row.get("missing_rows", 0) for row in rows]
    names = [str(row["attribute"]) for row in rows]
    cells = [
        [
            str(row["attribute"]),
            str(row["kind"]),
            figure_text(row.get("weight")),
            percent(row["ncp"]),
            percent(row["iloss"]),
            _percent_or_nothing(row.get("loss")),
            figure_text(row.get("precision"), 3),
            evidence.rules.share(row["generalized_share"], evidence.kept),
            rows_missing,
        ]
        for row, rows_missing in zip(rows, _missing(missing, evidence.rules), strict=True)
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
                 "leaves open, on average over the records: 0 % is the exact value, 100 % says "
                 "nothing."),
            chart,
        ],
    )  # fmt: skip


def _missing(missing: Sequence[int | None], rules: Disclosure) -> list[str]:
    """Return how many values of each attribute are missing, as text; None is withheld."""
    # With one of them hidden, the sum of all of them could tell it.
    if any(one is None or rules.hides(one) for one in missing):
        return ["withheld"] * len(missing)
    counts = [int(one or 0) for one in missing]
    # Less the records that were dropped, they would tell how many lack two values.
    if len(counts) > 1:
        return [f"about {rules.rounded(one):,}" if one else "0" for one in counts]
    return [f"{one:,}" for one in counts]


def _percent_or_nothing(value: Any) -> str:
    return "" if value is None else percent(value)


def _extremes(names: Sequence[str], values: Sequence[float]) -> str:
    if not names:
        return ""
    most, least = int(np.argmax(values)), int(np.argmin(values))
    return (
        f"Largest: {names[most]} with {percent(values[most])}; "
        f"smallest: {names[least]} with {percent(values[least])}."
    )


def rounds(evidence: Evidence) -> Section | None:
    """Show how many records each round finished, and at what loss; None without the metrics."""
    rows = evidence.rounds
    if not rows:
        return None
    rules = evidence.rules
    # Records left over at the end may be too few to tell of: then each round is told without them.
    last = int(rows[-1]["outlier_rows"])
    untold = last if rules.hides(last) else 0
    told = _rounds_told(evidence, untold)
    labels, losses = [one.label for one in told], [one.loss for one in told]
    shown = [
        [0 if rules.hides(count) else count for count in counts]
        for counts in ([one.finished for one in told], [one.left_over for one in told])
    ]
    cells = [
        [
            one.label,
            f"{one.finished + one.left_over:,}",
            rules.count(one.finished),
            rules.count(one.left_over),
            f"{one.classes:,}",
            percent(one.loss),
        ]
        for one in told
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
                        one.label,
                        f"put into classes: {rules.count(one.finished)} records",
                        f"left over: {rules.count(one.left_over)} records",
                    ]
                    for one in told
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
                    [f"{one.label}: {percent(one.loss)} of the range left open"] for one in told
                ],
            ),
            "Bar chart: mean certainty penalty of the classes of each round in percent. "
            + _extremes(labels, losses),
            Table("Certainty penalty of each round", _ROUND_COLUMNS, cells),
        ),
    ]  # fmt: skip
    if untold or evidence.counts.get("rows_left_out", 0) is None:
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


def _rounds_told(evidence: Evidence, untold: int) -> list[_Round]:
    """Return what is told of each round, some records that all of them left over left out."""
    weights = sum(float(row.get("weight") or 1.0) for row in evidence.attributes) or 1.0
    told = []
    for row in evidence.rounds:
        finished = int(row["normal_rows"])
        loss = float(row["gcp_total"]) / (finished * weights) if finished else 0.0
        left_over = int(row["outlier_rows"]) - untold
        told.append(_Round(f"round {row['round']}", finished, left_over, int(row["classes"]), loss))
    return told


def marginals(evidence: Evidence) -> Section | None:
    """Show how the values of each quasi-identifier are distributed, before and after."""
    marginals = evidence.figures.marginals
    if not marginals:
        return None
    rules = evidence.rules
    text = (
        "How often the values of each quasi-identifier are. A published interval or set counts in "
        "equal parts towards everything that it covers; a published mean counts where it lies. "
        f"Counts are rounded to multiples of k = {rules.k:,}, and bins with fewer records are "
        "joined with others."
    )
    if evidence.withholds_values:
        text += (
            " Only the release is shown: beside it the original would tell of the records that "
            "found no class."
        )
    elif any(marginal.before is None for marginal in marginals):
        text += " Without the original only the release is shown (option --original)."
    return Section(
        "marginals",
        "Values before and after",
        [Text(text), *(_marginal(one, place, rules) for place, one in enumerate(marginals))],
    )


def _marginal(marginal: Marginal, place: int, rules: Disclosure) -> Chart:
    tables = [("original", marginal.before), ("release", marginal.after)]
    series, columns, numbers = [], [marginal.kind], []
    for name, counts in tables:
        if counts is None:
            continue
        shares = rules.shares(counts)
        series.append(Series(name, [100 * share for share in shares]))
        columns += [f"{name}: records", f"{name}: share"]
        numbers.append(
            [
                (
                    rules.few if rules.hides(round(count)) else f"{rules.rounded(count):,}",
                    percent(part),
                )
                for count, part in zip(counts, shares, strict=True)
            ]
        )
    rows = [
        [label, *(cell for table in numbers for cell in table[number])]
        for number, label in enumerate(marginal.labels)
    ]
    words = [
        words_of(
            label,
            {
                one.name: _people_and_share(*cells[number], rules)
                for one, cells in zip(series, numbers, strict=True)
            },
        )
        for number, label in enumerate(marginal.labels)
    ]
    description = (
        f"Bar chart: distribution of {marginal.attribute} in the "
        f"{' and in the '.join(one.name for one in series)}, {len(rows)} bars."
    )
    return bar_chart(
        f"marginal-{place}",
        Bars(
            marginal.attribute,
            marginal.labels,
            series,
            _SHARE,
            f"value ({marginal.kind})",
            words=words,
        ),
        description,
        Table(f"Distribution of {marginal.attribute}", columns, rows),
    )


def _people_and_share(people: str, share: str, rules: Disclosure) -> str:
    """Return what a bar says; of few records no more than that."""
    return f"{people} records" if people == rules.few else f"{people} records, {share}"


def correlations(evidence: Evidence) -> Section | None:
    """Show how strongly attributes go together, before and after."""
    found = evidence.figures.associations
    if len(found.names) < 2:
        return None
    titles, matrices = ["release"], [found.after]
    if found.before is not None:
        titles, matrices = ["original", "release"], [found.before, found.after]
    pairs = [
        (row, column)
        for row in range(len(found.names))
        for column in range(row + 1, len(found.names))
    ]
    rows = [
        [
            f"{found.names[first]} and {found.names[second]}",
            _measure(found.ordered[first], found.ordered[second]),
            *(
                "does not vary"
                if np.isnan(matrix[first, second])
                else f"{matrix[first, second]:.2f}"
                for matrix in matrices
            ),
        ]
        for first, second in pairs
    ]
    charts = [
        Chart(
            draw_heat_map(
                HeatMap(
                    f"Correlations in the {title}",
                    found.names,
                    matrix,
                    words={
                        cell: f"{row[0]}: {row[place]}"
                        for row, (first, second) in zip(rows, pairs, strict=True)
                        for cell in ((first, second), (second, first))
                    },
                ),
                f"Heat map of the correlations of {len(found.names)} attributes in the "
                f"{title}: {', '.join(found.names)}.",
            ),
            Table("Correlations of pairs of attributes", ("pair", "measure", *titles), rows),
        )
        for place, (title, matrix) in enumerate(zip(titles, matrices, strict=True), start=2)
    ]
    return Section(
        "correlations",
        "Correlations before and after",
        [
            Text("Numbers, dates and times: Pearson's correlation, -1 to 1. Two categories: "
                 "Cramér's V, 0 to 1. A category and a number: the correlation ratio, 0 to 1. A "
                 "published interval counts with its middle, a set in equal parts of its values. "
                 "Categories are grouped as above, rare values together."),
            *charts,
        ],
    )  # fmt: skip


def _measure(first: bool, second: bool) -> str:
    if first and second:
        return "Pearson"
    return "correlation ratio" if first or second else "Cramér's V"


def risk(evidence: Evidence) -> Section | None:
    """Show how likely people are found again, before and after."""
    after = list(evidence.verification.get("risk") or ())
    if not after:
        return None
    rules, figures = evidence.rules, evidence.figures
    published = int(evidence.verification.get("rows", 0))
    sides: list[tuple[str, Sequence[Row], int]] = [("release", after, published)]
    if figures.original is not None:
        sides.insert(0, ("original", evidence.risk_before, figures.original.rows))
    rows = []
    for name, found, people in sides:
        for row in found:
            rows.append(
                [
                    f"{name}: {row['attacker']}",
                    _ATTACKERS.get(row["attacker"], ""),
                    _percent_or_nothing(row.get("highest")),
                    _percent_or_nothing(row.get("average")),
                    *(
                        "" if row.get(figure) is None else rules.share(row[figure], people)
                        for figure in ("at_risk", "unique")
                    ),
                ]
            )
    threshold = after[0].get("threshold")
    columns = ("attacker", "who", "highest", "average", "records at risk", "unique records")
    labels = ["highest", "average", "records at risk"]
    series, texts = [], {}
    for name, found, people in sides:
        prosecutor = next((row for row in found if row["attacker"] == "prosecutor"), None)
        if prosecutor is None:
            continue
        at_risk = rules.rounded_share(float(prosecutor.get("at_risk") or 0.0), people)
        values = [float(prosecutor["highest"]), float(prosecutor["average"]), at_risk]
        series.append(Series(name, [100 * value for value in values]))
        at_risk_text = rules.share(float(prosecutor.get("at_risk") or 0.0), people)
        texts[name] = [percent(values[0]), percent(values[1]), at_risk_text]
    blocks: list[Block] = [
        Text("The probability that somebody who knows all quasi-identifiers of a person finds the "
             "person's record. At risk is a record whose probability exceeds "
             f"{_percent_or_nothing(threshold)}."),
        bar_chart(
            "risk",
            Bars(
                "Risk of re-identification",
                labels,
                series,
                "probability, or share of the records (%)",
                "prosecutor",
                limit=100.0,
                marks=[] if threshold is None else [(100 * threshold, "limit")],
                words=[
                    words_of(label, {name: cells[number] for name, cells in texts.items()})
                    for number, label in enumerate(labels)
                ],
            ),
            "Bar chart: highest and average probability of re-identification, and the share of the "
            "records at risk, in percent.",
            Table("Risk of re-identification", columns, rows),
        ),
    ]  # fmt: skip
    alike = _alike(evidence)
    if alike is not None:
        blocks.append(alike)
    return Section("risk", "Risk before and after", blocks)


def _alike(evidence: Evidence) -> Chart | None:
    """Return how many records look alike, before and after."""
    k, rules = evidence.k, evidence.rules
    original = evidence.figures.original
    sizes = {int(size): int(classes) for size, classes in evidence.verification.get("sizes") or ()}
    if original is None or not sizes:
        return None
    starts = sorted({1, 2, max(2, k // 2), k, 2 * k, 5 * k, 20 * k})
    labels = [
        f"{low:,}" if high - low == 1 else f"{low:,} to {high - 1:,}"
        for low, high in pairwise(starts)
    ] + [f"{starts[-1]:,} and more"]
    tables = []
    for one in (original.sizes, sizes):
        counts = [0] * len(starts)
        for size, groups in one.items():
            counts[int(np.searchsorted(starts, size, "right")) - 1] += size * groups
        tables.append(counts)
    series, cells = [], []
    for name, counts in zip(("original", "release"), tables, strict=True):
        shares = rules.shares(counts)
        series.append(Series(name, [100 * share for share in shares]))
        cells.append(
            [rules.few if rules.hides(count) else f"{rules.rounded(count):,}" for count in counts]
        )
    return bar_chart(
        "alike",
        Bars(
            "Records that look alike",
            labels,
            series,
            _SHARE,
            "records with equal quasi-identifiers",
            words=[
                words_of(
                    f"{label} alike",
                    {
                        one.name: f"{column[number]} records"
                        for one, column in zip(series, cells, strict=True)
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
