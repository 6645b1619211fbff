"""Order statistics in linear time."""

from __future__ import annotations

from numba import float64, int64

from anonspark.kernels.compiling import kernel


def _select(values, start, stop, rank):
    """Return the element of ``values[start:stop]`` that sorting would put at ``start + rank``.

    Parameters
    ----------
    values : ndarray
        Scratch space; ``values[start:stop]`` is permuted.
    start, stop : int
        Bounds of the slice, ``start < stop``.
    rank : int
        Zero-based rank inside the slice, ``0 <= rank < stop - start``.

    Returns
    -------
    scalar
        The order statistic. Exact: no interpolation.

    Notes
    -----
    Quickselect with a three-way partition, so that runs of equal values cost linear time. The pivot
    is drawn by a fixed linear congruential generator: deterministic, and no input that occurs in
    practice makes it quadratic.
    """
    low = start
    high = stop - 1
    target = start + rank
    state = 88172645463325252
    while low < high:
        state = (state * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
        pivot = values[low + (state >> 33) % (high - low + 1)]
        smaller = low
        cursor = low
        larger = high
        while cursor <= larger:
            value = values[cursor]
            if value < pivot:
                values[cursor] = values[smaller]
                values[smaller] = value
                smaller += 1
                cursor += 1
            elif value > pivot:
                values[cursor] = values[larger]
                values[larger] = value
                larger -= 1
            else:
                cursor += 1
        if target < smaller:
            high = smaller - 1
        elif target > larger:
            low = larger + 1
        else:
            return pivot
    return values[target]


select = kernel(int64(int64[::1], int64, int64, int64))(_select)
select_float = kernel(float64(float64[::1], int64, int64, int64))(_select)
