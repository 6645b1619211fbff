"""An order of records, cut into groups at the lowest cost."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import float64, int64, types


@kernel(int64[::1](int64[:, ::1], int64))
def hilbert_keys(cells, bits):
    """Return how far along the Hilbert curve each cell of a grid is (Skilling 2004).

    Parameters
    ----------
    cells : int64 ndarray of shape (d, n)
        Coordinates, axis by axis, from 0 to ``2**bits - 1``; ``d`` at least 1.
    bits : int
        Bits of a coordinate, at least 1; ``d * bits`` at most 62.

    Returns
    -------
    int64 ndarray of shape (n,)
        A number from 0 to ``2**(d * bits) - 1``. Cells whose numbers differ by 1 touch.
    """
    d, n = cells.shape
    keys = np.empty(n, np.int64)
    place = np.empty(d, np.int64)
    for record in range(n):
        for j in range(d):
            place[j] = cells[j, record]
        # Undo the reflections and rotations of each level, from the coarsest on.
        for level in range(bits - 1, 0, -1):
            bit = 1 << level
            below = bit - 1
            for j in range(d):
                if place[j] & bit:
                    place[0] ^= below
                else:
                    difference = (place[0] ^ place[j]) & below
                    place[0] ^= difference
                    place[j] ^= difference
        # Gray code.
        for j in range(1, d):
            place[j] ^= place[j - 1]
        flipped = 0
        for level in range(bits - 1, 0, -1):
            if place[d - 1] & (1 << level):
                flipped ^= (1 << level) - 1
        key = 0
        for level in range(bits - 1, -1, -1):
            for j in range(d):
                key = (key << 1) | (((place[j] ^ flipped) >> level) & 1)
        keys[record] = key
    return keys


# Bits of a place on the curve, of which each axis has at most so many.
_CURVE_BITS = 62
_CURVE_AXIS_BITS = 10

# From twice as many records a group on, an order is cut at multiples of k / 32 only.
_UNITS_A_GROUP = 32


@kernel(types.Tuple((int64[::1], float64))(float64[:, ::1], int64[::1], int64))
def cut_order(axes, order, k):
    """Cut an order of records into groups at the lowest cost (Hansen and Mukherjee 2003).

    Parameters
    ----------
    axes : float64 ndarray of shape (d, n)
        Values of the records, axis by axis.
    order : int64 ndarray of shape (n,)
        The records.
    k : int
        A group has k to 2 k - 1 records.

    Returns
    -------
    starts : int64 ndarray of shape (groups + 1,)
        Where each group begins in ``order``.
    cost : float
        Infinite if there is no way to cut, as there may be for k from 64 on.

    Notes
    -----
    Exact for k below 64. From there on cuts are at multiples of ``k // 32`` only. O(n d min(k, 64))
    time, O(n d) memory.
    """
    d, n = axes.shape
    unit = max(1, k // _UNITS_A_GROUP)
    units = max(1, n // unit)
    low = np.empty((units, d), np.float64)
    high = np.empty((units, d), np.float64)
    first = np.arange(units + 1) * unit
    first[units] = n
    for u in range(units):
        for j in range(d):
            bottom, top = np.inf, -np.inf
            for i in range(first[u], first[u + 1]):
                value = axes[j, order[i]]
                bottom = min(bottom, value)
                top = max(top, value)
            low[u, j], high[u, j] = bottom, top
    best = np.full(units + 1, np.inf)
    best[0] = 0.0
    previous = np.zeros(units + 1, np.int64)
    bottoms = np.empty(d, np.float64)
    tops = np.empty(d, np.float64)
    for end in range(1, units + 1):
        bottoms[:] = np.inf
        tops[:] = -np.inf
        for start in range(end - 1, -1, -1):
            size = first[end] - first[start]
            if size >= 2 * k:
                break
            edges = 0.0
            for j in range(d):
                bottoms[j] = min(bottoms[j], low[start, j])
                tops[j] = max(tops[j], high[start, j])
                edges += tops[j] - bottoms[j]
            cost = best[start] + size * edges
            if size >= k and cost < best[end]:
                best[end], previous[end] = cost, start
    if best[units] == np.inf:
        return np.array([0, n]), np.inf
    groups = 0
    end = units
    while end > 0:
        end = previous[end]
        groups += 1
    starts = np.empty(groups + 1, np.int64)
    end = units
    for group in range(groups, -1, -1):
        starts[group] = first[end]
        end = previous[end]
    return starts, best[units]


@kernel(int64(float64[:, ::1], int64, int64[::1]))
def cut_curve(axes, k, group_of):
    """Cut the Hilbert curve through all records into groups at the lowest cost.

    Parameters
    ----------
    axes : float64 ndarray of shape (d, n)
        Values of the records, axis by axis; at least one axis, and they vary on each. The curve
        runs through the first 62.
    k : int
        Smallest group.
    group_of : int64 ndarray of shape (n,)
        Filled with each record's group.

    Returns
    -------
    int
        How many groups there are, 0 if there is no way to cut.
    """
    n = axes.shape[1]
    d = min(axes.shape[0], _CURVE_BITS)
    bits = min(_CURVE_AXIS_BITS, _CURVE_BITS // d)
    widest = 0.0
    for j in range(d):
        widest = max(widest, axes[j].max() - axes[j].min())
    cells = np.empty((d, n), np.int64)
    for j in range(d):
        axis = axes[j]
        low = axis.min()
        for i in range(n):
            cells[j, i] = int64((axis[i] - low) / widest * (2.0**bits - 1.0))
    order = np.argsort(hilbert_keys(cells, bits), kind="mergesort")
    starts, cost = cut_order(axes, order, k)
    if cost == np.inf:
        return 0
    for group in range(starts.shape[0] - 1):
        for i in range(starts[group], starts[group + 1]):
            group_of[order[i]] = group
    return starts.shape[0] - 1
