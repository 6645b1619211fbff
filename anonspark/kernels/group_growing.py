"""Groups that are grown one after the other, record by record."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.group_costs import group_cost
from anonspark.kernels.selection import select_float
from anonspark.kernels.signatures import float64, int64, void

# A group that grows takes this share of k at once, so that huge k stay linear.
_STEPS_A_GROUP = 128
_SMALLEST_STEP = 8


@kernel(void(float64[:, ::1], float64[::1], float64[::1], float64[::1]))
def _measure_growths(axes, low, high, costs):
    """Write by how much the edges of a box grow when it gets each of the first records.

    Axes are added one after the other, but two at a time while the sums are at hand.
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
    """Grow groups of k records one after the other; what remains joins where it costs least.

    Parameters
    ----------
    original : float64 ndarray of shape (d, n)
        Values of the records, axis by axis.
    k : int
        Records in a group, at most n.
    scores : float64 ndarray of shape (n,)
        A group starts at the record, of those that are left, whose score is the highest.
    group_of : int64 ndarray of shape (n,)
        Filled with each record's group; there are ``n // k``.

    Returns
    -------
    float
        What they cost, see :func:`anonspark.kernels.group_costs.group_cost`.

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
