"""The trend of all runs on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from anonspark.core.figure_text import figure_texts
from anonspark.reporting.nights import jobs_of

if TYPE_CHECKING:
    from anonspark.reporting.nights import Night

# Few enough for a terminal of 80 columns; the others are in the page. How many digits each has.
_FIGURES = {
    "rows_published": ("records", 4),
    "published_classes": ("classes", 4),
    "rows_suppressed": ("without\na class", 4),
    "loss": ("loss", 4),
    "seconds": ("seconds", 3),
}


def show_history(console: Console, nights: Sequence[Night]) -> None:
    """Show every run, the last one at the end, and how many failed."""
    several = len(jobs_of(nights)) > 1
    table = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False, padding=0)
    table.add_column("began (UTC)", no_wrap=True)
    # Where there is no room, names are folded; a figure that is cut would be another one.
    for name in (*["job"] * several, "run"):
        table.add_column(name, overflow="fold", min_width=4)
    for name, _ in _FIGURES.values():
        table.add_column(Text(name), justify="right", no_wrap=True)
    columns = [_column(nights, name, digits) for name, (_, digits) in _FIGURES.items()]
    for one, *figures in zip(nights, *columns, strict=True):
        cells = [f"{one.started:%Y-%m-%d %H:%M}", *[one.job] * several, one.run_id]
        table.add_row(*cells, *figures, style="bold red" if one.failed else None)
    console.print(table)
    failed = [one for one in nights if one.failed]
    for one in failed:
        where = f" in {one.stage}" if one.stage else ""
        console.print(
            f"failed: {one.run_id}: exit code {one.exit_code}{where}: {one.message}", style="red"
        )
    runs = "1 run" if len(nights) == 1 else f"{len(nights):,} runs"
    console.print(f"{runs}, {len(failed):,} failed")


def _column(nights: Sequence[Night], name: str, digits: int) -> list[str]:
    found = [None if one.failed else one.figures.get(name) for one in nights]
    texts = figure_texts(found, digits)
    if name != "rows_published":
        return texts
    return ["failed" if one.failed else text for one, text in zip(nights, texts, strict=True)]
