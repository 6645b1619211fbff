"""Which cells are best: places among those with the same protection, and which are dominated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["METRICS", "Contestant", "Metric", "dominated", "places"]


@dataclass(frozen=True)
class Metric:
    """A figure of the summary that cells can be ranked by.

    Parameters
    ----------
    larger_is_better : bool
    needs_information : bool
        Whether it is measured with ``evaluate.information`` only.
    """

    larger_is_better: bool = False
    needs_information: bool = False


METRICS: Mapping[str, Metric] = {
    "gcp": Metric(),
    "gcp_total": Metric(),
    "dm": Metric(),
    "classes": Metric(larger_is_better=True),
    "published_classes": Metric(larger_is_better=True),
    "mean_class_size": Metric(),
    "mean_class_size_with_suppressed": Metric(),
    "aecs": Metric(),
    "iloss": Metric(),
    "loss": Metric(),
    "precision": Metric(larger_is_better=True),
    "entropy": Metric(needs_information=True),
    "kl_divergence": Metric(needs_information=True),
    "rows_suppressed": Metric(),
    "seconds": Metric(),
}
"""Columns of the summary, and what is better."""


@dataclass(frozen=True)
class Contestant:
    """What of a cell decides its rank.

    Parameters
    ----------
    protection : tuple of str
        Its privacy settings other than k; cells that differ here are not compared.
    k : int
    suppressed : int
        Records without a class.
    value : float or None
        The figure that cells are ranked by, the smaller the better; None where nothing was
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
    found: list[int | None] = []
    for own in contestants:
        if own.value is None:
            found.append(None)
            continue
        better = sum(
            other.value is not None
            and (other.protection, other.k) == (own.protection, own.k)
            and other.value < own.value
            for other in contestants
        )
        found.append(better + 1)
    return found


def dominated(contestants: Sequence[Contestant]) -> list[bool | None]:
    """Return whether another cell is nowhere worse than each, and better in something.

    Compared are k (a larger one protects more), the records suppressed, and the figure that cells
    are ranked by. None for cells that published nothing.
    """
    return [
        None if own.value is None else any(_dominates(other, own) for other in contestants)
        for own in contestants
    ]


def _dominates(other: Contestant, own: Contestant) -> bool:
    if other.value is None or own.value is None or other.protection != own.protection:
        return False
    pairs = ((-other.k, -own.k), (other.suppressed, own.suppressed), (other.value, own.value))
    return all(left <= right for left, right in pairs) and any(
        left < right for left, right in pairs
    )
