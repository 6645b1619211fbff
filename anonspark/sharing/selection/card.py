"""What was chosen in private, and what it costs, as cards."""

from __future__ import annotations

from fractions import Fraction

from anonspark.config.budget import in_decimals
from anonspark.presentation.blocks import Cell
from anonspark.presentation.card import Card
from anonspark.sharing.selection.selecting import Prospect, Selection


def selection_card(result: Selection | Prospect) -> Card:
    """Return the chosen attributes and the guarantee, or what a selection would cost."""
    if isinstance(result, Prospect):
        return _prospect_card(result)
    chosen = [(str(index), name) for index, name in enumerate(result.attributes, 1)]
    spent: list[tuple[str, Cell]] = [
        ("epsilon spent", in_decimals(Fraction(str(result.content["epsilon"])))),
        ("where", result.output),
    ]
    number = len(result.attributes)
    verdict = f"{number:,} attribute{'s' * (number != 1)} chosen"
    guarantee = str(result.content["guarantee"])
    return Card("Selection", verdict, figures=[*chosen, *spent], remarks=[guarantee])


def _prospect_card(cost: Prospect) -> Card:
    """Return what a selection would cost."""
    epsilon = in_decimals(cost.epsilon)
    figures: list[tuple[str, Cell]] = [
        ("candidates", ", ".join(cost.candidates)),
        ("cells", cost.cells),
        ("left of the budget", "no ledger yet" if cost.left is None else in_decimals(cost.left)),
        ("resolution, records", f"{cost.resolution:,.0f}"),
    ]
    if cost.scale is not None:
        figures.insert(3, ("scale of the noise of a cell", f"{float(cost.scale):g}"))
    return Card("Selection", f"it would cost an epsilon of {epsilon}", figures=figures)
