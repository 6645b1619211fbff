"""Groups of k records with boxes as small as possible: a first solution, then its repair.

The cost of a group is its number of records times the sum of its box's edges, so the sum over all
groups is ``gcp_total``. Nothing quadratic: records and groups are cut into cells by median trees,
and all searching is done inside cells of bounded size.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int64, njit, types, uint64, void

from anonspark.kernels.canonical_order import sort_groups
from anonspark.kernels.paths import child_path
from anonspark.kernels.selection import select_float
from anonspark.kernels.space_filling_curve import hilbert_keys

__all__ = ["cut_order", "form_groups", "microaggregate", "refine_groups"]

# Records of a cell in which groups are grown: more is better and slower.
_CELL_RECORDS = 4096
_CELL_GROUPS = 8

# Groups of a cell that is repaired, and records from which on it has fewer.
_REPAIRED_GROUPS = 12
_REPAIRED_RECORDS = 2048
_FEWEST_REPAIRED_GROUPS = 4

# Each round repairs the worst sixteenth of all groups, then the worst eighth, and so on to all.
_ROUNDS = 8
_PASSES_A_ROUND = 5
_SEEDINGS = 8
_SWEEPS = 10

# Exchanges that one group begins in a sweep, so that huge groups stay linear.
_EXCHANGES = 64

# How far a repair's tree strays from medians and true widths, so that no two passes look at the
# same neighbours.
_VARIED_FRACTION = 0.3
_VARIED_WIDTH = 0.6

# A group that grows takes this share of k at once, so that huge k stay linear.
_STEPS_A_GROUP = 128
_SMALLEST_STEP = 8

# Regrown cells that are worse by more than this are not worth the exchange of records.
_PROMISING = 1.1

# Bits of a place on the curve, of which each axis has at most so many.
_CURVE_BITS = 62
_CURVE_AXIS_BITS = 10

# From twice as many records a group on, an order is cut at multiples of k / 32 only.
_UNITS_A_GROUP = 32

# What is less, relative to the cost, is rounding.
_NOISE = 1e-9


@njit(
    types.Tuple((int64[::1], int64[::1]))(float64[:, ::1], int64, int64, boolean, uint64),
    cache=True,
)
def _cut_cells(points, largest, unit, varied, state):
    """Cut points into cells of at most ``largest`` by a tree of cuts near the median.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d)
        What is cut, along the widest axis of each node.
    largest : int
        Largest cell, at least twice ``unit``, or 1; equal points may exceed it by ``unit``.
    unit : int
        Each cell but the last has a multiple of this many points.
    varied : bool
        Whether cuts stray from the median and from the widest axis, as ``state`` says.
    state : uint64
        State of the generator; fixed numbers, no chance.

    Returns
    -------
    order : int64 ndarray of shape (n,)
        Points, cell by cell.
    starts : int64 ndarray of shape (cells + 1,)
        Where each cell begins in ``order``.
    """
    n, d = points.shape
    order = np.arange(n)
    is_start = np.zeros(n + 1, np.bool_)
    is_start[n] = True
    stack = np.empty((256, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    depth = 1 if n > 0 else 0
    while depth > 0:
        depth -= 1
        start, stop = stack[depth, 0], stack[depth, 1]
        is_start[start] = True
        if stop - start <= largest:
            continue
        axis, widest = 0, 0.0
        for j in range(d):
            low = high = points[order[start], j]
            for i in range(start + 1, stop):
                value = points[order[i], j]
                low = min(low, value)
                high = max(high, value)
            width = high - low
            if varied:
                state = child_path(state, uint64(0))
                share = float64(state >> uint64(40)) / 2.0**24
                width *= 1.0 + _VARIED_WIDTH * (2.0 * share - 1.0)
            if width > widest:
                axis, widest = j, width
        if widest <= 0.0:
            place = start + largest
            while place + unit <= stop:
                is_start[place] = True
                place += largest
            continue
        members = order[start:stop].copy()
        values = np.empty(stop - start, np.float64)
        for i in range(stop - start):
            values[i] = points[members[i], axis]
        order[start:stop] = members[np.argsort(values, kind="mergesort")]
        fraction = 0.5
        if varied:
            state = child_path(state, uint64(0))
            share = float64(state >> uint64(40)) / 2.0**24
            fraction += _VARIED_FRACTION * (2.0 * share - 1.0)
        units = (stop - start) // unit
        middle = start + unit * min(max(int64(units * fraction), 1), units - 1)
        stack[depth, 0], stack[depth, 1] = middle, stop
        depth += 1
        stack[depth, 0], stack[depth, 1] = start, middle
        depth += 1
    return order, np.flatnonzero(is_start)


@njit(float64[:, ::1](float64[:, ::1], int64[::1]), cache=True)
def _varying_axes(points, members):
    """Return the values of some points axis by axis, without the axes on which all are equal."""
    size, d = members.shape[0], points.shape[1]
    axes = np.empty((d, size), np.float64)
    count = 0
    for j in range(d):
        varies = False
        for i in range(size):
            axes[count, i] = points[members[i], j]
            varies |= axes[count, i] != axes[count, 0]
        if varies:
            count += 1
    return axes[:count].copy()


@njit(float64(float64[:, ::1], int64[::1], int64), cache=True)
def _cost(axes, group_of, groups):
    """Return the sum over all groups of size times the sum of the box's edges."""
    d, n = axes.shape
    sizes = np.zeros(groups, np.int64)
    low = np.full((groups, d), np.inf)
    high = np.full((groups, d), -np.inf)
    for i in range(n):
        group = group_of[i]
        sizes[group] += 1
        for j in range(d):
            low[group, j] = min(low[group, j], axes[j, i])
            high[group, j] = max(high[group, j], axes[j, i])
    total = 0.0
    for group in range(groups):
        edges = 0.0
        for j in range(d):
            edges += high[group, j] - low[group, j]
        total += sizes[group] * edges
    return total


