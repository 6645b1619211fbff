"""Groups that are grown one after the other, record by record."""

from __future__ import annotations

import numpy as np
from numba import float64, int64

from anonspark.kernels.compiling import kernel
from anonspark.kernels.selection import select_float

# A group that grows takes this share of k at once, so that huge k stay linear.
_STEPS_A_GROUP = 128
_SMALLEST_STEP = 8


@kernel(int64(float64[:, ::1], int64, float64[::1], int64[::1]))
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
    seeds = scores.copy()
    low = np.empty((groups, d), np.float64)
    high = np.empty((groups, d), np.float64)
    step = k // _STEPS_A_GROUP
    if step < _SMALLEST_STEP:
        step = 1
    rest = n
    for group in range(groups):
        best = 0
        for i in range(1, rest):
            if seeds[i] > seeds[best]:
                best = i
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
