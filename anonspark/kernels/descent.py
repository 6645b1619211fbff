"""Find each record's leaf, and count records into histograms."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.paths import priority
from anonspark.kernels.signatures import boolean, float64, int32, int64, types, uint64
from anonspark.kernels.vantage_points import distance_key

DISTANCE = -2
"""In place of a column of the keys: the distance to a vantage point."""

_END = -1

EQUAL, BEFORE, BEFORE_OR_EQUAL = 0, 1, 2
"""The records that a histogram counts: those at its boundary, before it, or both."""


@kernel(
    int32[::1](
        int64[:, ::1],
        float64[:, ::1],
        int64[:, ::1],
        int64[:, ::1],
        float64[:, ::1],
        boolean[::1],
        int64[:, ::1],
    )
)
def find_leaves(keys, normalized, attributes, thresholds, points, equal_goes_left, children):
    """Walk every record down the tree.

    Parameters
    ----------
    keys : int64 ndarray of shape (n, width)
        See :func:`anonspark.staged.keys.key_matrix`.
    normalized : float64 ndarray of shape (n, d)
        Normalized positions, without rows if no key is a distance.
    attributes, thresholds : int64 ndarray of shape (nodes, keys)
        The boundary of each node: columns of ``keys`` to compare in turn, :data:`DISTANCE` among
        them, until -1, and its values.
    points : float64 ndarray of shape (nodes, d)
        The vantage point of each node.
    equal_goes_left : bool ndarray of shape (nodes,)
        Where records on the boundary go.
    children : int64 ndarray of shape (nodes, 2)
        Left and right child, -1 in a leaf.

    Returns
    -------
    int32 ndarray of shape (n,)
        Node number of each record's leaf.
    """
    leaves = np.empty(keys.shape[0], np.int32)
    for record in range(keys.shape[0]):
        node = 0
        while children[node, 0] >= 0:
            # Compared key by key: -1 before the boundary, 0 equal, 1 behind. Here and below in the
            # loop itself: a call takes as long as some ten comparisons.
            side = 0
            for level in range(attributes.shape[1]):
                attribute = attributes[node, level]
                if attribute == _END:
                    break
                if attribute == DISTANCE:
                    value = distance_key(normalized, record, points, node)
                else:
                    value = keys[record, attribute]
                threshold = thresholds[node, level]
                if value != threshold:
                    side = -1 if value < threshold else 1
                    break
            if side < 0 or (side == 0 and equal_goes_left[node]):
                node = children[node, 0]
            else:
                node = children[node, 1]
        leaves[record] = node
    return leaves


@kernel(
    types.Tuple((int64[::1], int64[::1]))(
        int64[:, ::1],
        float64[:, ::1],
        int32[::1],
        int64[::1],
        int64[:, ::1],
        int64[:, ::1],
        int64[:, ::1],
        float64[:, ::1],
        int64[:, ::1],
    )
)
def accumulate_histograms(
    keys,
    normalized,
    leaves,
    first_request,
    requests,
    attributes,
    thresholds,
    points,
    bins,
):
    """Add a batch of records to the histograms that were asked for.

    Parameters
    ----------
    keys : int64 ndarray of shape (n, width)
    normalized : float64 ndarray of shape (n, d)
        See :func:`find_leaves`.
    leaves : int32 ndarray of shape (n,)
        See :func:`find_leaves`.
    first_request : int64 ndarray of shape (nodes + 1,)
        Where the requests of each node begin.
    requests : int64 ndarray of shape (requests, 9)
        Column of ``keys`` or :data:`DISTANCE`, lowest and highest value counted, bits to shift
        (bin = (value - lowest) >> bits, or -1: list the values themselves), first of its
        ``bins``, which side of the boundary is counted, and another column of ``keys``, or -1,
        with the lowest and the highest value of it that is counted.
    attributes, thresholds : int64 ndarray of shape (requests, keys)
        The boundary of each request.
    points : float64 ndarray of shape (requests, d)
        The vantage point of each request.
    bins : int64 ndarray of shape (bins, 3)
        Records, smallest and largest value of each bin. Updated in place. They lie side by side,
        because they are read together, in random order.

    Returns
    -------
    listed_requests, listed_values : int64 ndarray
        Request and value of each record of a request that lists.
    """
    capacity = 1024
    listed_requests = np.empty(capacity, np.int64)
    listed_values = np.empty(capacity, np.int64)
    listed = 0
    for record in range(keys.shape[0]):
        leaf = leaves[record]
        for request in range(first_request[leaf], first_request[leaf + 1]):
            attribute = requests[request, 0]
            if attribute == DISTANCE:
                value = distance_key(normalized, record, points, request)
            else:
                value = keys[record, attribute]
            if value < requests[request, 1] or value > requests[request, 2]:
                continue
            other_key = requests[request, 6]
            if other_key >= 0:
                other = keys[record, other_key]
                if other < requests[request, 7] or other > requests[request, 8]:
                    continue
            side = 0
            for level in range(attributes.shape[1]):
                key = attributes[request, level]
                if key == _END:
                    break
                if key == DISTANCE:
                    other = distance_key(normalized, record, points, request)
                else:
                    other = keys[record, key]
                threshold = thresholds[request, level]
                if other != threshold:
                    side = -1 if other < threshold else 1
                    break
            most = requests[request, 5]
            if side > 0 or (side == 0 and most == BEFORE) or (side < 0 and most == EQUAL):
                continue
            if requests[request, 3] < 0:
                if listed == capacity:
                    capacity *= 2
                    listed_requests = np.append(listed_requests, np.empty(listed, np.int64))
                    listed_values = np.append(listed_values, np.empty(listed, np.int64))
                listed_requests[listed] = request
                listed_values[listed] = value
                listed += 1
                continue
            # Unsigned: the width of an interval of 64-bit integers may not fit a signed one.
            offset = (uint64(value) - uint64(requests[request, 1])) >> uint64(requests[request, 3])
            cell = requests[request, 4] + int64(offset)
            bins[cell, 0] += 1
            bins[cell, 1] = min(bins[cell, 1], value)
            bins[cell, 2] = max(bins[cell, 2], value)
    return listed_requests[:listed].copy(), listed_values[:listed].copy()


@kernel(
    types.Tuple((int64[::1], int64[::1], uint64[::1]))(
        int64[::1], int32[::1], int64[::1], uint64[::1], uint64[::1]
    )
)
def draw_records(hashes, leaves, first_draw, salts, limits):
    """Return the records of a batch that are drawn.

    Parameters
    ----------
    hashes : int64 ndarray of shape (n,)
        Keyed hash of each record.
    leaves : int32 ndarray of shape (n,)
    first_draw : int64 ndarray of shape (nodes + 1,)
        Where the draws of each node begin.
    salts, limits : uint64 ndarray of shape (draws,)
        Salt of each draw, and the largest priority that it takes.

    Returns
    -------
    draws, records : int64 ndarray
    priorities : uint64 ndarray
    """
    most = 0
    for leaf in leaves:
        most += first_draw[leaf + 1] - first_draw[leaf]
    # Allocate the longest result once: Numba counts references in every turn of a loop that
    # rebinds an array.
    draws = np.empty(most, np.int64)
    records = np.empty(most, np.int64)
    priorities = np.empty(most, np.uint64)
    drawn = 0
    for record in range(hashes.shape[0]):
        leaf = leaves[record]
        for draw in range(first_draw[leaf], first_draw[leaf + 1]):
            key = priority(hashes[record], salts[draw])
            if key > limits[draw]:
                continue
            draws[drawn] = draw
            records[drawn] = record
            priorities[drawn] = key
            drawn += 1
    return draws[:drawn].copy(), records[:drawn].copy(), priorities[:drawn].copy()
