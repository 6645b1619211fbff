"""Places on the Hilbert curve, which never leaves a neighbourhood before it has filled it."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import int64


@kernel(int64[::1](int64[:, ::1], int64))
def hilbert_keys(cells, bits):
    """Return how far along the Hilbert curve each cell of a grid is (Skilling 2004).

    Parameters
    ----------
    cells : int64 ndarray of shape (d, n)
        Coordinates, axis by axis, from 0 to ``2**bits - 1``; ``d`` at least 1.
    bits : int
        Bits of a coordinate, at least 1; ``d * bits`` at most 62.

    Returns
    -------
    int64 ndarray of shape (n,)
        A number from 0 to ``2**(d * bits) - 1``. Cells whose numbers differ by 1 touch.
    """
    d, n = cells.shape
    keys = np.empty(n, np.int64)
    place = np.empty(d, np.int64)
    for record in range(n):
        for j in range(d):
            place[j] = cells[j, record]
        # Undo the reflections and rotations of each level, from the coarsest on.
        for level in range(bits - 1, 0, -1):
            bit = 1 << level
            below = bit - 1
            for j in range(d):
                if place[j] & bit:
                    place[0] ^= below
                else:
                    difference = (place[0] ^ place[j]) & below
                    place[0] ^= difference
                    place[j] ^= difference
        # Gray code.
        for j in range(1, d):
            place[j] ^= place[j - 1]
        flipped = 0
        for level in range(bits - 1, 0, -1):
            if place[d - 1] & (1 << level):
                flipped ^= (1 << level) - 1
        key = 0
        for level in range(bits - 1, -1, -1):
            for j in range(d):
                key = (key << 1) | (((place[j] ^ flipped) >> level) & 1)
        keys[record] = key
    return keys
