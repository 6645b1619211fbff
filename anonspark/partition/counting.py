"""Histograms of batches of records: what a task counts, and what the driver makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from anonspark.kernels.descent import accumulate_histograms
from anonspark.partition.cut_tree import Boundary, CutTree, boundary_arrays

__all__ = ["Counter", "Histogram", "Request"]

Integers = npt.NDArray[np.int64]

_SMALLEST = np.iinfo(np.int64).min
_LARGEST = np.iinfo(np.int64).max

# Rows of one counting job's result, over all nodes: what reaches the driver.
_RESULT_ROWS = 2**17
_MOST_BINS = 2**12
_FEWEST_BINS = 2**4


@dataclass(frozen=True)
class Request:
    """A histogram that the driver asks for.

    Parameters
    ----------
    node : int
        Leaf of the tree whose records are counted.
    key : int
        Column of the key matrix to count by.
    lowest, highest : int
        Interval of values that is divided into bins.
    rows : int
        Records at most in the interval: few are listed value by value.
    tied : Boundary or None
        Count only records equal to this in all its keys.
    """

    node: int
    key: int
    lowest: int
    highest: int
    rows: int
    tied: Boundary | None = None


@dataclass(frozen=True)
class Histogram:
    """Counted records, bin by bin in ascending order; empty bins are left out.

    Parameters
    ----------
    counts, minima, maxima : int64 ndarray
        Records of each bin, and its smallest and largest value. Where the two are equal the bin is
        a single value, so its count is exact.
    """

    counts: Integers
    minima: Integers
    maxima: Integers

    def find(self, rank: int) -> tuple[int, int]:
        """Return the bin of the ``rank``-th smallest record (from 1) and the records below it."""
        cumulative = np.cumsum(self.counts)
        place = int(np.searchsorted(cumulative, rank))
        return place, int(cumulative[place] - self.counts[place])


@dataclass
class Counter:
    """Counts records of one partition into the histograms of all requests.

    Parameters
    ----------
    tree : CutTree
        The cuts made so far.
    requests : sequence of Request
        What to count, grouped by node.
    """

    tree: CutTree
    requests: Sequence[Request]
    _bins: Integers = field(init=False)
    _shifts: Integers = field(init=False)

    def __post_init__(self) -> None:
        share = max(_RESULT_ROWS // max(len(self.requests), 1), 1)
        bins = min(max(1 << (share.bit_length() - 1), _FEWEST_BINS), _MOST_BINS)
        shifts, sizes = [], []
        for request in self.requests:
            width = request.highest - request.lowest
            shift = max(width.bit_length() - (bins.bit_length() - 1), 0)
            if shift > 0 and request.rows <= bins:
                shift = -1
            shifts.append(shift)
            sizes.append(0 if shift < 0 else (width >> shift) + 1)
        self._shifts = np.array(shifts, np.int64)
        self._bins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def count(self, batches: Iterable[Integers]) -> dict[str, Integers]:
        """Count the records of a partition.

        Parameters
        ----------
        batches : iterable of int64 ndarray of shape (n, width)
            Key matrices.

        Returns
        -------
        dict of int64 ndarray
            ``request``, ``bin``, ``count``, ``minimum`` and ``maximum`` of each bin that is not
            empty.
        """
        requests = np.array(
            [
                [request.key, request.lowest, request.highest, shift, first]
                for request, shift, first in zip(
                    self.requests, self._shifts, self._bins[:-1], strict=True
                )
            ],
            np.int64,
        ).reshape(-1, 5)
        attributes, thresholds = boundary_arrays(
            [request.tied for request in self.requests], self.tree.width
        )
        nodes = np.array([request.node for request in self.requests], np.int64)
        first_request = np.searchsorted(nodes, np.arange(len(self.tree) + 1)).astype(np.int64)
        total = int(self._bins[-1])
        counts = np.zeros(total, np.int64)
        minima = np.full(total, _LARGEST, np.int64)
        maxima = np.full(total, _SMALLEST, np.int64)
        listed: list[tuple[Integers, Integers]] = []
        for keys in batches:
            listed.append(
                accumulate_histograms(
                    keys,
                    self.tree.find_leaves(keys),
                    first_request,
                    requests,
                    attributes,
                    thresholds,
                    counts,
                    minima,
                    maxima,
                )
            )
        filled = np.flatnonzero(counts)
        owner = np.searchsorted(self._bins, filled, side="right") - 1
        parts = [
            (owner, filled - self._bins[owner], counts[filled], minima[filled], maxima[filled])
        ]
        if listed:
            pairs = np.stack(
                [np.concatenate([part[side] for part in listed]) for side in (0, 1)], axis=1
            )
            unique, repeats = np.unique(pairs, axis=0, return_counts=True)
            parts.append((unique[:, 0], unique[:, 1], repeats, unique[:, 1], unique[:, 1]))
        names = ("request", "bin", "count", "minimum", "maximum")
        return {
            name: np.concatenate([part[column] for part in parts]).astype(np.int64)
            for column, name in enumerate(names)
        }

    def histograms(self, result: dict[str, Integers]) -> list[Histogram]:
        """Return one histogram a request from the counts of all partitions, summed up by bin."""
        order = np.lexsort((result["minimum"], result["request"]))
        owners = result["request"][order]
        bounds = np.searchsorted(owners, np.arange(len(self.requests) + 1))
        return [
            Histogram(
                *(result[name][order[start:stop]] for name in ("count", "minimum", "maximum"))
            )
            for start, stop in pairwise(bounds)
        ]
