"""Exact nearest neighbours among distinct points that stand for several records each."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.selection import select_float
from anonspark.kernels.signatures import float64, int64, types

_LEAF_POINTS = 16

_TREE = types.Tuple((int64[::1], int64[:, ::1], float64[::1]))


@kernel(float64(float64[:, ::1], int64, int64))
def distance(points, a, b):
    """Return the Euclidean distance of ``points[a]`` and ``points[b]``."""
    total = 0.0
    for j in range(points.shape[1]):
        difference = points[a, j] - points[b, j]
        total += difference * difference
    return np.sqrt(total)


@kernel(_TREE(float64[:, ::1]))
def build_tree(points):
    """Build a KD-tree over points.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d)

    Returns
    -------
    members : int64 ndarray of shape (n,)
        The points, leaf by leaf.
    nodes : int64 ndarray of shape (nodes, 4)
        Per node: first and last + 1 place in ``members``, the axis that it is cut on (-1 for a
        leaf) and its right child. The left child is the next node.
    splits : float64 ndarray of shape (nodes,)
        Where a node is cut: the left child has ``x <= split``, the right one ``x >= split``.

    Notes
    -----
    O(n log n) expected time, O(n) memory.
    """
    n, d = points.shape
    members = np.arange(n)
    capacity = 4 * (n // _LEAF_POINTS + 1) + 1
    nodes = np.empty((capacity, 4), np.int64)
    splits = np.zeros(capacity, np.float64)
    scratch = np.empty(n, np.float64)
    moved = np.empty(n, np.int64)
    count = 0
    # Entries: first position, last position + 1, parent whose right child this is (-1: none).
    stack = np.empty((130, 3), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n, -1
    depth = 1
    while depth > 0:
        depth -= 1
        start, stop, parent = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        node = count
        count += 1
        if parent >= 0:
            nodes[parent, 3] = node
        nodes[node, 0], nodes[node, 1], nodes[node, 2], nodes[node, 3] = start, stop, -1, -1
        if stop - start <= _LEAF_POINTS:
            continue
        axis, widest = 0, -1.0
        for j in range(d):
            low = high = points[members[start], j]
            for i in range(start + 1, stop):
                value = points[members[i], j]
                low = min(low, value)
                high = max(high, value)
            if high - low > widest:
                axis, widest = j, high - low
        if widest <= 0.0:
            continue
        for i in range(start, stop):
            scratch[i] = points[members[i], axis]
        half = (stop - start) // 2
        split = select_float(scratch, start, stop, half)
        # Points equal to the split fill the left side up, so that both halves have equal size.
        smaller = 0
        for i in range(start, stop):
            if points[members[i], axis] < split:
                smaller += 1
        spare = half - smaller
        left, right = start, 0
        for i in range(start, stop):
            member = members[i]
            value = points[member, axis]
            goes_left = value < split
            if value == split and spare > 0:
                spare -= 1
                goes_left = True
            if goes_left:
                members[left] = member
                left += 1
            else:
                moved[right] = member
                right += 1
        members[left : left + right] = moved[:right]
        nodes[node, 2] = axis
        splits[node] = split
        stack[depth, 0], stack[depth, 1], stack[depth, 2] = left, stop, node
        depth += 1
        stack[depth, 0], stack[depth, 1], stack[depth, 2] = start, left, -1
        depth += 1
    return members, nodes[:count].copy(), splits[:count].copy()


@kernel(
    int64(
        float64[:, ::1],
        int64[::1],
        int64[:, ::1],
        float64[::1],
        int64,
        float64,
        int64[::1],
        float64[::1],
    )
)
def points_within(points, members, nodes, splits, query, radius, neighbors, distances):
    """Find all points within a radius of a point, itself among them.

    Parameters
    ----------
    points, members, nodes, splits
        The tree, see :func:`build_tree`.
    query : int
        The point to search around.
    radius : float
        Points at exactly this distance are found, too.
    neighbors : int64 ndarray of shape (n,)
        Filled with the points found.
    distances : float64 ndarray of shape (n,)
        Filled with their distances.

    Returns
    -------
    int
        How many were found.
    """
    stack = np.empty(130, np.int64)
    stack[0] = 0
    depth = 1
    count = 0
    while depth > 0:
        depth -= 1
        node = stack[depth]
        axis = nodes[node, 2]
        if axis < 0:
            for position in range(nodes[node, 0], nodes[node, 1]):
                member = members[position]
                length = distance(points, query, member)
                if length <= radius:
                    neighbors[count] = member
                    distances[count] = length
                    count += 1
            continue
        offset = points[query, axis] - splits[node]
        # Rounded and underflowed as distances are, so that no point within the radius is missed.
        gap = np.sqrt(offset * offset)
        if offset <= 0.0 or gap <= radius:
            stack[depth] = node + 1
            depth += 1
        if offset >= 0.0 or gap <= radius:
            stack[depth] = nodes[node, 3]
            depth += 1
    return count


@kernel(float64[::1](float64[:, ::1], int64[::1], int64, int64[::1], int64[:, ::1], float64[::1]))
def neighbor_distances(points, weights, neighbors, members, nodes, splits):
    """Return the distance of each point to its ``neighbors``-th nearest record.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d)
        Distinct points.
    weights : int64 ndarray of shape (n,)
        Records that each point stands for, at least 1.
    neighbors : int
        At least 1 and at most ``weights.sum() - 1``. A record is not its own neighbour, the others
        at the same point are.
    members, nodes, splits
        The tree, see :func:`build_tree`.

    Returns
    -------
    float64 ndarray of shape (n,)

    Notes
    -----
    O(n log n) expected time in few dimensions, O(n) memory: duplicates cost nothing.
    """
    n = points.shape[0]
    result = np.empty(n, np.float64)
    best = np.empty(neighbors + 1, np.float64)
    best_weights = np.empty(neighbors + 1, np.int64)
    stack = np.empty(130, np.int64)
    gaps = np.empty(130, np.float64)
    for query in range(n):
        # ``best`` is sorted; it holds just enough points to reach the wanted number of records.
        size = 0
        total = 0
        radius = np.inf
        stack[0] = 0
        gaps[0] = 0.0
        depth = 1
        while depth > 0:
            depth -= 1
            if gaps[depth] > radius:
                continue
            node = stack[depth]
            axis = nodes[node, 2]
            if axis >= 0:
                offset = points[query, axis] - splits[node]
                near, far = (node + 1, nodes[node, 3]) if offset < 0 else (nodes[node, 3], node + 1)
                stack[depth] = far
                gaps[depth] = abs(offset)
                depth += 1
                stack[depth] = near
                gaps[depth] = 0.0
                depth += 1
                continue
            for position in range(nodes[node, 0], nodes[node, 1]):
                member = members[position]
                weight = weights[member] - (1 if member == query else 0)
                if weight == 0:
                    continue
                length = distance(points, query, member)
                if total >= neighbors and length >= radius:
                    continue
                spot = size
                while spot > 0 and best[spot - 1] > length:
                    best[spot] = best[spot - 1]
                    best_weights[spot] = best_weights[spot - 1]
                    spot -= 1
                best[spot] = length
                best_weights[spot] = weight
                size += 1
                total += weight
                while size > 1 and total - best_weights[size - 1] >= neighbors:
                    size -= 1
                    total -= best_weights[size]
                if total >= neighbors:
                    radius = best[size - 1]
        result[query] = radius
    return result
