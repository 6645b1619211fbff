"""Walk records down a predicted tree, and count them on the way."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.descent import DISTANCE
from anonspark.kernels.signatures import boolean, float64, int32, int64, types, void
from anonspark.kernels.vantage_points import distance_key


@kernel(
    types.Tuple((int64[::1], int64[::1]))(
        int64[:, ::1],
        float64[:, ::1],
        int32[::1],
        int64[::1],
        int64[:, ::1],
        float64[:, ::1],
        int64[:, :, ::1],
        int64[:, ::1],
        boolean[:, ::1],
        int64[:, ::1],
        int64[:, :, ::1],
        int64[::1],
        int64[:, :, ::1],
        int64[:, ::1],
    )
)
def follow_brackets(
    keys,
    normalized,
    leaves,
    roots,
    attributes,
    points,
    ends,
    levels,
    decided,
    children,
    sides,
    rows,
    extremes,
    values,
):
    """Walk every record down a predicted tree to a leaf or into the bracket of a node.

    Parameters
    ----------
    keys : int64 ndarray of shape (n, width)
        See :func:`anonspark.staged.keys.key_matrix`.
    normalized : float64 ndarray of shape (n, d)
        Normalized positions, without rows if no key is a distance.
    leaves : int32 ndarray of shape (n,)
        Node of the tree that each record is in.
    roots : int64 ndarray of shape (nodes,)
        The predicted node that stands for each of them, or -1.
    attributes : int64 ndarray of shape (m, w)
        Columns of ``keys`` that each predicted node compares in turn, or
        :data:`~anonspark.kernels.descent.DISTANCE`.
    points : float64 ndarray of shape (m, d)
        The vantage point of each predicted node.
    ends : int64 ndarray of shape (m, 2, w)
        Lower and upper end of its bracket.
    levels : int64 ndarray of shape (m, 2)
        How many keys each end has.
    decided : bool ndarray of shape (m, 2)
        Whether records equal to the lower end go left, and those equal to the upper end right.
    children : int64 ndarray of shape (m, 2)
        Left and right child, -1 in a leaf.
    sides : int64 ndarray of shape (m, 2, w + 1)
        Records that pass a node on its left and on its right, by the first key in which they
        differ from the end of the bracket. Those that differ in none come last. Updated in place,
        as are the following.
    rows : int64 ndarray of shape (m,)
        Records of each leaf.
    extremes : int64 ndarray of shape (m, d, 2)
        Smallest and largest value of each quasi-identifier in each leaf.
    values : int64 ndarray of shape (m, v)
        Records of each leaf with each sensitive value.

    Returns
    -------
    nodes, records : int64 ndarray
        The records inside of a bracket, in ascending order, and the node that it is of.
    """
    d = extremes.shape[1]
    # Allocate the longest result once: Numba counts references in every turn of a loop that
    # rebinds an array.
    inside_nodes = np.empty(keys.shape[0], np.int64)
    inside_records = np.empty(keys.shape[0], np.int64)
    inside = 0
    for record in range(keys.shape[0]):
        node = roots[leaves[record]]
        if node < 0:
            continue
        while children[node, 0] >= 0:
            side = 0
            level = 0
            while level < levels[node, 0]:
                attribute = attributes[node, level]
                if attribute == DISTANCE:
                    value = distance_key(normalized, record, points, node)
                else:
                    value = keys[record, attribute]
                if value != ends[node, 0, level]:
                    side = -1 if value < ends[node, 0, level] else 1
                    break
                level += 1
            if side < 0 or (side == 0 and decided[node, 0]):
                sides[node, 0, level] += 1
                node = children[node, 0]
                continue
            side = 0
            level = 0
            while level < levels[node, 1]:
                attribute = attributes[node, level]
                if attribute == DISTANCE:
                    value = distance_key(normalized, record, points, node)
                else:
                    value = keys[record, attribute]
                if value != ends[node, 1, level]:
                    side = -1 if value < ends[node, 1, level] else 1
                    break
                level += 1
            if side > 0 or (side == 0 and decided[node, 1]):
                sides[node, 1, level] += 1
                node = children[node, 1]
                continue
            inside_nodes[inside] = node
            inside_records[inside] = record
            inside += 1
            node = -1
            break
        if node < 0:
            continue
        rows[node] += 1
        for j in range(d):
            value = keys[record, j]
            extremes[node, j, 0] = min(extremes[node, j, 0], value)
            extremes[node, j, 1] = max(extremes[node, j, 1], value)
        for column in range(d + 2, keys.shape[1]):
            values[node, keys[record, column]] += 1
    return inside_nodes[:inside].copy(), inside_records[:inside].copy()


@kernel(void(int64[:, ::1], int64[:, :, ::1]))
def find_outermost(keys, outermost):
    """Find the records with the smallest and the largest values of each quasi-identifier.

    Parameters
    ----------
    keys : int64 ndarray of shape (n, width)
    outermost : int64 ndarray of shape (d, 2, most)
        Filled with records, most of each, from the outermost inwards. n is at least ``most``. Of
        equal values the first ones count. O(n d) time as a rule, with sorted values times ``most``.

    Examples
    --------
    >>> outermost = np.zeros((1, 2, 2), np.int64)
    >>> find_outermost(np.array([[40], [17], [90], [25]]), outermost)
    >>> outermost.tolist()
    [[[1, 3], [2, 0]]]
    """
    most = outermost.shape[2]
    if most == 0:
        return
    for j in range(outermost.shape[0]):
        for end in range(2):
            sign = 1 if end == 0 else -1
            values = outermost[j, end]
            count = 0
            for record in range(keys.shape[0]):
                value = keys[record, j]
                if count == most:
                    last = keys[values[most - 1], j]
                    if (value >= last) if sign > 0 else (value <= last):
                        continue
                position = count if count < most else most - 1
                while position > 0:
                    other = keys[values[position - 1], j]
                    if (value >= other) if sign > 0 else (value <= other):
                        break
                    values[position] = values[position - 1]
                    position -= 1
                values[position] = record
                count = min(count + 1, most)
