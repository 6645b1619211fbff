"""Single records that groups swap or give away, as long as it pays."""

from __future__ import annotations

import numpy as np
from numba import float64, int64, void

from anonspark.kernels.compiling import kernel

_SWEEPS = 10

# Exchanges that one group begins in a sweep, so that huge groups stay linear.
_EXCHANGES = 64

# What is less, relative to the cost, is rounding.
_NOISE = 1e-9


@kernel(
    float64(
        float64[:, ::1],
        int64[::1],
        int64,
        float64[::1],
        float64[::1],
        float64[::1],
        float64[::1],
    )
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


@kernel(float64(float64[:, ::1], int64, float64[::1], float64[::1], float64[::1], float64[::1]))
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


@kernel(void(float64[:, ::1], int64, int64[::1], int64))
def exchange_records(axes, k, group_of, groups):
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
    for _ in range(_SWEEPS):
        changed = False
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
