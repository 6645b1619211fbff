"""Sort numbers stably."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import float64, int64, void

# Up to so many are sorted roughly at once; beyond, one far value would make buckets too coarse.
_FEW_VALUES = 256

# Runs that are sorted by insertion before they are merged.
_RUN = 16


@kernel(void(float64[::1], int64[::1]))
def _sort_few(values, order):
    """Sort as :func:`sort_stably`: into buckets first, then by insertion."""
    n = values.shape[0]
    low = high = values[0]
    for i in range(1, n):
        low = min(low, values[i])
        high = max(high, values[i])
    width = high - low
    if not 0.0 < width < np.inf:
        width = np.inf
    # Shares of the width are in the order of the values, so only those of one bucket may have to
    # change positions.
    buckets = np.empty(n, np.int64)
    ends = np.zeros(n + 1, np.int64)
    for i in range(n):
        bucket = 0
        if width < np.inf:
            bucket = int64((values[i] - low) / width * (n - 1))
        buckets[i] = bucket
        ends[bucket + 1] += 1
    for bucket in range(n):
        ends[bucket + 1] += ends[bucket]
    for i in range(n):
        order[ends[buckets[i]]] = i
        ends[buckets[i]] += 1
    for i in range(1, n):
        record = order[i]
        value, position = values[record], i
        while position > 0 and values[order[position - 1]] > value:
            order[position] = order[position - 1]
            position -= 1
        order[position] = record


@kernel(void(float64[::1], int64[::1]))
def sort_stably(values, order):
    """Write the positions of numbers in ascending order, equal ones in the order of the array.

    Parameters
    ----------
    values : float64 ndarray of shape (n,)
        No NaN among them.
    order : int64 ndarray of shape (n,)
        Filled with the result of ``np.argsort(values, kind="stable")``.

    Notes
    -----
    Numba's stable sort takes several times as long. Merge sort: O(n log n) time, O(n) memory. Few
    values that are evenly spread take linear time.

    Examples
    --------
    >>> order = np.zeros(3, np.int64)
    >>> sort_stably(np.array([2.0, 1.0, 2.0]), order)
    >>> order.tolist()
    [1, 0, 2]
    """
    n = values.shape[0]
    if n == 0:
        return
    if n <= _FEW_VALUES:
        _sort_few(values, order)
        return
    keys, other_keys = values.copy(), np.empty(n, np.float64)
    rows, other = np.arange(n), np.empty(n, np.int64)
    for low in range(0, n, _RUN):
        for i in range(low + 1, min(low + _RUN, n)):
            key, record, position = keys[i], rows[i], i
            while position > low and keys[position - 1] > key:
                keys[position] = keys[position - 1]
                rows[position] = rows[position - 1]
                position -= 1
            keys[position], rows[position] = key, record
    run = _RUN
    while run < n:
        for low in range(0, n, 2 * run):
            middle, high = min(low + run, n), min(low + 2 * run, n)
            left, right, position = low, middle, low
            while left < middle and right < high:
                if keys[right] < keys[left]:
                    other_keys[position], other[position] = keys[right], rows[right]
                    right += 1
                else:
                    other_keys[position], other[position] = keys[left], rows[left]
                    left += 1
                position += 1
            for i in range(left, middle):
                other_keys[position], other[position] = keys[i], rows[i]
                position += 1
            for i in range(right, high):
                other_keys[position], other[position] = keys[i], rows[i]
                position += 1
        keys, other_keys = other_keys, keys
        rows, other = other, rows
        run *= 2
    order[:] = rows
