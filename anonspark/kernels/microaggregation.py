"""Groups of k records with boxes as small as possible: a first solution, then its refinement.

The cost of a group is its number of records times the sum of its box's edges, so the sum over all
groups is ``gcp_total``. Nothing quadratic: records are cut into cells by median trees, and groups
are grown inside cells of bounded size.
"""

from __future__ import annotations

import numpy as np

from anonspark.kernels.canonical_order import sort_groups
from anonspark.kernels.compiling import kernel
from anonspark.kernels.criteria import REQUIREMENTS
from anonspark.kernels.group_exchange import group_cost, grow_groups, varying_axes
from anonspark.kernels.merging import merge_unsatisfied
from anonspark.kernels.order_cutting import cut_curve, cut_where_best
from anonspark.kernels.refinement import NOISE, cut_cells, refine_groups, write_groups
from anonspark.kernels.signatures import float64, int64, types, uint64

# What a step over all records counts, beside 1 for a step over the whole range: with more of it
# counts are estimated better and the certainty penalty grows.
_SHARE_OF_RANKS = 0.08


@kernel(float64[:, ::1](float64[:, ::1], float64[::1]))
def spread_for_queries(normalized, weights):
    """Add to each value's position a share of its rank among the records.

    Parameters
    ----------
    normalized : float64 ndarray of shape (n, d)
        Positions of the quasi-identifiers, normalized and weighted.
    weights : float64 ndarray of shape (d,)
        Weights of the attributes.

    Returns
    -------
    float64 ndarray of shape (n, d)
        Positions in the same order, which equal values share.

    Notes
    -----
    The rank of a value is the share of the records below it and half of those that have it. So a
    value of many records keeps its distance to its neighbours: a box that covers both zero and a
    little more is nearly as small as one of zeros alone, but who spreads its records evenly over
    it counts nearly all zeros elsewhere. Ranges of queries are drawn by the shares of the records
    that they hold, so the edge of a box in ranks is how many queries cut it. O(n d log n) time.
    """
    n, d = normalized.shape
    spread = normalized.copy()
    for j in range(d):
        order = np.argsort(normalized[:, j], kind="mergesort")
        start = 0
        while start < n:
            stop = start + 1
            while stop < n and normalized[order[stop], j] == normalized[order[start], j]:
                stop += 1
            rank = (start + stop) / (2.0 * n)
            for i in range(start, stop):
                spread[order[i], j] += weights[j] * _SHARE_OF_RANKS * rank
            start = stop
    return spread


# Records of a cell in which groups are grown: more is better and slower.
_CELL_RECORDS = 4096
_CELL_GROUPS = 8


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
            members = tree_order[cells[cell] : cells[cell + 1]]
            axes = varying_axes(points, members)
            scores = np.zeros(members.shape[0], np.float64)
            for j in range(axes.shape[0]):
                scores += (axes[j] - axes[j].mean()) ** 2
            grown = np.empty(members.shape[0], np.int64)
            grow_groups(axes, k, scores, grown)
            for i in range(members.shape[0]):
                group_of[members[i]] = groups + grown[i]
            groups += members.shape[0] // k
        axes = varying_axes(points, records)
        cost = group_cost(axes, group_of, groups)
        if cost > 0.0:
            trial = np.empty(n, np.int64)
            count = cut_curve(axes, k, trial)
            if count > 0 and group_cost(axes, trial, count) < cost * (1.0 - NOISE):
                group_of[:] = trial
                groups, cost = count, group_cost(axes, trial, count)
            order, starts = cut_where_best(axes, k)
            count = starts.shape[0] - 1
            for group in range(count):
                trial[order[starts[group] : starts[group + 1]]] = group
            if group_cost(axes, trial, count) < cost * (1.0 - NOISE):
                group_of[:] = trial
                groups = count
    order = np.empty(n, np.int64)
    starts = np.zeros(groups + 1, np.int64)
    write_groups(records, group_of, groups, order, starts, 0)
    return order, starts


# Directions in which a pass grows new groups.
_GROWTHS = 2


@kernel(
    types.Tuple((int64[::1], int64[::1]))(
        int64[:, ::1], float64[:, ::1], int64[::1], int64[:, ::1], REQUIREMENTS, int64
    )
)
def microaggregate(codes, normalized, hashes, values, requirements, passes):
    """Put the records of a block into groups that satisfy all criteria at a low ``gcp_total``.

    Parameters
    ----------
    codes : int64 ndarray of shape (n, d)
        Codes of the quasi-identifiers, in configuration order.
    normalized : float64 ndarray of shape (n, d)
        Their positions, normalized and weighted. A function of the codes.
    hashes : int64 ndarray of shape (n,)
        Keyed hash of each record's whole content.
    values : int64 ndarray of shape (n, s)
        Number of each record's sensitive values.
    requirements : Requirements
        What all records satisfy together.
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
    in_order = values[canonical]
    order, starts = form_groups(points, requirements.k)
    if requirements.kinds.shape[0] > 0:
        starts = merge_unsatisfied(points, in_order, order, starts, requirements)
    order, starts = refine_groups(points, in_order, order, starts, requirements, passes, _GROWTHS)

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
    for position in range(groups):
        group = sequence[position]
        start = result_starts[position]
        stop = start + starts[group + 1] - starts[group]
        result[start:stop] = canonical[np.sort(order[starts[group] : starts[group + 1]])]
        result_starts[position + 1] = stop
    return result, result_starts
