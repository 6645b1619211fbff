"""What was chosen in private, and what it costs, as cards."""

from __future__ import annotations

from fractions import Fraction

from anonspark.config.budget import in_decimals
from anonspark.presentation.blocks import Cell
from anonspark.presentation.card import Card
from anonspark.sharing.selection.selecting import Prospect, Selection


def selection_card(found: Selection | Prospect) -> Card:
    """Return the chosen attributes and the guarantee, or what a selection would cost."""
    if isinstance(found, Prospect):
        return _prospect_card(found)
    chosen = [(str(index), name) for index, name in enumerate(found.attributes, 1)]
    spent: list[tuple[str, Cell]] = [
        ("epsilon spent", in_decimals(Fraction(str(found.content["epsilon"])))),
        ("where", found.output),
    ]
    number = len(found.attributes)
    verdict = f"{number:,} attribute{'s' * (number != 1)} chosen"
    guarantee = str(found.content["guarantee"])
    return Card("Selection", verdict, figures=[*chosen, *spent], remarks=[guarantee])


def _prospect_card(found: Prospect) -> Card:
    epsilon = in_decimals(found.epsilon)
    figures: list[tuple[str, Cell]] = [
        ("candidates", ", ".join(found.candidates)),
        ("cells", found.cells),
        ("left of the budget", "no ledger yet" if found.left is None else in_decimals(found.left)),
        ("resolution, records", f"{found.resolution:,.0f}"),
    ]
    if found.scale is not None:
        figures.insert(3, ("scale of the noise of a cell", f"{float(found.scale):g}"))
    return Card("Selection", f"it would cost an epsilon of {epsilon}", figures=figures)
