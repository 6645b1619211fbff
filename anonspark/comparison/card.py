"""What each of several settings makes of one table, as a card."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from anonspark.comparison.grid import METRICS, Grid, settings_label
from anonspark.comparison.runner import Comparison
from anonspark.core.figure_text import figure_rows, figure_text
from anonspark.presentation.blocks import Chart, Table
from anonspark.presentation.card import Card
from anonspark.presentation.release import SPELLED_OUT


def comparison_card(
    title: str,
    grid: Grid,
    comparison: Comparison,
    charts: Callable[[], Sequence[Chart]] = tuple,
) -> Card:
    """Summarize a comparison: a table of all cells, the best of each privacy setting first."""
    # Few enough for a terminal of 80 columns. The report has the other figures.
    suppressed = any(row.get("rows_suppressed") for row in comparison.rows)
    shown = ["place", grid.rank_by, "classes", *["rows_suppressed"] * suppressed, "seconds"]
    shown = list(dict.fromkeys(shown))
    rows = [
        ["*" if row["dominated"] is False else "", label(comparison, row), *figures]
        for row, figures in zip(comparison.rows, figure_rows(comparison.rows, shown), strict=True)
    ]
    columns = ["", "setting", *(SPELLED_OUT.get(name, name.replace("_", " ")) for name in shown)]
    refused = {
        label(comparison, row): row["reason"]
        for row in comparison.rows
        if row["status"] == "refused"
    }
    if grid.trial is not None:
        refused |= grid.trial.refused
    remarks = [f"refused: {name}: {reason}" for name, reason in refused.items()]
    remarks += comparison.notes
    table = Table(f"Settings by {grid.rank_by} among equal privacy, * not dominated", columns, rows)
    has_best = any(row["place"] == 1 for row in comparison.rows)
    return Card(
        title,
        _verdict(grid, comparison),
        None if has_best else False,
        tables=[table],
        remarks=remarks,
        charts=charts,
    )


def _verdict(grid: Grid, comparison: Comparison) -> str:
    if comparison.advice is not None:
        return comparison.advice.sentence
    best = "; ".join(
        f"{label(comparison, row)} ({grid.rank_by} {figure_text(row.get(grid.rank_by))})"
        for row in [row for row in comparison.rows if row["place"] == 1][:4]
    )
    if not best:
        return "nothing could be published with any of the settings"
    return f"best by {grid.rank_by}, {METRICS[grid.rank_by].better} is better: {best}"


def label(comparison: Comparison, row: Mapping[str, Any]) -> str:
    """Write the settings of a row in a few words."""
    return settings_label(comparison.results[row["cell"]].settings)
