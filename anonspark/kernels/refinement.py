"""Groups made smaller: neighbours exchange records, and are grown and cut anew where it pays.

The cost of a group is its number of records times the sum of its box's edges, so the sum over all
groups is ``gcp_total``. Nothing quadratic: groups are cut into cells by median trees over the
middles of their boxes, and all searching is done inside cells of bounded size.
"""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.criteria import CHECKER, REQUIREMENTS, checker_of, group_satisfies
from anonspark.kernels.group_exchange import exchange_records, group_cost, grow_groups, varying_axes
from anonspark.kernels.merging import merge_unsatisfied, total_penalty
from anonspark.kernels.order_cutting import cut_where_best
from anonspark.kernels.paths import child_path
from anonspark.kernels.signatures import boolean, float64, int64, types, uint64, void
from anonspark.kernels.sorting import sort_stably

# How far a varied tree strays from medians and true widths, so that no two trees have the same
# cells.
_VARIED_FRACTION = 0.3
_VARIED_WIDTH = 0.6


@kernel(float64(uint64))
def _as_share(state):
    """Return a number from 0 to 1, 1 excluded."""
    return float64(state >> uint64(40)) / 2.0**24


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
    positions = np.empty(n, np.int64)
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
                width *= 1.0 + _VARIED_WIDTH * (2.0 * _as_share(state) - 1.0)
            if width > widest:
                axis, widest = j, width
        if widest <= 0.0:
            position = start + largest
            while position + unit <= stop:
                is_start[position] = True
                position += largest
            continue
        size = stop - start
        members[:size] = order[start:stop]
        for i in range(size):
            values[i] = points[members[i], axis]
        sort_stably(values[:size], positions[:size])
        for i in range(size):
            order[start + i] = members[positions[i]]
        fraction = 0.5
        if varied:
            state = child_path(state, uint64(0))
            fraction += _VARIED_FRACTION * (2.0 * _as_share(state) - 1.0)
        units = (stop - start) // unit
        middle = start + unit * min(max(int64(units * fraction), 1), units - 1)
        stack[depth, 0], stack[depth, 1] = middle, stop
        depth += 1
        stack[depth, 0], stack[depth, 1] = start, middle
        depth += 1
    return order, np.flatnonzero(is_start)


# Groups of a cell in which neighbours are looked for.
_SEARCHED_GROUPS = 64

# Groups that are repaired together: as many as hold so many records, from the fewest to the most.
_REPAIRED_RECORDS = 100
_FEWEST_REPAIRED_GROUPS = 4
_MOST_REPAIRED_GROUPS = 8

# How often a pass repairs a group, which is drawn from so many.
_VISITS = 2.4
_DRAWN_GROUPS = 2

# The same where groups are only cut anew. Fewer records, repaired more seldom, and worse groups,
# drawn from more, gain more for their time there.
_CUT_SEARCHED_GROUPS = 128
_CUT_RECORDS = 60
_CUT_VISITS = 1.2
_CUT_DRAWN_GROUPS = 5

# Larger groups, of more than 4 k records as well, stay as they are.
_LARGEST_REPAIRED = 512

# Growing finds better groups than cutting where they are small.
_LARGEST_GROWN = 32

# New groups that are worse by more than this are not worth the exchange of records.
_PROMISING = 1.15

# A repair may raise the cost of its groups by this share at first, by less and less later on.
_TOLERANCE = 0.03

# Passes that exchange records alone, in the end, and groups of their cells. Groups that were only
# cut anew gain more in larger cells.
_LAST_PASSES = 3
_LAST_GROUPS = 12
_CUT_LAST_PASSES = 2
_CUT_LAST_GROUPS = 64

# What is less, relative to the cost, is rounding.
NOISE = 1e-9


