"""What ``anonspark select`` chose, and what it cost, on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from anonspark.ledger.budget import Budget
    from anonspark.selection.selecting import Prospect, Selection


def show_selection(console: Console, found: Selection) -> None:
    """Show the chosen attributes, and the guarantee."""
    table = Table(title="Chosen attributes", title_justify="left", header_style="bold")
    table.add_column("", justify="right")
    table.add_column("attribute")
    for place, name in enumerate(found.attributes, start=1):
        table.add_row(str(place), name)
    console.print(table)
    console.print(found.told["guarantee"], markup=False, highlight=False)
    console.print(f"Written: {found.output}", markup=False, highlight=False)


def show_prospect(console: Console, found: Prospect) -> None:
    """Show what a selection would cost."""
    table = Table(title="What it would cost", title_justify="left", header_style="bold")
    table.add_column("what")
    table.add_column("found", justify="right", overflow="fold")
    table.add_row("candidates", ", ".join(found.candidates))
    table.add_row("cells", f"{found.cells:,}")
    table.add_row("epsilon to be charged", f"{float(found.epsilon):g}")
    left = "no ledger yet" if found.left is None else f"{float(found.left):g}"
    table.add_row("left of the budget", left)
    if found.scale is not None:
        table.add_row("scale of the noise of a cell", f"{float(found.scale):g}")
    table.add_row("resolution, records", f"{found.resolution:,.0f}")
    console.print(table)


def show_budget(console: Console, found: Budget) -> None:
    """Show what was spent."""
    table = Table(
        title=f"{found.path}: {float(found.spent):g} of {float(found.limit.limit):g} spent",
        title_justify="left",
        header_style="bold",
    )
    for name in ("entry", "time", "run", "mechanism"):
        table.add_column(name)
    for name in ("epsilon", "spent after"):
        table.add_column(name, justify="right")
    for entry in found.entries:
        told = entry.told
        table.add_row(
            str(entry.number),
            str(told["time"]),
            str(told.get("run_id", "")),
            str(told.get("mechanism", "")),
            str(told["epsilon"]),
            str(told["spent_after"]),
        )
    console.print(table)
