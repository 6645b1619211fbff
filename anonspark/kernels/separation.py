"""Local outlier factors, and the outlier step: the k records nearest to a reference, and others."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.criteria import (
    REQUIREMENTS,
    clear_counts,
    count_values,
    judge,
)
from anonspark.kernels.nearest_neighbors import (
    build_tree,
    distance,
    neighbor_distances,
    points_within,
)
from anonspark.kernels.selection import select_float
from anonspark.kernels.signatures import boolean, float64, int64

# Up to here comparing all pairs is faster than a tree; so it is where a good share of all points
# are neighbours.
_FEW_POINTS = 1024
_FEW_POINTS_A_NEIGHBOR = 16
# The distances of so many points from one another stay near the processor.
_KEPT_POINTS = 128

# Keeps the density of a record with at least as many duplicates as neighbours finite; the same
# constant as scikit-learn's, so that the figures agree.
_DENSITY_OFFSET = 1e-10


@kernel(int64(float64[:, ::1], int64, float64[:, ::1], boolean))
def _measure_from(axes, a, distances, again):
    """Fill in the distances of all points from one point, axis by axis, and return in which row.

    If there is a row for each point, nothing is measured ``again``. Written without branches and
    views of arrays, so that the compiler emits vector instructions.
    """
    n = distances.shape[1]
    row = a if distances.shape[0] == n else 0
    if again and distances.shape[0] == n:
        return row
    for b in range(n):
        distances[row, b] = 0.0
    for j in range(axes.shape[0]):
        value = axes[j, a]
        for b in range(n):
            difference = axes[j, b] - value
            distances[row, b] += difference * difference
    for b in range(n):
        distances[row, b] = np.sqrt(distances[row, b])
    return row


@kernel(float64[::1](float64[:, ::1], int64[::1], int64))
def _with_all_pairs(points, weights, neighbors):
    n = points.shape[0]
    axes = points.T.copy()
    distances = np.empty((n if n <= _KEPT_POINTS else 1, n), np.float64)
    weighted = weights.max() > 1

    reach = np.empty(n, np.float64)
    scratch = np.empty(n, np.float64)
    for a in range(n):
        row = _measure_from(axes, a, distances, False)
        for b in range(n):
            scratch[b] = distances[row, b]
        if weighted:
            total = weights[a] - 1
            order = np.argsort(scratch, kind="mergesort")
            reach[a] = 0.0
            for position in range(n):
                if total >= neighbors:
                    break
                b = order[position]
                if b != a:
                    total += weights[b]
                    reach[a] = distances[row, b]
        else:
            # Rank 0 is the record itself, at distance 0.
            reach[a] = select_float(scratch, 0, n, neighbors)

    # A record is not its own neighbour, so one is taken off the weight of its own point.
    density = np.empty(n, np.float64)
    for a in range(n):
        row = _measure_from(axes, a, distances, True)
        records = -1
        total = -reach[a]
        for b in range(n):
            near = weights[b] if distances[row, b] <= reach[a] else 0
            records += near
            total += near * max(reach[b], distances[row, b])
        density[a] = 1.0 / (total / records + _DENSITY_OFFSET)

    factors = np.empty(n, np.float64)
    for a in range(n):
        row = _measure_from(axes, a, distances, True)
        records = -1
        total = -density[a]
        for b in range(n):
            near = weights[b] if distances[row, b] <= reach[a] else 0
            records += near
            total += near * density[b]
        factors[a] = total / records / density[a]
    return factors


@kernel(float64[::1](float64[:, ::1], int64[::1], int64))
def _with_tree(points, weights, neighbors):
    n = points.shape[0]
    members, nodes, splits = build_tree(points)
    reach = neighbor_distances(points, weights, neighbors, members, nodes, splits)
    near = np.empty(n, np.int64)
    distances = np.empty(n, np.float64)

    density = np.empty(n, np.float64)
    for a in range(n):
        count = points_within(points, members, nodes, splits, a, reach[a], near, distances)
        records = weights[a] - 1
        total = records * reach[a]
        for i in range(count):
            b = near[i]
            if b != a:
                records += weights[b]
                total += weights[b] * max(reach[b], distances[i])
        density[a] = 1.0 / (total / records + _DENSITY_OFFSET)

    factors = np.empty(n, np.float64)
    for a in range(n):
        count = points_within(points, members, nodes, splits, a, reach[a], near, distances)
        records = weights[a] - 1
        total = records * density[a]
        for i in range(count):
            b = near[i]
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
        Records that each point stands for, at least 1. ``weights.sum()`` at least 2.
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
    nearest, so ties need no rule. Points are summed in an order that depends on their order in
    ``points`` alone. O(n d) memory. O(n^2) time up to 1,024 distinct points or 16 a neighbour, O(n
    log n) expected above. n counts distinct points, duplicates cost nothing.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [2.0], [9.0]])
    >>> np.argmax(local_outlier_factors(points, np.ones(4, np.int64), 2)).item()
    3
    """
    if points.shape[0] <= max(_FEW_POINTS, _FEW_POINTS_A_NEIGHBOR * neighbors):
        return _with_all_pairs(points, weights, neighbors)
    return _with_tree(points, weights, neighbors)


