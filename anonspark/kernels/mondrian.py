"""Mondrian: the multidimensional median cut, on one machine (LeFevre et al. 2006)."""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.criteria import (
    REQUIREMENTS,
    both_sides_satisfy,
    clear_counts,
    count_values,
    judge,
)
from anonspark.kernels.paths import child_path
from anonspark.kernels.selection import select
from anonspark.kernels.signatures import boolean, float64, int64, types, uint64, void

# Where balanced cuts look for boundaries beyond those of the median. More parts gain next to
# nothing, and on the cluster each boundary is a request of one pass.
_PARTS = 128

CELL_RECORDS = 16384
"""Nodes of so many records are cut where their records lie side by side."""

_RESULT = types.Tuple((int64[::1], int64[::1], uint64[::1]))
_NODES = types.Tuple((int64[::1], int64[::1], uint64[::1], float64[:, :, ::1]))
_BOUNDARY = types.Tuple((int64, boolean))
# What a node is cut by.
_ASKED = (
    int64[:, ::1],
    float64[:, ::1],
    float64[::1],
    int64[::1],
    int64[:, ::1],
    float64[::1],
    float64[::1],
    uint64,
    REQUIREMENTS,
    boolean,
    boolean,
    boolean,
)


@kernel(types.UniTuple(_BOUNDARY, 2)(int64, int64, int64, int64, boolean))
def choose_boundaries(below, equal, size, k, balanced):
    """Choose the allowed boundaries of a strict cut at the lower median.

    Parameters
    ----------
    below, equal : int
        Records smaller than the median, and equal to it.
    size : int
        Records of the node.
    k : int
        Smallest size of either side.
    balanced : bool
        Whether the boundary below the run of the median may be used, too.

    Returns
    -------
    ((int, bool), (int, bool))
        The better boundary and the other one: size of the left side, 0 without a boundary, and
        whether the run of the median goes left.

    Notes
    -----
    The better of two allowed boundaries is nearer to equal halves, on a tie the lower one.

    Examples
    --------
    >>> choose_boundaries(40, 30, 100, 10, True)
    ((40, False), (70, True))
    """
    upper = below + equal
    no_cut = (0, True)
    from_above = (upper, True) if upper >= k and size - upper >= k else no_cut
    from_below = (below, False) if balanced and below >= k and size - below >= k else no_cut
    if from_below[0] == 0:
        return from_above, no_cut
    if from_above[0] == 0:
        return from_below, no_cut
    if abs(2 * below - size) <= abs(2 * upper - size):
        return from_below, from_above
    return from_above, from_below


@kernel(int64[::1](int64))
def further_ranks(size):
    """Return the ranks whose runs have the boundaries that are tried after the median's.

    Parameters
    ----------
    size : int
        Records of the node.

    Returns
    -------
    int64 ndarray
        From 1, ascending: the ends of 128 equal parts of the node, or all but the last rank if it
        has no more records than that. Every boundary of a node of up to 128 records is next to one
        of these runs. A larger one gets as many as can be counted on the cluster in one pass.

    Examples
    --------
    >>> further_ranks(4).tolist(), len(further_ranks(100_000))
    ([1, 2, 3], 127)
    """
    ranks = np.empty(_PARTS - 1, np.int64)
    count = 0
    for part in range(1, _PARTS):
        rank = (size * part + _PARTS - 1) // _PARTS
        if rank < size and (count == 0 or rank > ranks[count - 1]):
            ranks[count] = rank
            count += 1
    return ranks[:count].copy()


