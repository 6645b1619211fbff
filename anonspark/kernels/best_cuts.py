"""Groups by cuts, each where it lowers the cost most: a greedy tree."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import float64, int64, types
from anonspark.kernels.sorting import sort_stably

# Smaller part of a cut, as a share of the groups that there will be: bounds the depth of the tree.
_SMALLEST_SHARE = 0.1

# Widest axes of a node that are tried, so that many attributes stay linear.
_TRIED_AXES = 8


@kernel(
    types.Tuple((float64, int64))(
        float64[:, ::1], int64[::1], int64, int64[::1], float64[:, ::1], float64[:, ::1]
    )
)
def _find_cut(points, order, k, places, lows, highs):
    """Find the place to cut an order of records in two at the lowest cost.

    Parameters
    ----------
    points : float64 ndarray of shape (records, d)
        Values of the records; d is even, for two axes are looked at together. Axes on which all
        are equal change nothing.
    order : int64 ndarray of shape (n,)
        Some of the records, at least 2 k.
    k : int
        Neither part is smaller, and together they hold as many groups of k as before.
    places : int64 ndarray, lows, highs : float64 ndarray of d columns
        Overwritten; n + 2 entries are enough.

    Returns
    -------
    cost : float
        Of both parts: records times the edges of their box.
    place : int
        Records of the first part.

    Notes
    -----
    The records between two places that are allowed are looked at once; both boxes of a place are
    put together from what was found there.
    """
    d, n = points.shape[1], order.shape[0]
    units, over = n // k, n % k
    fewest = k * max(1, int64(units * _SMALLEST_SHARE))
    places[0] = 0
    stretches = 1
    for unit in range(fewest // k, n // k + 1):
        for place in range(unit * k, min(unit * k + over, n - fewest) + 1):
            places[stretches] = place
            stretches += 1
    places[stretches] = n
    for stretch in range(stretches):
        start, stop = places[stretch], places[stretch + 1]
        for j in range(0, points.shape[1], 2):
            low = high = points[order[start], j]
            next_low = next_high = points[order[start], j + 1]
            for i in range(start + 1, stop):
                value, next_value = points[order[i], j], points[order[i], j + 1]
                low = min(low, value)
                high = max(high, value)
                next_low = min(next_low, next_value)
                next_high = max(next_high, next_value)
            lows[stretch, j], highs[stretch, j] = low, high
            lows[stretch, j + 1], highs[stretch, j + 1] = next_low, next_high
    own_low, own_high = np.empty(d, np.float64), np.empty(d, np.float64)
    own_low[:] = lows[stretches - 1]
    own_high[:] = highs[stretches - 1]
    edges = np.empty(stretches, np.float64)
    for stretch in range(stretches - 1, 0, -1):
        total = 0.0
        for j in range(d):
            own_low[j] = min(own_low[j], lows[stretch, j])
            own_high[j] = max(own_high[j], highs[stretch, j])
            total += own_high[j] - own_low[j]
        edges[stretch] = total
    best, best_place = np.inf, 0
    own_low[:] = lows[0]
    own_high[:] = highs[0]
    for stretch in range(1, stretches):
        total = 0.0
        for j in range(d):
            own_low[j] = min(own_low[j], lows[stretch - 1, j])
            own_high[j] = max(own_high[j], highs[stretch - 1, j])
            total += own_high[j] - own_low[j]
        place = places[stretch]
        cost = place * total + (n - place) * edges[stretch]
        if cost <= best:
            best, best_place = cost, place
    return best, best_place


@kernel(types.Tuple((int64[::1], int64[::1]))(float64[:, ::1], int64))
def cut_where_best(axes, k):
    """Cut records in two where it costs least, and the parts again, down to groups of k.

    Parameters
    ----------
    axes : float64 ndarray of shape (d, n)
        Values of the records, axis by axis. Ties on an axis are broken by the records' numbers.
    k : int
        A group has k to 2 k - 1 records; there are ``n // k`` of them.

    Returns
    -------
    order : int64 ndarray of shape (n,)
        Records, group by group.
    starts : int64 ndarray of shape (groups + 1,)
        Where each group begins in ``order``.

    Notes
    -----
    Unlike Mondrian (LeFevre et al. 2006), a cut is at the place, of all places on all axes, where
    records times edges of the two parts sum to the least, though not so near to an end that the
    tree gets deep. The records are sorted once along every axis, and the orders are kept when a
    node is cut (as decision trees do). O(n d min(d, 8) log n) time, O(n d) memory.
    """
    d, n = axes.shape
    orders = np.empty((max(d, 1), n), np.int64)
    orders[0] = np.arange(n)
    for j in range(d):
        sort_stably(axes[j], orders[j])
    is_start = np.zeros(n + 1, np.bool_)
    is_start[n] = True
    places = np.empty(n + 2, np.int64)
    points = np.zeros((n, (d + 1) // 2 * 2), np.float64)
    for i in range(n):
        for j in range(d):
            points[i, j] = axes[j, i]
    lows = np.empty((n + 2, points.shape[1]), np.float64)
    highs = np.empty((n + 2, points.shape[1]), np.float64)
    is_first = np.zeros(n, np.bool_)
    later = np.empty(n, np.int64)
    widths = np.empty(d, np.float64)
    # Every part that waits will be a group at least.
    stack = np.empty((max(n // k, 1) + 1, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    depth = 1
    while depth > 0:
        depth -= 1
        start, stop = stack[depth, 0], stack[depth, 1]
        is_start[start] = True
        if stop - start < 2 * k:
            continue
        for j in range(d):
            widths[j] = axes[j, orders[j, stop - 1]] - axes[j, orders[j, start]]
        narrowest = np.sort(widths)[d - _TRIED_AXES] if d > _TRIED_AXES else 0.0
        best, best_axis, size = np.inf, -1, 0
        for j in range(d):
            if widths[j] > 0.0 and widths[j] >= narrowest:
                cost, place = _find_cut(points, orders[j, start:stop], k, places, lows, highs)
                if cost < best:
                    best, best_axis, size = cost, j, place
        if best_axis < 0:
            # All records are equal.
            for place in range(start + k, stop - k + 1, k):
                is_start[place] = True
            continue
        middle = start + size
        for i in range(start, stop):
            is_first[orders[best_axis, i]] = i < middle
        for j in range(d):
            if j == best_axis:
                continue
            place, others = start, 0
            for i in range(start, stop):
                record = orders[j, i]
                if is_first[record]:
                    orders[j, place] = record
                    place += 1
                else:
                    later[others] = record
                    others += 1
            orders[j, middle:stop] = later[:others]
        stack[depth, 0], stack[depth, 1] = middle, stop
        stack[depth + 1, 0], stack[depth + 1, 1] = start, middle
        depth += 2
    return orders[0].copy(), np.flatnonzero(is_start)
