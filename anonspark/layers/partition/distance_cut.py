"""Canon's cut of one node from draws and histograms: the twin of :mod:`anonspark.kernels.canon`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from anonspark.core.arrays import Figures, Flags, Integers
from anonspark.core.criteria import Counts, Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.kernels.canon import CANDIDATE_SIDE, CANDIDATES, SAMPLE_SIDE, SAMPLES, TRIES
from anonspark.kernels.descent import DISTANCE
from anonspark.kernels.paths import child_path
from anonspark.kernels.vantage_points import order_by_spread
from anonspark.layers.partition.bracket_pass import Outlook
from anonspark.layers.partition.brackets import (
    Bracket,
    distance_bracket,
    goes_left,
    with_distances,
)
from anonspark.layers.partition.counting import Answer, Draw, Drawn, Question, Request, draw_among
from anonspark.layers.partition.cut_tree import Boundary, CutTree
from anonspark.layers.partition.cutting import (
    ask_values,
    half,
    interval_of_distances,
    sides_satisfy,
)
from anonspark.layers.partition.forest import Forest
from anonspark.layers.partition.growing import Waiting
from anonspark.layers.partition.node import Asking, Cut, Node, Questions
from anonspark.layers.partition.node_counts import Evidence
from anonspark.layers.partition.predicting import (
    FEWEST_SAMPLED,
    MOST_HANDED_BACK,
    count_inside,
    slack,
)
from anonspark.staged.keys import normalized_positions

Point = tuple[float, ...]


class DrawsVantagePoints(Protocol):
    """A rule that draws vantage points and cuts by the distance to them."""

    @property
    def quasi_identifiers(self) -> Sequence[QuasiIdentifier]:
        """In configuration order."""

    @property
    def distances(self) -> tuple[int, int]:
        """Interval of all distance keys."""

    def draws(self, node: int, path: int, rows: int) -> list[Draw]:
        """Return the draws in a leaf for a node: this leaf or a child of it."""


@dataclass(frozen=True)
class _Drawn:
    """Records that were drawn for a node, some of which need not be in it.

    ``columns`` are transposed keys: of each content at least one record, with any of their numbers.
    """

    draw: Draw
    columns: Integers


@dataclass(frozen=True)
class _PointCounts:
    """The answer of a pass for a node and one vantage point."""

    point: Point
    evidence: Evidence
    answered: set[Question] = field(default_factory=set)


@dataclass(frozen=True)
class DistanceForesight:
    """Looks ahead for :func:`anonspark.layers.partition.growing.grow`."""

    rule: DrawsVantagePoints
    outlook: Outlook
    _counts_of: dict[int, _PointCounts] = field(default_factory=dict)
    _drawn: dict[int, list[_Drawn]] = field(default_factory=dict)
    """The draws of each node."""
    _below: dict[int, tuple[list[_Drawn], list[_Drawn]]] = field(default_factory=dict)
    """For each node the draws of its left and its right child."""

    def look_ahead(self, tree: CutTree, waiting: Sequence[Waiting]) -> bool:
        """Answer in one job what ``waiting`` leaves ask: the median distance to a vantage point.

        A sample predicts a bracket around each median. One pass counts the records outside of the
        brackets, hands back those inside, and draws the vantage points of both children, which are
        asked for next. ``waiting`` is sorted by number. Returns whether anything was counted.
        """
        points_by_node = [(entry.node, self._measured_from(entry.asked)) for entry in waiting]
        measured = [
            (node, point)
            for node, point in points_by_node
            if point is not None and not self._is_known(node.number, point)
        ]
        brackets = self._affordable_brackets(tree, measured)
        if not brackets:
            return False
        forest = Forest()
        for number, bracket in brackets.items():
            forest.cut(forest.plant(number), bracket)
        # A leaf that asked before, about another point, has its children's draws already.
        new_draws = {
            node.number: self._draws_below(node)
            for node, _ in measured
            if node.number in brackets and node.number not in self._below
        }
        draws = [draw for sides in new_draws.values() for side in sides for draw in side]
        counted = self.outlook.count(tree, forest, draws)
        points = {node.number: point for node, point in measured}
        for number, root in forest.roots.items():
            columns = counted.known_keys(root, counted.nothing())
            evidence = counted.evidence(root, columns)
            if evidence is not None:
                self._counts_of[number] = _PointCounts(points[number], evidence)
        drawn = (_Drawn(draw, counted.drawn(index)) for index, draw in enumerate(draws))
        for number, (left, right) in new_draws.items():
            self._below[number] = [next(drawn) for _ in left], [next(drawn) for _ in right]
        return True

    def _affordable_brackets(
        self, tree: CutTree, measured: Sequence[tuple[Node, Point]]
    ) -> dict[int, Bracket]:
        """Predict the brackets of nodes by number, while the driver can hold what is inside.

        A node is left out if too few of its records are sampled. One that would exceed
        ``MOST_HANDED_BACK`` is, too, but a smaller one after it may still fit.
        """
        samples = self.outlook.in_leaves(tree, [node for node, _ in measured])
        brackets: dict[int, Bracket] = {}
        handed_back = 0.0
        for (node, point), sample in zip(measured, samples, strict=True):
            predicted = self._predict(node, point, sample[self.outlook.sampled[sample] > 0])
            if predicted is None or handed_back + predicted[1] > MOST_HANDED_BACK:
                continue
            bracket, inside = predicted
            handed_back += inside
            brackets[node.number] = bracket
        return brackets

    def _is_known(self, number: int, point: Point) -> bool:
        counts = self._counts_of.get(number)
        return counts is not None and counts.point == point

    def _measured_from(self, questions: Sequence[Question]) -> Point | None:
        """Return the vantage point of a question about all distances of a node, or None."""
        if len(questions) != 1 or not isinstance(questions[0], Request):
            return None
        request = questions[0]
        of_all = request.boundary is not None and not request.boundary.keys
        whole = (request.lowest, request.highest) == self.rule.distances
        if request.key != DISTANCE or request.boundary is None or not (of_all and whole):
            return None
        return request.boundary.vantage_point

    def _predict(self, node: Node, point: Point, sample: Integers) -> tuple[Bracket, float] | None:
        """Return a bracket and about how many records are inside, or None if they are too many."""
        if len(sample) < FEWEST_SAMPLED:
            return None
        codes = np.ascontiguousarray(self.outlook.columns[:, sample])
        columns = with_distances(codes, point, self.rule.quasi_identifiers)
        d = len(self.rule.quasi_identifiers)
        keys = (DISTANCE, *range(d), d, d + 1)
        bracket = distance_bracket(keys, point, columns, slack(len(sample)))
        inside = count_inside(bracket, columns)
        if 2 * inside > len(sample):
            return None
        return bracket, inside * node.rows / len(sample)

    def _draws_below(self, node: Node) -> tuple[list[Draw], list[Draw]]:
        """Return the draws for both children of a node, none for those that are not cut."""
        sides = []
        for side, rows in enumerate((node.rows // 2, node.rows - node.rows // 2)):
            path = int(child_path(np.uint64(node.path), np.uint64(side)))
            is_cut = rows > self.outlook.largest_leaf
            sides.append(self.rule.draws(node.number, path, rows) if is_cut else [])
        return sides[0], sides[1]

    def answer(self, node: int, questions: Sequence[Question]) -> Sequence[Answer] | None:
        """Answer a node's questions, or return None if the cluster must."""
        draws = [question for question in questions if isinstance(question, Draw)]
        if draws:
            return self._answer_draws(node, draws)
        counts = self._counts_of.get(node)
        # To ask again asks for more than these counts hold.
        if counts is None or not counts.answered.isdisjoint(questions):
            return None
        counts.answered.update(questions)
        return counts.evidence.answer(questions)

    def _answer_draws(self, node: int, draws: Sequence[Draw]) -> list[Answer] | None:
        by_salt = {stored.draw.salt: stored for stored in self._drawn.get(node, ())}
        answers: list[Answer] = []
        for draw in draws:
            stored = by_salt.get(draw.salt)
            if stored is None or stored.draw.limit < draw.limit:
                return None
            answers.append(self._by_priority(stored.columns, draw))
        return answers

    def _by_priority(self, columns: Integers, draw: Draw) -> Drawn:
        """Return drawn records as :meth:`.counting.Counter.answers` does."""
        d = len(self.rule.quasi_identifiers)
        everywhere = np.zeros(columns.shape[1], np.int32)
        only = [Draw(0, draw.salt, draw.limit)]
        _, records, priorities = draw_among(columns[d], everywhere, only, 1)
        codes = columns[:d, records]
        # If different contents have equal priorities, the one with the smallest codes counts.
        order = np.lexsort([*codes[::-1], priorities])
        _, first = np.unique(priorities[order], return_index=True)
        return Drawn(np.ascontiguousarray(codes[:, order[first]].T))

    def cut(self, node: int, boundary: Boundary, numbers: tuple[int, int]) -> None:
        """Restrict the draws of a node's children, numbered ``numbers``, to their records."""
        self._counts_of.pop(node, None)
        self._drawn.pop(node, None)
        sides = self._below.pop(node, ([], []))
        for index, (number, drawn) in enumerate(zip(numbers, sides, strict=True)):
            if drawn:
                self._drawn[number] = [
                    _Drawn(item.draw, np.compress(self._go(item, boundary)[index], item.columns, 1))
                    for item in drawn
                ]

    def _go(self, drawn: _Drawn, boundary: Boundary) -> tuple[Flags, Flags]:
        """Return which contents are on the left of a boundary and which on the right."""
        columns = with_distances(drawn.columns, boundary.vantage_point, self.rule.quasi_identifiers)
        left = goes_left(columns, boundary)
        if boundary.keys[-1] != len(self.rule.quasi_identifiers) + 1:
            return left, ~left
        # Records of equal content differ only by their numbers: some go either way.
        by_content = Boundary(boundary.keys[:-1], boundary.thresholds[:-1], equal_goes_left=True)
        before = goes_left(columns, replace(by_content, equal_goes_left=False))
        return goes_left(columns, by_content), ~before


