"""Full-domain recoding on distinct tuples: rolling them up, and judging the classes they form.

A table of distinct tuples has one row for every combination that occurs of groups of the
quasi-identifiers (columns 0 to d - 1) and numbers of the sensitive values (the columns behind
them), and tells how many records have it.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, int32, int64, njit, types, uint64

from anonspark.kernels.criteria import REQUIREMENTS, clear_counts, first_unsatisfied

__all__ = ["count_groups", "judge_classes", "roll_up"]


@njit(int64(int64), cache=True)
def _slots(rows):
    """Return the size of a hash table: a power of two, at least twice the rows."""
    size = 16
    while size < 2 * rows:
        size *= 2
    return size


@njit(int64(int32[:, ::1], int64, int64, int64), cache=True)
def _slot(codes, row, columns, mask):
    """Return where the search for a row's first columns begins."""
    state = uint64(0x9E3779B97F4A7C15)
    for j in range(columns):
        state = (state ^ uint64(codes[row, j])) * uint64(0xBF58476D1CE4E5B9)
        state ^= state >> uint64(29)
    state *= uint64(0x94D049BB133111EB)
    return int64((state ^ (state >> uint64(32))) & uint64(mask))


@njit(boolean(int32[:, ::1], int64, int64, int64), cache=True)
def _equal(codes, one, other, columns):
    equal = 0
    while equal < columns and codes[one, equal] == codes[other, equal]:
        equal += 1
    return equal == columns


@njit(
    types.Tuple((int32[:, ::1], int64[::1]))(int32[:, ::1], int64[::1], int32[::1], int64[::1]),
    cache=True,
)
def roll_up(codes, counts, maps, first):
    """Replace groups by coarser ones, and add up the tuples that become equal.

    Parameters
    ----------
    codes : int32 ndarray of shape (n, c)
        Distinct tuples.
    counts : int64 ndarray of shape (n,)
        Records with each.
    maps : int32 ndarray
        The coarser group of every group, column after column.
    first : int64 ndarray of shape (c,)
        Where the groups of each column begin in ``maps``; -1 for a column that stays as it is.

    Returns
    -------
    codes : int32 ndarray of shape (m, c)
        Distinct tuples, in the order of their first appearance.
    counts : int64 ndarray of shape (m,)

    Notes
    -----
    O(n c) time: one look into a hash table a row.
    """
    n, c = codes.shape
    rolled = np.empty((n, c), np.int32)
    sums = np.empty(n, np.int64)
    mask = _slots(n) - 1
    table = np.full(mask + 1, -1, np.int32)
    found = 0
    for i in range(n):
        # Written behind those found: it stays there if it is new.
        for j in range(c):
            code = codes[i, j]
            rolled[found, j] = code if first[j] < 0 else maps[first[j] + code]
        slot = _slot(rolled, found, c, mask)
        while table[slot] >= 0 and not _equal(rolled, table[slot], found, c):
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = found
            sums[found] = counts[i]
            found += 1
        else:
            sums[table[slot]] += counts[i]
    return rolled[:found].copy(), sums[:found].copy()


@njit(
    types.Tuple((int64[::1], int64[::1], boolean[::1]))(
        int32[:, ::1], int64[::1], int64, REQUIREMENTS
    ),
    cache=True,
)
def judge_classes(codes, counts, d, requirements):
    """Form classes of the tuples that are equal in the first d columns, and judge each.

    Parameters
    ----------
    codes : int32 ndarray of shape (n, d + s)
        Distinct tuples.
    counts : int64 ndarray of shape (n,)
        Records with each.
    d : int
        Quasi-identifiers.
    requirements : Requirements
        Of the s sensitive attributes, whose values are numbered through.

    Returns
    -------
    members : int64 ndarray of shape (classes,)
        One row of each class, the first.
    sizes : int64 ndarray of shape (classes,)
        Records.
    satisfied : bool ndarray of shape (classes,)
        Whether the class satisfies all requirements.

    Notes
    -----
    O(n (d + s)) time, and one look at the values present in each class of at least k records.
    """
    n, c = codes.shape
    members = np.empty(n, np.int64)
    sizes = np.zeros(n, np.int64)
    owner = np.empty(n, np.int64)
    classes = 0
    if c == d:
        for i in range(n):
            members[i] = owner[i] = i
            sizes[i] = counts[i]
        classes = n
    else:
        mask = _slots(n) - 1
        table = np.full(mask + 1, -1, np.int64)
        for i in range(n):
            slot = _slot(codes, i, d, mask)
            while table[slot] >= 0 and not _equal(codes, members[table[slot]], i, d):
                slot = (slot + 1) & mask
            if table[slot] < 0:
                table[slot] = classes
                members[classes] = i
                classes += 1
            owner[i] = table[slot]
            sizes[owner[i]] += counts[i]
    satisfied = sizes[:classes] >= requirements.k
    if requirements.kinds.shape[0] > 0:
        starts = np.zeros(classes + 1, np.int64)
        for i in range(n):
            starts[owner[i] + 1] += 1
        for one in range(classes):
            starts[one + 1] += starts[one]
        place = starts[:classes].copy()
        order = np.empty(n, np.int64)
        for i in range(n):
            order[place[owner[i]]] = i
            place[owner[i]] += 1
        tallies = np.zeros(requirements.shares.shape[0], np.int64)
        present = np.empty(requirements.shares.shape[0], np.int64)
        for one in range(classes):
            if not satisfied[one]:
                continue
            distinct = 0
            for place_in_order in range(starts[one], starts[one + 1]):
                i = order[place_in_order]
                for j in range(d, c):
                    value = codes[i, j]
                    if tallies[value] == 0:
                        present[distinct] = value
                        distinct += 1
                    tallies[value] += counts[i]
            violated = first_unsatisfied(requirements, tallies, present, distinct, sizes[one])
            satisfied[one] = violated < 0
            clear_counts(tallies, present, distinct)
    return members[:classes].copy(), sizes[:classes].copy(), satisfied


@njit(
    int64[::1](int32[:, ::1], int64[::1], int64[::1], boolean[::1], int64[::1], int64),
    cache=True,
)
def count_groups(codes, members, sizes, chosen, first, groups):
    """Count the records of the chosen classes in every group of every quasi-identifier.

    Parameters
    ----------
    codes : int32 ndarray of shape (n, at least d)
    members, sizes : int64 ndarray of shape (classes,)
        As :func:`judge_classes` returns them.
    chosen : bool ndarray of shape (classes,)
    first : int64 ndarray of shape (d,)
        Where the groups of each quasi-identifier begin in the result.
    groups : int
        Groups of all quasi-identifiers.

    Returns
    -------
    int64 ndarray of shape (groups,)
    """
    counted = np.zeros(groups, np.int64)
    for one in range(members.shape[0]):
        if chosen[one]:
            for j in range(first.shape[0]):
                counted[first[j] + codes[members[one], j]] += sizes[one]
    return counted