@kernel(
    types.Tuple((int64, int64, int64))(
        int64[:, ::1],
        int64[::1],
        int64[::1],
        int64,
        int64,
        int64[::1],
        int64[::1],
        int64[::1],
        int64[::1],
    )
)
def _find_half(codes, hashes, order, start, stop, tie_order, thresholds, scratch, tied_records):
    """Find the record of rank floor(size / 2) by (attributes in ``tie_order``, hash).

    Narrowed down attribute by attribute among the records that are still tied. Returns how many
    attributes it took (their ``thresholds`` are filled in), the threshold of the hash, and how many
    of the records equal to all of them go left.
    """
    d = codes.shape[1]
    tied = stop - start
    missing = tied // 2
    tied_records[:tied] = order[start:stop]
    levels = 0
    while levels < d and missing < tied:
        j = tie_order[levels]
        for i in range(tied):
            scratch[i] = codes[tied_records[i], j]
        threshold = select(scratch, 0, tied, missing - 1)
        thresholds[levels] = threshold
        levels += 1
        still_tied = 0
        for i in range(tied):
            record = tied_records[i]
            if codes[record, j] < threshold:
                missing -= 1
            elif codes[record, j] == threshold:
                tied_records[still_tied] = record
                still_tied += 1
        tied = still_tied
    if missing == tied:
        return levels, np.int64(np.iinfo(np.int64).max), tied
    for i in range(tied):
        scratch[i] = hashes[tied_records[i]]
    threshold_hash = select(scratch, 0, tied, missing - 1)
    equal_hash_left = missing
    for i in range(tied):
        if scratch[i] < threshold_hash:
            equal_hash_left -= 1
    return levels, threshold_hash, equal_hash_left


@kernel(
    int64(
        int64[:, ::1],
        int64[::1],
        int64[::1],
        int64,
        int64,
        int64[::1],
        int64[::1],
        int64,
        int64,
        int64,
        int64[::1],
    )
)
def _move(
    codes,
    hashes,
    order,
    start,
    stop,
    tie_order,
    thresholds,
    levels,
    threshold_hash,
    equal_hash_left,
    moved,
):
    """Put the records before a boundary first, in place, and return where the others begin."""
    left = start
    right = 0
    for i in range(start, stop):
        record = order[i]
        comparison = 0
        for level in range(levels):
            code = codes[record, tie_order[level]]
            if code != thresholds[level]:
                comparison = -1 if code < thresholds[level] else 1
                break
        if comparison != 0:
            goes_left = comparison < 0
        elif hashes[record] == threshold_hash:
            goes_left = equal_hash_left > 0
            equal_hash_left -= 1
        else:
            goes_left = hashes[record] < threshold_hash
        if goes_left:
            order[left] = record
            left += 1
        else:
            moved[right] = record
            right += 1
    order[left:stop] = moved[:right]
    return left


@kernel(int64(int64[:, ::1], int64[::1], int64, int64, int64, int64, int64[::1]))
def _split(codes, order, start, stop, attribute, last, moved):
    """Put the records up to a code of one attribute first, in place. Return where others begin."""
    left = start
    right = 0
    for i in range(start, stop):
        record = order[i]
        # Both are written, and one is kept: no processor guesses which.
        order[left] = record
        moved[right] = record
        goes_left = int64(codes[record, attribute] <= last)
        left += goes_left
        right += 1 - goes_left
    order[left:stop] = moved[:right]
    return left


@kernel(
    void(
        int64[:, ::1],
        float64[:, ::1],
        int64[::1],
        int64,
        int64,
        int64[::1],
        int64[::1],
        float64[::1],
        float64[::1],
    )
)
def _find_extremes(codes, positions, order, start, stop, minima, maxima, low, high):
    """Put the extremes of all attributes, as codes and as positions, into the last four arrays."""
    d = codes.shape[1]
    first = order[start]
    if stop - start <= CELL_RECORDS:
        # Attribute by attribute, with nothing but numbers at hand.
        for j in range(d):
            lowest = highest = first
            least = most = codes[first, j]
            for i in range(start + 1, stop):
                record = order[i]
                code = codes[record, j]
                lowest = record if code < least else lowest
                highest = record if code > most else highest
                least = min(least, code)
                most = max(most, code)
            minima[j], maxima[j] = least, most
            low[j], high[j] = positions[lowest, j], positions[highest, j]
        return
    for j in range(d):
        minima[j] = codes[first, j]
        maxima[j] = codes[first, j]
        low[j] = positions[first, j]
        high[j] = positions[first, j]
    for i in range(start + 1, stop):
        record = order[i]
        for j in range(d):
            code = codes[record, j]
            if code < minima[j]:
                minima[j] = code
                low[j] = positions[record, j]
            elif code > maxima[j]:
                maxima[j] = code
                high[j] = positions[record, j]


