"""Finding the best node of a lattice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from anonspark.core.criteria import Criteria
from anonspark.layers.partition.lattice.domain import Levels
from anonspark.layers.partition.lattice.lattice import Lattice
from anonspark.layers.partition.lattice.objectives import Objective
from anonspark.layers.partition.lattice.tuples import NodeScore, TupleTable

# Tables kept for rolling up from: tuples of all together, at least, and as multiples of those of
# the bottom; and tables.
_KEPT_TUPLES = 2_000_000
_KEPT_BOTTOMS = 2
_KEPT_TABLES = 4096

Tell = Callable[[int], None]
"""Gets how many nodes were scored so far."""


@dataclass(frozen=True)
class Problem:
    """The problem of a search.

    Parameters
    ----------
    lattice : Lattice
    criteria : Criteria
        What a utility class satisfies.
    objective : Objective
    rows : int
        Records of the table.
    most_suppressed : int
        Of them, those that may be suppressed.
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
class Found:
    """The best node.

    Parameters
    ----------
    levels : tuple of int
    score : NodeScore
    cost : float
        What the objective makes of it.
    scored : int
        Nodes whose classes were judged.
    """

    levels: Levels
    score: NodeScore
    cost: float
    scored: int


def _rank(cost: float, levels: Levels, score: NodeScore) -> tuple[float, int, int, Levels]:
    """Return what nodes are compared by: the cost, and what decides between equals."""
    return cost, score.suppressed, sum(levels), levels


class _Best:
    """The best node so far."""

    def __init__(self, problem: Problem) -> None:
        self.found: Found | None = None
        self.scored = 0
        self._problem = problem

    def offer(self, levels: Levels, score: NodeScore) -> bool:
        """Take a node in, and return whether it may be chosen at all."""
        self.scored += 1
        allowed = self._problem.allows(score)
        if allowed:
            cost = self._problem.objective.cost(levels, score)
            best = self.found
            if best is None or _rank(cost, levels, score) < _rank(
                best.cost, best.levels, best.score
            ):
                self.found = Found(levels, score, cost, self.scored)
        return allowed

    def result(self) -> Found | None:
        """Return the best node, if any is allowed."""
        if self.found is None:
            return None
        return Found(self.found.levels, self.found.score, self.found.cost, self.scored)


def walk(bottom: TupleTable, lattice: Lattice) -> Iterator[TupleTable]:
    """Visit every node once, each rolled up from one right below it.

    Parameters
    ----------
    bottom : TupleTable
        At the lowest node of the lattice.
    lattice : Lattice

    Yields
    ------
    TupleTable
        In an order that keeps one table a quasi-identifier at a time. Each is released when the
        next one is asked for that does not need it, the bottom never.
    """

    def visit(table: TupleTable, place: int) -> Iterator[TupleTable]:
        yield table
        for index in range(place, len(lattice.highest)):
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


def search_exhaustively(bottom: TupleTable, problem: Problem, tell: Tell) -> Found | None:
    """Score every node of a lattice.

    Parameters
    ----------
    bottom : TupleTable
        At the lowest node of the lattice.
    problem : Problem
    tell : callable
        Gets how many nodes were scored.

    Returns
    -------
    Found or None
        The node of the smallest cost. Among equals of the fewest suppressed records, then of the
        smallest height, then of the smallest levels in the order of the domain. None where every
        node suppresses too much.
    """
    best = _Best(problem)
    for table in walk(bottom, problem.lattice):
        best.offer(table.levels, problem.score(table))
        tell(best.scored)
    return best.result()


