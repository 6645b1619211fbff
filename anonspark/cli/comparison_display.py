"""The ranking of a comparison on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from anonspark.comparison.grid import settings_label
from anonspark.core.figure_text import figure_rows

if TYPE_CHECKING:
    from anonspark.comparison.grid import Grid
    from anonspark.comparison.runner import Comparison


def show_comparison(console: Console, grid: Grid, comparison: Comparison) -> None:
    """Show every cell, the best of each privacy setting first, and where the figures are."""
    # Few enough for a terminal of 80 columns; the others are in the report.
    suppressed = any(row.get("rows_suppressed") for row in comparison.rows)
    shown = ["place", grid.rank_by, "classes", *["rows_suppressed"] * suppressed, "seconds"]
    shown = list(dict.fromkeys(shown))
    table = Table(
        title=f"Settings by {grid.rank_by}, * not dominated",
        title_justify="left",
        header_style="bold",
        box=SIMPLE_HEAD,
    )
    table.add_column("")
    table.add_column("setting", min_width=24, overflow="fold")
    for name in shown:
        table.add_column(name.replace("_", " "), justify="right", min_width=7)
    for row, figures in zip(comparison.rows, figure_rows(comparison.rows, shown), strict=True):
        mark = "*" if row["dominated"] is False else ""
        label = _label(comparison, row)
        table.add_row(mark, label, *figures)
    console.print(table)
    for row in comparison.rows:
        if row["status"] == "refused":
            text = f"refused: {_label(comparison, row)}: {row['reason']}"
            console.print(text)
    if grid.trial is not None:
        for name, reason in grid.trial.refused.items():
            console.print(f"refused: {name}: {reason}")
    for note in comparison.notes:
        console.print(note)
    console.print(
        f"{_number(comparison.ran, 'run')}, {comparison.reused or 'none'} reused. Figures and "
        f"report: {comparison.path}"
    )
    if comparison.advice is not None:
        sentence = comparison.advice.sentence
        text = f"{sentence[0].upper()}{sentence[1:]}"
        console.print(text, style="bold")
        options = comparison.advice.command_line or "nothing to set"
        console.print(f"To use it: {options}")


def _number(some: int, name: str) -> str:
    return f"{some:,} {name}{'s' * (some != 1)}"


def _label(comparison: Comparison, row: Mapping[str, Any]) -> str:
    return settings_label(comparison.results[row["cell"]].settings)
