"""What the figures of a release mean, in words that a data owner knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anonspark.core.utility_score import describe_utility
from anonspark.reporting.disclosure import Disclosure, percent
from anonspark.reporting.figures import Associations, Figures


def utility_sentences(
    counts: Mapping[str, Any],
    attributes: Sequence[Mapping[str, Any]],
    figures: Figures,
    rules: Disclosure,
) -> list[str]:
    """Return sentences about what a release is good for.

    Parameters
    ----------
    counts : mapping
        The row of the table ``summary``.
    attributes : sequence of mapping
        The rows of the table ``attributes``.
    figures : Figures
    rules : Disclosure
    """
    sentences = []
    if counts.get("utility_score") is not None:
        sentences.append(f"The usefulness is {describe_utility(counts)}.")
    lost = counts.get("association_loss")
    if lost is not None:
        sentences.append(
            f"Of what the quasi-identifiers tell of the target, {percent(max(0.0, float(lost)))} "
            "is lost (association)."
            if float(lost) <= 1
            else "Of what the quasi-identifiers tell of the target nothing is left: who believes "
            "the release is misled (association)."
        )
    hidden = [row for row in attributes if row["ncp"] is None]
    if hidden:
        sentences.append("How much was lost is not shown, because means hide bounds.")
    elif len(attributes) > 1:
        ordered = sorted(attributes, key=lambda row: (row["ncp"], row["position"]))
        best, worst = ordered[0], ordered[-1]
        sentences.append(
            f"Kept best is {best['attribute']}, of which {percent(best['ncp'])} of the range is "
            f"left open; most was lost of {worst['attribute']}, with {percent(worst['ncp'])}."
        )
    distances = [
        (distance(rules.shares(one.before), rules.shares(one.after)), one.attribute)
        for one in figures.marginals
        if one.before is not None
    ]
    if distances:
        largest, name = max(distances)
        middle = float(np.median([one for one, _ in distances]))
        sentences.append(
            f"{name} changed most: {percent(largest)} of the records moved to another bin of its "
            f"chart, or out of it (median column: {percent(middle)})."
        )
    change = _largest_change(figures.associations)
    if change is not None:
        sentences.append(change)
    if not sentences:
        sentences.append("The release came without its metrics, and no original was given.")
    return sentences


def distance(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the total variation distance of two distributions, 0 to 1."""
    return sum(abs(one - other) for one, other in zip(before, after, strict=True)) / 2


def _largest_change(found: Associations) -> str | None:
    if found.before is None or len(found.names) < 2:
        return None
    change = np.abs(np.triu(found.after - found.before, 1))
    if np.isnan(change).all():
        return None
    first, second = np.unravel_index(int(np.nanargmax(change)), change.shape)
    return (
        f"The correlation that changed most is that of {found.names[first]} and "
        f"{found.names[second]}: {found.before[first, second]:.2f} in the original, "
        f"{found.after[first, second]:.2f} in the release."
    )
