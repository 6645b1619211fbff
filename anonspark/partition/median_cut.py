"""Mondrian's cut of one node from histograms: the twin of :mod:`anonspark.kernels.mondrian`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from anonspark.kernels.mondrian import choose_boundary
from anonspark.partition.counting import Histogram, Request
from anonspark.partition.cut_tree import Boundary
from anonspark.partition.growing import Cut, Node, Questions, find_rank
from anonspark.prepare.encoding import QuasiIdentifier

__all__ = ["MedianCut"]

_T = TypeVar("_T")

_SMALLEST_HASH, _LARGEST_HASH = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class MedianCut:
    """The cut rule of strict and relaxed Mondrian (DESIGN 4.1, 4.2).

    Parameters
    ----------
    quasi_identifiers : sequence of QuasiIdentifier
        In configuration order.
    k : int
        Smallest size of either side.
    relaxed, balanced, cell : bool
        As in :func:`anonspark.kernels.mondrian.cut_into_groups`, which gives the same cuts.
    """

    quasi_identifiers: Sequence[QuasiIdentifier]
    k: int
    relaxed: bool
    balanced: bool
    cell: bool

    def __call__(self, node: Node) -> Questions:
        """Ask for one node's histograms and return its cut, None where it cannot be cut.

        Notes
        -----
        Two counting passes a node as a rule: one over all attributes, one that zooms in on the
        median; one more for each attribute that turns out not to allow a cut.
        """
        if node.rows < max(2 * self.k, 2):
            return None
        attributes = range(len(self.quasi_identifiers))
        requests = [
            Request(node.number, j, node.lowest[j], node.highest[j], node.rows) for j in attributes
        ]
        histograms = yield requests
        lowest = [int(histogram.minima[0]) for histogram in histograms]
        highest = [int(histogram.maxima.max()) for histogram in histograms]
        node = replace(node, lowest=tuple(lowest), highest=tuple(highest))
        if self.cell:
            low = _tightened(lowest, node.cell_low)
            high = _tightened(highest, node.cell_high)
        else:
            low, high = lowest, highest
        allowed = set(attributes)
        while allowed:
            widths = self._widths(low, high)
            chosen = max(sorted(allowed), key=lambda j: widths[j])
            low[chosen], high[chosen] = lowest[chosen], highest[chosen]
            if lowest[chosen] == highest[chosen]:
                allowed.remove(chosen)
                continue
            node = replace(node, cell_low=tuple(low), cell_high=tuple(high))
            if self.relaxed:
                return (yield from self._share_out(node, chosen, widths, requests, histograms))
            median, below, equal = yield from find_rank(
                requests[chosen], histograms[chosen], (node.rows + 1) // 2
            )
            left_rows, equal_goes_left = choose_boundary(
                below, equal, node.rows, self.k, self.balanced
            )
            if left_rows:
                boundary = Boundary((chosen,), (median,), bool(equal_goes_left))
                return _children(node, chosen, median, left_rows, boundary)
            allowed.remove(chosen)
        if not self.relaxed:
            return None
        # All records are equal in every quasi-identifier: cut by the tie order alone.
        return (yield from self._share_out(node, 0, self._widths(low, high), requests, histograms))

    def _widths(self, low: list[int], high: list[int]) -> list[float]:
        widths = []
        for quasi_identifier, *bounds in zip(self.quasi_identifiers, low, high, strict=True):
            start, stop = quasi_identifier.positions(np.array(bounds, np.int64))
            widths.append(float((stop - start) / quasi_identifier.range))
        return widths

    def _share_out(
        self,
        node: Node,
        chosen: int,
        widths: list[float],
        requests: list[Request],
        histograms: list[Histogram],
    ) -> Questions:
        """Cut into halves by (chosen attribute, the others from wide to narrow, tie order)."""
        d = len(self.quasi_identifiers)
        others = sorted((j for j in range(d) if j != chosen), key=lambda j: -widths[j])
        left_rows = node.rows // 2
        missing, tied_rows = left_rows, node.rows
        boundary = Boundary((), ())
        median = 0
        request, histogram = requests[chosen], histograms[chosen]
        for key in (chosen, *others, d, d + 1):
            if key != chosen:
                tied = Boundary(boundary.keys, boundary.thresholds)
                if key < d:
                    lowest, highest = node.lowest[key], node.highest[key]
                elif key == d:
                    lowest, highest = _SMALLEST_HASH, _LARGEST_HASH
                else:
                    lowest, highest = 0, _LARGEST_HASH
                request = Request(node.number, key, lowest, highest, tied_rows, tied)
                (histogram,) = yield [request]
            threshold, below, tied_rows = yield from find_rank(request, histogram, missing)
            if key == chosen:
                median = threshold
            missing -= below
            boundary = Boundary(
                (*boundary.keys, key), (*boundary.thresholds, threshold), equal_goes_left=True
            )
            if missing == tied_rows:
                return _children(node, chosen, median, left_rows, boundary)
        raise ValueError("records that are equal in every key have no occurrence numbers")


def _tightened(own: list[int], bounds: Sequence[int | None]) -> list[int]:
    """Return the bounds of a cell, with the node's own extreme where that is the bound."""
    pairs = zip(own, bounds, strict=True)
    return [extreme if bound is None else bound for extreme, bound in pairs]


def _children(node: Node, chosen: int, median: int, left_rows: int, boundary: Boundary) -> Cut:
    """Return a cut's children with the bounds that are known without another look at the data."""
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