@kernel(float64(float64))
def without_noise(value):
    """Round to 33 significant bits, a relative precision of 1e-10 (Veltkamp 1968).

    What is equal except for the rounding of sums becomes a tie, which content decides: the order in
    which a kernel sums must not choose the records of a class.

    Examples
    --------
    >>> 0.1 + 0.2 == 0.3, without_noise(0.1 + 0.2) == without_noise(0.3)
    (False, True)
    """
    shifted = value * 1048577.0  # 2^20 + 1
    return shifted - (shifted - value)


@kernel(float64[::1](float64[:, ::1], int64[::1], int64))
def neighbor_distance_sums(points, weights, neighbors):
    """Return the sum of the distances from each point to its nearest records.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d)
        Distinct points.
    weights : int64 ndarray of shape (n,)
        Records that each point stands for.
    neighbors : int
        How many nearest other records are summed up, at most ``weights.sum() - 1``.

    Returns
    -------
    float64 ndarray of shape (n,)

    Notes
    -----
    O(n log n) expected time, O(n) memory. n counts distinct points.
    """
    n = points.shape[0]
    members, nodes, splits = build_tree(points)
    reach = neighbor_distances(points, weights, neighbors, members, nodes, splits)
    near = np.empty(n, np.int64)
    distances = np.empty(n, np.float64)
    sums = np.empty(n, np.float64)
    for a in range(n):
        count = points_within(points, members, nodes, splits, a, reach[a], near, distances)
        # Records at the distance of the last one are as many as are missing from the others.
        nearer = min(weights[a] - 1, neighbors)
        total = 0.0
        for i in range(count):
            if near[i] != a and distances[i] < reach[a]:
                nearer += weights[near[i]]
                total += weights[near[i]] * distances[i]
        sums[a] = total + (neighbors - nearer) * reach[a]
    return sums


@kernel(int64[::1](int64[:, ::1], int64[::1], int64, int64))
def distinct_points(codes, order, start, stop):
    """Return where each distinct point of a group begins.

    Parameters
    ----------
    codes : int64 ndarray of shape (n, d)
        Codes of the quasi-identifiers. Records equal in all of them are one point.
    order : int64 ndarray of shape (m,)
        Records. Those of the group, ``order[start:stop]``, in canonical order.
    start, stop : int

    Returns
    -------
    int64 ndarray of shape (points + 1,)
        Positions in ``order``. The last entry is ``stop``.

    Examples
    --------
    >>> distinct_points(np.array([[17], [17], [42]]), np.arange(3), 0, 3).tolist()
    [0, 2, 3]
    """
    # Equal records are adjacent in canonical order.
    first = np.empty(stop - start + 1, np.int64)
    distinct = 0
    for i in range(start, stop):
        is_new = i == start
        if not is_new:
            for j in range(codes.shape[1]):
                if codes[order[i], j] != codes[order[i - 1], j]:
                    is_new = True
                    break
        if is_new:
            first[distinct] = i
            distinct += 1
    first[distinct] = stop
    return first[: distinct + 1].copy()


