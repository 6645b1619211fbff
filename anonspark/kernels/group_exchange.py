"""Grow groups around a record, and swap or move single records between them."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.criteria import CHECKER, satisfies_after
from anonspark.kernels.selection import select_float
from anonspark.kernels.signatures import boolean, float64, int64, types, void


@kernel(float64[:, ::1](float64[:, ::1], int64[::1]))
def varying_axes(points, members):
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


@kernel(float64(float64[:, ::1], int64[::1], int64))
def group_cost(axes, group_of, groups):
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


# A group that grows takes this share of k at once, so that huge k stay linear.
_STEPS_A_GROUP = 128
_SMALLEST_STEP = 8


@kernel(void(float64[:, ::1], float64[::1], float64[::1], float64[::1]))
def _measure_growths(axes, low, high, costs):
    """Write to ``costs``, for each record, by how much a box grows if it takes that record in.

    A box grows by the sum of what its edges grow by. Two axes are added in one pass, so that
    ``costs`` is read and written half as often. The sums are those of one axis after the other.
    """
    d = axes.shape[0]
    first, bottom, top = axes[0], low[0], high[0]
    edge = top - bottom
    for i in range(costs.shape[0]):
        costs[i] = max(first[i], top) - min(first[i], bottom) - edge
    for j in range(1, d - 1, 2):
        first, bottom, top = axes[j], low[j], high[j]
        second, next_bottom, next_top = axes[j + 1], low[j + 1], high[j + 1]
        edge, next_edge = top - bottom, next_top - next_bottom
        for i in range(costs.shape[0]):
            cost = costs[i] + (max(first[i], top) - min(first[i], bottom) - edge)
            growth = max(second[i], next_top) - min(second[i], next_bottom) - next_edge
            costs[i] = cost + growth
    if d % 2 == 0:
        first, bottom, top = axes[d - 1], low[d - 1], high[d - 1]
        edge = top - bottom
        for i in range(costs.shape[0]):
            costs[i] += max(first[i], top) - min(first[i], bottom) - edge


@kernel(float64(float64[:, ::1], int64, float64[::1], int64[::1]))
def grow_groups(original, k, scores, group_of):
    """Grow groups of k records one after the other. The rest joins at the lowest cost.

    Parameters
    ----------
    original : float64 ndarray of shape (d, n)
        Values of the records, axis by axis.
    k : int
        Records in a group, at most n.
    scores : float64 ndarray of shape (n,)
        A group starts at the remaining record with the highest score.
    group_of : int64 ndarray of shape (n,)
        Filled with each record's group. There are ``n // k``.

    Returns
    -------
    float
        Cost of the groups, see :func:`anonspark.kernels.group_exchange.group_cost`.

    Notes
    -----
    O(n^2 d) time, but O(n^2 d / k) for large k.
    """
    d, n = original.shape
    groups = n // k
    if d == 0 or groups < 2:
        for i in range(n):
            group_of[i] = min(i // k, groups - 1)
        return group_cost(original, group_of, groups)
    axes = original.copy()
    records = np.arange(n)
    costs = np.empty(n, np.float64)
    scratch = np.empty(n, np.float64)
    seeds = scores.copy()
    low = np.empty((groups, d), np.float64)
    high = np.empty((groups, d), np.float64)
    step = k // _STEPS_A_GROUP
    if step < _SMALLEST_STEP:
        step = 1
    rest = n
    for group in range(groups):
        highest = seeds[0]
        for i in range(1, rest):
            highest = max(highest, seeds[i])
        best = 0
        while seeds[best] != highest:
            best += 1
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
                    seeds[i] = seeds[rest]
                    for j in range(d):
                        axes[j, i] = axes[j, rest]
                else:
                    i += 1
                if i >= rest:
                    break
            if size == k:
                break
            _measure_growths(axes, low[group], high[group], costs[:rest])
            limit = costs[0]
            for i in range(1, rest):
                limit = min(limit, costs[i])
            best = 0
            while costs[best] != limit:
                best += 1
            taken = 1
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
    cost = 0.0
    for group in range(groups):
        edges = 0.0
        for j in range(d):
            edges += high[group, j] - low[group, j]
        cost += sizes[group] * edges
    return cost


_SWEEPS = 10

# Exchanges that one group begins in a sweep, so that huge groups stay linear.
_EXCHANGES = 64

# What is less, relative to the cost, is rounding.
_NOISE = 1e-9


_LOW, _SECOND_LOW, _HIGH, _SECOND_HIGH = 0, 1, 2, 3


@kernel(
    types.Tuple((float64, float64))(
        float64[:, ::1], int64[::1], int64, float64[:, ::1], float64[::1]
    )
)
def _measure_group(points, members, size, box, shrinkage):
    """Measure a group's box, and by how much its edges shrink if a record leaves.

    ``members`` holds the ``size`` records of the group. ``box`` (float64, shape (d, 4)) gets the
    lowest, second lowest, highest and second highest value on each axis, and ``shrinkage`` what the
    edges lose if each record leaves. Returns the sum of the edges, and the largest shrinkage.
    """
    edges = 0.0
    for j in range(box.shape[0]):
        lowest, next_lowest, highest, next_highest = np.inf, np.inf, -np.inf, -np.inf
        for i in range(size):
            value = points[members[i], j]
            next_lowest = min(next_lowest, max(lowest, value))
            lowest = min(lowest, value)
            next_highest = max(next_highest, min(highest, value))
            highest = max(highest, value)
        box[j, _LOW], box[j, _SECOND_LOW] = lowest, next_lowest
        box[j, _HIGH], box[j, _SECOND_HIGH] = highest, next_highest
        edges += highest - lowest
    most = 0.0
    for i in range(size):
        total = 0.0
        for j in range(box.shape[0]):
            value = points[members[i], j]
            if value == box[j, _LOW]:
                total += box[j, _SECOND_LOW] - value
            if value == box[j, _HIGH]:
                total += value - box[j, _SECOND_HIGH]
        shrinkage[i] = total
        most = max(most, total)
    return edges, most


@kernel(boolean(CHECKER, int64[:, ::1], int64[:, ::1], int64[::1], int64, int64, int64, int64))
def _may_exchange(checker, values, members, sizes, first, index, second, other_index):
    """Return whether two groups satisfy the criteria beyond k after an exchange.

    ``first`` gives the record at ``index``. ``second`` gives that at ``other_index``, or none if it
    is -1.
    """
    if checker.requirements.kinds.shape[0] == 0:
        return True
    record, other = members[first, index], -1
    if other_index >= 0:
        other = members[second, other_index]
        if (values[record] == values[other]).all():
            return True
    return satisfies_after(
        checker, values, members[first], sizes[first], index, other
    ) and satisfies_after(checker, values, members[second], sizes[second], other_index, record)


@kernel(float64(float64[:, ::1], int64[:, ::1], int64[::1], int64, CHECKER))
def exchange_records(axes, values, group_of, groups, checker):
    """Swap and move single records between groups as long as this lowers the cost, in place.

    Parameters
    ----------
    axes : float64 ndarray of shape (d, n)
        Values of the records, axis by axis.
    values : int64 ndarray of shape (n, s)
        Number of each record's sensitive values. Only read if there are criteria beyond k.
    group_of : int64 ndarray of shape (n,)
        Each record's group.
    groups : int
        How many groups there are.
    checker : Checker
        What each of the groups satisfies before and after. One of k records gives none away without
        getting another one.

    Returns
    -------
    float
        What they cost then, see :func:`anonspark.kernels.group_exchange.group_cost`.

    Notes
    -----
    Only a record on the boundary of its group's box can lower the cost, and there are at most 2 d
    of them that are alone on their side. They are compared with all records of the other groups,
    unless the largest possible gain is too small: bounds are computed as what they bound is, with
    values that are at least as good, and rounding keeps the order of sums and products. What a
    record may gain from a group depends on that group and its own alone, so one that found nothing
    is compared again only with groups that have changed since, or with all where its own has.
    """
    d, n = axes.shape
    k = checker.requirements.k
    points = np.empty((n, d), np.float64)
    sizes = np.zeros(groups, np.int64)
    for i in range(n):
        sizes[group_of[i]] += 1
        for j in range(d):
            points[i, j] = axes[j, i]
    members = np.empty((groups, max(sizes.max(), 2 * k)), np.int64)
    sizes[:] = 0
    for i in range(n):
        group = group_of[i]
        members[group, sizes[group]] = i
        sizes[group] += 1
    boxes = np.empty((groups, d, 4), np.float64)
    edges = np.empty(groups, np.float64)
    # How much a group's edges shrink if a record leaves, and the largest of these.
    shrinkage = np.empty(members.shape, np.float64)
    most = np.empty(groups, np.float64)
    for group in range(groups):
        edges[group], most[group] = _measure_group(
            points, members[group], sizes[group], boxes[group], shrinkage[group]
        )
    # The box of a record's group without it.
    bottoms = np.empty(d, np.float64)
    tops = np.empty(d, np.float64)
    # Exchanges so far, those before the last change of each group, and those before a record was
    # last compared in vain.
    clock = 0
    changes = np.zeros(groups, np.int64)
    compared = np.full(n, -1, np.int64)
    for _ in range(_SWEEPS):
        before = clock
        for a in range(groups):
            position, exchanges = 0, 0
            while position < sizes[a] and exchanges < _EXCHANGES:
                record = members[a, position]
                gain = shrinkage[a, position]
                since = compared[record]
                if since == clock or (gain <= 0.0 and sizes[a] <= k):
                    position += 1
                    continue
                for j in range(d):
                    x, low, high = points[record, j], boxes[a, j, _LOW], boxes[a, j, _HIGH]
                    bottoms[j] = boxes[a, j, _SECOND_LOW] if x == low else low
                    tops[j] = boxes[a, j, _SECOND_HIGH] if x == high else high
                with_all = changes[a] > since
                size_a, edges_a = float64(sizes[a]), edges[a]
                gain_a = size_a * gain
                partner, partner_place, best = -1, -1, 0.0
                for b in range(groups):
                    if a == b or not (with_all or changes[b] > since):
                        continue
                    size = float64(sizes[b])
                    growth = -edges[b]
                    for j in range(d):
                        value = points[record, j]
                        growth += max(value, boxes[b, j, _HIGH]) - min(value, boxes[b, j, _LOW])
                    noise = _NOISE * (size_a * edges_a + size * edges[b])
                    if sizes[a] > k and sizes[b] < 2 * k - 1:
                        change = (size + 1.0) * growth + edges[b]
                        change -= (size_a - 1.0) * gain + edges_a
                        if change < best - noise and _may_exchange(
                            checker, values, members, sizes, a, position, b, -1
                        ):
                            partner, partner_place, best = b, -1, change
                    # What any of its records is certain to lose.
                    least = size * (growth - most[b])
                    if gain <= 0.0 or least >= gain_a or least - gain_a >= best - noise:
                        continue
                    change = -edges_a
                    for j in range(d):
                        low, high = boxes[b, j, _LOW], boxes[b, j, _HIGH]
                        change += max(tops[j], low) - min(bottoms[j], high)
                    if change * size_a + least >= best - noise:
                        continue
                    for i in range(sizes[b]):
                        # What is certain to be lost; most records need no more than that.
                        loss = size * (growth - shrinkage[b, i])
                        if loss - gain_a >= best - noise:
                            continue
                        other = members[b, i]
                        change = -edges_a
                        for j in range(d):
                            new = points[other, j]
                            change += max(tops[j], new) - min(bottoms[j], new)
                        change *= size_a
                        if change + loss >= best - noise:
                            continue
                        edge = -edges[b]
                        for j in range(d):
                            x, new = points[record, j], points[other, j]
                            low, high = boxes[b, j, _LOW], boxes[b, j, _HIGH]
                            bottom = boxes[b, j, _SECOND_LOW] if new == low else low
                            top = boxes[b, j, _SECOND_HIGH] if new == high else high
                            edge += max(top, x) - min(bottom, x)
                        change += size * edge
                        if change < best - noise and _may_exchange(
                            checker, values, members, sizes, a, position, b, i
                        ):
                            partner, partner_place, best = b, i, change
                if partner < 0:
                    compared[record] = clock
                    position += 1
                    continue
                clock += 1
                exchanges += 1
                changes[a] = changes[partner] = clock
                if partner_place < 0:
                    members[partner, sizes[partner]] = record
                    sizes[partner] += 1
                    sizes[a] -= 1
                    members[a, position] = members[a, sizes[a]]
                else:
                    members[a, position] = members[partner, partner_place]
                    members[partner, partner_place] = record
                    position += 1
                for group in (a, partner):
                    edges[group], most[group] = _measure_group(
                        points, members[group], sizes[group], boxes[group], shrinkage[group]
                    )
        if clock == before:
            break
    cost = 0.0
    for group in range(groups):
        cost += sizes[group] * edges[group]
        for i in range(sizes[group]):
            group_of[members[group, i]] = group
    return cost
