"""Mondrian's cut of one node from histograms: the twin of :mod:`anonspark.kernels.mondrian`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from anonspark.kernels.mondrian import choose_boundaries
from anonspark.partition.counting import Request
from anonspark.partition.cut_tree import Boundary
from anonspark.partition.cutting import counts_of_values, half, sides_satisfy, value_requests
from anonspark.partition.growing import Cut, Node, Questions, ask, find_rank
from anonspark.prepare.encoding import QuasiIdentifier
from anonspark.privacy.criteria import Criteria

__all__ = ["MedianCut"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class MedianCut:
    """The cut rule of strict and relaxed Mondrian (DESIGN 4.1, 4.2).

    Parameters
    ----------
    quasi_identifiers : sequence of QuasiIdentifier
        In configuration order.
    criteria : Criteria
        What either side has to satisfy.
    relaxed, balanced, cell : bool
        As in :func:`anonspark.kernels.mondrian.cut_into_groups`, which gives the same cuts.
    """

    quasi_identifiers: Sequence[QuasiIdentifier]
    criteria: Criteria
    relaxed: bool
    balanced: bool
    cell: bool

    @property
    def breaks_ties(self) -> bool:
        """Whether cuts share equal records out."""
        return self.relaxed

    def __call__(self, node: Node) -> Questions:
        """Ask for one node's histograms and return its cut, None where it cannot be cut.

        Notes
        -----
        Two counting passes a node as a rule: one over all attributes, one that zooms in on the
        median; one more for each attribute that turns out not to allow a cut, and one for each
        boundary that has to satisfy more than k.
        """
        if node.rows < max(2 * self.criteria.k, 2):
            return None
        d = len(self.quasi_identifiers)
        requests = [
            Request(node.number, j, node.lowest[j], node.highest[j], node.rows) for j in range(d)
        ]
        answers = yield from ask([*requests, *value_requests(node, self.criteria)])
        histograms = answers[:d]
        values = counts_of_values(self.criteria, answers[d:])
        lowest = [int(histogram.minima[0]) for histogram in histograms]
        highest = [int(histogram.maxima.max()) for histogram in histograms]
        node = replace(node, lowest=tuple(lowest), highest=tuple(highest))
        if self.cell:
            low = _tightened(lowest, node.cell_low)
            high = _tightened(highest, node.cell_high)
        else:
            low, high = lowest, highest
        widths = self._widths(low, high)
        allowed = set(range(d))
        while allowed:
            chosen = max(sorted(allowed), key=lambda j: widths[j])
            low[chosen], high[chosen] = lowest[chosen], highest[chosen]
            allowed.remove(chosen)
            if lowest[chosen] == highest[chosen]:
                continue
            node = replace(node, cell_low=tuple(low), cell_high=tuple(high))
            if self.relaxed:
                keys = _wide_to_narrow(chosen, widths)
                first = (requests[chosen], histograms[chosen])
                boundary = yield from half(node, keys, first=first)
                boundaries = [(boundary, node.rows // 2)]
            else:
                median, below, equal = yield from find_rank(
                    requests[chosen], histograms[chosen], (node.rows + 1) // 2
                )
                boundaries = [
                    (Boundary((chosen,), (median,), bool(equal_goes_left)), left_rows)
                    for left_rows, equal_goes_left in choose_boundaries(
                        below, equal, node.rows, self.criteria.k, self.balanced
                    )
                    if left_rows
                ]
            for boundary, left_rows in boundaries:
                if (yield from sides_satisfy(node, boundary, left_rows, self.criteria, values)):
                    return _children(node, left_rows, boundary)
        if not self.relaxed or lowest != highest:
            return None
        # All records are equal in every quasi-identifier: cut by the tie order alone.
        boundary = yield from half(node, range(d))
        left_rows = node.rows // 2
        if (yield from sides_satisfy(node, boundary, left_rows, self.criteria, values)):
            return _children(node, left_rows, boundary)
        return None

    def _widths(self, low: list[int], high: list[int]) -> list[float]:
        widths = []
        for quasi_identifier, *bounds in zip(self.quasi_identifiers, low, high, strict=True):
            start, stop = quasi_identifier.positions(np.array(bounds, np.int64))
            widths.append(float((stop - start) / quasi_identifier.unit))
        return widths


def _wide_to_narrow(chosen: int, widths: list[float]) -> list[int]:
    """Return the chosen attribute and behind it the others by width."""
    others = (j for j in range(len(widths)) if j != chosen)
    return [chosen, *sorted(others, key=lambda j: -widths[j])]


def _tightened(own: list[int], bounds: Sequence[int | None]) -> list[int]:
    """Return the bounds of a cell, with the node's own extreme where that is the bound."""
    pairs = zip(own, bounds, strict=True)
    return [extreme if bound is None else bound for extreme, bound in pairs]


def _children(node: Node, left_rows: int, boundary: Boundary) -> Cut:
    """Return a cut's children with the bounds that are known without another look at the data."""
    chosen, median = boundary.keys[0], boundary.thresholds[0]
    equal_on_both_sides = len(boundary.keys) > 1
    last_left = median if boundary.equal_goes_left else median - 1
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
