"""Draws of a node's records by content: those with the smallest priorities."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.canonical_order import comes_before
from anonspark.kernels.compiling import kernel
from anonspark.kernels.paths import priority
from anonspark.kernels.signatures import int64, uint64

_LARGEST_PRIORITY = np.uint64(2**64 - 1)

# Where more of a node are wanted, all of its records are sorted.
_LARGEST_SHARE = 0.9

_BUCKETS = 128


@kernel(
    int64[::1](int64[:, ::1], int64[::1], int64[::1], uint64[::1], int64[::1], int64, uint64, int64)
)
def _sort_smallest(codes, hashes, order, priorities, places, few, limit, most):
    """Return what :func:`draw` does, from some places and their priorities up to a limit."""
    # Roughly sorted first, by the leading bits: then next to nothing has to be moved.
    shift = uint64(0)
    while limit >> shift >= uint64(_BUCKETS):
        shift += uint64(1)
    ends = np.zeros(_BUCKETS + 1, np.int64)
    for i in range(few):
        ends[int64(priorities[i] >> shift) + 1] += 1
    for bucket in range(_BUCKETS):
        ends[bucket + 1] += ends[bucket]
    sequence = np.empty(few, np.int64)
    for i in range(few):
        bucket = int64(priorities[i] >> shift)
        sequence[ends[bucket]] = i
        ends[bucket] += 1
    drawn = np.empty(most, np.int64)
    smallest = np.empty(most, np.uint64)
    count = 0
    for i in sequence:
        own = priorities[i]
        if count == most and own > smallest[count - 1]:
            continue
        place = count
        while place > 0 and smallest[place - 1] > own:
            place -= 1
        if place > 0 and smallest[place - 1] == own:
            # Equal hashes are equal contents, or a collision, which codes decide.
            if comes_before(codes, hashes, order[places[i]], order[drawn[place - 1]]):
                drawn[place - 1] = places[i]
            continue
        if count < most:
            count += 1
        for j in range(count - 1, place, -1):
            drawn[j] = drawn[j - 1]
            smallest[j] = smallest[j - 1]
        drawn[place] = places[i]
        smallest[place] = own
    return drawn[:count].copy()


@kernel(
    int64[::1](
        int64[:, ::1],
        int64[::1],
        int64[::1],
        int64[::1],
        int64,
        int64,
        uint64,
        int64,
        uint64[::1],
        int64[::1],
    )
)
def draw(codes, hashes, order, own_hashes, start, stop, salt, most, priorities, places):
    """Return the places of a node's records with the smallest priorities, ascending.

    Parameters
    ----------
    codes : int64 ndarray of shape (n, d)
    hashes : int64 ndarray of shape (n,)
        Keyed hash of each record's whole content.
    order : int64 ndarray of shape (n,)
        Records.
    own_hashes : int64 ndarray of shape (n,)
        The hashes of ``order``.
    start, stop : int
        The node: ``order[start:stop]``, at least one record.
    salt : uint64
        Tells this draw from others, see :func:`anonspark.kernels.paths.priority`.
    most : int
        How many are drawn, at least 1; each hash counts once, so there may be fewer.
    priorities : uint64 ndarray, places : int64 ndarray
        Overwritten; at least as long as the node.

    Returns
    -------
    int64 ndarray of shape (most or fewer,)
        Places in ``order``.

    Notes
    -----
    O(n) time as a rule; where few hashes are different O(n most).
    """
    # Priorities are evenly spread, so nearly always as many as are wanted, and a few more, are
    # within this limit.
    share = (most + 6.0 * np.sqrt(most) + 8.0) / (stop - start)
    limit = _LARGEST_PRIORITY
    if share < _LARGEST_SHARE:
        limit = uint64(share * 2.0**64)
    while True:
        few = 0
        for i in range(start, stop):
            own = priority(own_hashes[i], salt)
            priorities[few] = own
            places[few] = i
            few += own <= limit
        drawn = _sort_smallest(codes, hashes, order, priorities, places, few, limit, most)
        if drawn.shape[0] == most or limit == _LARGEST_PRIORITY:
            return drawn
        limit = _LARGEST_PRIORITY
