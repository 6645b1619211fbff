"""Vantage points: distances as keys that cuts compare, and which point spreads its node most."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.selection import select_float
from anonspark.kernels.signatures import float64, int64, types

UNITS = 2.0**44
"""Units of a distance key in a distance of 1.

Whole multiples are evenly spread integers, whose medians histograms find as fast as those of any
other key. So many fit that distances stay below 2^63 with any weights.
"""

# More than the rounding of sums of up to some thousand terms, none of them negative, relative to
# the sum.
_ROUNDING = 1e-12


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
        Index of one of them. (Loops that cut its row out would take several times as long.)

    Returns
    -------
    int
        At least 0. Distances up to 500,000 fit.

    Examples
    --------
    >>> distance_key(np.array([[3.0, 4.0]]), 0, np.zeros((1, 2)), 0) / 2**44
    5.0
    """
    total = 0.0
    for j in range(points.shape[1]):
        difference = normalized[record, j] - points[point, j]
        total += difference * difference
    return int64(np.sqrt(total) * UNITS)


@kernel(int64[::1](float64[:, ::1], float64[:, ::1]))
def distances_from(normalized, points):
    """Return the distance of each record to the first point, see :func:`distance_key`."""
    distances = np.empty(normalized.shape[0], np.int64)
    for record in range(normalized.shape[0]):
        distances[record] = distance_key(normalized, record, points, 0)
    return distances


@kernel(types.Tuple((float64[:, ::1], float64[::1]))(float64[:, ::1], float64[:, ::1]))
def _distances_between(candidates, samples):
    """Return the distances from all candidates to all samples, and bounds of their spreads.

    ``distances`` (float64, shape (m, at least c)) is wider by up to 7 columns, which are ignored:
    so the compiler emits vector instructions for all loops over candidates. ``bounds`` is the sum
    of the absolute deviations of each candidate's distances from their mean.
    """
    m, d = samples.shape
    count = candidates.shape[0]
    width = (count + 7) // 8 * 8
    axes = np.zeros((d, width), np.float64)
    for c in range(count):
        for j in range(d):
            axes[j, c] = candidates[c, j]
    distances = np.zeros((m, width), np.float64)
    means = np.zeros(width, np.float64)
    for i in range(m):
        for j in range(d):
            value = samples[i, j]
            for c in range(width):
                difference = value - axes[j, c]
                distances[i, c] += difference * difference
        for c in range(width):
            distances[i, c] = np.sqrt(distances[i, c])
            means[c] += distances[i, c]
    for c in range(width):
        means[c] /= m
    bounds = np.zeros(width, np.float64)
    for i in range(m):
        for c in range(width):
            bounds[c] += abs(distances[i, c] - means[c])
    return distances, bounds


@kernel(float64(float64[:, ::1], int64, float64[::1]))
def _spread(distances, candidate, scratch):
    """Return the sum of the absolute deviations of a candidate's distances from their median."""
    m = distances.shape[0]
    for i in range(m):
        scratch[i] = distances[i, candidate]
    median = select_float(scratch, 0, m, m // 2)
    spread = 0.0
    for i in range(m):
        spread += abs(distances[i, candidate] - median)
    return spread


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
        Candidates, the one with the largest spread first. On a tie in the order given.

    Notes
    -----
    Spread is the sum of the absolute deviations of the distances from their median. Yianilos (1993)
    takes the second moment about it, which a few far records dominate. O(c m d) time.
    """
    distances, _ = _distances_between(candidates, samples)
    scratch = np.empty(samples.shape[0], np.float64)
    spreads = np.empty(candidates.shape[0], np.float64)
    for c in range(candidates.shape[0]):
        spreads[c] = -_spread(distances, c, scratch)
    return np.argsort(spreads, kind="mergesort")


@kernel(int64(float64[:, ::1], float64[:, ::1]))
def widest_spread(candidates, samples):
    """Return the first candidate of :func:`order_by_spread`, c and m at least 1.

    Notes
    -----
    No point has a smaller sum of absolute deviations than the median, so the sum of those from the
    mean is a bound. If it is less than the largest spread so far, by more than rounding makes of
    sums of so few numbers, a candidate is passed over: most are, and no median is computed.
    """
    distances, bounds = _distances_between(candidates, samples)
    scratch = np.empty(samples.shape[0], np.float64)
    best, largest = -1, -1.0
    for _ in range(candidates.shape[0]):
        c = 0
        for other in range(1, candidates.shape[0]):
            if bounds[other] > bounds[c]:
                c = other
        if bounds[c] * (1.0 + _ROUNDING) < largest:
            break
        bounds[c] = -1.0
        spread = _spread(distances, c, scratch)
        if spread > largest or (spread == largest and c < best):
            best, largest = c, spread
    return best
