"""Merge groups that violate a criterion with their neighbours."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.criteria import (
    REQUIREMENTS,
    clear_counts,
    count_values,
    first_unsatisfied,
)
from anonspark.kernels.paths import child_path
from anonspark.kernels.signatures import float64, int64, uint64

# Sides 0 and 1 name children, 2 and 3 salt draws.
_FIRST_GROUP_SIDE = 4


@kernel(int64[::1](float64[:, ::1], int64[:, ::1], int64[::1], int64[::1], REQUIREMENTS))
def merge_unsatisfied(normalized, values, order, starts, requirements):
    """Merge groups with those before or behind them until all satisfy the requirements.

    Parameters
    ----------
    normalized : float64 ndarray of shape (n, d)
        Normalized positions.
    values : int64 ndarray of shape (n, s)
        Number of each record's sensitive values.
    order : int64 ndarray of shape (n,)
        Records, group by group. Groups that follow each other are neighbours. All together
        they satisfy the requirements.
    starts : int64 ndarray of shape (groups + 1,)
        Where each group begins in ``order``.
    requirements : Requirements

    Returns
    -------
    int64 ndarray of shape (fewer groups + 1,)
        Where the merged groups begin.

    Notes
    -----
    From the first group to the last. A group that violates a requirement takes in, one by one, the
    finished group before it or the next one, whichever makes records times box edges grow less.
    A finished group that takes in another one is judged again. O(n d)
    time, and one pass over the values present for each merge.
    """
    d = normalized.shape[1]
    groups = starts.shape[0] - 1
    counts = np.zeros(requirements.shares.shape[0], np.int64)
    present = np.empty(requirements.shares.shape[0], np.int64)
    # Bounds of the groups, and of the finished ones once they are merged.
    low = np.empty((groups, d), np.float64)
    high = np.empty((groups, d), np.float64)
    for g in range(groups):
        for j in range(d):
            low[g, j] = normalized[order[starts[g]], j]
            high[g, j] = low[g, j]
        for i in range(starts[g] + 1, starts[g + 1]):
            for j in range(d):
                position = normalized[order[i], j]
                low[g, j] = min(low[g, j], position)
                high[g, j] = max(high[g, j], position)
    merged = np.empty(groups + 1, np.int64)
    # Group whose row of ``low`` and ``high`` holds the bounds of each finished group.
    owner = np.empty(groups, np.int64)
    finished = 0
    g = 0
    while g < groups:
        start, stop = starts[g], starts[g + 1]
        group = g
        g += 1
        distinct = count_values(values, order, start, stop, counts, present, 0)
        while (
            stop - start < requirements.k
            or first_unsatisfied(requirements, counts, present, distinct, stop - start) >= 0
        ):
            # What either neighbour would add to the sum of records times edges.
            best = np.inf
            take_next = True
            for turn in range(2):
                if (turn == 0 and finished == 0) or (turn == 1 and g == groups):
                    continue
                other = owner[finished - 1] if turn == 0 else g
                size = start - merged[finished - 1] if turn == 0 else starts[g + 1] - starts[g]
                together = 0.0
                apart = 0.0
                for j in range(d):
                    together += max(high[group, j], high[other, j]) - min(
                        low[group, j], low[other, j]
                    )
                    apart += size * (high[other, j] - low[other, j])
                    apart += (stop - start) * (high[group, j] - low[group, j])
                added = (stop - start + size) * together - apart
                if added < best:
                    best = added
                    take_next = turn == 1
            if best == np.inf:
                break
            if take_next:
                other = g
                distinct = count_values(
                    values, order, stop, starts[g + 1], counts, present, distinct
                )
                stop = starts[g + 1]
                g += 1
            else:
                finished -= 1
                other = owner[finished]
                distinct = count_values(
                    values, order, merged[finished], start, counts, present, distinct
                )
                start = merged[finished]
            for j in range(d):
                low[group, j] = min(low[group, j], low[other, j])
                high[group, j] = max(high[group, j], high[other, j])
        clear_counts(counts, present, distinct)
        merged[finished] = start
        owner[finished] = group
        finished += 1
    merged[finished] = order.shape[0]
    return merged[: finished + 1].copy()


@kernel(uint64[::1](uint64, int64))
def name_groups(path, groups):
    """Return the 64-bit names of a node's groups, which are numbered by content."""
    names = np.empty(groups, np.uint64)
    for g in range(groups):
        names[g] = child_path(path, uint64(_FIRST_GROUP_SIDE + g))
    return names


@kernel(uint64[::1](uint64[::1], int64[::1]))
def name_groups_of_leaves(paths, groups):
    """Return the names of the groups of several nodes, node by node. See :func:`name_groups`."""
    names = np.empty(groups.sum(), np.uint64)
    filled = 0
    for leaf in range(paths.shape[0]):
        for g in range(groups[leaf]):
            names[filled] = child_path(paths[leaf], uint64(_FIRST_GROUP_SIDE + g))
            filled += 1
    return names


@kernel(float64(float64[:, ::1], int64[::1], int64[::1]))
def total_penalty(normalized, order, starts):
    """Return the sum over groups of records times box edges, ``gcp_total`` but for hierarchies."""
    total = 0.0
    for g in range(starts.shape[0] - 1):
        edges = 0.0
        for j in range(normalized.shape[1]):
            low = high = normalized[order[starts[g]], j]
            for i in range(starts[g] + 1, starts[g + 1]):
                low = min(low, normalized[order[i], j])
                high = max(high, normalized[order[i], j])
            edges += high - low
        total += (starts[g + 1] - starts[g]) * edges
    return total
