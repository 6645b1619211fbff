"""Which regions hold a point: a tree of boxes over the regions of published classes.

A region is a product of sets of codes, one a dimension. Each set lies in a box; where it has gaps,
its runs of codes are listed beside and looked at once the box holds the point.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int32, int64, njit, types, void

__all__ = ["build_region_tree", "count_points", "find_regions", "sum_shares"]

_LEAF_REGIONS = 8

_CODES = int32[:, ::1]
_TREE = types.Tuple((int64[::1], int64[:, ::1], int32[:, ::1], int32[:, ::1]))


@njit(_TREE(_CODES, _CODES), cache=True)
def build_region_tree(low, high):
    """Build a tree over boxes.

    Parameters
    ----------
    low, high : int32 ndarray of shape (n, d)
        First and last code of each box, both included; ``low > high`` holds nothing.

    Returns
    -------
    members : int64 ndarray of shape (n,)
        The boxes, leaf by leaf.
    nodes : int64 ndarray of shape (nodes, 3)
        Per node: first and last + 1 place in ``members``, and its right child, -1 for a leaf; the
        left child is the next node.
    node_low, node_high : int32 ndarray of shape (nodes, d)
        The box around all boxes of a node.

    Notes
    -----
    O(n log^2 n) time, O(n) memory. Every node is halved by the middles of its boxes along the
    dimension in which they are most spread out, measured by the spread of all boxes, so that the
    depth is the logarithm of n whatever the boxes are.
    """
    n, d = low.shape
    members = np.arange(n)
    capacity = 2 * (n // (_LEAF_REGIONS // 2) + 1) + 1
    nodes = np.empty((capacity, 3), np.int64)
    node_low = np.empty((capacity, d), np.int32)
    node_high = np.empty((capacity, d), np.int32)
    whole = np.zeros(d, np.float64)
    count = 0
    # Entries: first place, last place + 1, parent whose right child this is (-1: none).
    stack = np.empty((130, 3), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n, -1
    depth = 1
    while depth > 0:
        depth -= 1
        start, stop, parent = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        node = count
        count += 1
        if parent >= 0:
            nodes[parent, 2] = node
        nodes[node, 0], nodes[node, 1], nodes[node, 2] = start, stop, -1
        axis, widest = 0, -1.0
        for j in range(d):
            lowest, highest = np.int64(2**31 - 1), np.int64(-(2**31))
            first, last = np.int64(2**62), np.int64(-(2**62))
            for place in range(start, stop):
                member = members[place]
                lowest = min(lowest, np.int64(low[member, j]))
                highest = max(highest, np.int64(high[member, j]))
                middle = np.int64(low[member, j]) + np.int64(high[member, j])
                first = min(first, middle)
                last = max(last, middle)
            node_low[node, j] = lowest
            node_high[node, j] = highest
            spread = float(last - first)
            if node == 0:
                whole[j] = max(spread, 1.0)
            if spread / whole[j] > widest:
                axis, widest = j, spread / whole[j]
        if stop - start <= _LEAF_REGIONS:
            continue
        middles = np.empty(stop - start, np.int64)
        for place in range(start, stop):
            member = members[place]
            middles[place - start] = np.int64(low[member, axis]) + np.int64(high[member, axis])
        members[start:stop] = members[start:stop][np.argsort(middles, kind="mergesort")]
        half = start + (stop - start) // 2
        stack[depth, 0], stack[depth, 1], stack[depth, 2] = half, stop, node
        depth += 1
        stack[depth, 0], stack[depth, 1], stack[depth, 2] = start, half, -1
        depth += 1
    return members, nodes[:count].copy(), node_low[:count].copy(), node_high[:count].copy()


@njit(boolean(_CODES, int64, _CODES, _CODES, int64), cache=True)
def _in_box(points, point, low, high, box):
    for j in range(points.shape[1]):
        if points[point, j] < low[box, j] or points[point, j] > high[box, j]:
            return False
    return True


@njit(boolean(_CODES, int64, _CODES, int64[::1], _CODES, int64), cache=True)
def _in_runs(points, point, gaps, offsets, runs, region):
    for j in range(points.shape[1]):
        listed = gaps[region, j]
        if listed < 0:
            continue
        code = points[point, j]
        # The last run that begins at the code or before it.
        first, last = offsets[listed], offsets[listed + 1]
        while last - first > 1:
            middle = (first + last) // 2
            if runs[middle, 0] <= code:
                first = middle
            else:
                last = middle
        if code < runs[first, 0] or code > runs[first, 1]:
            return False
    return True


@njit(
    int64(
        _CODES,
        int64,
        _CODES,
        _CODES,
        _CODES,
        int64[::1],
        _CODES,
        int64[::1],
        int64[:, ::1],
        _CODES,
        _CODES,
        int64[::1],
    ),
    cache=True,
)
def _regions_of(
    points,
    point,
    low,
    high,
    gaps,
    offsets,
    runs,
    members,
    nodes,
    node_low,
    node_high,
    found,
):
    """Fill ``found`` with the regions that hold a point; return how many."""
    stack = np.empty(130, np.int64)
    stack[0] = 0
    depth = 1
    count = 0
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if not _in_box(points, point, node_low, node_high, node):
            continue
        if nodes[node, 2] >= 0:
            stack[depth] = nodes[node, 2]
            stack[depth + 1] = node + 1
            depth += 2
            continue
        for place in range(nodes[node, 0], nodes[node, 1]):
            region = members[place]
            if _in_box(points, point, low, high, region) and _in_runs(
                points, point, gaps, offsets, runs, region
            ):
                found[count] = region
                count += 1
    return count


_REGIONS = (
    _CODES,
    _CODES,
    _CODES,
    _CODES,
    int64[::1],
    _CODES,
    int64[::1],
    int64[:, ::1],
    _CODES,
    _CODES,
)


@njit(types.Tuple((int64[::1], int64[::1]))(*_REGIONS), cache=True)
def find_regions(points, low, high, gaps, offsets, runs, members, nodes, node_low, node_high):
    """Find all regions that hold each point.

    Parameters
    ----------
    points : int32 ndarray of shape (points, d)
        Codes.
    low, high : int32 ndarray of shape (n, d)
        The box of each region, both ends included.
    gaps : int32 ndarray of shape (n, d)
        Which list of runs tells the codes of a region's set; -1 where it is its whole box.
    offsets : int64 ndarray of shape (lists + 1,)
        Where each list begins in ``runs``; none is empty.
    runs : int32 ndarray of shape (runs, 2)
        First and last code of each run, ascending inside a list, apart from each other.
    members, nodes, node_low, node_high
        The tree, see :func:`build_region_tree`.

    Returns
    -------
    starts : int64 ndarray of shape (points + 1,)
        Where each point's regions begin in ``regions``.
    regions : int64 ndarray
        Numbers of regions, ascending for each point.

    Notes
    -----
    O(log n + found) a point where the regions overlap little; O(n) at worst.
    """
    found = np.empty(len(members), np.int64)
    starts = np.zeros(len(points) + 1, np.int64)
    regions = np.empty(len(points), np.int64)
    for point in range(len(points)):
        count = _regions_of(
            points, point, low, high, gaps, offsets, runs, members, nodes, node_low, node_high,
            found,
        )  # fmt: skip
        begin = starts[point]
        if begin + count > len(regions):
            longer = np.empty(2 * (begin + count), np.int64)
            longer[:begin] = regions[:begin]
            regions = longer
        regions[begin : begin + count] = np.sort(found[:count])
        starts[point + 1] = begin + count
    return starts, regions[: starts[-1]].copy()


@njit(void(*_REGIONS, int64[::1]), cache=True)
def count_points(
    points, low, high, gaps, offsets, runs, members, nodes, node_low, node_high, counts
):
    """Count the points of each region.

    Parameters
    ----------
    points, low, high, gaps, offsets, runs, members, nodes, node_low, node_high
        See :func:`find_regions`.
    counts : int64 ndarray of shape (n,)
        What is counted is added here.
    """
    found = np.empty(len(members), np.int64)
    for point in range(len(points)):
        count = _regions_of(
            points, point, low, high, gaps, offsets, runs, members, nodes, node_low, node_high,
            found,
        )  # fmt: skip
        for i in range(count):
            counts[found[i]] += 1


@njit(float64[::1](*_REGIONS, float64[::1]), cache=True)
def sum_shares(points, low, high, gaps, offsets, runs, members, nodes, node_low, node_high, shares):
    """Add up a figure of all regions that hold each point.

    Parameters
    ----------
    points, low, high, gaps, offsets, runs, members, nodes, node_low, node_high
        See :func:`find_regions`.
    shares : float64 ndarray of shape (n,)
        Figure of each region.

    Returns
    -------
    float64 ndarray of shape (points,)
        Added from the smallest figure to the largest, so that the order of the regions is of no
        account; 0 where no region holds the point.
    """
    found = np.empty(len(members), np.int64)
    sums = np.zeros(len(points), np.float64)
    for point in range(len(points)):
        count = _regions_of(
            points, point, low, high, gaps, offsets, runs, members, nodes, node_low, node_high,
            found,
        )  # fmt: skip
        ordered = np.sort(shares[found[:count]])
        for i in range(count):
            sums[point] += ordered[i]
    return sums
