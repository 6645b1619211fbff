"""The outlier step: the k records nearest to a group's densest point, and all the others."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int64, njit

from anonspark.kernels.local_outlier_factor import local_outlier_factors
from anonspark.kernels.nearest_neighbors import distance

__all__ = ["separate_outliers", "without_noise"]


@njit(float64(float64), cache=True)
def without_noise(value):
    """Round to 33 significant bits, a relative precision of 1e-10 (Veltkamp 1968).

    What is equal but for the rounding of sums becomes a tie, which content decides: the order in
    which a kernel sums up must not choose the records of a class.
    """
    shifted = value * 1048577.0  # 2^20 + 1
    return shifted - (shifted - value)


@njit(
    boolean[::1](int64[:, ::1], float64[:, ::1], int64[::1], int64[::1], int64, int64),
    cache=True,
)
def separate_outliers(codes, normalized, order, starts, k, neighbors):
    """Tell normal from outlier records in each group (DESIGN 4.4).

    Parameters
    ----------
    codes : int64 ndarray of shape (n, d)
        Codes of the quasi-identifiers; records equal in all of them are one point.
    normalized : float64 ndarray of shape (n, d)
        Min-max normalized quasi-identifiers.
    order : int64 ndarray of shape (m,)
        Records, group by group, in canonical order inside each group.
    starts : int64 ndarray of shape (groups + 1,)
        Where each group begins in ``order``.
    k : int
        Records to keep in each group.
    neighbors : int
        MinPts of the local outlier factor; at most group size - 1 is used.

    Returns
    -------
    bool ndarray of shape (m,)
        Whether ``order[i]`` is normal. Groups of at most k records are normal as a whole.

    Notes
    -----
    The reference is the point with the smallest local outlier factor, the first in canonical order
    on a tie; normal are the k records nearest to it, in canonical order on a tie. Factors are
    tied if they are equal in their first 33 bits. Duplicates are counted, so a group of equal
    records costs linear time and memory.
    """
    d = codes.shape[1]
    normal = np.ones(order.shape[0], np.bool_)
    for group in range(starts.shape[0] - 1):
        start, stop = starts[group], starts[group + 1]
        size = stop - start
        if size <= k:
            continue
        # First place of each distinct point; equal records are adjacent in canonical order.
        first = np.empty(size + 1, np.int64)
        distinct = 0
        for i in range(start, stop):
            is_new = i == start
            if not is_new:
                for j in range(d):
                    if codes[order[i], j] != codes[order[i - 1], j]:
                        is_new = True
                        break
            if is_new:
                first[distinct] = i
                distinct += 1
        first[distinct] = stop
        normal[start:stop] = False
        if distinct == 1:
            normal[start : start + k] = True
            continue
        points = np.empty((distinct, d), np.float64)
        weights = np.empty(distinct, np.int64)
        for p in range(distinct):
            points[p] = normalized[order[first[p]]]
            weights[p] = first[p + 1] - first[p]
        factors = local_outlier_factors(points, weights, min(neighbors, size - 1))
        for p in range(distinct):
            factors[p] = without_noise(factors[p])
        reference = np.argmin(factors)
        distances = np.empty(distinct, np.float64)
        for p in range(distinct):
            distances[p] = distance(points, reference, p)
        # The reference itself comes first even where another point is at distance 0 after rounding.
        distances[reference] = -1.0
        missing = k
        for p in np.argsort(distances, kind="mergesort"):
            taken = min(missing, weights[p])
            normal[first[p] : first[p] + taken] = True
            missing -= taken
            if missing == 0:
                break
    return normal
