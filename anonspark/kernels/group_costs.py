"""What groups of records cost: their sizes times the edges of their boxes.

The sum over all groups is ``gcp_total``, but for hierarchies, whose places stand for them.
"""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import float64, int64


@kernel(float64[:, ::1](float64[:, ::1], int64[::1]))
def varying_axes(points, members):
    """Return the values of some points axis by axis, without the axes on which all are equal."""
    size, d = members.shape[0], points.shape[1]
    axes = np.empty((d, size), np.float64)
    count = 0
    for j in range(d):
        varies = False
        for i in range(size):
            axes[count, i] = points[members[i], j]
            varies |= axes[count, i] != axes[count, 0]
        if varies:
            count += 1
    return axes[:count].copy()


@kernel(float64(float64[:, ::1], int64[::1], int64))
def group_cost(axes, group_of, groups):
    """Return the sum over all groups of size times the sum of the box's edges."""
    d, n = axes.shape
    sizes = np.zeros(groups, np.int64)
    low = np.full((groups, d), np.inf)
    high = np.full((groups, d), -np.inf)
    for i in range(n):
        group = group_of[i]
        sizes[group] += 1
        for j in range(d):
            low[group, j] = min(low[group, j], axes[j, i])
            high[group, j] = max(high[group, j], axes[j, i])
    total = 0.0
    for group in range(groups):
        edges = 0.0
        for j in range(d):
            edges += high[group, j] - low[group, j]
        total += sizes[group] * edges
    return total
