"""Vantage points: distances as keys that cuts compare, and which point sees its node best."""

from __future__ import annotations

import numpy as np
from numba import float64, int64

from anonspark.kernels.compiling import kernel

UNITS = 2.0**44
"""Units of a distance key in a distance of 1.

Whole multiples are evenly spread integers, whose medians histograms find as fast as those of any
other key; so many fit that distances stay below 2^63 with any weights.
"""


@kernel(int64(float64[:, ::1], int64, float64[:, ::1], int64))
def distance_key(normalized, record, points, point):
    """Return a record's Euclidean distance to a point, in units of 2^-44, rounded down.

    Parameters
    ----------
    normalized : float64 ndarray of shape (n, d)
        Normalized positions of the records.
    record : int
    points : float64 ndarray of shape (m, d)
        Normalized positions of vantage points.
    point : int
        Which of them. (Loops that cut its row out would take several times as long.)

    Returns
    -------
    int
        At least 0. Distances up to 500,000 fit.
    """
    total = 0.0
    for j in range(points.shape[1]):
        difference = normalized[record, j] - points[point, j]
        total += difference * difference
    return int64(np.sqrt(total) * UNITS)


@kernel(int64[::1](float64[:, ::1], float64[:, ::1]))
def order_by_spread(candidates, samples):
    """Sort candidates for a vantage point by how much the distances from them vary.

    Parameters
    ----------
    candidates : float64 ndarray of shape (c, d)
        Normalized positions.
    samples : float64 ndarray of shape (m, d)
        Normalized positions of some records of the node, m at least 1.

    Returns
    -------
    int64 ndarray of shape (c,)
        Candidates, the one with the largest spread first; on a tie in the order given.

    Notes
    -----
    Spread is the sum of the absolute deviations of the distances from their median. Yianilos (1993)
    takes the second moment about it, which a few far records dominate. O(c m d) time.
    """
    m = samples.shape[0]
    spreads = np.empty(candidates.shape[0], np.float64)
    distances = np.empty(m, np.float64)
    for c in range(candidates.shape[0]):
        for i in range(m):
            total = 0.0
            for j in range(samples.shape[1]):
                difference = samples[i, j] - candidates[c, j]
                total += difference * difference
            distances[i] = np.sqrt(total)
        median = np.sort(distances)[m // 2]
        spread = 0.0
        for i in range(m):
            spread += abs(distances[i] - median)
        spreads[c] = -spread
    return np.argsort(spreads, kind="mergesort")
