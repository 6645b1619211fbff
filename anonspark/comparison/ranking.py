"""Which cells are best: places among those with the same protection, and which are dominated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anonspark.comparison.evaluation import FIGURES
from anonspark.core.figures import SUMMARY, Figure

METRICS: Mapping[str, Figure] = {
    figure.name: figure for figure in (*SUMMARY, *FIGURES) if figure.better
}
"""Figures of the summary, and of an evaluation, that cells can be ranked by."""


@dataclass(frozen=True)
class Contestant:
    """What of a cell decides its rank.

    Parameters
    ----------
    protection : tuple of str
        Its privacy settings other than k. Cells that differ here are not compared.
    k : int
    suppressed : int
        Records without a class.
    value : float or None
        The figure that cells are ranked by, the smaller the better. None where nothing was
        published.
    """

    protection: tuple[str, ...]
    k: int
    suppressed: int
    value: float | None


def places(contestants: Sequence[Contestant]) -> list[int | None]:
    """Return each cell's place, from 1, among those with the same privacy settings.

    Equal figures share the better place. Cells that published nothing have none.
    """
    ranks: list[int | None] = []
    for contestant in contestants:
        if contestant.value is None:
            ranks.append(None)
            continue
        better = sum(
            other.value is not None
            and (other.protection, other.k) == (contestant.protection, contestant.k)
            and other.value < contestant.value
            for other in contestants
        )
        ranks.append(better + 1)
    return ranks


def dominated(contestants: Sequence[Contestant]) -> list[bool | None]:
    """Return whether another cell is nowhere worse than each, and better in something.

    Compared are k (a larger one protects more), the records suppressed, and the figure that cells
    are ranked by. None for cells that published nothing.
    """
    return [
        None
        if contestant.value is None
        else any(_dominates(other, contestant) for other in contestants)
        for contestant in contestants
    ]


def _dominates(other: Contestant, rival: Contestant) -> bool:
    if other.value is None or rival.value is None or other.protection != rival.protection:
        return False
    pairs = ((-other.k, -rival.k), (other.suppressed, rival.suppressed), (other.value, rival.value))
    return all(left <= right for left, right in pairs) and any(
        left < right for left, right in pairs
    )
