"""Find the region that holds each record, or the one that must grow least for it."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.separation import without_noise
from anonspark.kernels.signatures import float64, int64

_BOXES = float64[:, :, ::1]

# A growth that is greater than another by this factor is so in its first 33 bits, too.
_CERTAINLY = 1 + 1e-9


@kernel(float64(float64[:, ::1], int64, _BOXES, int64, float64))
def _growth(points, point, boxes, box, most):
    """Return how much longer the edges of a box must be to hold a point, without noise.

    Returns infinity if that is certainly more than ``most``.
    """
    total = 0.0
    limit = most * _CERTAINLY
    for j in range(points.shape[1]):
        position = points[point, j]
        below = boxes[box, 0, j] - position
        above = position - boxes[box, 1, j]
        # Neither is greater than 0 where there is no position.
        if below > 0.0:
            total += below
        elif above > 0.0:
            total += above
        if total > limit:
            return np.inf
    return without_noise(total)


@kernel(
    int64[::1](float64[:, ::1], int64[::1], _BOXES, float64[::1], int64[::1], int64[:, ::1], _BOXES)
)
def assign_points(points, order, boxes, edges, members, nodes, node_boxes):
    """Find the region of each point.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d)
        NaN in dimensions that do not count for a point.
    order : int64 ndarray of shape (n,)
        Order of processing: neighbours one after the other take least time.
    boxes : float64 ndarray of shape (regions, 2, d)
        In the order of ``members``, as are ``edges``.
    edges : float64 ndarray of shape (regions,)
        What a record of each loses.
    members, nodes, node_boxes
        Of :func:`build_box_tree`.

    Returns
    -------
    int64 ndarray of shape (n,)
        The region that grows least, 0 for one that holds the point. Of those that tie, in the first
        33 bits, the one whose records lose least, then the first one. The same for any order.

    Notes
    -----
    A descent of the tree a point: O(log regions) where regions are disjoint.
    """
    regions = np.empty(points.shape[0], np.int64)
    stack = np.empty(130, np.int64)
    bounds = np.empty(130, np.float64)
    best = -1
    for turn in range(order.shape[0]):
        point = order[turn]
        least, lost = np.inf, np.inf
        if best >= 0:
            # The region of the neighbour is near the best.
            least, lost = _growth(points, point, boxes, best, np.inf), without_noise(edges[best])
        stack[0], bounds[0] = 0, 0.0
        depth = 1
        while depth > 0:
            depth -= 1
            if bounds[depth] > least:
                continue
            node = stack[depth]
            right = nodes[node, 2]
            if right >= 0:
                left = node + 1
                on_left = _growth(points, point, node_boxes, left, least)
                on_right = _growth(points, point, node_boxes, right, least)
                # The nearer one is looked at first, and is put on the stack last.
                if on_left <= on_right:
                    nearer, farther, near, far = left, right, on_left, on_right
                else:
                    nearer, farther, near, far = right, left, on_right, on_left
                if far <= least:
                    stack[depth], bounds[depth] = farther, far
                    depth += 1
                if near <= least:
                    stack[depth], bounds[depth] = nearer, near
                    depth += 1
                continue
            for box in range(nodes[node, 0], nodes[node, 1]):
                growth = _growth(points, point, boxes, box, least)
                if growth > least:
                    continue
                edge = without_noise(edges[box])
                if growth < least or edge < lost or (edge == lost and members[box] < members[best]):
                    best, least, lost = box, growth, edge
        regions[point] = members[best]
    return regions
