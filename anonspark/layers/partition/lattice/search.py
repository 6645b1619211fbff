"""Find the best node of a lattice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np

from anonspark.core.criteria import Criteria
from anonspark.layers.partition.lattice.domain import AttributeGroups, Counts, Domain, Levels
from anonspark.layers.partition.lattice.lattice import Lattice
from anonspark.layers.partition.lattice.objectives import Objective
from anonspark.layers.partition.lattice.tuples import NodeScore, TupleTable

# Tables kept for rolling up from: tuples of all together, at least, and as multiples of those of
# the bottom; and tables.
_KEPT_TUPLES = 2_000_000
_KEPT_BOTTOMS = 2
_KEPT_TABLES = 4096

Report = Callable[[int], None]
"""Gets how many nodes were scored so far."""


@dataclass(frozen=True)
class Problem:
    """The problem of a search in a table of ``rows`` records.

    Utility classes satisfy ``criteria``, and at most ``most_suppressed`` records may be suppressed.
    """

    lattice: Lattice
    criteria: Criteria
    objective: Objective
    rows: int
    most_suppressed: int

    def score(self, table: TupleTable) -> NodeScore:
        """Judge the classes of a node."""
        return table.score(self.criteria, by_group=self.objective.by_group)

    def allows(self, score: NodeScore) -> bool:
        """Return whether a node may be chosen at all."""
        return score.suppressed <= self.most_suppressed and score.utility_classes > 0


@dataclass(frozen=True)
class Optimum:
    """The best node, its cost by the objective, and how many nodes were scored."""

    levels: Levels
    score: NodeScore
    cost: float
    scored: int


def _rank(cost: float, levels: Levels, score: NodeScore) -> tuple[float, int, int, Levels]:
    """Return the sort key of nodes: the cost, and what decides between equals."""
    return cost, score.suppressed, sum(levels), levels


class _Best:
    """The best of the nodes that were offered."""

    def __init__(self, problem: Problem) -> None:
        self.optimum: Optimum | None = None
        self.scored = 0
        self._problem = problem

    def offer(self, levels: Levels, score: NodeScore) -> bool:
        """Compare a node with the best one, and return whether it may be chosen at all."""
        self.scored += 1
        allowed = self._problem.allows(score)
        if allowed:
            cost = self._problem.objective.cost(levels, score)
            best = self.optimum
            if best is None or _rank(cost, levels, score) < _rank(
                best.cost, best.levels, best.score
            ):
                self.optimum = Optimum(levels, score, cost, self.scored)
        return allowed

    def result(self) -> Optimum | None:
        """Return the best node, or None if none is allowed."""
        if self.optimum is None:
            return None
        return Optimum(self.optimum.levels, self.optimum.score, self.optimum.cost, self.scored)


def walk(bottom: TupleTable, lattice: Lattice) -> Iterator[TupleTable]:
    """Visit every node once, with its table rolled up from a node right below.

    ``bottom`` is the table of the lowest node. The order keeps one table a quasi-identifier at a
    time. Each is released as soon as the next one does not need it, but never the bottom.
    """

    def visit(table: TupleTable, first: int) -> Iterator[TupleTable]:
        yield table
        for index in range(first, len(lattice.highest)):
            current = table
            try:
                while current.levels[index] < lattice.highest[index]:
                    levels = list(current.levels)
                    levels[index] += 1
                    above = current.roll_up(tuple(levels))
                    if current is not table:
                        current.release()
                    current = above
                    yield from visit(current, index + 1)
            finally:
                if current is not table:
                    current.release()

    yield from visit(bottom, 0)


def search_exhaustively(bottom: TupleTable, problem: Problem, report: Report) -> Optimum | None:
    """Score every node of a lattice and return the best one, or None if none is allowed.

    ``bottom`` is the table of the lowest node. The best node has the smallest cost, on a tie the
    fewest suppressed records, then the smallest height, then the smallest levels in the order of
    the domain.
    """
    best = _Best(problem)
    for table in walk(bottom, problem.lattice):
        best.offer(table.levels, problem.score(table))
        report(best.scored)
    return best.result()


class _Cache:
    """Tables of scored nodes, to roll others up from. The oldest go first."""

    def __init__(self, bottom: TupleTable) -> None:
        self._bottom = bottom
        # A ring: from the oldest to the newest, both counted without end.
        self._tables: list[TupleTable] = [bottom] * _KEPT_TABLES
        self._levels = np.tile(np.array(bottom.levels), (_KEPT_TABLES, 1))
        self._tuples = np.full(_KEPT_TABLES, np.inf)
        self._room = max(_KEPT_TUPLES, _KEPT_BOTTOMS * bottom.tuples)
        self._oldest = self._newest = 0

    def table(self, node: Levels) -> TupleTable:
        """Return a node's table, rolled up from the smallest stored one below it."""
        below = np.all(self._levels <= np.array(node), axis=1)
        tuples = np.where(below, self._tuples, np.inf)
        nearest = int(np.argmin(tuples))
        source = self._tables[nearest] if np.isfinite(tuples[nearest]) else self._bottom
        if source.levels == node:
            return source
        table = source.roll_up(node)
        self._room -= table.tuples
        while self._oldest < self._newest and (
            self._room < 0 or self._newest - self._oldest == _KEPT_TABLES
        ):
            self._drop_oldest()
        slot = self._newest % _KEPT_TABLES
        self._tables[slot], self._levels[slot] = table, node
        self._tuples[slot] = table.tuples
        self._newest += 1
        return table

    def _drop_oldest(self) -> None:
        slot = self._oldest % _KEPT_TABLES
        self._room += self._tables[slot].tuples
        self._tables[slot].release()
        self._tables[slot], self._tuples[slot] = self._bottom, np.inf
        self._oldest += 1

    def release(self) -> None:
        while self._oldest < self._newest:
            self._drop_oldest()


