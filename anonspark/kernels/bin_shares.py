"""Spread records of published intervals evenly over what these cover, and sum them by bins."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import float64, int64, void


@kernel(
    void(
        float64[::1],
        float64[::1],
        float64[::1],
        float64[::1],
        float64[::1],
        float64[::1],
        int64[::1],
        int64[:, ::1],
        float64,
        int64[:, ::1],
    )
)
def spread_over_bins(low, high, points, total, missing, edges, regions, counts, unit, sums):
    """Add the records of each class to the bins that the interval of their label has a part in.

    Parameters
    ----------
    low, high, points, total, missing : float64 ndarray of shape (r,)
        Regions that are one run each. See :class:`anonspark.core.uniform_mass.Spread`.
    edges : float64 ndarray of shape (e,)
        Last value of each bin but the last one, ascending.
    regions : int64 ndarray of shape (n,)
        The region of each label.
    counts : int64 ndarray of shape (n, >= c)
        Records with each label, by class.
    unit : float
        Shares are rounded to whole multiples of it.
    sums : int64 ndarray of shape (e + 2, c)
        Gets the records by bin, in units. The last bin is that of missing values.

    Notes
    -----
    O(n (log e + c b)) time, b bins that an interval reaches.
    """
    classes = sums.shape[1]
    for i in range(len(regions)):
        r = regions[i]
        before = 0.0
        bin_index = np.searchsorted(edges, low[r])
        while bin_index <= len(edges):
            if bin_index < len(edges):
                common = min(high[r], edges[bin_index]) - low[r]
                below = (common + points[r]) / total[r] if common >= 0 else 0.0
            else:
                below = 1 - missing[r]
            units = int64(np.rint(max(below - before, 0.0) / unit))
            if units:
                for t in range(classes):
                    sums[bin_index, t] += units * counts[i, t]
            before = below
            if bin_index < len(edges) and edges[bin_index] >= high[r]:
                # Up to the next edges there is no more of it, but for what rounding left.
                bin_index = len(edges)
            else:
                bin_index += 1
        units = int64(np.rint(missing[r] / unit))
        if units:
            for t in range(classes):
                sums[len(edges) + 1, t] += units * counts[i, t]
