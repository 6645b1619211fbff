"""Groups by cuts, each where it lowers the cost most: a greedy tree."""

from __future__ import annotations

import numpy as np
from numba import float64, int64, types, void

from anonspark.kernels.compiling import kernel

# Smaller part of a cut, as a share of the groups that there will be: bounds the depth of the tree.
_SMALLEST_SHARE = 0.1

# Widest axes of a node that are tried, so that many attributes stay linear.
_TRIED_AXES = 8

# Fewer records than this are sorted by insertion.
_FEW_RECORDS = 96


@kernel(void(float64[::1], int64[::1]))
def _sort_along(axis, order):
    """Write the records in the order of an axis, ties in the order of their numbers."""
    n = axis.shape[0]
    if n > _FEW_RECORDS:
        order[:] = np.argsort(axis, kind="mergesort")
        return
    for i in range(n):
        value, place = axis[i], i
        while place > 0 and axis[order[place - 1]] > value:
            order[place] = order[place - 1]
            place -= 1
        order[place] = i


@kernel(types.Tuple((float64, int64))(float64[:, ::1], int64[::1], int64, float64[::1]))
def _find_cut(axes, order, k, edges):
    """Find the place to cut an order of records in two at the lowest cost.

    Parameters
    ----------
    axes : float64 ndarray of shape (d, records)
        Values of the records, axis by axis.
    order : int64 ndarray of shape (n,)
        Some of the records, at least 2 k.
    k : int
        Neither part is smaller, and together they hold as many groups of k as before.
    edges : float64 ndarray of shape (at least n,)
        Overwritten.

    Returns
    -------
    cost : float
        Of both parts: records times the edges of their box.
    place : int
        Records of the first part.
    """
    d, n = axes.shape[0], order.shape[0]
    low = np.empty(d, np.float64)
    high = np.empty(d, np.float64)
    units, over = n // k, n % k
    fewest = k * max(1, int64(units * _SMALLEST_SHARE))
    for j in range(d):
        low[j] = high[j] = axes[j, order[0]]
    for i in range(n - fewest):
        record = order[i]
        total = 0.0
        for j in range(d):
            value = axes[j, record]
            low[j] = min(low[j], value)
            high[j] = max(high[j], value)
            total += high[j] - low[j]
        edges[i] = total
    best, best_place = np.inf, 0
    for j in range(d):
        low[j] = high[j] = axes[j, order[n - 1]]
    for i in range(n - 1, fewest - 1, -1):
        record = order[i]
        total = 0.0
        for j in range(d):
            value = axes[j, record]
            low[j] = min(low[j], value)
            high[j] = max(high[j], value)
            total += high[j] - low[j]
        if n - i >= fewest and i % k <= over:
            cost = i * edges[i - 1] + (n - i) * total
            if cost < best:
                best, best_place = cost, i
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
        _sort_along(axes[j], orders[j])
    is_start = np.zeros(n + 1, np.bool_)
    is_start[n] = True
    edges = np.empty(n, np.float64)
    is_first = np.zeros(n, np.bool_)
    later = np.empty(n, np.int64)
    widths = np.empty(d, np.float64)
    stack = [(0, n)]
    while len(stack) > 0:
        start, stop = stack.pop()
        is_start[start] = True
        if stop - start < 2 * k:
            continue
        for j in range(d):
            widths[j] = axes[j, orders[j, stop - 1]] - axes[j, orders[j, start]]
        narrowest = np.sort(widths)[d - _TRIED_AXES] if d > _TRIED_AXES else 0.0
        best, best_axis, size = np.inf, -1, 0
        for j in range(d):
            if widths[j] > 0.0 and widths[j] >= narrowest:
                cost, place = _find_cut(axes, orders[j, start:stop], k, edges)
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
        stack.append((middle, stop))
        stack.append((start, middle))
    return orders[0].copy(), np.flatnonzero(is_start)
