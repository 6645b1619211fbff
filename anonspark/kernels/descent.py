"""Finding each record's leaf, and counting records into histograms."""

from __future__ import annotations

import numpy as np
from numba import boolean, int32, int64, njit, types, uint64

__all__ = ["accumulate_histograms", "find_leaves"]


@njit(int64(int64[:, ::1], int64, int64[::1], int64[::1]), cache=True)
def compare(keys, record, attributes, thresholds):
    """Compare a record with a boundary, key by key: -1 before, 0 equal, 1 behind.

    Parameters
    ----------
    keys : int64 ndarray of shape (n, d + 2)
        Codes of the quasi-identifiers, then record hash, then occurrence number.
    record : int
        Row of ``keys``.
    attributes, thresholds : int64 ndarray
        Columns to look at in turn, -1 ends them; the boundary's value of each.
    """
    for level in range(attributes.shape[0]):
        attribute = attributes[level]
        if attribute < 0:
            break
        value = keys[record, attribute]
        if value != thresholds[level]:
            return -1 if value < thresholds[level] else 1
    return 0


@njit(
    int32[::1](int64[:, ::1], int64[:, ::1], int64[:, ::1], boolean[::1], int64[:, ::1]),
    cache=True,
)
def find_leaves(keys, attributes, thresholds, equal_goes_left, children):
    """Walk every record down the tree.

    Parameters
    ----------
    keys : int64 ndarray of shape (n, d + 2)
        See :func:`compare`.
    attributes, thresholds : int64 ndarray of shape (nodes, d + 2)
        The boundary of each node.
    equal_goes_left : bool ndarray of shape (nodes,)
        Where records on the boundary go.
    children : int64 ndarray of shape (nodes, 2)
        Left and right child; -1 in a leaf.

    Returns
    -------
    int32 ndarray of shape (n,)
        Node number of each record's leaf.
    """
    leaves = np.empty(keys.shape[0], np.int32)
    for record in range(keys.shape[0]):
        node = 0
        while children[node, 0] >= 0:
            side = compare(keys, record, attributes[node], thresholds[node])
            if side < 0 or (side == 0 and equal_goes_left[node]):
                node = children[node, 0]
            else:
                node = children[node, 1]
        leaves[record] = node
    return leaves


@njit(
    types.Tuple((int64[::1], int64[::1]))(
        int64[:, ::1],
        int32[::1],
        int64[::1],
        int64[:, ::1],
        int64[:, ::1],
        int64[:, ::1],
        int64[::1],
        int64[::1],
        int64[::1],
    ),
    cache=True,
)
def accumulate_histograms(
    keys, leaves, first_request, requests, attributes, thresholds, counts, minima, maxima
):
    """Add a batch of records to the histograms that were asked for.

    Parameters
    ----------
    keys : int64 ndarray of shape (n, d + 2)
        See :func:`compare`.
    leaves : int32 ndarray of shape (n,)
        See :func:`find_leaves`.
    first_request : int64 ndarray of shape (nodes + 1,)
        Where the requests of each node begin.
    requests : int64 ndarray of shape (requests, 5)
        Column of ``keys``, lowest and highest value looked at, bits to shift (bin =
        (value - lowest) >> bits, or -1: list the values themselves), first bin in ``counts``.
    attributes, thresholds : int64 ndarray of shape (requests, d + 2)
        Only records equal to this boundary are counted.
    counts, minima, maxima : int64 ndarray of shape (bins,)
        Records, smallest and largest value of each bin; added to in place.

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
            value = keys[record, requests[request, 0]]
            if value < requests[request, 1] or value > requests[request, 2]:
                continue
            if compare(keys, record, attributes[request], thresholds[request]) != 0:
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
            # Unsigned, for the width of an interval of 64-bit integers need not fit a signed one.
            offset = (uint64(value) - uint64(requests[request, 1])) >> uint64(requests[request, 3])
            place = requests[request, 4] + int64(offset)
            counts[place] += 1
            minima[place] = min(minima[place], value)
            maxima[place] = max(maxima[place], value)
    return listed_requests[:listed].copy(), listed_values[:listed].copy()
