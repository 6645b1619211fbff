"""Cut an order of records into groups at the lowest cost."""

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
def _find_cut(points, order, k, positions, lows, highs):
    """Find the position to cut an order of records in two at the lowest cost.

    ``points`` (float64, shape (records, d)) has an even d, because two axes are compared together;
    axes on which all are equal change nothing. ``order`` holds at least 2 k of the records. Neither
    part has fewer than k, and together they hold as many groups of k as before. ``positions``,
    ``lows`` and ``highs`` are overwritten, and have n + 2 rows. Returns the cost of both parts,
    records times the edges of their box, and the records of the first part. The records between two
    allowed positions are read once, and both boxes of a position are put together from these.
    """
    d, n = points.shape[1], order.shape[0]
    units, over = n // k, n % k
    fewest = k * max(1, int64(units * _SMALLEST_SHARE))
    positions[0] = 0
    stretches = 1
    for unit in range(fewest // k, n // k + 1):
        for position in range(unit * k, min(unit * k + over, n - fewest) + 1):
            positions[stretches] = position
            stretches += 1
    positions[stretches] = n
    for stretch in range(stretches):
        start, stop = positions[stretch], positions[stretch + 1]
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
    box_low, box_high = np.empty(d, np.float64), np.empty(d, np.float64)
    box_low[:] = lows[stretches - 1]
    box_high[:] = highs[stretches - 1]
    edges = np.empty(stretches, np.float64)
    for stretch in range(stretches - 1, 0, -1):
        total = 0.0
        for j in range(d):
            box_low[j] = min(box_low[j], lows[stretch, j])
            box_high[j] = max(box_high[j], highs[stretch, j])
            total += box_high[j] - box_low[j]
        edges[stretch] = total
    best, best_place = np.inf, 0
    box_low[:] = lows[0]
    box_high[:] = highs[0]
    for stretch in range(1, stretches):
        total = 0.0
        for j in range(d):
            box_low[j] = min(box_low[j], lows[stretch - 1, j])
            box_high[j] = max(box_high[j], highs[stretch - 1, j])
            total += box_high[j] - box_low[j]
        position = positions[stretch]
        cost = position * total + (n - position) * edges[stretch]
        if cost <= best:
            best, best_place = cost, position
    return best, best_place


@kernel(types.Tuple((int64[::1], int64[::1]))(float64[:, ::1], int64))
def cut_where_best(axes, k):
    """Cut records in two where it costs least, and the parts again, down to groups of k.

    Parameters
    ----------
    axes : float64 ndarray of shape (d, n)
        Values of the records, axis by axis. Ties on an axis are broken by the records' numbers.
    k : int
        A group has k to 2 k - 1 records. There are ``n // k`` of them.

    Returns
    -------
    order : int64 ndarray of shape (n,)
        Records, group by group.
    starts : int64 ndarray of shape (groups + 1,)
        Where each group begins in ``order``.

    Notes
    -----
    Unlike Mondrian (LeFevre et al. 2006), a cut is at the place, of all positions on all axes,
    where records times edges of the two parts sum to the least, though not so near to an end that
    the tree gets deep. The records are sorted once along every axis, and the orders are kept when a
    node is cut (as decision trees do). O(n d min(d, 8) log n) time, O(n d) memory.
    """
    d, n = axes.shape
    orders = np.empty((max(d, 1), n), np.int64)
    orders[0] = np.arange(n)
    for j in range(d):
        sort_stably(axes[j], orders[j])
    is_start = np.zeros(n + 1, np.bool_)
    is_start[n] = True
    positions = np.empty(n + 2, np.int64)
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
                cost, position = _find_cut(points, orders[j, start:stop], k, positions, lows, highs)
                if cost < best:
                    best, best_axis, size = cost, j, position
        if best_axis < 0:
            # All records are equal.
            for position in range(start + k, stop - k + 1, k):
                is_start[position] = True
            continue
        middle = start + size
        for i in range(start, stop):
            is_first[orders[best_axis, i]] = i < middle
        for j in range(d):
            if j == best_axis:
                continue
            position, others = start, 0
            for i in range(start, stop):
                # No branch, because the processor would guess it wrong half of the time.
                record = orders[j, i]
                first = int64(is_first[record])
                orders[j, position] = later[others] = record
                position += first
                others += 1 - first
            orders[j, middle:stop] = later[:others]
        stack[depth, 0], stack[depth, 1] = middle, stop
        stack[depth + 1, 0], stack[depth + 1, 1] = start, middle
        depth += 2
    return orders[0].copy(), np.flatnonzero(is_start)


@kernel(int64[::1](int64[:, ::1], int64))
def hilbert_keys(cells, bits):
    """Return how far along the Hilbert curve each cell of a grid is (Skilling 2004).

    Parameters
    ----------
    cells : int64 ndarray of shape (d, n)
        Coordinates, axis by axis, from 0 to ``2**bits - 1``. ``d`` at least 1.
    bits : int
        Bits of a coordinate, at least 1. ``d * bits`` at most 62.

    Returns
    -------
    int64 ndarray of shape (n,)
        A number from 0 to ``2**(d * bits) - 1``. Cells whose numbers differ by 1 touch.

    Examples
    --------
    >>> hilbert_keys(np.array([[0, 0, 1, 1], [0, 1, 0, 1]]), 1).tolist()
    [0, 1, 3, 2]
    """
    d, n = cells.shape
    keys = np.empty(n, np.int64)
    position = np.empty(d, np.int64)
    for record in range(n):
        for j in range(d):
            position[j] = cells[j, record]
        # Undo the reflections and rotations of each level, from the coarsest on.
        for level in range(bits - 1, 0, -1):
            bit = 1 << level
            below = bit - 1
            for j in range(d):
                if position[j] & bit:
                    position[0] ^= below
                else:
                    difference = (position[0] ^ position[j]) & below
                    position[0] ^= difference
                    position[j] ^= difference
        # Gray code.
        for j in range(1, d):
            position[j] ^= position[j - 1]
        flipped = 0
        for level in range(bits - 1, 0, -1):
            if position[d - 1] & (1 << level):
                flipped ^= (1 << level) - 1
        key = 0
        for level in range(bits - 1, -1, -1):
            for j in range(d):
                key = (key << 1) | (((position[j] ^ flipped) >> level) & 1)
        keys[record] = key
    return keys


# Bits of a position on the curve, and the largest number of them for each axis.
_CURVE_BITS = 62
_CURVE_AXIS_BITS = 10

# Groups of at least twice as many records are cut at multiples of k / 32 only.
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
        Values of the records, axis by axis. At least one axis, and they vary on each. The curve
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
