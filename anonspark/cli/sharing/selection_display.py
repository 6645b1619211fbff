"""What ``anonspark select`` chose, and what it cost, on the terminal."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from anonspark.config.budget import in_decimals
from anonspark.sharing.ledger.budget import in_words

if TYPE_CHECKING:
    from anonspark.sharing.ledger.budget import Budget
    from anonspark.sharing.selection.selecting import Prospect
    from anonspark.sharing.selection.writing import Selection


def show_selection(console: Console, found: Selection) -> None:
    """Show the chosen attributes, and the guarantee."""
    table = Table(title="Chosen attributes", title_justify="left", header_style="bold")
    table.add_column("", justify="right")
    table.add_column("attribute")
    for place, name in enumerate(found.attributes, start=1):
        table.add_row(str(place), name)
    console.print(table)
    console.print(found.told["guarantee"])
    console.print(f"Written: {found.output}")


def show_prospect(console: Console, found: Prospect) -> None:
    """Show what a selection would cost."""
    table = Table(title="What it would cost", title_justify="left", header_style="bold")
    table.add_column("what")
    table.add_column("found", justify="right", overflow="fold")
    table.add_row("candidates", ", ".join(found.candidates))
    table.add_row("cells", f"{found.cells:,}")
    table.add_row("epsilon to be charged", in_decimals(found.epsilon))
    left = "no ledger yet" if found.left is None else in_decimals(found.left)
    table.add_row("left of the budget", left)
    if found.scale is not None:
        table.add_row("scale of the noise of a cell", f"{float(found.scale):g}")
    table.add_row("resolution, records", f"{found.resolution:,.0f}")
    console.print(table)


def show_budget(console: Console, found: Budget) -> None:
    """Show what was published of a data set, and what was spent."""
    spent, limit, left = (in_decimals(one) for one in (found.spent, found.limit, found.left))
    table = Table(
        title=f"{found.name}: {spent} of {limit} spent, {left} left",
        title_justify="left",
        header_style="bold",
        box=SIMPLE_HEAD,
    )
    for name in ("entry", "day", "kind", "run", "mechanism"):
        table.add_column(name, overflow="fold")
    for name in ("epsilon", "spent"):
        table.add_column(name, justify="right")
    for entry in found.entries:
        told = entry.told
        epsilon = told.get("epsilon")
        # Releases have none.
        loss = f"k = {told.get('k')}" if epsilon is None else in_decimals(Fraction(epsilon))
        table.add_row(
            str(entry.number),
            str(told["time"])[:10],
            str(told["kind"]),
            str(told.get("run_id", "")),
            str(told.get("mechanism", "")),
            loss,
            in_decimals(entry.spent_after),
        )
    console.print(table)
    how = "added or removed" if found.neighbors == "add_remove" else "replaced by another"
    console.print(f"For {in_words(found.unit)}, {how}")
