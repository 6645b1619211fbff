"""Find order statistics in linear time."""

from __future__ import annotations

from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import float64, int64

# Slices up to here are sorted by insertion.
_FEW_VALUES = 12


def _select(values, start, stop, rank):
    """Return the element of ``values[start:stop]`` that sorting would put at ``start + rank``.

    The slice is permuted, and ``0 <= rank < stop - start``. Quickselect around the median of three,
    without a branch for each value, which a processor would guess wrong half of the time. Values
    equal to the pivot are put apart, so that runs of them cost linear time. The three are drawn by
    a fixed linear congruential generator: deterministic, and no input that occurs in practice makes
    it quadratic.
    """
    low = start
    high = stop
    target = start + rank
    state = 88172645463325252
    # Nothing in the slice is smaller than this, once a pivot was too small.
    floor = values[start]
    bounded = False
    while high - low > _FEW_VALUES:
        size = high - low
        state = (state * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
        a = values[low + (state >> 33) % size]
        b = values[low + (state >> 13) % size]
        c = values[low + (state >> 23) % size]
        pivot = max(min(a, b), min(max(a, b), c))
        middle = low
        if bounded and pivot == floor:
            for i in range(low, high):
                value = values[i]
                values[i] = values[middle]
                values[middle] = value
                middle += value == pivot
            if target < middle:
                return pivot
            low = middle
            continue
        for i in range(low, high):
            value = values[i]
            values[i] = values[middle]
            values[middle] = value
            middle += value < pivot
        if target < middle:
            high = middle
        else:
            low, floor, bounded = middle, pivot, True
    for i in range(low + 1, high):
        value = values[i]
        position = i
        while position > low and values[position - 1] > value:
            values[position] = values[position - 1]
            position -= 1
        values[position] = value
    return values[target]


select = kernel(int64(int64[::1], int64, int64, int64))(_select)
select_float = kernel(float64(float64[::1], int64, int64, int64))(_select)
