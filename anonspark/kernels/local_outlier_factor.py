"""Local outlier factors (Breunig, Kriegel, Ng and Sander 2000), duplicates counted, not stored."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.nearest_neighbors import (
    build_tree,
    neighbor_distances,
    points_within,
)
from anonspark.kernels.selection import select_float
from anonspark.kernels.signatures import float64, int64, void

# Up to here comparing all pairs is faster than a tree; so it is where a good share of all points
# are neighbours.
_FEW_POINTS = 1024
_FEW_POINTS_A_NEIGHBOR = 16

# Keeps the density of a record with at least as many duplicates as neighbours finite; the same
# constant as scikit-learn's, so that the figures agree.
_DENSITY_OFFSET = 1e-10


@kernel(void(float64[:, ::1], int64, float64[::1]))
def _measure_from(axes, a, distances):
    """Fill in the distances of all points from one, given axis by axis.

    Written without branches, so that the compiler makes vector instructions of it.
    """
    distances[:] = 0.0
    for j in range(axes.shape[0]):
        axis = axes[j]
        own = axis[a]
        for b in range(distances.shape[0]):
            difference = axis[b] - own
            distances[b] += difference * difference
    for b in range(distances.shape[0]):
        distances[b] = np.sqrt(distances[b])


@kernel(float64[::1](float64[:, ::1], int64[::1], int64))
def _with_all_pairs(points, weights, neighbors):
    n = points.shape[0]
    axes = points.T.copy()
    distances = np.empty(n, np.float64)
    weighted = weights.max() > 1

    reach = np.empty(n, np.float64)
    for a in range(n):
        _measure_from(axes, a, distances)
        if weighted:
            total = weights[a] - 1
            order = np.argsort(distances, kind="mergesort")
            reach[a] = 0.0
            for place in range(n):
                if total >= neighbors:
                    break
                b = order[place]
                if b != a:
                    total += weights[b]
                    reach[a] = distances[b]
        else:
            # Rank 0 is the record itself, at distance 0.
            reach[a] = select_float(distances, 0, n, neighbors)

    # A record is not its own neighbour, so one is taken off the weight of its own point.
    density = np.empty(n, np.float64)
    for a in range(n):
        _measure_from(axes, a, distances)
        records = -1
        total = -reach[a]
        for b in range(n):
            near = weights[b] if distances[b] <= reach[a] else 0
            records += near
            total += near * max(reach[b], distances[b])
        density[a] = 1.0 / (total / records + _DENSITY_OFFSET)

    factors = np.empty(n, np.float64)
    for a in range(n):
        _measure_from(axes, a, distances)
        records = -1
        total = -density[a]
        for b in range(n):
            near = weights[b] if distances[b] <= reach[a] else 0
            records += near
            total += near * density[b]
        factors[a] = total / records / density[a]
    return factors


@kernel(float64[::1](float64[:, ::1], int64[::1], int64))
def _with_tree(points, weights, neighbors):
    n = points.shape[0]
    members, nodes, splits = build_tree(points)
    reach = neighbor_distances(points, weights, neighbors, members, nodes, splits)
    found = np.empty(n, np.int64)
    distances = np.empty(n, np.float64)

    density = np.empty(n, np.float64)
    for a in range(n):
        count = points_within(points, members, nodes, splits, a, reach[a], found, distances)
        records = weights[a] - 1
        total = records * reach[a]
        for i in range(count):
            b = found[i]
            if b != a:
                records += weights[b]
                total += weights[b] * max(reach[b], distances[i])
        density[a] = 1.0 / (total / records + _DENSITY_OFFSET)

    factors = np.empty(n, np.float64)
    for a in range(n):
        count = points_within(points, members, nodes, splits, a, reach[a], found, distances)
        records = weights[a] - 1
        total = records * density[a]
        for i in range(count):
            b = found[i]
            if b != a:
                records += weights[b]
                total += weights[b] * density[b]
        factors[a] = total / records / density[a]
    return factors


@kernel(float64[::1](float64[:, ::1], int64[::1], int64))
def local_outlier_factors(points, weights, neighbors):
    """Return the local outlier factor of each distinct point.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d)
        Distinct points.
    weights : int64 ndarray of shape (n,)
        Records that each point stands for, at least 1; ``weights.sum()`` at least 2.
    neighbors : int
        MinPts of the paper, at least 1 and at most ``weights.sum() - 1``.

    Returns
    -------
    float64 ndarray of shape (n,)
        About 1 inside a cluster, the larger the more outlying. All records of a point have the
        same factor.

    Notes
    -----
    As published: the neighbourhood holds every record at most as far as the ``neighbors``-th
    nearest, so ties need no rule. Points are summed up in an order that depends on their order in
    ``points`` alone. O(n d) memory. O(n^2) time up to 1,024 distinct points or 16 a
    neighbour, O(n log n) expected above; n counts distinct points, duplicates cost nothing.
    """
    if points.shape[0] <= max(_FEW_POINTS, _FEW_POINTS_A_NEIGHBOR * neighbors):
        return _with_all_pairs(points, weights, neighbors)
    return _with_tree(points, weights, neighbors)