def search_pruned(bottom: TupleTable, problem: Problem, report: Report) -> Optimum | None:
    """Find the best node without scoring every one. See :func:`search_exhaustively`.

    Nodes are *tagged*: if a node suppresses too much so do all below it, and if it does not, none
    above it does. Binary searches along chains find the border (OLA, El Emam et al. 2009, and
    Flash, Kohlmayer et al. 2012). And nodes are *bounded*: a lower bound of a node's cost, from its
    levels or from a node below it, rules out those that cannot be better than the best so far.

    Bounds are always right. Tags are right if the criteria are monotone: k, distinct l-diversity,
    and every criterion that counts records if nothing may be suppressed or everything. With other
    criteria a class may violate them after it takes in suppressed records or, if people are
    counted, another class that satisfies them. Then this search may miss the best node, but the
    node that it finds always keeps the limit and all criteria.
    """
    best = _Best(problem)
    cache = _Cache(bottom)
    lattice, objective = problem.lattice, problem.objective
    nodes = lattice.nodes
    indices = {tuple(node): index for index, node in enumerate(nodes.tolist())}
    bounds = np.array([objective.least_cost(tuple(node)) for node in nodes.tolist()])
    waiting = np.ones(len(nodes), bool)

    def score(index: int) -> bool:
        levels = tuple(nodes[index].tolist())
        node_score = problem.score(cache.table(levels))
        waiting[index] = False
        above = lattice.above(levels)
        bounds[above] = np.maximum(bounds[above], objective.least_cost_above(levels, node_score))
        allowed = best.offer(levels, node_score)
        report(best.scored)
        return allowed

    try:
        if problem.most_suppressed < problem.rows:
            _tag(lattice, indices, waiting, score)
        while waiting.any():
            candidates = np.flatnonzero(waiting)
            index = int(candidates[np.argmin(bounds[candidates])])
            # Equal costs are scored, too: the tie decides.
            if best.optimum is not None and bounds[index] > best.optimum.cost:
                break
            score(index)
    finally:
        cache.release()
    return best.result()


def _tag(
    lattice: Lattice,
    indices: dict[Levels, int],
    waiting: np.ndarray[tuple[int], np.dtype[np.bool_]],
    score: Callable[[int], bool],
) -> None:
    """Stop waiting for nodes that monotonicity shows to suppress too much.

    From each open node a chain of open nodes leads up, and bisecting it finds the lowest that
    passes ``score``. Then all nodes above pass, and none below one that does not.
    """
    passes = np.zeros(len(indices), bool)
    for start in range(len(indices)):
        if not waiting[start] or passes[start]:
            continue
        chain = [start]
        while True:
            node = tuple(lattice.nodes[chain[-1]].tolist())
            above = [indices[successor] for successor in lattice.successors(node)]
            unknown = [index for index in above if waiting[index] and not passes[index]]
            if not unknown:
                break
            chain.append(unknown[0])
        low, high = 0, len(chain)
        while low < high:
            middle = (low + high) // 2
            index = chain[middle]
            node = tuple(lattice.nodes[index].tolist())
            if score(index):
                passes |= lattice.above(node)
                high = middle
            else:
                waiting[lattice.below(node)] = False
                low = middle + 1


