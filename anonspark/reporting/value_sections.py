"""Sections of the report: values and their correlations, before and after."""

from __future__ import annotations

import numpy as np

from anonspark.page.bars import Bars, Series, bar_chart
from anonspark.page.blocks import Chart, Section, Table, Text
from anonspark.page.heat_map import HeatMap, draw_heat_map
from anonspark.page.tips import words_of
from anonspark.reporting.disclosure import SHARE, Disclosure, percent
from anonspark.reporting.evidence import Evidence
from anonspark.reporting.marginals import Marginal


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
    elif evidence.manifest.style == "mean":
        text += " Only the release is shown: the original would show what means hide."
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
            SHARE,
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