@kernel(
    types.Tuple((int64, int64, float64, float64))(
        int64[:, ::1], float64[:, ::1], int64[::1], int64, int64, int64
    )
)
def _extremes_of(codes, positions, order, start, stop, attribute):
    """Return the smallest and the largest code of one attribute, and their positions."""
    lowest = highest = order[start]
    for i in range(start + 1, stop):
        record = order[i]
        code = codes[record, attribute]
        if code < codes[lowest, attribute]:
            lowest = record
        elif code > codes[highest, attribute]:
            highest = record
    return (
        codes[lowest, attribute],
        codes[highest, attribute],
        positions[lowest, attribute],
        positions[highest, attribute],
    )


@kernel(int64(float64[::1], boolean[::1]))
def _take_widest(widths, waiting):
    """Return the widest attribute that waits, on a tie the first, and mark it, or return -1."""
    widest = -1
    for j in range(widths.shape[0]):
        if waiting[j] and (widest < 0 or widths[j] > widths[widest]):
            widest = j
    if widest >= 0:
        waiting[widest] = False
    return widest


@kernel(void(int64, float64[::1], int64[::1]))
def _order_ties(attribute, widths, tie_order):
    """Fill ``tie_order``: the chosen attribute, then the others from wide to narrow."""
    position = 1
    tie_order[0] = attribute
    for j in np.argsort(-widths, kind="mergesort"):
        if j != attribute:
            tie_order[position] = j
            position += 1


@kernel(
    int64(
        int64[:, ::1],
        int64[::1],
        int64[::1],
        int64,
        int64,
        int64[::1],
        int64[::1],
        int64[::1],
        int64[::1],
    )
)
def _cut_at_half(codes, hashes, order, start, stop, tie_order, thresholds, scratch, moved):
    """Put the first half by ``tie_order`` and hash first. Return where the second half begins."""
    levels, threshold_hash, equal_hash_left = _find_half(
        codes, hashes, order, start, stop, tie_order, thresholds, scratch, moved
    )
    return _move(
        codes,
        hashes,
        order,
        start,
        stop,
        tie_order,
        thresholds,
        levels,
        threshold_hash,
        equal_hash_left,
        moved,
    )


