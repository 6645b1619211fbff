"""Build a tree over boxes, halved by their middles, to find those that hold a point or lie near."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import boolean, float64, int64, types

_LEAF_BOXES = 8

_BOXES = float64[:, :, ::1]
_TREE = types.Tuple((int64[::1], int64[:, ::1], _BOXES))


@kernel(_TREE(_BOXES, boolean))
def build_box_tree(boxes, relative):
    """Build a tree over boxes.

    Parameters
    ----------
    boxes : float64 ndarray of shape (n, 2, d)
        Lower and upper ends of each, both included.
    relative : bool
        Whether spreads are measured by those of all boxes, so that dimensions of any length count.

    Returns
    -------
    members : int64 ndarray of shape (n,)
        The boxes, leaf by leaf.
    nodes : int64 ndarray of shape (nodes, 3)
        First and last + 1 position in ``members`` of each node, and its right child, -1 for a leaf.
        The left child is the next node.
    node_boxes : float64 ndarray of shape (nodes, 2, d)
        The box around all boxes of a node.

    Notes
    -----
    O(n log^2 n) time, O(n) memory. Every node is halved by the middles of its boxes along the
    dimension in which they are most spread out, so that the depth is the logarithm of n whatever
    the boxes are.
    """
    n, d = boxes.shape[0], boxes.shape[2]
    members = np.arange(n)
    capacity = 2 * (n // (_LEAF_BOXES // 2) + 1) + 1
    nodes = np.empty((capacity, 3), np.int64)
    node_boxes = np.empty((capacity, 2, d), np.float64)
    whole = np.ones(d, np.float64)
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
            nodes[parent, 2] = node
        nodes[node, 0], nodes[node, 1], nodes[node, 2] = start, stop, -1
        axis, widest = 0, -1.0
        for j in range(d):
            lowest, highest = np.inf, -np.inf
            first, last = np.inf, -np.inf
            for position in range(start, stop):
                member = members[position]
                lowest = min(lowest, boxes[member, 0, j])
                highest = max(highest, boxes[member, 1, j])
                middle = boxes[member, 0, j] / 2 + boxes[member, 1, j] / 2
                first = min(first, middle)
                last = max(last, middle)
            node_boxes[node, 0, j] = lowest
            node_boxes[node, 1, j] = highest
            if relative and node == 0:
                whole[j] = max(last - first, 0.5)
            if (last - first) / whole[j] > widest:
                axis, widest = j, (last - first) / whole[j]
        if stop - start <= _LEAF_BOXES:
            continue
        middles = np.empty(stop - start, np.float64)
        for position in range(start, stop):
            member = members[position]
            middles[position - start] = boxes[member, 0, axis] / 2 + boxes[member, 1, axis] / 2
        members[start:stop] = members[start:stop][np.argsort(middles, kind="mergesort")]
        half = start + (stop - start) // 2
        stack[depth, 0], stack[depth, 1], stack[depth, 2] = half, stop, node
        depth += 1
        stack[depth, 0], stack[depth, 1], stack[depth, 2] = start, half, -1
        depth += 1
    return members, nodes[:count].copy(), node_boxes[:count].copy()
