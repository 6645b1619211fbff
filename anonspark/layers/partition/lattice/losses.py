"""What a node loses, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from anonspark.layers.partition.lattice.domain import AttributeGroups, Counts, Levels


def node_loss(
    attributes: Sequence[AttributeGroups],
    levels: Levels,
    records: Sequence[Counts],
    suppressed: int = 0,
) -> Fraction:
    """Return the loss of a node: the figure ``loss`` of the table ``summary``.

    Parameters
    ----------
    attributes : sequence of AttributeGroups
    levels : tuple of int
    records : sequence of int64 ndarray
        Of each attribute, the records in each group of its level that have a class.
    suppressed : int
        Records without one, which count as lost.

    Returns
    -------
    Fraction
        From 0 to 1.
    """
    weights, lost = Fraction(0), Fraction(0)
    for attribute, level, own in zip(attributes, levels, records, strict=True):
        one = attribute.quasi_identifier
        beside = (attribute.leaves(level) - 1).tolist()
        covered = sum(n * more for n, more in zip(own.tolist(), beside, strict=True))
        weight = Fraction(str(one.weight))
        weights += weight
        lost += weight * (Fraction(covered, max(one.domain_size - 1, 1)) + suppressed)
    return lost / (weights * (int(records[0].sum()) + suppressed))
