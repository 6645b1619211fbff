"""How many records have a risk above a threshold, for all thresholds."""

from __future__ import annotations

from collections.abc import Mapping

from anonspark.page.blocks import Chart, Section, Table, Text
from anonspark.page.lines import Line, Lines, draw_lines
from anonspark.page.tips import words_of
from anonspark.reporting.disclosure import round_percent
from anonspark.reporting.evidence import Evidence

THRESHOLDS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75)
"""Probabilities that the curve has points at."""


def share_above(sizes: Mapping[int, int], threshold: float) -> float:
    """Return the share of the records, or people, whose probability exceeds a threshold.

    Parameters
    ----------
    sizes : mapping of int to int
        Groups of records that look alike, or of their people, of each size; at least one.
    threshold : float
    """
    total = sum(size * groups for size, groups in sizes.items())
    above = sum(size * groups for size, groups in sizes.items() if 1 / size > threshold)
    return above / total


def risk_curve(evidence: Evidence) -> Section | None:
    """Show the share of records, or people, above each threshold, before and after."""
    if not evidence.hidden_among:
        return None
    tables = {"release": evidence.hidden_among}
    _, what = evidence.at_risk
    original = evidence.figures.original
    # Its records are not compared with people.
    if original is not None and original.sizes and not evidence.people:
        tables = {"original": dict(original.sizes), **tables}
    rules = evidence.rules
    title = f"{what.capitalize()} above each threshold of risk"
    lines, cells = [], []
    for name, sizes in tables.items():
        people = sum(size * groups for size, groups in sizes.items())
        shares = [
            rules.rounded_share(share_above(sizes, threshold), people) for threshold in THRESHOLDS
        ]
        points = [(100 * at, 100 * one) for at, one in zip(THRESHOLDS, shares, strict=True)]
        lines.append(Line(name, points))
        cells.append([round_percent(one) for one in shares])
    rows = [
        [round_percent(threshold), *row] for threshold, *row in zip(THRESHOLDS, *cells, strict=True)
    ]
    chart = Chart(
        draw_lines(
            Lines(
                title,
                lines,
                "probability to be found (%)",
                f"share of the {what} above it (%)",
                logarithmic=True,
                words={
                    100 * at: words_of(
                        f"probability above {threshold}",
                        {
                            name: f"{cell} of the {what}"
                            for name, cell in zip(tables, row, strict=True)
                        },
                    )
                    for at, (threshold, *row) in zip(THRESHOLDS, rows, strict=True)
                },
            ),
            f"Line chart: share of the {what} whose probability to be found exceeds a threshold, "
            f"at {len(THRESHOLDS)} thresholds, in the {' and in the '.join(tables)}.",
        ),
        Table(title, ("threshold", *tables), rows),
    )
    found = "people whose records look alike" if evidence.people else "records that look alike"
    text = (
        f"Who knows all quasi-identifiers of a person finds the {found}, and takes "
        "one of them: the fewer they are, the higher the risk. The curve has the share of the "
        f"{what} above each probability; shares are rounded to multiples of k = {rules.k:,} "
        f"{what}."
    )
    if evidence.people:
        text += " Who has records in several classes counts in each of them."
    return Section("risk-curve", "Risk curve", [Text(text), chart])
