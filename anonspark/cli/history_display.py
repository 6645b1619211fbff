"""The trend of all runs on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from anonspark.core.figure_text import figure_texts
from anonspark.reporting.nights import jobs_of

if TYPE_CHECKING:
    from anonspark.reporting.nights import Night

_FIGURES = {
    "rows_published": "records",
    "published_classes": "classes",
    "rows_suppressed": "without a class",
    "loss": "loss",
    "utility_score": "utility",
    "seconds": "seconds",
}


def show_history(console: Console, nights: Sequence[Night]) -> None:
    """Show every run, the last one at the end, and how many failed."""
    several = len(jobs_of(nights)) > 1
    table = Table(header_style="bold", box=SIMPLE_HEAD)
    for name in ("began (UTC)", *["job"] * several, "run"):
        table.add_column(name)
    for name in _FIGURES.values():
        table.add_column(name, justify="right")
    columns = [_column(nights, name) for name in _FIGURES]
    for one, *figures in zip(nights, *columns, strict=True):
        cells = [f"{one.started:%Y-%m-%d %H:%M}", *[one.job] * several, one.run_id]
        table.add_row(*map(escape, cells), *figures, style="bold red" if one.failed else None)
    console.print(table)
    failed = [one for one in nights if one.failed]
    for one in failed:
        where = f" in {one.stage}" if one.stage else ""
        console.print(
            f"failed: {one.run_id}: exit code {one.exit_code}{where}: {one.message}",
            style="red",
            markup=False,
            highlight=False,
        )
    console.print(f"{len(nights):,} runs, {len(failed):,} failed", highlight=False)


def _column(nights: Sequence[Night], name: str) -> list[str]:
    found = [None if one.failed else one.figures.get(name) for one in nights]
    texts = figure_texts(found, 5 if name == "utility_score" else 3)
    if name != "rows_published":
        return texts
    return ["failed" if one.failed else text for one, text in zip(nights, texts, strict=True)]
