"""Full-domain recoding on distinct tuples: rolling them up, and judging the classes they form.

A table of distinct tuples has one row for every combination that occurs of groups of the
quasi-identifiers (columns 0 to d - 1) and numbers of the sensitive values (the columns behind
them), and the number of records that have it. Its rows are in lexicographic order, and stay so:
groups are numbered in the order of their hierarchy, so that a coarser group takes in neighbours.
Classes are runs of rows, and nothing is ever sorted or hashed.
"""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.criteria import (
    REQUIREMENTS,
    all_certain,
    clear_counts,
    first_unsatisfied,
)
from anonspark.kernels.signatures import boolean, int32, int64, types, uint64, void


@kernel(boolean(int32[:, ::1], int64, int64, int64, int64))
def _equal(codes, row, other, start, stop):
    """Return whether two rows agree in the columns from ``start`` to ``stop``."""
    column = start
    while column < stop and codes[row, column] == codes[other, column]:
        column += 1
    return column >= stop


@kernel(boolean(int32[:, ::1], int64, int64, int64))
def _comes_first(codes, row, other, start):
    """Return whether a row is not behind another one, by the columns from ``start`` on."""
    column = start
    last = codes.shape[1] - 1
    while column < last and codes[row, column] == codes[other, column]:
        column += 1
    return codes[row, column] <= codes[other, column]


@kernel(void(int32[:, ::1], int64, int64[::1], int64[::1], int64[::1], int64))
def _merge_segments(codes, column, order, spare, bounds, segments):
    """Merge neighbouring segments, each in the order of the columns behind one, pair by pair."""
    while segments > 1:
        merged = 0
        for pair in range(0, segments, 2):
            start = bounds[pair]
            if pair + 1 < segments:
                middle, stop = bounds[pair + 1], bounds[pair + 2]
                left, right = start, middle
                for position in range(start, stop):
                    if right == stop or (
                        left < middle and _comes_first(codes, order[left], order[right], column + 1)
                    ):
                        spare[position] = order[left]
                        left += 1
                    else:
                        spare[position] = order[right]
                        right += 1
                order[start:stop] = spare[start:stop]
            bounds[merged] = start
            merged += 1
        bounds[merged] = bounds[segments]
        segments = merged


@kernel(types.Tuple((int32[:, ::1], int64[::1]))(int32[:, ::1], int64[::1], int64, int32[::1]))
def raise_column(codes, counts, column, coarser):
    """Replace the groups of one column by coarser ones, and add up tuples that become equal.

    Parameters
    ----------
    codes : int32 ndarray of shape (n, c)
        Distinct tuples in lexicographic order.
    counts : int64 ndarray of shape (n,)
        Records with each.
    column : int
    coarser : int32 ndarray of shape (groups,)
        The coarser group of every group of the column, never falling.

    Returns
    -------
    codes : int32 ndarray of shape (m, c)
        Distinct tuples in lexicographic order.
    counts : int64 ndarray of shape (m,)

    Notes
    -----
    O(n c log m) time if up to m groups become one, O(n c) for the last column.

    Examples
    --------
    >>> codes, coarser = np.array([[0], [1], [2]], np.int32), np.array([0, 0, 1], np.int32)
    >>> tuples, records = raise_column(codes, np.array([5, 2, 9]), 0, coarser)
    >>> tuples.tolist(), records.tolist()
    ([[0], [1]], [7, 9])
    """
    n, c = codes.shape
    raised = np.empty((n, c), np.int32)
    sums = np.empty(n, np.int64)
    order = np.arange(n)
    spare = np.empty(n, np.int64)
    bounds = np.empty(n + 1, np.int64)
    classes = 0
    start = 0
    while start < n:
        group = coarser[codes[start, column]]
        bounds[0] = start
        segments = 1
        stop = start + 1
        while (
            stop < n
            and coarser[codes[stop, column]] == group
            and _equal(codes, stop - 1, stop, 0, column)
        ):
            if codes[stop, column] != codes[stop - 1, column]:
                bounds[segments] = stop
                segments += 1
            stop += 1
        bounds[segments] = stop
        if segments > 1 and column + 1 < c:
            _merge_segments(codes, column, order, spare, bounds, segments)
        for position in range(start, stop):
            row = order[position]
            if position > start and _equal(codes, order[position - 1], row, column + 1, c):
                sums[classes - 1] += counts[row]
                continue
            for other in range(c):
                raised[classes, other] = codes[row, other]
            raised[classes, column] = group
            sums[classes] = counts[row]
            classes += 1
        start = stop
    return raised[:classes].copy(), sums[:classes].copy()


