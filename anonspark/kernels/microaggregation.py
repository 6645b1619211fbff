"""Groups of k records with boxes as small as possible: a first solution, then its repair.

The cost of a group is its number of records times the sum of its box's edges, so the sum over all
groups is ``gcp_total``. Nothing quadratic: records and groups are cut into cells by median trees,
and all searching is done inside cells of bounded size.
"""

from __future__ import annotations

import numpy as np

from anonspark.kernels.canonical_order import sort_groups
from anonspark.kernels.compiling import kernel
from anonspark.kernels.group_exchange import exchange_records, group_cost, grow_groups, varying_axes
from anonspark.kernels.merging import total_penalty
from anonspark.kernels.order_cutting import cut_curve, cut_where_best
from anonspark.kernels.paths import child_path
from anonspark.kernels.signatures import boolean, float64, int64, types, uint64, void
from anonspark.kernels.sorting import sort_stably

# How far a varied tree strays from medians and true widths, so that no two trees have the same
# cells.
_VARIED_FRACTION = 0.3
_VARIED_WIDTH = 0.6


@kernel(types.Tuple((int64[::1], int64[::1]))(float64[:, ::1], int64, int64, boolean, uint64))
def cut_cells(points, largest, unit, varied, state):
    """Cut points into cells of at most ``largest`` by a tree of cuts near the median.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d)
        What is cut, along the widest axis of each node.
    largest : int
        Largest cell, at least twice ``unit``, or 1. Equal points may exceed it by ``unit``.
    unit : int
        Each cell but the last has a multiple of this many points.
    varied : bool
        Whether cuts stray from the median and from the widest axis, as ``state`` says.
    state : uint64
        State of the generator. Fixed numbers, no chance.

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
    members = np.empty(n, np.int64)
    places = np.empty(n, np.int64)
    values = np.empty(n, np.float64)
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
        size = stop - start
        members[:size] = order[start:stop]
        for i in range(size):
            values[i] = points[members[i], axis]
        sort_stably(values[:size], places[:size])
        for i in range(size):
            order[start + i] = members[places[i]]
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


# Records of a cell in which groups are grown: more is better and slower.
_CELL_RECORDS = 4096
_CELL_GROUPS = 8

# Groups of a cell in which neighbours are looked for.
_SEARCHED_GROUPS = 64

# Groups that are repaired together: as many as hold so many records, from the fewest to the most.
_REPAIRED_RECORDS = 100
_FEWEST_REPAIRED_GROUPS = 4
_MOST_REPAIRED_GROUPS = 8

# How often a pass repairs a group.
_VISITS = 2.4

# Growing finds better groups than cutting where they are small.
_LARGEST_GROWN = 32
_GROWTHS = 2

# New groups that are worse by more than this are not worth the exchange of records.
_PROMISING = 1.15

# A repair may raise the cost of its groups by this share at first, by less and less later on.
_TOLERANCE = 0.03

# Passes that exchange records alone, in the end, and groups of their cells.
_LAST_PASSES = 3
_LAST_GROUPS = 12

# What is less, relative to the cost, is rounding.
_NOISE = 1e-9


@kernel(int64(int64[::1], int64[::1], int64, int64[::1], int64[::1], int64))
def _write_groups(members, group_of, groups, order, starts, written):
    """Append groups to ``order`` and ``starts``. Return how many are there by now."""
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


@kernel(float64(uint64))
def _as_share(state):
    """Return a number from 0 to 1, 1 excluded."""
    return float64(state >> uint64(40)) / 2.0**24


@kernel(int64(float64[:, ::1], int64, int64[::1], int64, float64, uint64))
def _repair(axes, k, group_of, groups, tolerance, state):
    """Exchange records between a few neighbours, and put new groups in their place if it pays.

    Parameters
    ----------
    axes : float64 ndarray of shape (d, n)
        Values of the neighbours' records, axis by axis, which vary on each.
    k : int
    group_of : int64 ndarray of shape (n,)
        Each record's group. Changed in place.
    groups : int
        How many there are.
    tolerance : float
        Share by which new groups may cost more.
    state : uint64
        What the directions depend on in which groups are grown.

    Returns
    -------
    int
        How many groups there are now: ``groups`` or ``n // k``.
    """
    d, n = axes.shape
    own = exchange_records(axes, k, group_of, groups)
    trial = np.empty(n, np.int64)
    best = np.empty(n, np.int64)
    count = n // k
    least = np.inf
    if k <= _LARGEST_GROWN:
        scores = np.empty(n, np.float64)
        widths = np.empty(d, np.float64)
        for j in range(d):
            low = high = axes[j, 0]
            for i in range(1, n):
                low = min(low, axes[j, i])
                high = max(high, axes[j, i])
            widths[j] = high - low
        for _ in range(_GROWTHS):
            scores[:] = 0.0
            for j in range(d):
                state = child_path(state, uint64(0))
                weight = (2.0 * _as_share(state) - 1.0) / widths[j]
                for i in range(n):
                    scores[i] += weight * axes[j, i]
            cost = grow_groups(axes, k, scores, trial)
            if cost < least:
                least = cost
                best[:] = trial
    order, starts = cut_where_best(axes, k)
    for group in range(count):
        for i in range(starts[group], starts[group + 1]):
            trial[order[i]] = group
    cost = group_cost(axes, trial, count)
    if cost < least:
        least = cost
        best[:] = trial
    if least < _PROMISING * own:
        least = exchange_records(axes, k, best, count)
        if least < own * (1.0 + tolerance - _NOISE):
            group_of[:] = best
            groups = count
    return groups


@kernel(void(float64[:, ::1], int64[::1], int64, float64[::1], float64[::1]))
def _measure_box(points, members, size, low, high):
    """Write the ends of a group's box."""
    low[:] = np.inf
    high[:] = -np.inf
    for i in range(size):
        for j in range(points.shape[1]):
            value = points[members[i], j]
            low[j] = min(low[j], value)
            high[j] = max(high[j], value)


