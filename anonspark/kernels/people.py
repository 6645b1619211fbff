"""Match distinct values to people, of whom each may have several in a group."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import int64

BY_PEOPLE = 16
"""Added to the constant of a criterion where it counts people instead of records."""


@kernel(int64[::1](int64[::1], int64[::1], int64))
def match_values(values, people, most):
    """Give as many values as possible a different person each who has the value.

    Parameters
    ----------
    values, people : int64 ndarray of shape (n,)
        Pairs of a value and a person who has it, sorted by value. No pair twice.
    most : int
        So many values are enough.

    Returns
    -------
    int64 ndarray of shape (values matched,)
        Positions of the chosen pairs. At most ``most``.

    Notes
    -----
    Augmenting paths. For each value ``most`` people are tried, which is enough
    (docs/algorithms.md). O(n log n + different values * most^2) time at most.

    Examples
    --------
    >>> match_values(np.array([0, 0, 1]), np.array([7, 8, 7]), 2).tolist()
    [1, 2]
    """
    n = values.shape[0]
    first = np.empty(n + 1, np.int64)
    pairs = np.empty(n, np.int64)
    different = 0
    number = 0
    for i in range(n):
        if i == 0 or values[i] != values[i - 1]:
            first[different] = number
            different += 1
        if number - first[different - 1] < most:
            pairs[number] = i
            number += 1
    first[different] = number
    known = np.sort(people[pairs[:number]])
    person = np.searchsorted(known, people[pairs[:number]])
    owner = np.full(number, -1, np.int64)
    seen = np.full(number, -1, np.int64)
    # The pair that each person was reached by, and the one that each value has.
    reached = np.empty(number, np.int64)
    taken = np.full(different, -1, np.int64)
    value_of = np.empty(number, np.int64)
    for value in range(different):
        value_of[first[value] : first[value + 1]] = value
    waiting = np.empty(different, np.int64)
    matched = 0
    for value in range(different):
        if matched >= most:
            break
        waiting[0] = value
        head, tail, free = 0, 1, -1
        while head < tail and free < 0:
            current = waiting[head]
            head += 1
            for pair in range(first[current], first[current + 1]):
                holder = person[pair]
                if seen[holder] == value:
                    continue
                seen[holder] = value
                reached[holder] = pair
                if owner[holder] < 0:
                    free = holder
                    break
                waiting[tail] = owner[holder]
                tail += 1
        if free < 0:
            continue
        matched += 1
        while True:
            pair = reached[free]
            current = value_of[pair]
            before = taken[current]
            taken[current] = pair
            owner[free] = current
            if before < 0:
                break
            free = person[before]
    chosen = np.empty(matched, np.int64)
    pairs_matched = 0
    for value in range(different):
        if taken[value] >= 0:
            chosen[pairs_matched] = pairs[taken[value]]
            pairs_matched += 1
    return chosen
