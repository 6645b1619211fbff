"""Find the regions of two releases that meet, and the records possible in both.

Regions are those of :mod:`~anonspark.kernels.region_search`, of both releases in one list with one
list of runs, so that their codes agree.
"""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.region_search import REGIONS, _regions_of
from anonspark.kernels.signatures import boolean, int32, int64, types

_CODES = int32[:, ::1]


@kernel(boolean(_CODES, _CODES, _CODES, int64[::1], _CODES, int64, int64))
def _regions_meet(low, high, gaps, offsets, runs, first, second):
    """Return whether two regions share a code in every dimension."""
    for j in range(low.shape[1]):
        bottom = max(low[first, j], low[second, j])
        top = min(high[first, j], high[second, j])
        if bottom > top:
            return False
    for j in range(low.shape[1]):
        runs_of_first, other = gaps[first, j], gaps[second, j]
        if runs_of_first < 0 and other < 0:
            continue
        if runs_of_first < 0:
            runs_of_first, other = other, runs_of_first
            box = first
        else:
            box = second
        at, end = offsets[runs_of_first], offsets[runs_of_first + 1]
        shared = False
        if other < 0:
            while at < end and not shared:
                shared = runs[at, 0] <= high[box, j] and runs[at, 1] >= low[box, j]
                at += 1
        else:
            position, stop = offsets[other], offsets[other + 1]
            while at < end and position < stop and not shared:
                if runs[at, 1] < runs[position, 0]:
                    at += 1
                elif runs[position, 1] < runs[at, 0]:
                    position += 1
                else:
                    shared = True
        if not shared:
            return False
    return True


@kernel(int64(*REGIONS, int64, int64[::1]))
def _regions_met(
    low, high, gaps, offsets, runs, members, nodes, node_low, node_high, region, regions
):
    """Fill ``regions`` with the regions of the tree that a region meets. Return how many."""
    d = low.shape[1]
    stack = np.empty(130, np.int64)
    stack[0] = 0
    depth = 1
    count = 0
    while depth > 0:
        depth -= 1
        node = stack[depth]
        apart = False
        for j in range(d):
            if low[region, j] > node_high[node, j] or high[region, j] < node_low[node, j]:
                apart = True
                break
        if apart:
            continue
        if nodes[node, 2] >= 0:
            stack[depth] = nodes[node, 2]
            stack[depth + 1] = node + 1
            depth += 2
            continue
        for position in range(nodes[node, 0], nodes[node, 1]):
            if _regions_meet(low, high, gaps, offsets, runs, members[position], region):
                regions[count] = members[position]
                count += 1
    return count


@kernel(
    types.UniTuple(int64, 2)(*REGIONS, int64, int64, int64[::1], int64[::1], int32[::1], int32[::1])
)
def match_payloads(
    low,
    high,
    gaps,
    offsets,
    runs,
    members,
    nodes,
    node_low,
    node_high,
    first,
    last,
    starts,
    payloads,
    own_cells,
    other_cells,
):
    """Find pairs of regions of two releases that meet, and the payloads that both classes have.

    Parameters
    ----------
    low, high, gaps : int32 ndarray of shape (n, d)
        See :func:`~anonspark.kernels.region_search.count_points`: the regions of one release, then
        those of the other.
    offsets : int64 ndarray of shape (lists + 1,)
    runs : int32 ndarray of shape (runs, 2)
    members, nodes, node_low, node_high
        The tree over the regions of the one release.
    first, last : int
        Regions of the other release: from the first up to below the last.
    starts : int64 ndarray of shape (n + 1,)
        Where the cells of each region begin. A cell is a class and a payload of its records.
    payloads : int64 ndarray of shape (cells,)
        Number of each cell's payload, ascending inside a region.
    own_cells, other_cells : int32 ndarray of shape (most,)
        Filled with the cells of one and of the other release that agree in their payload and whose
        regions meet. What is beyond their end is counted only.

    Returns
    -------
    pairs, triples : int
        Pairs of regions that meet, and such pairs of cells.

    Notes
    -----
    O(log n + pairs) for each region where the regions of the one release overlap little, and the
    cells of both regions of a pair.
    """
    regions = np.empty(len(members), np.int64)
    pairs, triples = 0, 0
    for region in range(first, last):
        count = _regions_met(
            low, high, gaps, offsets, runs, members, nodes, node_low, node_high, region, regions
        )
        pairs += count
        for i in range(count):
            position, end = starts[regions[i]], starts[regions[i] + 1]
            other, stop = starts[region], starts[region + 1]
            while position < end and other < stop:
                if payloads[position] < payloads[other]:
                    position += 1
                elif payloads[other] < payloads[position]:
                    other += 1
                else:
                    if triples < len(own_cells):
                        own_cells[triples] = position
                        other_cells[triples] = other
                    triples += 1
                    position += 1
                    other += 1
    return pairs, triples


@kernel(
    types.Tuple((int64[::1], int64[:, ::1]))(
        _CODES, *REGIONS, _CODES, *REGIONS, int64[::1], int64[::1], int64[:, ::1]
    )
)
def sum_candidates(
    points,
    low,
    high,
    gaps,
    offsets,
    runs,
    members,
    nodes,
    node_low,
    node_high,
    other_points,
    other_low,
    other_high,
    other_gaps,
    other_offsets,
    other_runs,
    other_members,
    other_nodes,
    other_node_low,
    other_node_high,
    pairs,
    figures,
    values,
):
    """Add up a figure of all pairs of regions that hold a point, and see what values it may have.

    Parameters
    ----------
    points, low, high, gaps, offsets, runs, members, nodes, node_low, node_high
        Codes of the points in one release and its regions, see
        :func:`~anonspark.kernels.region_search.count_points`. Then the same of the other release.
    pairs : int64 ndarray of shape (pairs,)
        Number of the one region times the regions of the other release, plus that of the other
        region. Ascending.
    figures : int64 ndarray of shape (pairs,)
        What is added.
    values : int64 ndarray of shape (pairs, attributes)
        The only value of each attribute in a pair, or -1 if there are several.

    Returns
    -------
    sums : int64 ndarray of shape (points,)
    only : int64 ndarray of shape (points, attributes)
        The only value in all pairs of a point, -1 if there are several, -2 without a pair.
    """
    sums = np.zeros(len(points), np.int64)
    only = np.full((len(points), values.shape[1]), -2)
    regions = np.empty(len(members), np.int64)
    other_found = np.empty(len(other_members), np.int64)
    for point in range(len(points)):
        count = _regions_of(
            points, point, low, high, gaps, offsets, runs, members, nodes, node_low, node_high,
            regions,
        )  # fmt: skip
        if count == 0:
            continue
        others = _regions_of(
            other_points, point, other_low, other_high, other_gaps, other_offsets, other_runs,
            other_members, other_nodes, other_node_low, other_node_high, other_found,
        )  # fmt: skip
        for i in range(count):
            for j in range(others):
                key = regions[i] * len(other_members) + other_found[j]
                position = np.searchsorted(pairs, key)
                if position == len(pairs) or pairs[position] != key:
                    continue
                sums[point] += figures[position]
                for s in range(values.shape[1]):
                    if only[point, s] == -2:
                        only[point, s] = values[position, s]
                    elif only[point, s] != values[position, s]:
                        only[point, s] = -1
    return sums, only
