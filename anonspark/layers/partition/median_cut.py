"""Mondrian's cut of one node from histograms: the twin of :mod:`anonspark.kernels.mondrian`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from anonspark.core.arrays import Integers
from anonspark.core.criteria import Counts, Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.kernels.mondrian import choose_boundaries, further_ranks
from anonspark.layers.partition.bracket_pass import CountedForest, Outlook
from anonspark.layers.partition.brackets import goes_left
from anonspark.layers.partition.counting import Histogram, Question, Request
from anonspark.layers.partition.cut_tree import Boundary, CutTree
from anonspark.layers.partition.cutting import (
    ask,
    counts_of_values,
    find_rank,
    find_ranks,
    first_allowed,
    half,
    sides_have_units,
    sides_satisfy,
    value_requests,
)
from anonspark.layers.partition.growing import Waiting
from anonspark.layers.partition.node import Asking, Cut, Node, Questions
from anonspark.layers.partition.node_counts import Evidence
from anonspark.layers.partition.predicting import Predictor


@dataclass(frozen=True)
class _NodeCounts:
    """The answer of a pass for a node."""

    counted: CountedForest
    index: int
    columns: Integers
    """Transposed keys of its records that are known one by one."""
    evidence: Evidence
    answered: set[Question] = field(default_factory=set)


@dataclass(frozen=True)
class Foresight:
    """Looks ahead for :func:`anonspark.layers.partition.growing.grow`."""

    predictor: Predictor
    outlook: Outlook
    _counts_of: dict[int, _NodeCounts] = field(default_factory=dict)

    def look_ahead(self, tree: CutTree, waiting: Sequence[Waiting]) -> bool:
        """Predict the trees under some leaves, and count in one pass what is needed to grow them.

        ``waiting`` are leaves that wait for answers. Only new ones are predicted. Returns whether
        anything was counted. Then the first questions of one of these are answered.
        """
        nodes = [entry.node for entry in waiting if entry.is_new]
        sample = self.outlook
        expected = []
        for node, rows in zip(nodes, sample.in_leaves(tree, nodes), strict=True):
            leaf = self.predictor.expect(node, sample.columns[:, rows], sample.sampled[rows])
            if leaf is not None:
                expected.append(leaf)
        forest = self.predictor.predict(expected)
        if not forest.roots:
            return False
        counted = sample.count(tree, forest)
        for number, root in forest.roots.items():
            self._learn(number, counted, root, counted.nothing())
        return True

    def _learn(self, number: int, counted: CountedForest, index: int, arrived: Integers) -> None:
        columns = counted.known_keys(index, arrived)
        evidence = counted.evidence(index, columns)
        if evidence is not None:
            self._counts_of[number] = _NodeCounts(counted, index, columns, evidence)

    def answer(self, node: int, questions: Sequence[Question]) -> list[Histogram] | None:
        """Answer a node's questions, or return None if the cluster must."""
        counts = self._counts_of.get(node)
        # To zoom in on a bin with all records asks for more than these counts hold.
        if counts is None or not counts.answered.isdisjoint(questions):
            return None
        counts.answered.update(questions)
        return counts.evidence.answer(questions)

    def cut(self, node: int, boundary: Boundary, numbers: tuple[int, int]) -> None:
        """Divide what is known of a node between its children, whose ``numbers`` are given."""
        counts = self._counts_of.pop(node, None)
        if counts is None:
            return
        bracket = counts.counted.forest.brackets[counts.index]
        if bracket is None or not bracket.allows(boundary):
            return
        indices = counts.counted.forest.children[counts.index]
        left = goes_left(counts.columns, boundary)
        for number, index, side in zip(numbers, indices, (left, ~left), strict=True):
            arrived = np.compress(side, counts.columns, axis=1)
            self._learn(number, counts.counted, index, arrived)


_T = TypeVar("_T")


