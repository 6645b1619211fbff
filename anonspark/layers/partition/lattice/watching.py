"""The nodes that a search looked at: the best, those it just missed, and what they failed by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np

from anonspark.core.criteria import Criteria
from anonspark.layers.partition.lattice.domain import AttributeGroups, Counts, Domain, Levels
from anonspark.layers.partition.lattice.search import Found, Problem
from anonspark.layers.partition.lattice.tuples import NodeScore, TupleTable


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


_MOST_NODES = 20
_MOST_MISSED = 10

SMALLEST_CLASS = "k"
"""The requirement of k records, or people."""


class Scored(NamedTuple):
    """A node that was scored, in the order in which nodes are better.

    Attributes
    ----------
    cost : float
    suppressed : int
    height : int
    levels : tuple of int
    is_allowed : bool
        Whether it may be chosen.
    """

    cost: float
    suppressed: int
    height: int
    levels: Levels
    is_allowed: bool


@dataclass(frozen=True)
class WatchedProblem(Problem):
    """A problem that notes every node that is scored.

    Parameters
    ----------
    seen : list of Scored
        Is added to.
    """

    seen: list[Scored] = field(default_factory=list)

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Return the same problem, watched."""
        return cls(
            problem.lattice,
            problem.criteria,
            problem.objective,
            problem.rows,
            problem.most_suppressed,
        )

    def score(self, table: TupleTable) -> NodeScore:
        """Judge the classes of a node, and note it."""
        score = super().score(table)
        cost = self.objective.cost(table.levels, score)
        self.seen.append(
            Scored(cost, score.suppressed, sum(table.levels), table.levels, self.allows(score))
        )
        return score


@dataclass(frozen=True)
class LookedAt:
    """A node that a search looked at.

    Parameters
    ----------
    levels : mapping of str to int
    height : int
        Their sum.
    classes : int
        Those that satisfy the criteria.
    suppressed : int
        Records of the others.
    loss : float
        From 0 to 1. Suppressed records count as lost.
    is_chosen : bool
    is_allowed : bool
        Whether it keeps the limit of suppression, and has a class.
    binds : str or None
        The requirement that alone would suppress most records, see :func:`requirements_of`. None
        where none would.
    """

    levels: Mapping[str, int]
    height: int
    classes: int
    suppressed: int
    loss: float
    is_chosen: bool
    is_allowed: bool
    binds: str | None


def requirements_of(criteria: Criteria) -> dict[str, Criteria]:
    """Return each requirement by itself, by what it is called."""
    alone = {SMALLEST_CLASS: replace(criteria, criteria=())}
    for one in criteria.criteria:
        name = f"{one.describe()} ({one.attribute})"
        alone[name] = replace(criteria, k=1, criteria=(one,))
    return alone


def best_of(seen: list[Scored], found: Found | None) -> list[Scored]:
    """Return 20 nodes at most, the best first.

    The best of those that may be chosen, and up to 10 of those that would be better than the chosen
    one but may not be, of which these suppress fewest.
    """
    missed = sorted(
        (one for one in seen if not one.is_allowed and (found is None or one.cost < found.cost)),
        key=lambda one: (one.suppressed, one),
    )
    missed = missed[: _MOST_NODES if found is None else _MOST_MISSED]
    allowed = sorted(one for one in seen if one.is_allowed)
    return sorted([*missed, *allowed[: _MOST_NODES - len(missed)]])


def describe_node(
    bottom: TupleTable, domain: Domain, criteria: Criteria, scored: Scored, found: Found | None
) -> LookedAt:
    """Report the figures of a node, and its failed requirement. One score for each requirement."""
    table = bottom.roll_up(scored.levels)
    try:
        score = table.score(criteria, by_group=True)
        alone = {
            name: table.score(one, by_group=False).suppressed
            for name, one in requirements_of(criteria).items()
        }
    finally:
        if table is not bottom:
            table.release()
    groups = np.split(score.groups, np.cumsum(domain.groups(scored.levels))[:-1])
    by_name = dict(zip(domain.names, scored.levels, strict=True))
    in_order = sorted(domain.attributes, key=lambda one: one.position)
    most = max(alone, key=lambda name: alone[name])
    return LookedAt(
        levels={one.quasi_identifier.name: by_name[one.quasi_identifier.name] for one in in_order},
        height=scored.height,
        classes=score.utility_classes,
        suppressed=score.suppressed,
        loss=float(node_loss(domain.attributes, scored.levels, groups, score.suppressed)),
        is_chosen=found is not None and scored.levels == found.levels,
        is_allowed=scored.is_allowed,
        binds=most if alone[most] else None,
    )