@kernel(int64(int32[:, ::1], int64, int64))
def _end_of_class(codes, start, d):
    stop = start + 1
    if codes.shape[1] > d:
        while stop < codes.shape[0] and _equal(codes, start, stop, 0, d):
            stop += 1
    return stop


@kernel(
    boolean(
        int32[:, ::1], int64[::1], int64, int64, int64, int64, REQUIREMENTS, int64[::1], int64[::1]
    )
)
def _satisfies(codes, counts, d, start, stop, size, requirements, tallies, present):
    """Return whether a class satisfies the requirements beyond k."""
    distinct = 0
    for row in range(start, stop):
        for column in range(d, codes.shape[1]):
            value = codes[row, column]
            if tallies[value] == 0:
                present[distinct] = value
                distinct += 1
            tallies[value] += counts[row]
    violated = first_unsatisfied(requirements, tallies, present, distinct, size)
    clear_counts(tallies, present, distinct)
    return violated < 0


@kernel(
    types.UniTuple(int64, 7)(int32[:, ::1], int64[::1], int64, REQUIREMENTS, int64[::1], int64[::1])
)
def score_classes(codes, counts, d, requirements, first, groups):
    """Judge the classes that tuples form, and sum their sizes.

    Parameters
    ----------
    codes : int32 ndarray of shape (n, d + s)
        Distinct tuples in lexicographic order.
    counts : int64 ndarray of shape (n,)
        Records with each, less than 2^32 together.
    d : int
        Quasi-identifiers.
    requirements : Requirements
        Of the s sensitive attributes, whose values are numbered through.
    first : int64 ndarray of shape (d,) or (0,)
        Where the groups of each quasi-identifier begin in ``groups``. Empty if they are not
        counted.
    groups : int64 ndarray
        Records of the classes that satisfy the requirements in every group of every
        quasi-identifier are added to it.

    Returns
    -------
    classes, satisfied, suppressed : int
        Classes, those that satisfy all requirements, records of the others.
    squares_low, squares_high, satisfied_squares_low, satisfied_squares_high : int
        Sums of the squared sizes of all classes and of those, as low + high * 2^32.

    Notes
    -----
    O(n (d + s)) time, and one pass over the values present in each class of at least k records.
    """
    n = codes.shape[0]
    tallies = np.zeros(requirements.shares.shape[0], np.int64)
    present = np.empty(requirements.shares.shape[0], np.int64)
    k, no_others = requirements.k, requirements.kinds.shape[0] == 0
    classes = satisfied = suppressed = 0
    low = high = satisfied_low = satisfied_high = 0
    start = 0
    while start < n:
        stop = _end_of_class(codes, start, d)
        size = 0
        for row in range(start, stop):
            size += counts[row]
        square = uint64(size) * uint64(size)
        square_low, square_high = int64(square & uint64(0xFFFFFFFF)), int64(square >> uint64(32))
        classes += 1
        low += square_low
        high += square_high
        # Calls cost more than what most classes need.
        if size >= k and (
            no_others
            or all_certain(requirements, size)
            or _satisfies(codes, counts, d, start, stop, size, requirements, tallies, present)
        ):
            satisfied += 1
            satisfied_low += square_low
            satisfied_high += square_high
            for column in range(first.shape[0]):
                groups[first[column] + codes[start, column]] += size
        else:
            suppressed += size
        start = stop
    return classes, satisfied, suppressed, low, high, satisfied_low, satisfied_high


@kernel(types.Tuple((int64[::1], int64[::1]))(int32[:, ::1], int64[::1], int64, REQUIREMENTS))
def find_utility_classes(codes, counts, d, requirements):
    """Return the first row of each class that satisfies the requirements, and its records.

    Parameters: :func:`score_classes`.
    """
    n = codes.shape[0]
    tallies = np.zeros(requirements.shares.shape[0], np.int64)
    present = np.empty(requirements.shares.shape[0], np.int64)
    k, no_others = requirements.k, requirements.kinds.shape[0] == 0
    rows = np.empty(n, np.int64)
    sizes = np.empty(n, np.int64)
    classes = 0
    start = 0
    while start < n:
        stop = _end_of_class(codes, start, d)
        size = 0
        for row in range(start, stop):
            size += counts[row]
        if size >= k and (
            no_others
            or all_certain(requirements, size)
            or _satisfies(codes, counts, d, start, stop, size, requirements, tallies, present)
        ):
            rows[classes] = start
            sizes[classes] = size
            classes += 1
        start = stop
    return rows[:classes].copy(), sizes[:classes].copy()