@dataclass(frozen=True)
class MedianCut:
    """The cut rule of strict and relaxed Mondrian (docs/algorithms.md).

    The quasi-identifiers are in configuration order. Both sides must satisfy ``criteria``.
    ``relaxed``, ``balanced`` and ``cell`` are those of
    :func:`anonspark.kernels.mondrian.cut_into_groups`, which cuts alike.
    """

    quasi_identifiers: Sequence[QuasiIdentifier]
    criteria: Criteria
    relaxed: bool
    balanced: bool
    cell: bool

    @property
    def breaks_ties(self) -> bool:
        """Return whether cuts share equal records out."""
        return self.relaxed

    @property
    def cuts_nearest(self) -> bool:
        """Return whether either boundary of the median's run may be taken."""
        return self.balanced and not self.relaxed

    def of_sample(self, weight: float) -> MedianCut:
        """Return the rule with a smaller k: medians of a sample are near to those of all."""
        # People are counted on the cluster only, rarely.
        criteria = replace(self.criteria, k=max(int(self.criteria.k / weight), 1), units=None)
        return replace(self, criteria=criteria)

    def foresight(self, outlook: Outlook) -> Foresight:
        """Return what predicts whole trees."""
        return Foresight(Predictor(self, outlook.largest_leaf, outlook.most_nodes), outlook)

    def __call__(self, node: Node) -> Questions:
        """Ask for a node's histograms and return its cut, or None if it cannot be cut.

        Without answers from foresight, a node mostly takes two counting passes: one over all
        attributes, and one that zooms in on the median. One more for each attribute that does not
        allow a cut, and one for each boundary that must satisfy more than k. Before a node with
        criteria beyond k is left whole, ``balanced`` asks for the boundaries further out: about two
        or three passes for each attribute.
        """
        if node.rows < max(2 * self.criteria.k, 2):
            return None
        d = len(self.quasi_identifiers)
        requests = [
            Request(node.number, j, node.lowest[j], node.highest[j], node.rows) for j in range(d)
        ]
        answers = yield from ask([*requests, *value_requests(node, self.criteria)])
        counted = list(zip(requests, answers[:d], strict=True))
        values = counts_of_values(self.criteria, answers[d:])
        lowest = [int(histogram.minima[0]) for _, histogram in counted]
        highest = [int(histogram.maxima.max()) for _, histogram in counted]
        node = replace(node, lowest=tuple(lowest), highest=tuple(highest))
        low, high = lowest, highest
        if self.cell:
            low, high = _tightened(lowest, node.cell_low), _tightened(highest, node.cell_high)
        widths = self._widths(low, high)
        wide_to_narrow = sorted(range(d), key=lambda j: -widths[j])
        for chosen in wide_to_narrow:
            low[chosen], high[chosen] = lowest[chosen], highest[chosen]
            if lowest[chosen] == highest[chosen]:
                continue
            node = replace(node, cell_low=tuple(low), cell_high=tuple(high))
            boundaries = yield from self._median_boundaries(node, *counted[chosen], wide_to_narrow)
            cut = yield from self._first_cut(node, boundaries, values)
            if cut is not None:
                return cut
        if self.relaxed:
            if lowest != highest:
                return None
            # All records are equal in every quasi-identifier: cut by the tie order alone.
            boundary = yield from half(node, range(d))
            return (yield from self._first_cut(node, [(boundary, node.rows // 2)], values))
        node = replace(node, cell_low=tuple(low), cell_high=tuple(high))
        for chosen in wide_to_narrow if self.balanced and self.criteria.has_more_than_k else ():
            if lowest[chosen] < highest[chosen]:
                cut = yield from _further_out(node, *counted[chosen], self.criteria, values)
                if cut is not None:
                    return cut
        return None

    def _median_boundaries(
        self, node: Node, request: Request, histogram: Histogram, wide_to_narrow: Sequence[int]
    ) -> Asking[list[tuple[Boundary, int]]]:
        """Find the boundaries at the median of an attribute, and the records left of each.

        ``request`` and ``histogram`` are the attribute's first question and its answer.
        """
        chosen = request.key
        if self.relaxed:
            keys = [chosen, *(j for j in wide_to_narrow if j != chosen)]
            boundary = yield from half(node, keys, first=(request, histogram))
            return [(boundary, node.rows // 2)]
        median, below, equal = yield from find_rank(request, histogram, (node.rows + 1) // 2)
        choices = choose_boundaries(below, equal, node.rows, self.criteria.k, self.balanced)
        return [
            (Boundary((chosen,), (median,), bool(equal_goes_left)), left_rows)
            for left_rows, equal_goes_left in choices
            if left_rows
        ]

    def _first_cut(
        self, node: Node, boundaries: Sequence[tuple[Boundary, int]], values: Sequence[Counts]
    ) -> Questions:
        """Cut at the first boundary both of whose sides satisfy the criteria, or return None."""
        for boundary, left_rows in boundaries:
            if (yield from sides_satisfy(node, boundary, left_rows, self.criteria, values)):
                return _children(node, left_rows, boundary)
        return None

    def _widths(self, low: list[int], high: list[int]) -> list[float]:
        widths = []
        for quasi_identifier, *bounds in zip(self.quasi_identifiers, low, high, strict=True):
            start, stop = quasi_identifier.positions(np.array(bounds, np.int64))
            widths.append(float((stop - start) / quasi_identifier.unit))
        return widths


def _further_out(
    node: Node,
    request: Request,
    histogram: Histogram,
    criteria: Criteria,
    values: Sequence[Counts],
) -> Questions:
    """Cut at the further rank nearest to equal halves whose boundary is allowed.

    ``request`` and ``histogram`` are the attribute's first question and answer, and ``values`` the
    counts of the node's sensitive values. Costs the passes that zoom in on the ranks, all at once,
    and one that counts the sensitive values of every stretch between two boundaries, which answers
    with at most 255 rows for each value.
    """
    ranks = further_ranks(node.rows).tolist()
    runs = yield from find_ranks(request, histogram, ranks)
    boundaries: dict[int, Boundary] = {}
    for value, below, equal in runs:
        for left_rows, equal_goes_left in ((below, False), (below + equal, True)):
            if min(left_rows, node.rows - left_rows) >= criteria.k:
                boundary = Boundary((request.key,), (value,), equal_goes_left)
                boundaries.setdefault(left_rows, boundary)
    nearest = sorted(boundaries, key=lambda rows: abs(2 * rows - node.rows))
    if criteria.counts_people:
        ascending = sorted(boundaries)
        ordered = [boundaries[rows] for rows in ascending]
        order = [ascending.index(rows) for rows in nearest]
        position = yield from first_allowed(node, ordered, order, criteria)
        return None if position is None else _children(node, ascending[position], ordered[position])
    counts = yield from _values_before(node, list(boundaries.values()), criteria)
    by_rows = dict(zip(boundaries, counts, strict=True))
    # The lower boundary comes first, and of two equally good ones it stays there.
    for left_rows in nearest:
        left = by_rows[left_rows]
        right = [total - part for total, part in zip(values, left, strict=True)]
        if (
            criteria.satisfied_by(left_rows, left)
            and criteria.satisfied_by(node.rows - left_rows, right)
            and (yield from sides_have_units(node, boundaries[left_rows], left_rows, criteria))
        ):
            return _children(node, left_rows, boundaries[left_rows])
    return None


def _values_before(
    node: Node, boundaries: Sequence[Boundary], criteria: Criteria
) -> Asking[list[list[Counts]]]:
    """Count the sensitive values before each of several ascending boundaries of an attribute.

    Each record lies in one stretch between two boundaries, so a pass over all boundaries lists no
    more values than one over a single boundary.
    """
    if not boundaries or not criteria.sensitive:
        return [[] for _ in boundaries]
    requests = []
    (chosen,) = {boundary.keys[0] for boundary in boundaries}
    first = node.lowest[chosen]
    for boundary in boundaries:
        last = _last_left(boundary)
        requests += value_requests(node, criteria, where=(chosen, first, last))
        first = last + 1
    histograms = yield from ask(requests)
    attributes = len(criteria.sensitive)
    before = [np.zeros_like(part) for part in counts_of_values(criteria, histograms[:attributes])]
    counts = []
    for index in range(0, len(histograms), attributes):
        stretch = counts_of_values(criteria, histograms[index : index + attributes])
        before = [total + part for total, part in zip(before, stretch, strict=True)]
        counts.append(before)
    return counts


def _last_left(boundary: Boundary) -> int:
    """Return the largest code of the first key that may occur on the left side.

    >>> _last_left(Boundary((0,), (42,))), _last_left(Boundary((0,), (42,), equal_goes_left=False))
    (42, 41)
    """
    return boundary.thresholds[0] if boundary.equal_goes_left else boundary.thresholds[0] - 1


def _tightened(extremes: list[int], bounds: Sequence[int | None]) -> list[int]:
    """Return the bounds of a cell, with the node's extreme in place of None.

    >>> _tightened([17, 3], [None, 0])
    [17, 0]
    """
    pairs = zip(extremes, bounds, strict=True)
    return [extreme if bound is None else bound for extreme, bound in pairs]


def _children(node: Node, left_rows: int, boundary: Boundary) -> Cut:
    """Return a cut with both children, whose bounds the boundary implies without another pass."""
    chosen, median = boundary.keys[0], boundary.thresholds[0]
    equal_on_both_sides = len(boundary.keys) > 1
    last_left = _last_left(boundary)
    first_right = median if equal_on_both_sides or not boundary.equal_goes_left else median + 1

    def put(values: tuple[_T, ...], value: _T) -> tuple[_T, ...]:
        return (*values[:chosen], value, *values[chosen + 1 :])

    left = replace(
        node,
        rows=left_rows,
        highest=put(node.highest, last_left),
        cell_high=put(node.cell_high, None),
    )
    right = replace(
        node,
        rows=node.rows - left_rows,
        lowest=put(node.lowest, first_right),
        cell_low=put(node.cell_low, None),
    )
    return Cut(boundary, left, right)