class _Cache:
    """Tables of nodes that were scored, for others to be rolled up from. The oldest go first."""

    def __init__(self, bottom: TupleTable) -> None:
        self._bottom = bottom
        # A ring: from the oldest to the newest, both counted without end.
        self._tables: list[TupleTable] = [bottom] * _KEPT_TABLES
        self._levels = np.tile(np.array(bottom.levels), (_KEPT_TABLES, 1))
        self._tuples = np.full(_KEPT_TABLES, np.inf)
        self._room = max(_KEPT_TUPLES, _KEPT_BOTTOMS * bottom.tuples)
        self._oldest = self._newest = 0

    def table(self, node: Levels) -> TupleTable:
        """Return a node's table, rolled up from the smallest one that is kept below it."""
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
        place = self._newest % _KEPT_TABLES
        self._tables[place], self._levels[place] = table, node
        self._tuples[place] = table.tuples
        self._newest += 1
        return table

    def _drop_oldest(self) -> None:
        place = self._oldest % _KEPT_TABLES
        self._room += self._tables[place].tuples
        self._tables[place].release()
        self._tables[place], self._tuples[place] = self._bottom, np.inf
        self._oldest += 1

    def release(self) -> None:
        while self._oldest < self._newest:
            self._drop_oldest()


def search_pruned(bottom: TupleTable, problem: Problem, tell: Tell) -> Found | None:
    """Find the best node without scoring every one.

    Two things spare work. Nodes are *tagged*: where one suppresses too much so do all below it,
    and where one does not so does none above it. Binary searches along chains find the border
    (OLA, El Emam et al. 2009, and Flash, Kohlmayer et al. 2012). And nodes are *bounded*: a lower
    bound of a node's cost, known from its levels or from a node below it, spares those that cannot
    be better than the best so far.

    Bounds are always right. Tags are where the criteria are monotone: with k, with distinct
    l-diversity, and with every criterion that counts records if nothing may be suppressed or
    everything. All others are not: a class may lose them by taking in suppressed records or, where
    people are counted, another class that has them. Then
    this search may miss the best node. The node that it finds keeps the limit and all criteria in
    any case.

    Parameters and result: :func:`search_exhaustively`.
    """
    best = _Best(problem)
    cache = _Cache(bottom)
    lattice, objective = problem.lattice, problem.objective
    nodes = lattice.nodes
    places = {tuple(node): place for place, node in enumerate(nodes.tolist())}
    bounds = np.array([objective.least_cost(tuple(node)) for node in nodes.tolist()])
    waiting = np.ones(len(nodes), bool)

    def score(place: int) -> bool:
        levels = tuple(nodes[place].tolist())
        found = problem.score(cache.table(levels))
        waiting[place] = False
        above = lattice.above(levels)
        bounds[above] = np.maximum(bounds[above], objective.least_cost_above(levels, found))
        allowed = best.offer(levels, found)
        tell(best.scored)
        return allowed

    try:
        if problem.most_suppressed < problem.rows:
            _tag(lattice, places, waiting, score)
        while waiting.any():
            candidates = np.flatnonzero(waiting)
            place = int(candidates[np.argmin(bounds[candidates])])
            # Equal costs are scored, too: the tie decides.
            if best.found is not None and bounds[place] > best.found.cost:
                break
            score(place)
    finally:
        cache.release()
    return best.result()


def _tag(
    lattice: Lattice,
    places: dict[Levels, int],
    waiting: np.ndarray[tuple[int], np.dtype[np.bool_]],
    score: Callable[[int], bool],
) -> None:
    """Remove nodes that suppress too much from the waiting list, as far as monotonicity shows."""
    passes = np.zeros(len(places), bool)
    for start in range(len(places)):
        if not waiting[start] or passes[start]:
            continue
        chain = [start]
        while True:
            node = tuple(lattice.nodes[chain[-1]].tolist())
            above = [places[one] for one in lattice.successors(node)]
            open_ = [place for place in above if waiting[place] and not passes[place]]
            if not open_:
                break
            chain.append(open_[0])
        low, high = 0, len(chain)
        while low < high:
            middle = (low + high) // 2
            place = chain[middle]
            node = tuple(lattice.nodes[place].tolist())
            if score(place):
                passes |= lattice.above(node)
                high = middle
            else:
                waiting[lattice.below(node)] = False
                low = middle + 1