@kernel(
    types.Tuple((int64, int64, int64))(
        int64[:, ::1], int64[::1], int64, int64, int64, int64, boolean, int64[::1], int64[::1]
    )
)
def _cut_beside_median(codes, order, start, stop, attribute, k, balanced, scratch, moved):
    """Cut at the better boundary of the median's run that leaves k. See :func:`choose_boundaries`.

    Returns where the right side begins, ``start`` without a boundary, and the same of the other
    boundary, at which nothing is cut, with the last code on its left.
    """
    size = stop - start
    for i in range(start, stop):
        scratch[i] = codes[order[i], attribute]
    median = select(scratch, start, stop, (size - 1) // 2)
    below = 0
    equal = 0
    for i in range(start, stop):
        below += int64(scratch[i] < median)
        equal += int64(scratch[i] == median)
    chosen, other = choose_boundaries(below, equal, size, k, balanced)
    if chosen[0] == 0:
        return start, start, median
    # A code lies before the median wherever its run does not go left.
    middle = _split(codes, order, start, stop, attribute, median - int64(not chosen[1]), moved)
    return middle, start + other[0], median - int64(not other[1])


@kernel(
    int64(
        REQUIREMENTS,
        int64[:, ::1],
        int64[:, ::1],
        int64[::1],
        int64,
        int64,
        int64,
        int64[::1],
        int64[::1],
        int64[::1],
        int64[::1],
    )
)
def _cut_further_out(
    requirements, codes, values, order, start, stop, attribute, scratch, moved, counts, present
):
    """Cut at the allowed boundary of :func:`further_ranks` that is nearest to equal halves.

    Return the first position of the right side, or ``start`` if no cut is allowed. Ties go to the
    lower boundary. Records are sorted by the attribute, and each side is counted in one sweep over
    all boundaries: O(n log n) time, and 254 times the cost of
    :func:`anonspark.kernels.criteria.judge` for either side.
    """
    k = requirements.k
    size = stop - start
    for i in range(size):
        scratch[i] = codes[order[start + i], attribute]
    by_code = np.argsort(scratch[:size], kind="mergesort")
    for i in range(size):
        moved[i] = order[start + by_code[i]]
    order[start:stop] = moved[:size]
    for i in range(size):
        scratch[i] = codes[order[start + i], attribute]

    ranks = further_ranks(size)
    left_rows = np.empty(2 * ranks.shape[0], np.int64)
    boundaries = 0
    for rank in ranks:
        value = scratch[rank - 1]
        below = np.searchsorted(scratch[:size], value)
        upper = np.searchsorted(scratch[:size], value, side="right")
        for rows in (below, upper):
            # Neighbouring runs share a boundary, and a long run has several ranks.
            known = boundaries > 0 and rows <= left_rows[boundaries - 1]
            if rows >= k and size - rows >= k and not known:
                left_rows[boundaries] = rows
                boundaries += 1

    # A side that lacks records, by what the criterion says that it violates, lacks them until it
    # has grown by so many: boundaries before that are not judged.
    left_satisfies = np.zeros(boundaries, np.bool_)
    distinct = 0
    counted = start
    needed = 0
    for boundary in range(boundaries):
        rows = left_rows[boundary]
        if rows >= needed:
            middle = start + rows
            distinct = count_values(values, order, counted, middle, counts, present, distinct)
            counted = middle
            violated, missing = judge(requirements, counts, present, distinct, rows)
            left_satisfies[boundary] = violated < 0
            needed = rows + missing
    clear_counts(counts, present, distinct)

    best = 0
    distinct = 0
    counted = stop
    needed = 0
    for boundary in range(boundaries - 1, -1, -1):
        rows = left_rows[boundary]
        nearer = best == 0 or abs(2 * rows - size) <= abs(2 * best - size)
        if nearer and left_satisfies[boundary] and size - rows >= needed:
            middle = start + rows
            distinct = count_values(values, order, middle, counted, counts, present, distinct)
            counted = middle
            violated, missing = judge(requirements, counts, present, distinct, size - rows)
            if violated < 0:
                best = rows
            needed = size - rows + missing
    clear_counts(counts, present, distinct)
    return start + best


@kernel(_NODES(*_ASKED, int64))
def _cut_nodes(
    codes,
    positions,
    units,
    hashes,
    values,
    low,
    high,
    path,
    requirements,
    relaxed,
    balanced,
    cell,
    largest,
):
    """Cut a node like :func:`cut_into_groups`, but no node of ``largest`` records or fewer.

    Returns order, starts and paths, and the bounds of each cell, of shape (groups, 2, d).
    """
    n, d = codes.shape
    k = requirements.k
    order = np.arange(n)
    scratch = np.empty(n, np.int64)
    moved = np.empty(n, np.int64)
    group_starts = np.empty(n // max(k, 1) + 2, np.int64)
    group_paths = np.empty(n // max(k, 1) + 2, np.uint64)
    group_cells = np.empty((n // max(k, 1) + 2, 2, d), np.float64)
    groups = 0

    # The larger child waits while the smaller one is cut, so the stack stays logarithmic in n.
    stack_size = 130
    stack_start = np.empty(stack_size, np.int64)
    stack_stop = np.empty(stack_size, np.int64)
    stack_path = np.empty(stack_size, np.uint64)
    stack_low = np.empty((stack_size, d), np.float64)
    stack_high = np.empty((stack_size, d), np.float64)
    stack_start[0] = 0
    stack_stop[0] = n
    stack_path[0] = path
    stack_low[0] = low
    stack_high[0] = high
    depth = 1

    waiting = np.empty(d, np.bool_)
    widths = np.empty(d, np.float64)
    minima = np.empty(d, np.int64)
    maxima = np.empty(d, np.int64)
    node_low = np.empty(d, np.float64)
    node_high = np.empty(d, np.float64)
    tie_order = np.empty(d, np.int64)
    thresholds = np.empty(d, np.int64)
    counts = np.zeros(requirements.shares.shape[0], np.int64)
    present = np.empty(requirements.shares.shape[0], np.int64)
    # What k asks for alone is seen in the sizes; a call counts references of many arrays.
    is_asked = requirements.kinds.shape[0] > 0
    goes_on = balanced and not relaxed and is_asked

    while depth > 0:
        depth -= 1
        start = stack_start[depth]
        stop = stack_stop[depth]
        node = stack_path[depth]
        size = stop - start
        middle = start
        attribute = -1

        if size >= 2 * k and size > largest:
            node_low[:] = stack_low[depth]
            node_high[:] = stack_high[depth]
            if not cell:
                _find_extremes(
                    codes, positions, order, start, stop, minima, maxima, node_low, node_high
                )
            for j in range(d):
                widths[j] = (node_high[j] - node_low[j]) / units[j]

            all_equal = True
            waiting[:] = True
            while middle == start:
                attribute = _take_widest(widths, waiting)
                if attribute < 0:
                    break
                if cell:
                    extremes = _extremes_of(codes, positions, order, start, stop, attribute)
                    minima[attribute], maxima[attribute] = extremes[0], extremes[1]
                    node_low[attribute], node_high[attribute] = extremes[2], extremes[3]
                if minima[attribute] == maxima[attribute]:
                    continue
                all_equal = False
                if relaxed:
                    _order_ties(attribute, widths, tie_order)
                    middle = _cut_at_half(
                        codes, hashes, order, start, stop, tie_order, thresholds, scratch, moved
                    )
                    if is_asked and not both_sides_satisfy(
                        requirements, values, order, start, middle, stop, counts, present
                    ):
                        middle = start
                else:
                    middle, other, last = _cut_beside_median(
                        codes, order, start, stop, attribute, k, balanced, scratch, moved
                    )
                    while is_asked and middle > start:
                        if both_sides_satisfy(
                            requirements, values, order, start, middle, stop, counts, present
                        ):
                            break
                        middle, other = other, start
                        if middle > start:
                            _split(codes, order, start, stop, attribute, last, moved)

            if relaxed and all_equal:
                # All records are equal in every quasi-identifier: cut by the tie order alone.
                attribute = 0
                tie_order[:] = np.arange(d)
                middle = _cut_at_half(
                    codes, hashes, order, start, stop, tie_order, thresholds, scratch, moved
                )
                if is_asked and not both_sides_satisfy(
                    requirements, values, order, start, middle, stop, counts, present
                ):
                    middle = start

            if goes_on and middle == start:
                waiting[:] = True
                while middle == start:
                    attribute = _take_widest(widths, waiting)
                    if attribute < 0:
                        break
                    if minima[attribute] < maxima[attribute]:
                        middle = _cut_further_out(
                            requirements,
                            codes,
                            values,
                            order,
                            start,
                            stop,
                            attribute,
                            scratch,
                            moved,
                            counts,
                            present,
                        )

        if middle == start:
            group_starts[groups] = start
            group_paths[groups] = node
            group_cells[groups, 0] = stack_low[depth]
            group_cells[groups, 1] = stack_high[depth]
            groups += 1
            continue

        left_high = 0.0
        right_low = 0.0
        if cell:
            left_high = _extremes_of(codes, positions, order, start, middle, attribute)[3]
            right_low = _extremes_of(codes, positions, order, middle, stop, attribute)[2]

        left_first = middle - start >= stop - middle
        for turn in range(2):
            if (turn == 0) == left_first:
                stack_start[depth] = start
                stack_stop[depth] = middle
                stack_path[depth] = child_path(node, uint64(0))
                stack_low[depth] = node_low
                stack_high[depth] = node_high
                stack_high[depth, attribute] = left_high
            else:
                stack_start[depth] = middle
                stack_stop[depth] = stop
                stack_path[depth] = child_path(node, uint64(1))
                stack_low[depth] = node_low
                stack_high[depth] = node_high
                stack_low[depth, attribute] = right_low
            depth += 1

    by_start = np.argsort(group_starts[:groups])
    starts = np.empty(groups + 1, np.int64)
    starts[groups] = n
    paths = np.empty(groups, np.uint64)
    cells = np.empty((groups, 2, d), np.float64)
    for g in range(groups):
        starts[g] = group_starts[by_start[g]]
        paths[g] = group_paths[by_start[g]]
        cells[g] = group_cells[by_start[g]]
    return order, starts, paths, cells


@kernel(types.Tuple((int64[::1], int64[::1], uint64[::1], int64[::1]))(*_ASKED))
def cut_into_cells(
    codes,
    positions,
    units,
    hashes,
    values,
    low,
    high,
    path,
    requirements,
    relaxed,
    balanced,
    cell,
):
    """Cut a node until no cut leaves two sides that satisfy all requirements.

    First into cells of up to :data:`CELL_RECORDS` records, then each cell on its own.

    Parameters
    ----------
    codes : int64 ndarray of shape (n, d)
        Order-preserving code of each quasi-identifier. Medians are taken on them, exactly.
    positions : float64 ndarray of shape (n, d)
        The same values on the real line. Widths are measured on them.
    units : float64 ndarray of shape (d,)
        Difference of positions that counts as 1: the global range over the whole input, divided
        by the weight. Never 0.
    hashes : int64 ndarray of shape (n,)
        Keyed hash of each record's whole content. Relaxed cuts break the last ties by it.
    values : int64 ndarray of shape (n, s)
        Number of each record's sensitive values.
    low, high : float64 ndarray of shape (d,)
        Bounds of the node's cell (read where ``cell``).
    path : uint64
        Name of the node.
    requirements : Requirements
        What both sides of every cut satisfy.
    relaxed : bool
        Share records equal to the median out, so that both halves have equal size.
    balanced : bool
        Consider the boundary on either side of the median's run, and with criteria beyond k those
        of :func:`further_ranks` before a node is left whole (strict cuts only).
    cell : bool
        Choose the attribute by the width of the cell, not of the node's records.

    Returns
    -------
    order : int64 ndarray of shape (n,)
        The records, group by group.
    starts : int64 ndarray of shape (groups + 1,)
        Where each group begins in ``order``. The last entry is n.
    paths : uint64 ndarray of shape (groups,)
        Name of each group.
    cells : int64 ndarray of shape (cells + 1,)
        First group of each of the largest nodes of up to :data:`CELL_RECORDS` records, and of each
        larger group. Then the number of groups.

    Notes
    -----
    O(n d depth) time, O(n d) memory. With criteria beyond k, each boundary that is tried costs what
    :func:`anonspark.kernels.criteria.first_unsatisfied` says for either side, and a node that is
    left whole what :func:`_cut_further_out` says for each attribute. The groups depend on the set
    of records alone, not on their order: records equal in code and hash are interchangeable.
    """
    n = codes.shape[0]
    order, ends, nodes, cells = _cut_nodes(
        codes,
        positions,
        units,
        hashes,
        values,
        low,
        high,
        path,
        requirements,
        relaxed,
        balanced,
        cell,
        np.int64(CELL_RECORDS),
    )
    starts = np.empty(n // max(requirements.k, 1) + 2, np.int64)
    paths = np.empty(n // max(requirements.k, 1) + 2, np.uint64)
    groups = 0
    first = np.empty(nodes.shape[0] + 1, np.int64)
    for node in range(nodes.shape[0]):
        first[node] = groups
        # Copied side by side, so that the records of a cell fit into the processor's cache.
        records = order[ends[node] : ends[node + 1]].copy()
        inner, inner_starts, inner_paths, _ = _cut_nodes(
            codes[records],
            positions[records],
            units,
            hashes[records],
            values[records],
            cells[node, 0].copy(),
            cells[node, 1].copy(),
            nodes[node],
            requirements,
            relaxed,
            balanced,
            cell,
            np.int64(1),
        )
        order[ends[node] : ends[node + 1]] = records[inner]
        for group in range(inner_paths.shape[0]):
            starts[groups] = ends[node] + inner_starts[group]
            paths[groups] = inner_paths[group]
            groups += 1
    starts[groups] = n
    first[nodes.shape[0]] = groups
    return order, starts[: groups + 1].copy(), paths[:groups].copy(), first


@kernel(_RESULT(*_ASKED))
def cut_into_groups(
    codes,
    positions,
    units,
    hashes,
    values,
    low,
    high,
    path,
    requirements,
    relaxed,
    balanced,
    cell,
):
    """Cut a node into groups as :func:`cut_into_cells` does, without saying in which cells."""
    return cut_into_cells(
        codes,
        positions,
        units,
        hashes,
        values,
        low,
        high,
        path,
        requirements,
        relaxed,
        balanced,
        cell,
    )[:3]