@kernel(int64[::1](float64[:, ::1], int64[::1], int64[::1], int64, boolean))
def nearest_to_reference(normalized, order, first, neighbors, by_density):
    """Return a group's points by their distance from its reference, which comes first.

    Parameters
    ----------
    normalized : float64 ndarray of shape (n, d)
        Min-max normalized quasi-identifiers.
    order : int64 ndarray of shape (m,)
        Records.
    first : int64 ndarray of shape (points + 1,)
        Of :func:`distinct_points`.
    neighbors : int
        Neighbours that a record is compared with. At most group size - 1 are used.
    by_density : bool
        Whether the reference is the point with the smallest sum of distances to its neighbours,
        not the one with the smallest local outlier factor.

    Returns
    -------
    int64 ndarray of shape (points,)

    Notes
    -----
    Of equal scores the first in canonical order is the reference. Scores are tied if they are equal
    in their first 33 bits. Points at the same distance stay in canonical order.
    """
    distinct = first.shape[0] - 1
    if distinct == 1:
        return np.zeros(1, np.int64)
    size = first[distinct] - first[0]
    points = np.empty((distinct, normalized.shape[1]), np.float64)
    weights = np.empty(distinct, np.int64)
    for p in range(distinct):
        record = order[first[p]]
        for j in range(points.shape[1]):
            points[p, j] = normalized[record, j]
        weights[p] = first[p + 1] - first[p]
    if by_density:
        scores = neighbor_distance_sums(points, weights, min(neighbors, size - 1))
    else:
        scores = local_outlier_factors(points, weights, min(neighbors, size - 1))
    for p in range(distinct):
        scores[p] = without_noise(scores[p])
    reference = np.argmin(scores)
    distances = np.empty(distinct, np.float64)
    for p in range(distinct):
        distances[p] = distance(points, reference, p)
    # The reference comes first even where another point is at distance 0 after rounding.
    distances[reference] = -1.0
    return np.argsort(distances, kind="mergesort")


@kernel(
    boolean[::1](
        int64[:, ::1],
        float64[:, ::1],
        int64[:, ::1],
        int64[::1],
        int64[::1],
        REQUIREMENTS,
        int64,
        boolean,
    )
)
def separate_outliers(
    codes, normalized, values, order, starts, requirements, neighbors, by_density
):
    """Separate normal from outlier records in each group.

    Parameters
    ----------
    codes : int64 ndarray of shape (n, d)
        Codes of the quasi-identifiers. Records equal in all of them are one point.
    normalized : float64 ndarray of shape (n, d)
        Min-max normalized quasi-identifiers.
    values : int64 ndarray of shape (n, s)
        Number of each record's sensitive values.
    order : int64 ndarray of shape (m,)
        Records, group by group, in canonical order inside each group.
    starts : int64 ndarray of shape (groups + 1,)
        Where each group begins in ``order``.
    requirements : Requirements
        What the records that stay together satisfy. Every group does as a whole.
    neighbors : int
        Neighbours that a record is compared with. At most group size - 1 are used.
    by_density : bool
        Whether the reference is the point with the smallest sum of distances to its neighbours,
        not the one with the smallest local outlier factor.

    Returns
    -------
    bool ndarray of shape (m,)
        Whether ``order[i]`` is normal. Groups of at most k records are normal as a whole.

    Notes
    -----
    Normal are the k records nearest to the reference, in canonical order on a tie. With criteria
    beyond k the shortest such prefix of at least k records that satisfies them. Duplicates are
    counted, so with k alone a group of equal records costs linear time and memory. With criteria a
    prefix is judged anew only where it may have become long enough.
    """
    k = requirements.k
    counts = np.zeros(requirements.shares.shape[0], np.int64)
    present = np.empty(requirements.shares.shape[0], np.int64)
    normal = np.ones(order.shape[0], np.bool_)
    for group in range(starts.shape[0] - 1):
        start, stop = starts[group], starts[group + 1]
        size = stop - start
        if size <= k:
            continue
        first = distinct_points(codes, order, start, stop)
        nearest = nearest_to_reference(normalized, order, first, neighbors, by_density)
        normal[start:stop] = False
        taken = 0
        seen = 0
        # Prefixes shorter than this satisfy nothing: no need to look at each of them.
        shortest = k
        satisfied = False
        for p in nearest:
            for i in range(first[p], first[p + 1]):
                normal[i] = True
                taken += 1
                seen = count_values(values, order, i, i + 1, counts, present, seen)
                if taken < shortest:
                    continue
                violated, missing = judge(requirements, counts, present, seen, taken)
                if violated < 0:
                    satisfied = True
                    break
                shortest = taken + missing
            if satisfied:
                break
        clear_counts(counts, present, seen)
    return normal