def node_loss(
    attributes: Sequence[AttributeGroups],
    levels: Levels,
    records: Sequence[Counts],
    suppressed: int = 0,
) -> Fraction:
    """Return the loss of a node, 0 to 1: the figure ``loss`` of the table ``summary``.

    ``records`` has for each attribute the records with a class in each group of its level. The
    ``suppressed`` records have none, and count as lost.
    """
    weights, lost = Fraction(0), Fraction(0)
    for attribute, level, record in zip(attributes, levels, records, strict=True):
        identifier = attribute.quasi_identifier
        others = (attribute.leaves(level) - 1).tolist()
        covered = sum(n * more for n, more in zip(record.tolist(), others, strict=True))
        weight = Fraction(str(identifier.weight))
        weights += weight
        lost += weight * (Fraction(covered, max(identifier.domain_size - 1, 1)) + suppressed)
    return lost / (weights * (int(records[0].sum()) + suppressed))


_MOST_NODES = 20
_MOST_MISSED = 10

SMALLEST_CLASS = "k"
"""The requirement of k records, or people."""


class Scored(NamedTuple):
    """A node that was scored. Fields are in the order in which nodes are better."""

    cost: float
    suppressed: int
    height: int
    levels: Levels
    is_allowed: bool


@dataclass(frozen=True)
class WatchedProblem(Problem):
    """A problem that adds every node that is scored to ``seen``."""

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
class NodePreview:
    """A node that a search considered.

    Parameters
    ----------
    levels : mapping of str to int
    height : int
        Sum of the levels.
    classes : int
        Number of classes that satisfy the criteria.
    suppressed : int
        Records of the other classes.
    loss : float
        From 0 to 1. Suppressed records count as lost.
    is_chosen : bool
    is_allowed : bool
        Whether it keeps the limit of suppression, and has a class.
    binds : str or None
        The requirement that alone would suppress most records, see :func:`requirements_of`, or None
        if none would suppress any.
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
    """Return each requirement by itself, by its name.

    >>> list(requirements_of(Criteria(5)))
    ['k']
    """
    alone = {SMALLEST_CLASS: replace(criteria, criteria=())}
    for criterion in criteria.criteria:
        name = f"{criterion.describe()} ({criterion.attribute})"
        alone[name] = replace(criteria, k=1, criteria=(criterion,))
    return alone


def best_of(seen: list[Scored], best: Optimum | None) -> list[Scored]:
    """Return up to 20 nodes, the best first.

    They are the best of those that may be chosen, and up to 10 of those that would be better than
    the chosen one but may not be: the ones that suppress fewest.
    """
    missed = sorted(
        (node for node in seen if not node.is_allowed and (best is None or node.cost < best.cost)),
        key=lambda node: (node.suppressed, node),
    )
    missed = missed[: _MOST_NODES if best is None else _MOST_MISSED]
    allowed = sorted(node for node in seen if node.is_allowed)
    return sorted([*missed, *allowed[: _MOST_NODES - len(missed)]])


def describe_node(
    bottom: TupleTable, domain: Domain, criteria: Criteria, scored: Scored, best: Optimum | None
) -> NodePreview:
    """Describe a node of the lattice by its figures, and by the requirement that restricts it most.

    Costs a score of the node's table for each requirement, and one for all of them.
    """
    table = bottom.roll_up(scored.levels)
    try:
        score = table.score(criteria, by_group=True)
        alone = {
            name: table.score(part, by_group=False).suppressed
            for name, part in requirements_of(criteria).items()
        }
    finally:
        if table is not bottom:
            table.release()
    groups = np.split(score.groups, np.cumsum(domain.groups(scored.levels))[:-1])
    by_name = dict(zip(domain.names, scored.levels, strict=True))
    in_order = sorted(domain.attributes, key=lambda attribute: attribute.position)
    names = [attribute.quasi_identifier.name for attribute in in_order]
    most = max(alone, key=lambda name: alone[name])
    return NodePreview(
        levels={name: by_name[name] for name in names},
        height=scored.height,
        classes=score.utility_classes,
        suppressed=score.suppressed,
        loss=float(node_loss(domain.attributes, scored.levels, groups, score.suppressed)),
        is_chosen=best is not None and scored.levels == best.levels,
        is_allowed=scored.is_allowed,
        binds=most if alone[most] else None,
    )
