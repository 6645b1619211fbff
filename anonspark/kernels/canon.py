"""Canon: halves by the distance to a vantage point, on one machine (Canbay 2019; Yianilos 1993)."""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int64, types, uint64

from anonspark.kernels.canonical_order import comes_before, sort_groups
from anonspark.kernels.compiling import kernel
from anonspark.kernels.criteria import REQUIREMENTS, both_sides_satisfy
from anonspark.kernels.paths import child_path, priority
from anonspark.kernels.selection import select
from anonspark.kernels.vantage_points import distance_key, order_by_spread

CANDIDATES = 30
"""Records that are drawn as candidates for the vantage point of a node."""

TRIES = 10
"""Candidates at most that are tried where a cut has to satisfy more than k."""

SAMPLES = 100
"""Records that are drawn to compare the candidates by."""

CANDIDATE_SIDE, SAMPLE_SIDE = 2, 3
"""What tells the salts of the two draws of a node, see :func:`child_path`."""


@kernel(int64[::1](int64[:, ::1], int64[::1], int64[::1], int64, int64, uint64, int64))
def _draw(codes, hashes, order, start, stop, salt, most):
    """Return the records with the smallest priorities, ascending, each hash once."""
    drawn = np.empty(most, np.int64)
    priorities = np.empty(most, np.uint64)
    count = 0
    for i in range(start, stop):
        own = priority(hashes[order[i]], salt)
        if count == most and own > priorities[count - 1]:
            continue
        place = count
        while place > 0 and priorities[place - 1] > own:
            place -= 1
        if place > 0 and priorities[place - 1] == own:
            # Equal hashes are equal contents, or a collision, which codes decide.
            if comes_before(codes, hashes, order[i], drawn[place - 1]):
                drawn[place - 1] = order[i]
            continue
        if count < most:
            count += 1
        for j in range(count - 1, place, -1):
            drawn[j] = drawn[j - 1]
            priorities[j] = priorities[j - 1]
        drawn[place] = order[i]
        priorities[place] = own
    return drawn[:count].copy()


@kernel(
    int64(
        int64[:, ::1],
        float64[:, ::1],
        int64[::1],
        int64[::1],
        int64,
        int64,
        float64[:, ::1],
        int64,
        int64[::1],
        int64[::1],
    )
)
def _halve(codes, normalized, hashes, order, start, stop, points, point, distances, moved):
    """Put the half of the records nearest to a point first, in place; return where it ends.

    On a tie of distances by codes in configuration order, then by hash.
    """
    half = (stop - start) // 2
    for i in range(start, stop):
        distances[i] = distance_key(normalized, order[i], points, point)
        moved[i] = distances[i]
    threshold = select(moved, start, stop, half - 1)
    left = start
    for i in range(start, stop):
        if distances[i] < threshold:
            left += 1
    tied = 0
    behind = stop - 1
    before = start
    tied_records = np.empty(stop - start, np.int64)
    for i in range(start, stop):
        record = order[i]
        if distances[i] < threshold:
            moved[before] = record
            before += 1
        elif distances[i] > threshold:
            moved[behind] = record
            behind -= 1
        else:
            tied_records[tied] = record
            tied += 1
    if tied > 1:
        sort_groups(codes, hashes, tied_records, np.array([0, tied]))
    moved[left : left + tied] = tied_records[:tied]
    order[start:stop] = moved[start:stop]
    return start + half


@kernel(
    types.Tuple((int64[::1], int64[::1], uint64[::1]))(
        int64[:, ::1],
        float64[:, ::1],
        int64[::1],
        int64[:, ::1],
        uint64,
        REQUIREMENTS,
        boolean,
    )
)
def cut_by_distance(codes, normalized, hashes, values, path, requirements, spread):
    """Cut a node into groups that satisfy all requirements, as it does itself.

    Parameters
    ----------
    codes : int64 ndarray of shape (n, d)
        Codes of the quasi-identifiers.
    normalized : float64 ndarray of shape (n, d)
        Their normalized positions.
    hashes : int64 ndarray of shape (n,)
        Keyed hash of each record's whole content.
    values : int64 ndarray of shape (n, s)
        Number of each record's sensitive values.
    path : uint64
        Name of the node.
    requirements : Requirements
        What both sides of every cut satisfy.
    spread : bool
        Whether the candidate with the largest spread of distances is the vantage point; if not,
        the first one drawn is.

    Returns
    -------
    order : int64 ndarray of shape (n,)
        The records, group by group.
    starts : int64 ndarray of shape (groups + 1,)
        Where each group begins in ``order``; the last entry is n.
    paths : uint64 ndarray of shape (groups,)
        Name of each group.

    Notes
    -----
    O(n d depth) time and O(n) memory besides 3,000 distances a node. Every cut halves, so with k
    alone the first vantage point always allows it; with criteria beyond k the candidates are tried
    in turn. The groups depend on the set of records alone: records equal in code and hash are
    interchangeable.
    """
    n, d = codes.shape
    k = requirements.k
    order = np.arange(n)
    distances = np.empty(n, np.int64)
    moved = np.empty(n, np.int64)
    group_starts = np.empty(n // max(k, 1) + 2, np.int64)
    group_paths = np.empty(n // max(k, 1) + 2, np.uint64)
    groups = 0
    counts = np.zeros(requirements.shares.shape[0], np.int64)
    present = np.empty(requirements.shares.shape[0], np.int64)

    # Halves: the stack is as deep as the logarithm of n.
    stack_start = np.empty(130, np.int64)
    stack_stop = np.empty(130, np.int64)
    stack_path = np.empty(130, np.uint64)
    stack_start[0], stack_stop[0], stack_path[0] = 0, n, path
    depth = 1
    while depth > 0:
        depth -= 1
        start, stop, node = stack_start[depth], stack_stop[depth], stack_path[depth]
        middle = start
        if stop - start >= 2 * k and stop - start > 1:
            salt = child_path(node, uint64(CANDIDATE_SIDE))
            candidates = _draw(codes, hashes, order, start, stop, salt, CANDIDATES)
            points = np.empty((candidates.shape[0], d), np.float64)
            for c in range(candidates.shape[0]):
                points[c] = normalized[candidates[c]]
            if spread:
                salt = child_path(node, uint64(SAMPLE_SIDE))
                drawn = _draw(codes, hashes, order, start, stop, salt, SAMPLES)
                samples = np.empty((drawn.shape[0], d), np.float64)
                for i in range(drawn.shape[0]):
                    samples[i] = normalized[drawn[i]]
                points = points[order_by_spread(points, samples)]
            for c in range(min(points.shape[0], TRIES)):
                middle = _halve(
                    codes, normalized, hashes, order, start, stop, points, c, distances, moved
                )
                if both_sides_satisfy(
                    requirements, values, order, start, middle, stop, counts, present
                ):
                    break
                middle = start
        if middle == start:
            group_starts[groups] = start
            group_paths[groups] = node
            groups += 1
            continue
        stack_start[depth], stack_stop[depth] = middle, stop
        stack_path[depth] = child_path(node, uint64(1))
        depth += 1
        stack_start[depth], stack_stop[depth] = start, middle
        stack_path[depth] = child_path(node, uint64(0))
        depth += 1

    starts = np.empty(groups + 1, np.int64)
    starts[:groups] = group_starts[:groups]
    starts[groups] = n
    return order, starts, group_paths[:groups].copy()
