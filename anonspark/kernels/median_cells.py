"""Cells of neighbouring points: a tree of cuts near the median."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.paths import child_path
from anonspark.kernels.signatures import boolean, float64, int64, types, uint64
from anonspark.kernels.sorting import sort_stably

# How far a varied tree strays from medians and true widths, so that no two trees have the same
# cells.
_VARIED_FRACTION = 0.3
_VARIED_WIDTH = 0.6


@kernel(types.Tuple((int64[::1], int64[::1]))(float64[:, ::1], int64, int64, boolean, uint64))
def cut_cells(points, largest, unit, varied, state):
    """Cut points into cells of at most ``largest`` by a tree of cuts near the median.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d)
        What is cut, along the widest axis of each node.
    largest : int
        Largest cell, at least twice ``unit``, or 1; equal points may exceed it by ``unit``.
    unit : int
        Each cell but the last has a multiple of this many points.
    varied : bool
        Whether cuts stray from the median and from the widest axis, as ``state`` says.
    state : uint64
        State of the generator; fixed numbers, no chance.

    Returns
    -------
    order : int64 ndarray of shape (n,)
        Points, cell by cell.
    starts : int64 ndarray of shape (cells + 1,)
        Where each cell begins in ``order``.
    """
    n, d = points.shape
    order = np.arange(n)
    is_start = np.zeros(n + 1, np.bool_)
    is_start[n] = True
    members = np.empty(n, np.int64)
    places = np.empty(n, np.int64)
    values = np.empty(n, np.float64)
    stack = np.empty((256, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    depth = 1 if n > 0 else 0
    while depth > 0:
        depth -= 1
        start, stop = stack[depth, 0], stack[depth, 1]
        is_start[start] = True
        if stop - start <= largest:
            continue
        axis, widest = 0, 0.0
        for j in range(d):
            low = high = points[order[start], j]
            for i in range(start + 1, stop):
                value = points[order[i], j]
                low = min(low, value)
                high = max(high, value)
            width = high - low
            if varied:
                state = child_path(state, uint64(0))
                share = float64(state >> uint64(40)) / 2.0**24
                width *= 1.0 + _VARIED_WIDTH * (2.0 * share - 1.0)
            if width > widest:
                axis, widest = j, width
        if widest <= 0.0:
            place = start + largest
            while place + unit <= stop:
                is_start[place] = True
                place += largest
            continue
        size = stop - start
        members[:size] = order[start:stop]
        for i in range(size):
            values[i] = points[members[i], axis]
        sort_stably(values[:size], places[:size])
        for i in range(size):
            order[start + i] = members[places[i]]
        fraction = 0.5
        if varied:
            state = child_path(state, uint64(0))
            share = float64(state >> uint64(40)) / 2.0**24
            fraction += _VARIED_FRACTION * (2.0 * share - 1.0)
        units = (stop - start) // unit
        middle = start + unit * min(max(int64(units * fraction), 1), units - 1)
        stack[depth, 0], stack[depth, 1] = middle, stop
        depth += 1
        stack[depth, 0], stack[depth, 1] = start, middle
        depth += 1
    return order, np.flatnonzero(is_start)
