"""Records moved apart so that small boxes are also boxes that count queries are right about."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import float64

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
