"""Canon: halves by the distance to a vantage point, on one machine (Canbay 2019, Yianilos 1993)."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.canonical_order import comes_before, sort_groups
from anonspark.kernels.compiling import kernel
from anonspark.kernels.criteria import REQUIREMENTS, both_sides_satisfy
from anonspark.kernels.paths import child_path, priority
from anonspark.kernels.selection import select
from anonspark.kernels.signatures import boolean, float64, int64, types, uint64, void
from anonspark.kernels.vantage_points import distance_key, order_by_spread, widest_spread

_LARGEST_PRIORITY = np.uint64(2**64 - 1)

# Where more of a node are wanted, all of its records are sorted.
_LARGEST_SHARE = 0.9

_BUCKETS = 128


@kernel(
    int64[::1](int64[:, ::1], int64[::1], int64[::1], uint64[::1], int64[::1], int64, uint64, int64)
)
def _sort_smallest(codes, hashes, order, priorities, positions, few, limit, most):
    """Return the result of :func:`draw` from some positions and their priorities up to a limit."""
    # Roughly sorted first, by the leading bits: then next to nothing has to be moved.
    shift = uint64(0)
    while limit >> shift >= uint64(_BUCKETS):
        shift += uint64(1)
    ends = np.zeros(_BUCKETS + 1, np.int64)
    for i in range(few):
        ends[int64(priorities[i] >> shift) + 1] += 1
    for bucket in range(_BUCKETS):
        ends[bucket + 1] += ends[bucket]
    sequence = np.empty(few, np.int64)
    for i in range(few):
        bucket = int64(priorities[i] >> shift)
        sequence[ends[bucket]] = i
        ends[bucket] += 1
    drawn = np.empty(most, np.int64)
    smallest = np.empty(most, np.uint64)
    count = 0
    for i in sequence:
        key = priorities[i]
        if count == most and key > smallest[count - 1]:
            continue
        position = count
        while position > 0 and smallest[position - 1] > key:
            position -= 1
        if position > 0 and smallest[position - 1] == key:
            # Equal hashes are equal contents, or a collision, which codes decide.
            if comes_before(codes, hashes, order[positions[i]], order[drawn[position - 1]]):
                drawn[position - 1] = positions[i]
            continue
        if count < most:
            count += 1
        for j in range(count - 1, position, -1):
            drawn[j] = drawn[j - 1]
            smallest[j] = smallest[j - 1]
        drawn[position] = positions[i]
        smallest[position] = key
    return drawn[:count].copy()


@kernel(
    int64[::1](
        int64[:, ::1],
        int64[::1],
        int64[::1],
        int64[::1],
        int64,
        int64,
        uint64,
        int64,
        uint64[::1],
        int64[::1],
    )
)
def draw(codes, hashes, order, row_hashes, start, stop, salt, most, priorities, positions):
    """Return the positions of a node's records with the smallest priorities, ascending.

    Parameters
    ----------
    codes : int64 ndarray of shape (n, d)
    hashes : int64 ndarray of shape (n,)
        Keyed hash of each record's whole content.
    order : int64 ndarray of shape (n,)
        Records.
    row_hashes : int64 ndarray of shape (n,)
        The hashes of ``order``.
    start, stop : int
        The node: ``order[start:stop]``, at least one record.
    salt : uint64
        Distinguishes this draw from others, see :func:`anonspark.kernels.paths.priority`.
    most : int
        How many are drawn, at least 1. Each hash counts once, so there may be fewer.
    priorities : uint64 ndarray, positions : int64 ndarray
        Overwritten. At least as long as the node.

    Returns
    -------
    int64 ndarray of shape (most or fewer,)
        Positions in ``order``.

    Notes
    -----
    O(n) time as a rule, O(n most) if few hashes are different.
    """
    # Priorities are evenly spread, so nearly always as many as are wanted, and a few more, are
    # within this limit.
    share = (most + 6.0 * np.sqrt(most) + 8.0) / (stop - start)
    limit = _LARGEST_PRIORITY
    if share < _LARGEST_SHARE:
        limit = uint64(share * 2.0**64)
    while True:
        few = 0
        for i in range(start, stop):
            key = priority(row_hashes[i], salt)
            priorities[few] = key
            positions[few] = i
            few += key <= limit
        drawn = _sort_smallest(codes, hashes, order, priorities, positions, few, limit, most)
        if drawn.shape[0] == most or limit == _LARGEST_PRIORITY:
            return drawn
        limit = _LARGEST_PRIORITY


CANDIDATES = 30
"""Records that are drawn as candidates for the vantage point of a node."""

TRIES = 10
"""Candidates at most that are tried where a cut has to satisfy more than k."""

SAMPLES = 100
"""Records that are drawn to compare the candidates by."""

CANDIDATE_SIDE, SAMPLE_SIDE = 2, 3
"""Distinguishes the salts of the two draws of a node, see :func:`child_path`."""


@kernel(void(int64[:, ::1], int64[::1], int64[::1], int64, int64, int64[::1], int64, int64, int64))
def _break_ties(codes, hashes, order, start, stop, keys, threshold, tied, missing):
    """Raise the keys of all tied records but the first ``missing`` ones in canonical order."""
    positions = np.empty(tied, np.int64)
    tied_codes = np.empty((tied, codes.shape[1]), np.int64)
    row_hashes = np.empty(tied, np.int64)
    ties = 0
    for i in range(start, stop):
        if keys[i] == threshold:
            positions[ties] = i
            tied_codes[ties] = codes[order[i]]
            row_hashes[ties] = hashes[order[i]]
            ties += 1
    sequence = np.arange(tied)
    sort_groups(tied_codes, row_hashes, sequence, np.array([0, tied]))
    for i in sequence[missing:]:
        keys[positions[i]] = threshold + 1


@kernel(
    int64(
        int64[:, ::1],
        int64[::1],
        int64[::1],
        int64[::1],
        float64[:, ::1],
        int64,
        int64,
        float64[:, ::1],
        int64,
        int64[::1],
        int64[::1],
        int64[::1],
        float64[:, ::1],
    )
)
def _halve(
    codes,
    hashes,
    order,
    row_hashes,
    row_points,
    start,
    stop,
    points,
    point,
    keys,
    moved,
    moved_hashes,
    moved_points,
):
    """Put the half of the records nearest to a point first, in place. Return where it ends.

    Ties of distances are broken by codes in configuration order, then by hash.
    """
    half = (stop - start) // 2
    for i in range(start, stop):
        keys[i] = distance_key(row_points, i, points, point)
        moved[i] = keys[i]
    threshold = select(moved, start, stop, half - 1)
    below, tied = 0, 0
    for i in range(start, stop):
        below += keys[i] < threshold
        tied += keys[i] == threshold
    if below + tied > half:
        _break_ties(codes, hashes, order, start, stop, keys, threshold, tied, half - below)
    left, right = start, 0
    for i in range(start, stop):
        if keys[i] <= threshold:
            order[left] = order[i]
            row_hashes[left] = row_hashes[i]
            for j in range(row_points.shape[1]):
                row_points[left, j] = row_points[i, j]
            left += 1
        else:
            moved[right] = order[i]
            moved_hashes[right] = row_hashes[i]
            for j in range(row_points.shape[1]):
                moved_points[right, j] = row_points[i, j]
            right += 1
    for i in range(right):
        order[left + i] = moved[i]
        row_hashes[left + i] = moved_hashes[i]
        for j in range(row_points.shape[1]):
            row_points[left + i, j] = moved_points[i, j]
    return left


@kernel(float64[:, ::1](float64[:, ::1], int64[::1]))
def _rows_of(points, positions):
    """Return some rows."""
    rows = np.empty((positions.shape[0], points.shape[1]), np.float64)
    for i in range(positions.shape[0]):
        for j in range(points.shape[1]):
            rows[i, j] = points[positions[i], j]
    return rows


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
        Whether the candidate with the largest spread of distances is the vantage point. If not,
        the first one drawn is.

    Returns
    -------
    order : int64 ndarray of shape (n,)
        The records, group by group.
    starts : int64 ndarray of shape (groups + 1,)
        Where each group begins in ``order``. The last entry is n.
    paths : uint64 ndarray of shape (groups,)
        Name of each group.

    Notes
    -----
    O(n d depth) time and O(n d) memory besides 3,000 distances a node. Every cut halves, so with k
    alone the first vantage point always allows it. With criteria beyond k the candidates are tried
    in turn. The groups depend on the set of records alone: records equal in code and hash are
    interchangeable.
    """
    n, d = codes.shape
    k = requirements.k
    order = np.arange(n)
    # Copies in the order of ``order``, which moves them: what is read together lies together.
    row_hashes = hashes.copy()
    row_points = normalized.copy()
    keys = np.empty(n, np.int64)
    moved = np.empty(n, np.int64)
    moved_hashes = np.empty(n, np.int64)
    moved_points = np.empty((n, d), np.float64)
    priorities = np.empty(n, np.uint64)
    group_starts = np.empty(n // max(k, 1) + 2, np.int64)
    group_paths = np.empty(n // max(k, 1) + 2, np.uint64)
    groups = 0
    counts = np.zeros(requirements.shares.shape[0], np.int64)
    present = np.empty(requirements.shares.shape[0], np.int64)
    is_free = requirements.kinds.shape[0] == 0

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
            drawn = draw(
                codes, hashes, order, row_hashes, start, stop, salt, CANDIDATES, priorities, keys
            )
            points = _rows_of(row_points, drawn)
            if spread:
                salt = child_path(node, uint64(SAMPLE_SIDE))
                drawn = draw(
                    codes, hashes, order, row_hashes, start, stop, salt, SAMPLES, priorities, keys
                )
                samples = _rows_of(row_points, drawn)
                if is_free:
                    # The first cut is allowed: no other candidate is tried.
                    points[0] = points[widest_spread(points, samples)]
                else:
                    points = points[order_by_spread(points, samples)]
            for c in range(min(points.shape[0], TRIES)):
                middle = _halve(
                    codes,
                    hashes,
                    order,
                    row_hashes,
                    row_points,
                    start,
                    stop,
                    points,
                    c,
                    keys,
                    moved,
                    moved_hashes,
                    moved_points,
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