@kernel(void(float64[:, ::1], float64[:, ::1], int64, int64, int64[::1]))
def _find_neighbors(low, high, groups, group, neighbors):
    """Write a group and those of the others which it costs least to share a box with."""
    d = low.shape[1]
    costs = np.empty(groups, np.float64)
    for other in range(groups):
        costs[other] = 0.0
        for j in range(d):
            edge = max(high[group, j], high[other, j]) - min(low[group, j], low[other, j])
            costs[other] += 2.0 * edge - (high[other, j] - low[other, j])
    costs[group] = -1.0
    for place in range(neighbors.shape[0]):
        neighbors[place] = np.argmin(costs)
        costs[neighbors[place]] = np.inf


@kernel(
    int64(
        float64[:, ::1],
        int64,
        int64[:, ::1],
        int64[::1],
        int64,
        float64,
        uint64,
    )
)
def _repair_cell(points, k, members, sizes, groups, tolerance, state):
    """Repair the neighbourhoods of some groups of a cell, of bad ones rather than of good ones.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d)
        All records.
    k : int
    members : int64 ndarray of shape (at least groups, capacity)
        Records of each group. Changed in place.
    sizes : int64 ndarray of shape (at least groups,)
        Their numbers. Changed in place.
    groups : int
        Groups of the cell.
    tolerance : float
        Share by which a repair may raise the cost.
    state : uint64

    Returns
    -------
    int
        How many groups there are now.
    """
    if groups < 2:
        return groups
    d = points.shape[1]
    low = np.empty((members.shape[0], d), np.float64)
    high = np.empty((members.shape[0], d), np.float64)
    for group in range(groups):
        _measure_box(points, members[group], sizes[group], low[group], high[group])
    fewest = max(_FEWEST_REPAIRED_GROUPS, _REPAIRED_RECORDS // k)
    width = min(fewest, _MOST_REPAIRED_GROUPS, groups)
    neighbors = np.empty(width, np.int64)
    for _ in range(max(1, int64(_VISITS * groups / width))):
        state = child_path(state, uint64(0))
        group = int64(_as_share(state) * groups)
        state = child_path(state, uint64(0))
        other = int64(_as_share(state) * groups)
        if (high[other] - low[other]).sum() > (high[group] - low[group]).sum():
            group = other
        _find_neighbors(low, high, groups, group, neighbors)
        n = sizes[neighbors].sum()
        records = np.empty(n, np.int64)
        group_of = np.empty(n, np.int64)
        n = 0
        for place in range(width):
            for i in range(sizes[neighbors[place]]):
                records[n] = members[neighbors[place], i]
                group_of[n] = place
                n += 1
        axes = varying_axes(points, records)
        if axes.shape[0] == 0:
            continue
        count = _repair(axes, k, group_of, width, tolerance, state)
        for place in range(count):
            group = neighbors[place] if place < width else groups + place - width
            sizes[group] = 0
        for i in range(n):
            group = group_of[i]
            group = neighbors[group] if group < width else groups + group - width
            members[group, sizes[group]] = records[i]
            sizes[group] += 1
        groups += count - width
        for place in range(count):
            group = neighbors[place] if place < width else groups + place - count
            _measure_box(points, members[group], sizes[group], low[group], high[group])
    return groups


@kernel(
    types.Tuple((int64[::1], int64[::1]))(
        float64[:, ::1], int64[::1], int64[::1], int64, int64, boolean, float64, uint64
    )
)
def _pass_over(points, order, starts, k, largest, regrow, tolerance, state):
    """Cut the groups into cells of neighbours, by their middles, and repair each cell.

    ``largest`` groups are a cell. Without ``regrow`` records are exchanged and nothing else is
    done. Returns ``order`` and ``starts`` as they are then.
    """
    n, d = points.shape
    groups = starts.shape[0] - 1
    middles = np.empty((groups, d), np.float64)
    low = np.empty(d, np.float64)
    high = np.empty(d, np.float64)
    capacity = 2 * k
    for group in range(groups):
        size = starts[group + 1] - starts[group]
        _measure_box(points, order[starts[group] : starts[group + 1]], size, low, high)
        capacity = max(capacity, size)
        for j in range(d):
            middles[group, j] = (low[j] + high[j]) / 2.0
    sequence, cells = cut_cells(middles, largest, 1, True, state)
    new_order = np.empty(n, np.int64)
    new_starts = np.zeros(max(groups, n // k) + 1, np.int64)
    written = 0
    for cell in range(cells.shape[0] - 1):
        own = sequence[cells[cell] : cells[cell + 1]]
        count = own.shape[0]
        size = 0
        for group in own:
            size += starts[group + 1] - starts[group]
        if regrow:
            members = np.empty((max(count, size // k), capacity), np.int64)
            sizes = np.zeros(members.shape[0], np.int64)
            for place in range(count):
                for i in range(starts[own[place]], starts[own[place] + 1]):
                    members[place, sizes[place]] = order[i]
                    sizes[place] += 1
            state = child_path(state, uint64(1))
            count = _repair_cell(points, k, members, sizes, count, tolerance, state)
            for group in range(count):
                stop = new_starts[written] + sizes[group]
                new_order[new_starts[written] : stop] = members[group, : sizes[group]]
                written += 1
                new_starts[written] = stop
        else:
            records = np.empty(size, np.int64)
            group_of = np.empty(size, np.int64)
            size = 0
            for place in range(count):
                for i in range(starts[own[place]], starts[own[place] + 1]):
                    records[size] = order[i]
                    group_of[size] = place
                    size += 1
            exchange_records(varying_axes(points, records), k, group_of, count)
            written = _write_groups(records, group_of, count, new_order, new_starts, written)
    return new_order, new_starts[: written + 1].copy()


@kernel(types.Tuple((int64[::1], int64[::1]))(float64[:, ::1], int64))
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
        Where each group begins in ``order``. Every group has k to 2 k - 1 records. Fewer than 2 k
        records are one group.

    Notes
    -----
    The cheapest of three solutions. Groups are grown inside cells of about 4096 records, each from
    the record furthest from the cell's mean. This wins for small k. The Hilbert curve through all
    records is cut, see :func:`~anonspark.kernels.order_cutting.cut_order`, and all records are cut
    where it costs least, see :func:`~anonspark.kernels.order_cutting.cut_where_best`. One of these
    wins for large k. O(n log^2 n) time for sorting, O(n d max(4096, 8 k)) for growing, but O(n d)
    for k in the thousands, O(n d) memory.
    """
    n = points.shape[0]
    records = np.arange(n)
    group_of = np.zeros(n, np.int64)
    groups = min(n, 1)
    if n >= 2 * k:
        groups = 0
        largest = k * max(_CELL_GROUPS, _CELL_RECORDS // k)
        tree_order, cells = cut_cells(points, largest, k, False, uint64(0))
        for cell in range(cells.shape[0] - 1):
            own = tree_order[cells[cell] : cells[cell + 1]]
            axes = varying_axes(points, own)
            scores = np.zeros(own.shape[0], np.float64)
            for j in range(axes.shape[0]):
                scores += (axes[j] - axes[j].mean()) ** 2
            grown = np.empty(own.shape[0], np.int64)
            grow_groups(axes, k, scores, grown)
            for i in range(own.shape[0]):
                group_of[own[i]] = groups + grown[i]
            groups += own.shape[0] // k
        axes = varying_axes(points, records)
        cost = group_cost(axes, group_of, groups)
        if cost > 0.0:
            trial = np.empty(n, np.int64)
            count = cut_curve(axes, k, trial)
            if count > 0 and group_cost(axes, trial, count) < cost * (1.0 - _NOISE):
                group_of[:] = trial
                groups, cost = count, group_cost(axes, trial, count)
            order, starts = cut_where_best(axes, k)
            count = starts.shape[0] - 1
            for group in range(count):
                trial[order[starts[group] : starts[group + 1]]] = group
            if group_cost(axes, trial, count) < cost * (1.0 - _NOISE):
                group_of[:] = trial
                groups = count
    order = np.empty(n, np.int64)
    starts = np.zeros(groups + 1, np.int64)
    _write_groups(records, group_of, groups, order, starts, 0)
    return order, starts


@kernel(
    types.Tuple((int64[::1], int64[::1]))(float64[:, ::1], int64[::1], int64[::1], int64, int64)
)
def refine_groups(points, order, starts, k, passes):
    """Lower the cost of groups by making neighbours anew and by exchanging records.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d)
        Normalized quasi-identifiers, in an order that depends on the records alone.
    order : int64 ndarray of shape (n,)
        Records, group by group.
    starts : int64 ndarray of shape (groups + 1,)
        Where each group begins in ``order``.
    k : int
        Smallest group, at least 1. No group may be smaller.
    passes : int
        How often all groups are repaired.

    Returns
    -------
    order, starts
        As given, at a cost that is lower or the same. Every group has at least k records, and none
        grows beyond 2 k - 1.

    Notes
    -----
    A pass cuts the groups into cells of about 64 neighbours by a tree over the middles of their
    boxes, another one each time. In each cell groups are drawn, the one with the longer edges of
    two each time, and repaired together with their nearest neighbours: records are exchanged, then
    the groups are grown anew in other directions and cut anew, and the new ones stay if they cost
    less or, in the first passes, a little more (threshold accepting, Dueck and Scheuer 1990). The
    last passes exchange records alone. O(n d w k) time for each pass, where w k is the size of a
    neighbourhood, O(n d) memory.
    """
    own, own_starts = order, starts
    state = uint64(0)
    for step in range(passes):
        state = child_path(state, uint64(1))
        tolerance = _TOLERANCE * (1.0 - (step + 1.0) / passes)
        own, own_starts = _pass_over(
            points, own, own_starts, k, _SEARCHED_GROUPS, True, tolerance, state
        )
    if total_penalty(points, own, own_starts) >= total_penalty(points, order, starts):
        own, own_starts = order, starts
    for _ in range(min(passes, _LAST_PASSES)):
        state = child_path(state, uint64(1))
        own, own_starts = _pass_over(points, own, own_starts, k, _LAST_GROUPS, False, 0.0, state)
    return own, own_starts


@kernel(
    types.Tuple((int64[::1], int64[::1]))(int64[:, ::1], float64[:, ::1], int64[::1], int64, int64)
)
def microaggregate(codes, normalized, hashes, k, passes):
    """Put the records of a block into groups of at least k at a low ``gcp_total``.

    Parameters
    ----------
    codes : int64 ndarray of shape (n, d)
        Codes of the quasi-identifiers, in configuration order.
    normalized : float64 ndarray of shape (n, d)
        Their positions, normalized and weighted. A function of the codes.
    hashes : int64 ndarray of shape (n,)
        Keyed hash of each record's whole content.
    k : int
        Smallest group, at least 1.
    passes : int
        How often all groups are repaired. More is better and slower.

    Returns
    -------
    order : int64 ndarray of shape (n,)
        Records, group by group, in canonical order inside each group. Groups that follow each
        other are neighbours in a median tree.
    starts : int64 ndarray of shape (groups + 1,)
        Where each group begins in ``order``. Every group has k to 2 k - 1 records. Fewer than 2 k
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
    order, starts = refine_groups(points, order, starts, k, passes)

    groups = starts.shape[0] - 1
    middles = np.empty((groups, d), np.float64)
    for group in range(groups):
        for j in range(d):
            low, high = np.inf, -np.inf
            for i in range(starts[group], starts[group + 1]):
                low = min(low, points[order[i], j])
                high = max(high, points[order[i], j])
            middles[group, j] = (low + high) / 2.0
    sequence, _ = cut_cells(middles, 1, 1, False, uint64(0))
    result = np.empty(n, np.int64)
    result_starts = np.zeros(groups + 1, np.int64)
    for place in range(groups):
        group = sequence[place]
        start = result_starts[place]
        stop = start + starts[group + 1] - starts[group]
        result[start:stop] = canonical[np.sort(order[starts[group] : starts[group + 1]])]
        result_starts[place + 1] = stop
    return result, result_starts
