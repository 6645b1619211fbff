"""The ranking of a comparison on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from anonspark.comparison.report import figure_text, ranking_columns
from anonspark.comparison.table import axis_column

if TYPE_CHECKING:
    from anonspark.comparison.grid import Grid
    from anonspark.comparison.runner import Comparison

__all__ = ["show_comparison"]


def show_comparison(console: Console, grid: Grid, comparison: Comparison) -> None:
    """Show every cell, the best of each privacy setting first, and where the figures are."""
    names = ranking_columns(grid)
    table = Table(
        title=f"Cells by {grid.rank_by}, * not dominated",
        title_justify="left",
        header_style="bold",
    )
    table.add_column("")
    for key in grid.axes:
        table.add_column(key, overflow="fold")
    shown = [name for name in names if name != "dominated"]
    for name in shown:
        table.add_column(name, justify="right", overflow="fold")
    for row in comparison.rows:
        mark = "*" if row["dominated"] is False else ""
        settings = [escape(figure_text(row[axis_column(key)])) for key in grid.axes]
        table.add_row(mark, *settings, *(figure_text(row.get(name)) for name in shown))
    console.print(table)
    refused = [row for row in comparison.rows if row["status"] == "refused"]
    for row in refused:
        settings = [figure_text(row[axis_column(key)]) for key in grid.axes]
        console.print(
            f"refused: {', '.join(filter(None, settings))}: {row['reason']}",
            markup=False,
            highlight=False,
        )
    console.print(
        f"{comparison.ran} cells run, {comparison.reused} were there; figures and report at "
        f"{comparison.path}",
        markup=False,
        highlight=False,
    )