@njit(int64(float64[:, ::1], float64[::1], float64[::1], int64, int64), cache=True)
def _choose_seed(axes, center, costs, rest, seeding):
    """Return which of the first ``rest`` records is the furthest out; see :func:`_grow_groups`."""
    d = axes.shape[0]
    if seeding < 2:
        costs[:rest] = 0.0
        for j in range(d):
            axis, middle = axes[j], center[j]
            if seeding == 0:
                for i in range(rest):
                    costs[i] += (axis[i] - middle) * (axis[i] - middle)
            else:
                for i in range(rest):
                    costs[i] += abs(axis[i] - middle)
    else:
        axis = axes[(seeding - 2) // 2 % d]
        sign = 1.0 if seeding % 2 == 1 else -1.0
        for i in range(rest):
            costs[i] = sign * axis[i]
    best = 0
    for i in range(1, rest):
        if costs[i] > costs[best]:
            best = i
    return best


@njit(int64(float64[:, ::1], int64, int64, int64[::1]), cache=True)
def _grow_groups(original, k, seeding, group_of):
    """Grow groups of k records one after the other; what remains joins where it costs least.

    Parameters
    ----------
    original : float64 ndarray of shape (d, n)
        Values of the records, axis by axis.
    k : int
        Records in a group, at most n.
    seeding : int
        Where a group starts: at the record that is furthest from the mean (0 Euclidean,
        1 Manhattan), or lowest (2, 4, ...) or highest (3, 5, ...) on an axis.
    group_of : int64 ndarray of shape (n,)
        Filled with each record's group.

    Returns
    -------
    int
        How many groups there are: ``n // k``.

    Notes
    -----
    O(n^2 d) time, but O(n^2 d / k) for large k.
    """
    d, n = original.shape
    groups = n // k
    if d == 0 or groups < 2:
        for i in range(n):
            group_of[i] = min(i // k, groups - 1)
        return groups
    axes = original.copy()
    records = np.arange(n)
    costs = np.empty(n, np.float64)
    scratch = np.empty(n, np.float64)
    center = np.empty(d, np.float64)
    for j in range(d):
        center[j] = axes[j].sum() / n
    low = np.empty((groups, d), np.float64)
    high = np.empty((groups, d), np.float64)
    step = k // _STEPS_A_GROUP
    if step < _SMALLEST_STEP:
        step = 1
    rest = n
    for group in range(groups):
        best = _choose_seed(axes, center, costs, rest, seeding)
        for j in range(d):
            low[group, j] = high[group, j] = axes[j, best]
        # Take the seed, then again and again all records inside the box, or the nearest ones.
        limit, taken, size = 0.0, 1, 0
        costs[best] = -1.0
        while True:
            i = best
            last = size + taken
            while size < last:
                if costs[i] <= limit:
                    for j in range(d):
                        low[group, j] = min(low[group, j], axes[j, i])
                        high[group, j] = max(high[group, j], axes[j, i])
                    group_of[records[i]] = group
                    size += 1
                    rest -= 1
                    records[i] = records[rest]
                    costs[i] = costs[rest]
                    for j in range(d):
                        axes[j, i] = axes[j, rest]
                else:
                    i += 1
                if i >= rest:
                    break
            if size == k:
                break
            for j in range(d):
                axis, bottom, top = axes[j], low[group, j], high[group, j]
                if j == 0:
                    for i in range(rest):
                        costs[i] = max(axis[i], top) - min(axis[i], bottom) - (top - bottom)
                else:
                    for i in range(rest):
                        costs[i] += max(axis[i], top) - min(axis[i], bottom) - (top - bottom)
            best = 0
            for i in range(1, rest):
                if costs[i] < costs[best]:
                    best = i
            limit, taken = costs[best], 1
            if limit <= 0.0:
                taken = k - size
            elif step > 1:
                taken = min(step, k - size)
                if taken > 1:
                    scratch[:rest] = costs[:rest]
                    limit = select_float(scratch, 0, rest, taken - 1)
                    best = 0
    sizes = np.full(groups, k, np.int64)
    for i in range(rest):
        best, least = 0, np.inf
        for group in range(groups):
            old, new = 0.0, 0.0
            for j in range(d):
                old += high[group, j] - low[group, j]
                new += max(high[group, j], axes[j, i]) - min(low[group, j], axes[j, i])
            increase = (sizes[group] + 1) * new - sizes[group] * old
            if increase < least:
                best, least = group, increase
        group_of[records[i]] = best
        sizes[best] += 1
        for j in range(d):
            low[best, j] = min(low[best, j], axes[j, i])
            high[best, j] = max(high[best, j], axes[j, i])
    return groups


@njit(
    float64(
        float64[:, ::1],
        int64[::1],
        int64,
        float64[::1],
        float64[::1],
        float64[::1],
        float64[::1],
    ),
    cache=True,
)
def _measure_group(axes, members, size, low, second_low, high, second_high):
    """Find the two lowest and highest values of a group on each axis; return its box's edges."""
    edges = 0.0
    for j in range(axes.shape[0]):
        lowest, next_lowest, highest, next_highest = np.inf, np.inf, -np.inf, -np.inf
        for i in range(size):
            value = axes[j, members[i]]
            if value < lowest:
                lowest, next_lowest = value, lowest
            elif value < next_lowest:
                next_lowest = value
            if value > highest:
                highest, next_highest = value, highest
            elif value > next_highest:
                next_highest = value
        low[j], second_low[j] = lowest, next_lowest
        high[j], second_high[j] = highest, next_highest
        edges += highest - lowest
    return edges


@njit(
    float64(float64[:, ::1], int64, float64[::1], float64[::1], float64[::1], float64[::1]),
    cache=True,
)
def _shrinkage(axes, record, low, second_low, high, second_high):
    """Return by how much a group's edges shrink when one of its records leaves."""
    total = 0.0
    for j in range(axes.shape[0]):
        value = axes[j, record]
        if value == low[j]:
            total += second_low[j] - value
        if value == high[j]:
            total += value - second_high[j]
    return total


@njit(void(float64[:, ::1], int64, int64[::1], int64), cache=True)
def _exchange_records(axes, k, group_of, groups):
    """Swap and move single records between groups as long as this lowers the cost, in place.

    Parameters
    ----------
    axes : float64 ndarray of shape (d, n)
        Values of the records, axis by axis.
    k : int
        A group of k records gives none away without getting another one.
    group_of : int64 ndarray of shape (n,)
        Each record's group.
    groups : int
        How many groups there are.

    Notes
    -----
    Only a record on the boundary of its group's box can lower the cost, and there are at most 2 d
    of them that are alone on their side. They are compared with all records of the other groups,
    unless the largest possible gain is too small.
    """
    d, n = axes.shape
    sizes = np.zeros(groups, np.int64)
    for i in range(n):
        sizes[group_of[i]] += 1
    members = np.empty((groups, max(sizes.max(), 2 * k)), np.int64)
    sizes[:] = 0
    for i in range(n):
        group = group_of[i]
        members[group, sizes[group]] = i
        sizes[group] += 1
    low = np.empty((groups, d), np.float64)
    second_low = np.empty((groups, d), np.float64)
    high = np.empty((groups, d), np.float64)
    second_high = np.empty((groups, d), np.float64)
    edges = np.empty(groups, np.float64)
    # By how much a group's edges shrink when a record leaves, and the most of it.
    shrinkage = np.empty(members.shape, np.float64)
    most = np.empty(groups, np.float64)
    touched = np.ones(groups, np.bool_)
    for sweep in range(_SWEEPS):
        changed = sweep == 0
        for a in range(groups):
            place, exchanges = 0, 0
            while place < sizes[a] and exchanges < _EXCHANGES:
                for group in range(groups):
                    if touched[group]:
                        touched[group] = False
                        edges[group] = _measure_group(
                            axes,
                            members[group],
                            sizes[group],
                            low[group],
                            second_low[group],
                            high[group],
                            second_high[group],
                        )
                        for i in range(sizes[group]):
                            shrinkage[group, i] = _shrinkage(
                                axes,
                                members[group, i],
                                low[group],
                                second_low[group],
                                high[group],
                                second_high[group],
                            )
                        most[group] = shrinkage[group, : sizes[group]].max()
                record = members[a, place]
                gain = shrinkage[a, place]
                if gain <= 0.0 and sizes[a] <= k:
                    place += 1
                    continue
                partner, partner_place, best = -1, -1, 0.0
                for b in range(groups):
                    if a == b:
                        continue
                    growth = -edges[b]
                    for j in range(d):
                        value = axes[j, record]
                        growth += max(value, high[b, j]) - min(value, low[b, j])
                    noise = _NOISE * (sizes[a] * edges[a] + sizes[b] * edges[b])
                    if sizes[a] > k and sizes[b] < 2 * k - 1:
                        change = (sizes[b] + 1) * growth + edges[b]
                        change -= (sizes[a] - 1) * gain + edges[a]
                        if change < best - noise:
                            partner, partner_place, best = b, -1, change
                    if gain <= 0.0 or sizes[b] * (growth - most[b]) >= sizes[a] * gain:
                        continue
                    for i in range(sizes[b]):
                        other = members[b, i]
                        # What is certain to be lost; most records need no more than that.
                        loss = sizes[b] * (growth - shrinkage[b, i])
                        if loss - sizes[a] * gain >= best - noise:
                            continue
                        change = -edges[a]
                        for j in range(d):
                            own, new = axes[j, record], axes[j, other]
                            bottom = second_low[a, j] if own == low[a, j] else low[a, j]
                            top = second_high[a, j] if own == high[a, j] else high[a, j]
                            change += max(top, new) - min(bottom, new)
                        change *= sizes[a]
                        if change + loss >= best - noise:
                            continue
                        edge = -edges[b]
                        for j in range(d):
                            own, new = axes[j, record], axes[j, other]
                            bottom = second_low[b, j] if new == low[b, j] else low[b, j]
                            top = second_high[b, j] if new == high[b, j] else high[b, j]
                            edge += max(top, own) - min(bottom, own)
                        change += sizes[b] * edge
                        if change < best - noise:
                            partner, partner_place, best = b, i, change
                if partner < 0:
                    place += 1
                    continue
                changed = True
                exchanges += 1
                touched[a] = touched[partner] = True
                if partner_place < 0:
                    members[partner, sizes[partner]] = record
                    sizes[partner] += 1
                    sizes[a] -= 1
                    members[a, place] = members[a, sizes[a]]
                else:
                    members[a, place] = members[partner, partner_place]
                    members[partner, partner_place] = record
                    place += 1
        if not changed:
            break
    for group in range(groups):
        for i in range(sizes[group]):
            group_of[members[group, i]] = group


@njit(types.Tuple((int64[::1], float64))(float64[:, ::1], int64[::1], int64), cache=True)
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


@njit(int64(float64[:, ::1], int64, int64[::1]), cache=True)
def _cut_curve(axes, k, group_of):
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


@njit(int64(int64[::1], int64[::1], int64, int64[::1], int64[::1], int64), cache=True)
def _write_groups(members, group_of, groups, order, starts, written):
    """Append groups to ``order`` and ``starts``; return how many are there by now."""
    place = starts[written]
    ends = np.zeros(groups, np.int64)
    for i in range(members.shape[0]):
        ends[group_of[i]] += 1
    for group in range(groups):
        starts[written + group] = place
        place += ends[group]
        ends[group] = starts[written + group]
    for i in range(members.shape[0]):
        order[ends[group_of[i]]] = members[i]
        ends[group_of[i]] += 1
    starts[written + groups] = place
    return written + groups


@njit(types.Tuple((int64[::1], int64[::1]))(float64[:, ::1], int64), cache=True)
def form_groups(points, k):
    """Put records into groups of k, or a few more.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d)
        Normalized quasi-identifiers, in an order that depends on the records alone.
    k : int
        Smallest group, at least 1.

    Returns
    -------
    order : int64 ndarray of shape (n,)
        Records, group by group.
    starts : int64 ndarray of shape (groups + 1,)
        Where each group begins in ``order``. Every group has k to 2 k - 1 records; fewer than 2 k
        records are one group.

    Notes
    -----
    Two ways, and the one with the lower cost in all. Groups are grown: a median tree cuts the
    records into cells; in each cell a group starts at the record furthest from the mean, then takes
    the record that widens its box the least, until it has k; records inside the box come first. The
    last ones, fewer than k in the whole block, join groups where this costs least. Or the Hilbert
    curve through all records is cut, see :func:`cut_order`; this wins for large k. O(n log^2 n)
    time for sorting, O(n d max(4096, 8 k)) for growing, but O(n d) for k in the thousands, O(n d)
    memory.
    """
    n = points.shape[0]
    members = np.arange(n)
    group_of = np.zeros(n, np.int64)
    groups = min(n, 1)
    if n >= 2 * k:
        groups = 0
        largest = k * max(_CELL_GROUPS, _CELL_RECORDS // k)
        tree_order, cells = _cut_cells(points, largest, k, False, uint64(0))
        for cell in range(cells.shape[0] - 1):
            own = tree_order[cells[cell] : cells[cell + 1]]
            grown = np.empty(own.shape[0], np.int64)
            count = _grow_groups(_varying_axes(points, own), k, 0, grown)
            for i in range(own.shape[0]):
                group_of[own[i]] = groups + grown[i]
            groups += count
        axes = _varying_axes(points, members)
        cost = _cost(axes, group_of, groups)
        if cost > 0.0:
            curve = np.empty(n, np.int64)
            count = _cut_curve(axes, k, curve)
            if count > 0 and _cost(axes, curve, count) < cost * (1.0 - _NOISE):
                group_of, groups = curve, count
    order = np.empty(n, np.int64)
    starts = np.zeros(groups + 1, np.int64)
    _write_groups(members, group_of, groups, order, starts, 0)
    return order, starts


@njit(
    types.Tuple((int64[::1], int64[::1]))(float64[:, ::1], int64[::1], int64[::1], int64, int64),
    cache=True,
)
def refine_groups(points, order, starts, k, rounds):
    """Lower the cost of groups by growing neighbours anew and by exchanging records.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d)
        Normalized quasi-identifiers, in an order that depends on the records alone.
    order : int64 ndarray of shape (n,)
        Records, group by group.
    starts : int64 ndarray of shape (groups + 1,)
        Where each group begins in ``order``.
    k : int
        Smallest group, at least 1; no group may be smaller.
    rounds : int
        How often all groups are repaired.

    Returns
    -------
    order, starts
        As given, at a cost that is lower or the same. Every group has at least k records, and none
        grows beyond 2 k - 1.

    Notes
    -----
    A pass takes the groups with the longest edges, a sixteenth to all of them, and cuts them into
    cells of about twelve neighbours by a tree over the middles of their boxes. In each cell records
    are exchanged, then the groups are grown anew from other seeds, and the cheaper result stays.
    A round in which nothing changes is the last one. O(n d w k) time for each round, where w k is
    the size of a cell, O(n d) memory.
    """
    n, d = points.shape
    state = uint64(0)
    width = max(_FEWEST_REPAIRED_GROUPS, min(_REPAIRED_GROUPS, _REPAIRED_RECORDS // max(k, 1)))
    changed = True
    for step in range(rounds * _PASSES_A_ROUND):
        groups = starts.shape[0] - 1
        if step % _PASSES_A_ROUND == 0:
            if not changed:
                break
            changed = False
        middles = np.empty((groups, d), np.float64)
        edges = np.zeros(groups, np.float64)
        for group in range(groups):
            for j in range(d):
                low, high = np.inf, -np.inf
                for i in range(starts[group], starts[group + 1]):
                    value = points[order[i], j]
                    low = min(low, value)
                    high = max(high, value)
                middles[group, j] = (low + high) / 2.0
                edges[group] += high - low
        share = 2 ** (_PASSES_A_ROUND - 1 - step % _PASSES_A_ROUND)
        ranking = np.argsort(-edges, kind="mergesort")
        chosen = np.sort(ranking[: groups // share])
        others = np.sort(ranking[groups // share :])
        state = child_path(state, uint64(1))
        neighbors, cells = _cut_cells(middles[chosen], width, 1, True, state)

        new_order = np.empty(n, np.int64)
        new_starts = np.zeros(n // k + 2, np.int64)
        written = 0
        for cell in range(cells.shape[0] - 1):
            own = chosen[neighbors[cells[cell] : cells[cell + 1]]]
            count = own.shape[0]
            size = 0
            for group in own:
                size += starts[group + 1] - starts[group]
            members = np.empty(size, np.int64)
            group_of = np.empty(size, np.int64)
            size = 0
            for place in range(count):
                for i in range(starts[own[place]], starts[own[place] + 1]):
                    members[size] = order[i]
                    group_of[size] = place
                    size += 1
            axes = _varying_axes(points, members)
            before = _cost(axes, group_of, count)
            if count > 1 and before > 0.0:
                _exchange_records(axes, k, group_of, count)
                best = _cost(axes, group_of, count)
                regrown = np.empty(size, np.int64)
                regrown_count = _grow_groups(axes, k, step % _SEEDINGS, regrown)
                cost = _cost(axes, regrown, regrown_count)
                if cost < _PROMISING * best:
                    _exchange_records(axes, k, regrown, regrown_count)
                    cost = _cost(axes, regrown, regrown_count)
                    if cost < best * (1.0 - _NOISE):
                        best, group_of, count = cost, regrown, regrown_count
                changed |= best < before * (1.0 - _NOISE)
            written = _write_groups(members, group_of, count, new_order, new_starts, written)
        for group in others:
            place = new_starts[written]
            for i in range(starts[group], starts[group + 1]):
                new_order[place] = order[i]
                place += 1
            written += 1
            new_starts[written] = place
        order, starts = new_order, new_starts[: written + 1].copy()
    return order, starts


@njit(
    types.Tuple((int64[::1], int64[::1]))(int64[:, ::1], float64[:, ::1], int64[::1], int64),
    cache=True,
)
def microaggregate(codes, normalized, hashes, k):
    """Put the records of a block into groups of at least k at a low ``gcp_total``.

    Parameters
    ----------
    codes : int64 ndarray of shape (n, d)
        Codes of the quasi-identifiers, in configuration order.
    normalized : float64 ndarray of shape (n, d)
        Their positions, normalized and weighted; a function of the codes.
    hashes : int64 ndarray of shape (n,)
        Keyed hash of each record's whole content.
    k : int
        Smallest group, at least 1.

    Returns
    -------
    order : int64 ndarray of shape (n,)
        Records, group by group, in canonical order inside each group. Groups that follow each
        other are neighbours in a median tree.
    starts : int64 ndarray of shape (groups + 1,)
        Where each group begins in ``order``. Every group has k to 2 k - 1 records; fewer than 2 k
        records are one group.

    Notes
    -----
    The records are sorted canonically first, so the groups are the same for any order of them.
    Then :func:`form_groups` and :func:`refine_groups`.
    """
    n, d = normalized.shape
    canonical = np.arange(n)
    if n > 0:
        sort_groups(codes, hashes, canonical, np.array([0, n]))
    points = normalized[canonical]
    order, starts = form_groups(points, k)
    order, starts = refine_groups(points, order, starts, k, _ROUNDS)

    groups = starts.shape[0] - 1
    middles = np.empty((groups, d), np.float64)
    for group in range(groups):
        for j in range(d):
            low, high = np.inf, -np.inf
            for i in range(starts[group], starts[group + 1]):
                low = min(low, points[order[i], j])
                high = max(high, points[order[i], j])
            middles[group, j] = (low + high) / 2.0
    sequence, _ = _cut_cells(middles, 1, 1, False, uint64(0))
    result = np.empty(n, np.int64)
    result_starts = np.zeros(groups + 1, np.int64)
    for place in range(groups):
        group = sequence[place]
        start = result_starts[place]
        stop = start + starts[group + 1] - starts[group]
        result[start:stop] = canonical[np.sort(order[starts[group] : starts[group + 1]])]
        result_starts[place + 1] = stop
    return result, result_starts
