"""Numbers between ascending steps: counted by class, and those looked for that are near some."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import boolean, float64, int64, types

_NUMBERS = types.Array(float64, 1, "C", readonly=True)

CELLS = 4096
"""Cells of the same width, from the smallest step to the largest, that tell where to look."""


@kernel(int64(float64, float64, float64))
def cell_of(number, first, scale):
    """Return the cell of a number; none is before that of a smaller one."""
    cell = (number - first) * scale
    # Of what is no number, too.
    if not cell > 0:
        return 0
    return CELLS - 1 if cell >= CELLS else int64(cell)


@kernel(types.Tuple((int64[::1], float64))(float64[::1]))
def find_cells(steps):
    """Return the first step of each cell, and one more for the end, and cells for each unit."""
    span = steps[-1] - steps[0]
    scale = CELLS / span if 0 < span < np.inf else 0.0
    starts = np.zeros(CELLS + 1, np.int64)
    for step in steps:
        starts[cell_of(step, steps[0], scale) + 1] += 1
    return np.cumsum(starts), scale


@kernel(int64(float64, float64[::1], int64[::1], float64))
def step_of(number, steps, starts, scale):
    """Return the first step that is at least a number; how many there are if there is none."""
    cell = cell_of(number, steps[0], scale)
    low, high = starts[cell], starts[cell + 1]
    while low < high:
        middle = (low + high) // 2
        if steps[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(int64[::1](_NUMBERS, int64[::1], float64[::1], boolean[::1], int64[:, ::1]))
def count_between(numbers, classes, steps, wanted, sums):
    """Count numbers up to each step and above the one before, by class, and find some of them.

    Parameters
    ----------
    numbers : float64 ndarray of shape (n,)
        NaN where there is none.
    classes : int64 ndarray of shape (n,)
        From c on it has none, and is neither counted nor found.
    steps : float64 ndarray of shape (s,)
        Ascending; at least one.
    wanted : bool ndarray of shape (s,)
        Whether the numbers up to a step are to be found.
    sums : int64 ndarray of shape (s, c)
        To which is added.

    Returns
    -------
    int64 ndarray
        Places of the numbers whose step is wanted, ascending.

    Notes
    -----
    O(n) time where steps are spread over their range, O(n log s) always.
    """
    starts, scale = find_cells(steps)
    found = np.empty(len(numbers), np.int64)
    number = 0
    for i in range(len(numbers)):
        if classes[i] < sums.shape[1] and numbers[i] == numbers[i]:
            step = step_of(numbers[i], steps, starts, scale)
            if step < len(steps):
                sums[step, classes[i]] += 1
                if wanted[step]:
                    found[number] = i
                    number += 1
    return found[:number].copy()
