"""The nodes that a search looked at, as the terminal shows them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from anonspark.cli.display import titled_table
from anonspark.core.figure_text import figure_texts
from anonspark.core.levels import levels_text
from anonspark.layers.partition.lattice.watching import LookedAt


def show_nodes(console: Console, nodes: Sequence[LookedAt]) -> None:
    """Print the best nodes, the chosen one marked."""
    losses = figure_texts([one.loss for one in nodes])
    rows = [
        (
            _verdict(one),
            levels_text(one.levels),
            one.classes,
            one.suppressed,
            loss,
            one.binds or "",
        )
        for one, loss in zip(nodes, losses, strict=True)
    ]
    names = ("", "levels", "classes", "suppressed", "loss", "binds")
    console.print(titled_table("Levels, the best first", names, rows))
    console.print("Counts are exact, and tell of few people: keep them inside.")


def _verdict(node: LookedAt) -> str:
    if node.is_chosen:
        return "chosen"
    return "" if node.is_allowed else "suppresses too much"