@kernel(int64(int64[::1], int64[::1], int64, int64[::1], int64[::1], int64))
def write_groups(members, group_of, groups, order, starts, written):
    """Append groups to ``order`` and ``starts``. Return how many are there by now."""
    start = starts[written]
    ends = np.zeros(groups, np.int64)
    for i in range(members.shape[0]):
        ends[group_of[i]] += 1
    for group in range(groups):
        starts[written + group] = start
        start += ends[group]
        ends[group] = starts[written + group]
    for i in range(members.shape[0]):
        order[ends[group_of[i]]] = members[i]
        ends[group_of[i]] += 1
    starts[written + groups] = start
    return written + groups


@kernel(boolean(int64[:, ::1], int64[::1], int64, CHECKER))
def _all_satisfy(values, group_of, groups, checker):
    """Return whether each of some groups, all of at least k records, satisfies the criteria."""
    requirements, counts, present = checker
    if requirements.kinds.shape[0] == 0:
        return True
    order = np.argsort(group_of, kind="mergesort")
    stop = 0
    for group in range(groups):
        start = stop
        while stop < order.shape[0] and group_of[order[stop]] == group:
            stop += 1
        if not group_satisfies(requirements, values, order, start, stop, counts, present):
            return False
    return True


@kernel(int64(float64[:, ::1], int64[:, ::1], int64[::1], int64, int64, float64, uint64, CHECKER))
def _repair(axes, values, group_of, groups, growths, tolerance, state, checker):
    """Exchange records between a few neighbours, and take new groups instead if that pays.

    ``axes`` (float64, shape (d, n)) are the values of the neighbours' records, which vary on each
    axis, and ``group_of`` (n,) the records' groups, which is updated in place. New groups are grown
    in ``growths`` directions, which depend on ``state``; with 0, groups that stay exchange no
    records. New groups may cost a share of ``tolerance`` more. Returns how many groups there are
    now, at least as many as before.
    """
    d, n = axes.shape
    if growths > 0:
        cost_before = exchange_records(axes, values, group_of, groups, checker)
    else:
        cost_before = group_cost(axes, group_of, groups)
    # Groups that are larger for their criteria would only become too small for them.
    size = checker.requirements.k
    if checker.requirements.kinds.shape[0] > 0:
        size = max(size, n // groups)
    trial = np.empty(n, np.int64)
    best = np.empty(n, np.int64)
    count = n // size
    least = np.inf
    if growths > 0 and size <= _LARGEST_GROWN:
        scores = np.empty(n, np.float64)
        widths = np.empty(d, np.float64)
        for j in range(d):
            low = high = axes[j, 0]
            for i in range(1, n):
                low = min(low, axes[j, i])
                high = max(high, axes[j, i])
            widths[j] = high - low
        for _ in range(growths):
            scores[:] = 0.0
            for j in range(d):
                state = child_path(state, uint64(0))
                weight = (2.0 * _as_share(state) - 1.0) / widths[j]
                for i in range(n):
                    scores[i] += weight * axes[j, i]
            cost = grow_groups(axes, size, scores, trial)
            if cost < least and _all_satisfy(values, trial, count, checker):
                least = cost
                best[:] = trial
    order, starts = cut_where_best(axes, size)
    for group in range(count):
        for i in range(starts[group], starts[group + 1]):
            trial[order[i]] = group
    cost = group_cost(axes, trial, count)
    if cost < least and _all_satisfy(values, trial, count, checker):
        least = cost
        best[:] = trial
    if least < _PROMISING * cost_before:
        least = exchange_records(axes, values, best, count, checker)
        if least < cost_before * (1.0 + tolerance - NOISE):
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
    for rank in range(neighbors.shape[0]):
        neighbors[rank] = np.argmin(costs)
        costs[neighbors[rank]] = np.inf


@kernel(
    int64(
        float64[:, ::1],
        int64[:, ::1],
        int64[:, ::1],
        int64[::1],
        int64,
        int64,
        float64,
        uint64,
        CHECKER,
    )
)
def _repair_cell(points, values, members, sizes, groups, growths, tolerance, state, checker):
    """Repair the neighbourhoods of some groups of a cell, of bad ones rather than of good ones.

    ``members`` (int64, shape (at least groups, capacity)) holds the records of each group, and
    ``sizes`` their numbers, both updated in place. See :func:`_repair` for the rest. Returns how
    many groups there are now.
    """
    if groups < 2:
        return groups
    d, k = points.shape[1], checker.requirements.k
    low = np.empty((members.shape[0], d), np.float64)
    high = np.empty((members.shape[0], d), np.float64)
    for group in range(groups):
        _measure_box(points, members[group], sizes[group], low[group], high[group])
    records, visits, draws = _REPAIRED_RECORDS, _VISITS, _DRAWN_GROUPS
    if growths == 0:
        records, visits, draws = _CUT_RECORDS, _CUT_VISITS, _CUT_DRAWN_GROUPS
    width = min(max(_FEWEST_REPAIRED_GROUPS, records // k), _MOST_REPAIRED_GROUPS, groups)
    neighbors = np.empty(width, np.int64)
    for _ in range(max(1, int64(visits * groups / width))):
        state = child_path(state, uint64(0))
        group = int64(_as_share(state) * groups)
        for _ in range(draws - 1):
            state = child_path(state, uint64(0))
            other = int64(_as_share(state) * groups)
            if (high[other] - low[other]).sum() > (high[group] - low[group]).sum():
                group = other
        _find_neighbors(low, high, groups, group, neighbors)
        n = sizes[neighbors].sum()
        taken = np.empty(n, np.int64)
        group_of = np.empty(n, np.int64)
        n = 0
        for index in range(width):
            for i in range(sizes[neighbors[index]]):
                taken[n] = members[neighbors[index], i]
                group_of[n] = index
                n += 1
        axes = varying_axes(points, taken)
        if axes.shape[0] == 0:
            continue
        count = _repair(axes, values[taken], group_of, width, growths, tolerance, state, checker)
        for index in range(count):
            group = neighbors[index] if index < width else groups + index - width
            sizes[group] = 0
        for i in range(n):
            group = group_of[i]
            group = neighbors[group] if group < width else groups + group - width
            members[group, sizes[group]] = taken[i]
            sizes[group] += 1
        groups += count - width
        for index in range(count):
            group = neighbors[index] if index < width else groups + index - count
            _measure_box(points, members[group], sizes[group], low[group], high[group])
    return groups


@kernel(
    types.Tuple((int64[::1], int64[::1]))(
        float64[:, ::1],
        int64[:, ::1],
        int64[::1],
        int64[::1],
        int64,
        int64,
        float64,
        uint64,
        CHECKER,
    )
)
def _pass_over(points, values, order, starts, largest, growths, tolerance, state, checker):
    """Cut the groups into cells of neighbours, by their middles, and repair each cell.

    ``largest`` groups are a cell. With ``growths`` below 0 records are exchanged and nothing else
    is done. Returns ``order`` and ``starts`` as they are then.
    """
    k = checker.requirements.k
    n, d = order.shape[0], points.shape[1]
    groups = starts.shape[0] - 1
    middles = np.empty((groups, d), np.float64)
    low = np.empty(d, np.float64)
    high = np.empty(d, np.float64)
    capacity = 2 * k
    for group in range(groups):
        size = starts[group + 1] - starts[group]
        _measure_box(points, order[starts[group] : starts[group + 1]], size, low, high)
        # New groups have less than twice as many records as those that they replace.
        capacity = max(capacity, 2 * size)
        for j in range(d):
            middles[group, j] = (low[j] + high[j]) / 2.0
    sequence, cells = cut_cells(middles, largest, 1, True, state)
    new_order = np.empty(n, np.int64)
    new_starts = np.zeros(max(groups, n // k) + 1, np.int64)
    written = 0
    for cell in range(cells.shape[0] - 1):
        in_cell = sequence[cells[cell] : cells[cell + 1]]
        count = in_cell.shape[0]
        size = 0
        for group in in_cell:
            size += starts[group + 1] - starts[group]
        if growths >= 0:
            members = np.empty((max(count, size // k), capacity), np.int64)
            sizes = np.zeros(members.shape[0], np.int64)
            for index in range(count):
                for i in range(starts[in_cell[index]], starts[in_cell[index] + 1]):
                    members[index, sizes[index]] = order[i]
                    sizes[index] += 1
            state = child_path(state, uint64(1))
            count = _repair_cell(
                points, values, members, sizes, count, growths, tolerance, state, checker
            )
            for group in range(count):
                stop = new_starts[written] + sizes[group]
                new_order[new_starts[written] : stop] = members[group, : sizes[group]]
                written += 1
                new_starts[written] = stop
        else:
            records = np.empty(size, np.int64)
            group_of = np.empty(size, np.int64)
            size = 0
            for index in range(count):
                for i in range(starts[in_cell[index]], starts[in_cell[index] + 1]):
                    records[size] = order[i]
                    group_of[size] = index
                    size += 1
            axes = varying_axes(points, records)
            exchange_records(axes, values[records], group_of, count, checker)
            written = write_groups(records, group_of, count, new_order, new_starts, written)
    return new_order, new_starts[: written + 1].copy()


@kernel(types.Tuple((int64[::1], int64[::1]))(int64[::1], int64[::1], boolean[::1]))
def _take_groups(order, starts, is_taken):
    """Return some of the groups: their records, group by group, and where each begins."""
    taken = np.empty(order.shape[0], np.int64)
    taken_starts = np.zeros(starts.shape[0], np.int64)
    count = 0
    for group in range(starts.shape[0] - 1):
        if is_taken[group]:
            start = taken_starts[count]
            stop = start + starts[group + 1] - starts[group]
            taken[start:stop] = order[starts[group] : starts[group + 1]]
            count += 1
            taken_starts[count] = stop
    return taken[: taken_starts[count]].copy(), taken_starts[: count + 1].copy()


@kernel(
    types.Tuple((int64[::1], int64[::1]))(
        float64[:, ::1], int64[:, ::1], int64[::1], int64[::1], REQUIREMENTS, int64, int64
    )
)
def refine_groups(points, values, order, starts, requirements, passes, growths):
    """Lower the cost of groups by making neighbours anew and by exchanging records.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d)
        Normalized quasi-identifiers, in an order that depends on the records alone.
    values : int64 ndarray of shape (n, s)
        Number of each record's sensitive values.
    order : int64 ndarray of shape (n,)
        Records, group by group.
    starts : int64 ndarray of shape (groups + 1,)
        Where each group begins in ``order``.
    requirements : Requirements
        What each group satisfies, before and after.
    passes : int
        How often all groups are repaired.
    growths : int
        Directions in which new groups are grown each time. With 0 they are only cut anew, of fewer
        groups, which takes a third of the time and gains most of the rest.

    Returns
    -------
    order, starts
        The groups, at a cost that is lower or the same. There are at least as many. None of up to
        ``2 k - 1`` records grows beyond that.

    Notes
    -----
    A pass cuts the groups into cells of about 64 neighbours by a tree over the middles of their
    boxes, another one each time. In each cell groups are drawn, the one with the longest edges of
    some each time, and repaired together with their nearest neighbours: records are exchanged, then
    the groups are grown anew in other directions and cut anew, and the new ones stay if they
    satisfy the requirements and cost less or, in the first passes, a little more (threshold
    accepting, Dueck and Scheuer 1990). The last passes exchange records alone. Groups of more than
    4 k and 512 records stay as they are. O(n d w k) time for each pass, where w k is the size of a
    neighbourhood, O(n d) memory. With criteria beyond k, a judgement of two groups for each
    exchange that would be the best so far.
    """
    is_small = np.diff(starts) <= max(4 * requirements.k, _LARGEST_REPAIRED)
    original, original_starts = _take_groups(order, starts, is_small)
    checker = checker_of(requirements)
    new, new_starts = original, original_starts
    state = uint64(0)
    for step in range(passes):
        state = child_path(state, uint64(1))
        tolerance = _TOLERANCE * (1.0 - (step + 1.0) / passes)
        new, new_starts = _pass_over(
            points,
            values,
            new,
            new_starts,
            _CUT_SEARCHED_GROUPS if growths == 0 else _SEARCHED_GROUPS,
            growths,
            tolerance,
            state,
            checker,
        )
    if total_penalty(points, new, new_starts) >= total_penalty(points, original, original_starts):
        new, new_starts = original, original_starts
    last, largest = min(passes, _LAST_PASSES), _LAST_GROUPS
    if growths == 0:
        last, largest = _CUT_LAST_PASSES, _CUT_LAST_GROUPS
    for _ in range(last):
        state = child_path(state, uint64(1))
        new, new_starts = _pass_over(
            points, values, new, new_starts, largest, -1, 0.0, state, checker
        )
    large, large_starts = _take_groups(order, starts, ~is_small)
    return (
        np.concatenate((new, large)),
        np.concatenate((new_starts, new.shape[0] + large_starts[1:])),
    )


@kernel(
    types.Tuple((int64[::1], int64[::1], int64[::1]))(
        float64[:, ::1],
        int64[:, ::1],
        int64[::1],
        int64[::1],
        int64[::1],
        int64[::1],
        REQUIREMENTS,
        int64,
    )
)
def refine_in_cells(points, values, canonical, order, starts, cells, requirements, passes):
    """Lower the cost of groups inside each of some cells, whose records stay in it.

    Parameters
    ----------
    points, values, order, starts, requirements, passes
        As for :func:`refine_groups`, but in any order.
    canonical : int64 ndarray of shape (n,)
        Records, cell by cell, in an order that depends on the records alone.
    cells : int64 ndarray of shape (cells + 1,)
        First group of each cell, then the number of groups.

    Returns
    -------
    order, starts, cells
        The groups, at a cost in each cell that is lower or the same.

    Notes
    -----
    The records of a cell are also cut where it costs least, which is better than to cut at
    medians for most tables, and merged where criteria ask for that. The cheaper groups are refined.
    """
    n = order.shape[0]
    index = np.empty(n, np.int64)
    refined = np.empty(n, np.int64)
    refined_starts = np.zeros(n // max(requirements.k, 1) + 2, np.int64)
    refined_cells = np.zeros(cells.shape[0], np.int64)
    groups = 0
    for cell in range(cells.shape[0] - 1):
        first, last = cells[cell], cells[cell + 1]
        start, stop = starts[first], starts[last]
        records = canonical[start:stop]
        part_points, part_values = points[records], values[records]
        for i in range(records.shape[0]):
            index[records[i]] = i
        part = index[order[start:stop]]
        part_starts = starts[first : last + 1] - start
        for group in range(last - first):
            part[part_starts[group] : part_starts[group + 1]].sort()
        if last - first > 1 or stop - start <= _LARGEST_REPAIRED:
            axes = varying_axes(part_points, np.arange(records.shape[0]))
            if axes.shape[0] > 0 and records.shape[0] >= 2 * requirements.k:
                cut, cut_starts = cut_where_best(axes, requirements.k)
                if requirements.kinds.shape[0] > 0:
                    cut_starts = merge_unsatisfied(
                        part_points, part_values, cut, cut_starts, requirements
                    )
                cost = total_penalty(part_points, part, part_starts)
                if total_penalty(part_points, cut, cut_starts) < cost * (1.0 - NOISE):
                    part, part_starts = cut, cut_starts
            part, part_starts = refine_groups(
                part_points, part_values, part, part_starts, requirements, passes, 0
            )
        refined[start:stop] = records[part]
        for group in range(part_starts.shape[0] - 1):
            refined_starts[groups] = start + part_starts[group]
            groups += 1
        refined_cells[cell + 1] = groups
    refined_starts[groups] = n
    return refined, refined_starts[: groups + 1].copy(), refined_cells