_ALL = 2**64 - 1


@dataclass(frozen=True)
class DistanceCut:
    """The cut rule of Canon: halves by the distance to a vantage point (docs/algorithms.md, Canon).

    The quasi-identifiers are in configuration order. Both sides must satisfy ``criteria``.
    ``spread`` is that of :func:`anonspark.kernels.canon.cut_by_distance`, which cuts alike.
    """

    quasi_identifiers: Sequence[QuasiIdentifier]
    criteria: Criteria
    spread: bool

    @property
    def breaks_ties(self) -> bool:
        """True: cuts share records at equal distances out, and hashes draw vantage points."""
        return True

    def foresight(self, outlook: Outlook) -> DistanceForesight:
        """Return what predicts the distances that halves end at, and draws for the next cuts."""
        return DistanceForesight(self, outlook)

    def __call__(self, node: Node) -> Questions:
        """Ask for a node's draws and histograms and return its cut, or None if there is none.

        One counting pass a node as a rule, see :class:`DistanceForesight`. If that does not answer,
        three: one that draws candidates and samples, two that find the median distance. More if
        distances are tied, and one for each vantage point that is tried if both sides must satisfy
        more than k.
        """
        if node.rows < max(2 * self.criteria.k, 2):
            return None
        points = yield from self._vantage_points(node)
        values: list[Counts] | None = None
        d = len(self.quasi_identifiers)
        left_rows = node.rows // 2
        for point in points[:TRIES]:
            boundary = yield from half(
                node,
                (DISTANCE, *range(d)),
                vantage_point=tuple(point),
                distances=self.distances,
            )
            if values is None:
                values = yield from ask_values(node, self.criteria)
            if (yield from sides_satisfy(node, boundary, left_rows, self.criteria, values)):
                return Cut(
                    boundary,
                    replace(node, rows=left_rows),
                    replace(node, rows=node.rows - left_rows),
                )
        return None

    @cached_property
    def distances(self) -> tuple[int, int]:
        """Interval of all distance keys."""
        return interval_of_distances(self.quasi_identifiers)

    def draws(self, node: int, path: int, rows: int, times: float = 1.0) -> list[Draw]:
        """Return the draws of candidates in a leaf of the tree, and of samples to compare them by.

        ``path`` and ``rows`` are the name and the records of the node that is to be cut: this leaf,
        or a child of it. ``times`` as many records are drawn as should be enough.
        """
        sizes = {CANDIDATE_SIDE: CANDIDATES} | ({SAMPLE_SIDE: SAMPLES} if self.spread else {})
        return [
            Draw(
                node,
                int(child_path(np.uint64(path), np.uint64(side))),
                min(int((2 * most + 64) / rows * times * 2**64), _ALL),
            )
            for side, most in sizes.items()
        ]

    def _vantage_points(self, node: Node) -> Asking[Figures]:
        """Draw candidates for the vantage point, and return them with the best first."""
        sizes = (CANDIDATES, SAMPLES) if self.spread else (CANDIDATES,)
        # Records of equal content count once. If too few are drawn, the limit is raised.
        times = 1.0
        while True:
            draws = self.draws(node.number, node.path, node.rows, times)
            answers = yield list(draws)
            drawn = [
                answer.codes[:most]
                for answer, most in zip(answers, sizes, strict=True)
                if isinstance(answer, Drawn)
            ]
            enough = all(len(codes) == most for codes, most in zip(drawn, sizes, strict=True))
            if enough or all(draw.limit == _ALL for draw in draws):
                break
            times *= 64
        positions = [normalized_positions(codes, self.quasi_identifiers) for codes in drawn]
        if not self.spread:
            return positions[0]
        candidates, samples = positions
        ordered: Figures = candidates[order_by_spread(candidates, samples)]
        return ordered
