"""Order records by their content alone."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import boolean, int64, void


@kernel(boolean(int64[:, ::1], int64[::1], int64, int64))
def comes_before(codes, hashes, a, b):
    """Return whether record a stands before record b: by codes, then by hash."""
    for j in range(codes.shape[1]):
        if codes[a, j] != codes[b, j]:
            return codes[a, j] < codes[b, j]
    return hashes[a] < hashes[b]


@kernel(void(int64[:, ::1], int64[::1], int64[::1], int64[::1]))
def sort_groups(codes, hashes, order, starts):
    """Sort the records of each group canonically, in place.

    Parameters
    ----------
    codes : int64 ndarray of shape (n, d)
        Codes of the quasi-identifiers, in configuration order.
    hashes : int64 ndarray of shape (n,)
        Keyed hash of each record's whole content.
    order : int64 ndarray of shape (n,)
        Records, group by group. Sorted by codes, then hash. Records equal in both are equal in
        every published column, so their order among themselves is without meaning.
    starts : int64 ndarray of shape (groups + 1,)
        Where each group begins in ``order``.

    Notes
    -----
    Merge sort: O(n log n) comparisons over the largest group, O(n) memory.

    Examples
    --------
    >>> codes, hashes, order = np.array([[30], [20], [20]]), np.array([1, 9, 5]), np.arange(3)
    >>> sort_groups(codes, hashes, order, np.array([0, 3]))
    >>> order.tolist()
    [2, 1, 0]
    """
    buffer = np.empty_like(order)
    for group in range(starts.shape[0] - 1):
        start, stop = starts[group], starts[group + 1]
        run = 8
        for low in range(start, stop, run):
            for i in range(low + 1, min(low + run, stop)):
                record = order[i]
                position = i
                while position > low and comes_before(codes, hashes, record, order[position - 1]):
                    order[position] = order[position - 1]
                    position -= 1
                order[position] = record
        while run < stop - start:
            for low in range(start, stop, 2 * run):
                middle, high = min(low + run, stop), min(low + 2 * run, stop)
                left, right = low, middle
                for position in range(low, high):
                    take_right = right < high and (
                        left >= middle or comes_before(codes, hashes, order[right], order[left])
                    )
                    if take_right:
                        buffer[position] = order[right]
                        right += 1
                    else:
                        buffer[position] = order[left]
                        left += 1
            order[start:stop] = buffer[start:stop]
            run *= 2
