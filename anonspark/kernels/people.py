"""Criteria that count people, of whom one may have several values in a group."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import boolean, float64, int64, types

BY_PEOPLE = 16
"""Added to the constant of a criterion where it counts people instead of records."""

ENTROPY, RECURSIVE, LARGEST_SHARE, EQUAL_DISTANCE, ORDERED_DISTANCE, RELATIVE_GAIN = (
    1,
    2,
    3,
    4,
    5,
    7,
)
"""Those of :mod:`anonspark.kernels.criteria`, which calls this module."""

# What the rounding of sums may make of a bound that is met exactly, see there.
_TOLERANCE = 1e-12

# Larger than any input, and exact in 64 bits.
_MOST_RECORDS = 2.0**53


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
        Places of the chosen pairs. At most ``most``.

    Notes
    -----
    Augmenting paths. Of each value ``most`` people are looked at, which is enough
    (docs/algorithms.md). O(n log n + different values * most^2) time at most.
    """
    n = values.shape[0]
    first = np.empty(n + 1, np.int64)
    pairs = np.empty(n, np.int64)
    different = 0
    kept = 0
    for i in range(n):
        if i == 0 or values[i] != values[i - 1]:
            first[different] = kept
            different += 1
        if kept - first[different - 1] < most:
            pairs[kept] = i
            kept += 1
    first[different] = kept
    known = np.sort(people[pairs[:kept]])
    person = np.searchsorted(known, people[pairs[:kept]])
    owner = np.full(kept, -1, np.int64)
    seen = np.full(kept, -1, np.int64)
    # The pair that each person was reached by, and the one that each value has.
    reached = np.empty(kept, np.int64)
    taken = np.full(different, -1, np.int64)
    value_of = np.empty(kept, np.int64)
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
                one = person[pair]
                if seen[one] == value:
                    continue
                seen[one] = value
                reached[one] = pair
                if owner[one] < 0:
                    free = one
                    break
                waiting[tail] = owner[one]
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
    found = 0
    for value in range(different):
        if taken[value] >= 0:
            chosen[found] = pairs[taken[value]]
            found += 1
    return chosen


@kernel(types.Tuple((boolean, int64))(int64, float64, float64, int64[::1], float64[::1], int64))
def judge_people(kind, bound, c, counts, shares, people):
    """Return whether a group satisfies a criterion, whichever of their values people stand for.

    Parameters
    ----------
    kind : int
        One of this module's constants.
    bound, c : float
        l and c, the largest share, t, or beta.
    counts : int64 ndarray of shape (values,)
        People of the group with each of its values, at least 1.
    shares : float64 ndarray of shape (values,)
        Share of all people of the whole input who have it. Of a distance the share that it has
        where each of them counts as one, in equal parts for each value.
    people : int
        Of the group, at least 1.

    Returns
    -------
    holds : bool
    missing : int
        Records, at least 1, that have to be added before it can hold.

    Notes
    -----
    Of all ways in which each person stands for one value, none is less even than the one in which
    the most frequent value has all who have it, the next one all others who could have it, and so
    on as far as people last. Definitions and proofs: docs/algorithms.md. O(values log values).
    """
    missing = 1
    if kind == LARGEST_SHARE:
        largest = counts.max()
        missing = int64((largest / people - bound) * people)
        return largest / people <= bound + _TOLERANCE, missing
    if kind == RELATIVE_GAIN:
        holds = True
        for place in range(counts.shape[0]):
            most = (1.0 + bound) * shares[place]
            if counts[place] / people > most * (1.0 + _TOLERANCE):
                holds = False
                if most > 0.0:
                    needed = min(counts[place] / most, _MOST_RECORDS)
                    missing = max(missing, int64(needed) - people)
        return holds, missing
    if kind == EQUAL_DISTANCE:
        distance = 0.0
        expected = 0.0
        for place in range(counts.shape[0]):
            more = counts[place] / people - shares[place]
            if more > 0.0:
                distance += more
                expected += shares[place]
        if bound + expected > 0.0:
            # With so many people more the same values would be rare enough.
            missing = int64((distance - bound) / (bound + expected) * people)
        return min(distance, 1.0) <= bound + _TOLERANCE, missing
    descending = -np.sort(-counts)
    left = people
    for place in range(descending.shape[0]):
        descending[place] = min(descending[place], left)
        left -= descending[place]
    if kind == ENTROPY:
        entropy = 0.0
        for count in descending:
            if count > 0:
                share = count / people
                entropy -= share * np.log(share)
        return entropy >= np.log(bound) - _TOLERANCE, missing
    tail = 0
    for place in range(int64(bound) - 1, descending.shape[0]):
        tail += descending[place]
    # As a quotient: the product may round up to the count.
    return tail > 0 and descending[0] / tail < c, missing


@kernel(boolean(float64, int64[::1], int64[::1], float64[::1], int64))
def judge_ranges(bound, lowest, highest, shares, people):
    """Return whether a group is near enough by ordered distance, whatever people stand for.

    Parameters
    ----------
    bound : float
        t.
    lowest, highest : int64 ndarray of shape (values,)
        People of the group by the first and by the last of their values, of the whole domain.
    shares : float64 ndarray of shape (values,)
        What the distance is measured from.
    people : int
        Of the group, at least 1.

    Notes
    -----
    Up to a value there are at least the people all of whose values are there, and at most those who
    have one there. O(values), in their order.
    """
    distance = 0.0
    expected = 0.0
    certain = 0
    possible = 0
    for value in range(shares.shape[0]):
        expected += shares[value]
        certain += highest[value]
        possible += lowest[value]
        distance += max(abs(certain / people - expected), abs(possible / people - expected))
    return distance / max(shares.shape[0] - 1, 1) <= bound + _TOLERANCE
