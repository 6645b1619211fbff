"""Single records that groups swap or give away, as long as it pays."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import float64, int64, types

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
    """Measure a group's box, and by how much its edges shrink when a record leaves.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d)
    members : int64 ndarray of shape (at least size,)
    size : int
        Records of the group.
    box : float64 ndarray of shape (d, 4)
        Filled with the lowest, second lowest, highest and second highest value on each axis.
    shrinkage : float64 ndarray of shape (at least size,)
        Filled with what the edges lose when each record leaves.

    Returns
    -------
    edges, most : float
        Sum of the box's edges, and the largest shrinkage.
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


@kernel(float64(float64[:, ::1], int64, int64[::1], int64))
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

    Returns
    -------
    float
        What they cost then, see :func:`anonspark.kernels.group_costs.group_cost`.

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
    # By how much a group's edges shrink when a record leaves, and the most of it.
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
            place, exchanges = 0, 0
            while place < sizes[a] and exchanges < _EXCHANGES:
                record = members[a, place]
                gain = shrinkage[a, place]
                since = compared[record]
                if since == clock or (gain <= 0.0 and sizes[a] <= k):
                    place += 1
                    continue
                for j in range(d):
                    own, low, high = points[record, j], boxes[a, j, _LOW], boxes[a, j, _HIGH]
                    bottoms[j] = boxes[a, j, _SECOND_LOW] if own == low else low
                    tops[j] = boxes[a, j, _SECOND_HIGH] if own == high else high
                with_all = changes[a] > since
                own_size, own_edges = float64(sizes[a]), edges[a]
                own_gain = own_size * gain
                partner, partner_place, best = -1, -1, 0.0
                for b in range(groups):
                    if a == b or not (with_all or changes[b] > since):
                        continue
                    size = float64(sizes[b])
                    growth = -edges[b]
                    for j in range(d):
                        value = points[record, j]
                        growth += max(value, boxes[b, j, _HIGH]) - min(value, boxes[b, j, _LOW])
                    noise = _NOISE * (own_size * own_edges + size * edges[b])
                    if sizes[a] > k and sizes[b] < 2 * k - 1:
                        change = (size + 1.0) * growth + edges[b]
                        change -= (own_size - 1.0) * gain + own_edges
                        if change < best - noise:
                            partner, partner_place, best = b, -1, change
                    # What any of its records is certain to lose.
                    least = size * (growth - most[b])
                    if gain <= 0.0 or least >= own_gain or least - own_gain >= best - noise:
                        continue
                    change = -own_edges
                    for j in range(d):
                        low, high = boxes[b, j, _LOW], boxes[b, j, _HIGH]
                        change += max(tops[j], low) - min(bottoms[j], high)
                    if change * own_size + least >= best - noise:
                        continue
                    for i in range(sizes[b]):
                        # What is certain to be lost; most records need no more than that.
                        loss = size * (growth - shrinkage[b, i])
                        if loss - own_gain >= best - noise:
                            continue
                        other = members[b, i]
                        change = -own_edges
                        for j in range(d):
                            new = points[other, j]
                            change += max(tops[j], new) - min(bottoms[j], new)
                        change *= own_size
                        if change + loss >= best - noise:
                            continue
                        edge = -edges[b]
                        for j in range(d):
                            own, new = points[record, j], points[other, j]
                            low, high = boxes[b, j, _LOW], boxes[b, j, _HIGH]
                            bottom = boxes[b, j, _SECOND_LOW] if new == low else low
                            top = boxes[b, j, _SECOND_HIGH] if new == high else high
                            edge += max(top, own) - min(bottom, own)
                        change += size * edge
                        if change < best - noise:
                            partner, partner_place, best = b, i, change
                if partner < 0:
                    compared[record] = clock
                    place += 1
                    continue
                clock += 1
                exchanges += 1
                changes[a] = changes[partner] = clock
                if partner_place < 0:
                    members[partner, sizes[partner]] = record
                    sizes[partner] += 1
                    sizes[a] -= 1
                    members[a, place] = members[a, sizes[a]]
                else:
                    members[a, place] = members[partner, partner_place]
                    members[partner, partner_place] = record
                    place += 1
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
