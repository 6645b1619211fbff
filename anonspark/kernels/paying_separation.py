"""Give records up only if the release loses less without them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anonspark.kernels.compiling import kernel
from anonspark.kernels.criteria import REQUIREMENTS, clear_counts, count_values, judge
from anonspark.kernels.separation import distinct_points, nearest_to_reference, without_noise
from anonspark.kernels.signatures import boolean, float64, int64, types

# What a class holds of an attribute whose missing values widen it to the whole range: with some of
# them, or where it spans the range without, any value more costs nothing.
_NONE_MISSING, _ALL_MISSING, _WHOLE_RANGE = 0, 1, 2


class Spans(NamedTuple):
    """Input of the certainty penalty of a class, as plain arrays for the kernels.

    Attributes
    ----------
    weights : float64 ndarray of shape (d,)
        Weights of the quasi-identifiers.
    missing : int64 ndarray of shape (d,)
        Code of missing values.
    is_whole : bool ndarray of shape (d,)
        Whether a class with present and missing values counts a whole range.
    first_node : int64 ndarray of shape (d + 1,)
        Where the nodes of each attribute begin. One without a hierarchy has no nodes.
    leaves : int64 ndarray of shape (d,)
        Leaves of each hierarchy.
    nodes : int64 ndarray of shape (nodes,)
        The node above each leaf, level by level, the leaves themselves first.
    shares : float64 ndarray of shape (nodes,)
        Share of the hierarchy's leaves below that node, 0 for a single one.
    """

    weights: npt.NDArray[np.float64]
    missing: npt.NDArray[np.int64]
    is_whole: npt.NDArray[np.bool_]
    first_node: npt.NDArray[np.int64]
    leaves: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float64]


SPANS = types.NamedTuple(
    (
        float64[::1],
        int64[::1],
        boolean[::1],
        int64[::1],
        int64[::1],
        int64[::1],
        float64[::1],
    ),
    Spans,
)
"""Numba's type of :class:`Spans`."""


@kernel(int64(SPANS, int64, int64, int64))
def _node(spans, attribute, level, code):
    """Return the node above a leaf on a level of an attribute's hierarchy."""
    return spans.nodes[spans.first_node[attribute] + level * spans.leaves[attribute] + code]


@kernel(
    types.Tuple((float64[::1], int64[:, :, ::1]))(int64[:, ::1], float64[:, ::1], SPANS, int64[::1])
)
def _boxes_of_prefixes(codes, normalized, spans, records):
    """Return the box of each prefix of some records, and what a record of it would lose.

    ``penalties`` (float64, shape (m,)) is the weighted sum of the certainty penalties of the class
    of ``records[: i + 1]``. ``boxes`` (int64, (m, d, 4)) holds its smallest and largest code, the
    level of its lowest common ancestor, and which values are missing; if missing values widen a
    class to the whole range, codes are of those present. O(m d) time and memory, and for a
    hierarchy its height.
    """
    m, d = records.shape[0], codes.shape[1]
    penalties = np.empty(m, np.float64)
    boxes = np.empty((m, d, 4), np.int64)
    low_positions = np.empty(d, np.float64)
    high_positions = np.empty(d, np.float64)
    spanned = np.zeros(d, np.float64)
    for i in range(m):
        total = 0.0
        for j in range(d):
            code, position = codes[records[i], j], normalized[records[i], j]
            is_missing = spans.is_whole[j] and code == spans.missing[j]
            if i == 0:
                low = high = code
                level = 0
                low_positions[j] = high_positions[j] = position
                held = _ALL_MISSING if is_missing else _NONE_MISSING
            else:
                low, high = boxes[i - 1, j, 0], boxes[i - 1, j, 1]
                level, held = boxes[i - 1, j, 2], boxes[i - 1, j, 3]
                if is_missing != (held == _ALL_MISSING) and held != _WHOLE_RANGE:
                    held = _WHOLE_RANGE
                    spanned[j] = spans.weights[j]
                if held == _NONE_MISSING and not is_missing and (code < low or code > high):
                    if code < low:
                        low, low_positions[j] = code, position
                    else:
                        high, high_positions[j] = code, position
                    if spans.first_node[j] == spans.first_node[j + 1]:
                        width = high_positions[j] - low_positions[j]
                        spanned[j] = min(width, spans.weights[j])
                    else:
                        while _node(spans, j, level, low) != _node(spans, j, level, high):
                            level += 1
                        node = spans.first_node[j] + level * spans.leaves[j] + low
                        spanned[j] = spans.shares[node] * spans.weights[j]
                    if spans.is_whole[j] and spanned[j] >= spans.weights[j]:
                        held = _WHOLE_RANGE
            boxes[i, j, 0], boxes[i, j, 1], boxes[i, j, 2], boxes[i, j, 3] = low, high, level, held
            total += spanned[j]
        penalties[i] = total
    return penalties, boxes


@kernel(boolean(SPANS, int64[:, :, ::1], int64, int64, int64))
def _lies_inside(spans, boxes, prefix, attribute, code):
    """Return whether a value costs a prefix's box nothing."""
    low, high = boxes[prefix, attribute, 0], boxes[prefix, attribute, 1]
    level, held = boxes[prefix, attribute, 2], boxes[prefix, attribute, 3]
    if held == _WHOLE_RANGE:
        return True
    if spans.is_whole[attribute] and (code == spans.missing[attribute]) != (held == _ALL_MISSING):
        return False
    if held == _ALL_MISSING:
        return True
    if spans.first_node[attribute] == spans.first_node[attribute + 1]:
        return low <= code <= high
    return _node(spans, attribute, level, code) == _node(spans, attribute, level, low)


@kernel(int64[::1](int64[:, ::1], SPANS, int64[::1], int64[:, :, ::1]))
def _first_boxes_around(codes, spans, records, boxes):
    """Return, for each record, the first prefix whose box it lies in. O(m d log m)."""
    m, d = records.shape[0], codes.shape[1]
    entries = np.empty(m, np.int64)
    for i in range(m):
        entry = 0
        for j in range(d):
            code = codes[records[i], j]
            is_plain = not spans.is_whole[j] and spans.first_node[j] == spans.first_node[j + 1]
            # Boxes grow, and its own prefix holds it.
            low, high = entry, i
            while low < high:
                middle = (low + high) // 2
                if is_plain:
                    inside = boxes[middle, j, 0] <= code <= boxes[middle, j, 1]
                else:
                    inside = _lies_inside(spans, boxes, middle, j, code)
                if inside:
                    high = middle
                else:
                    low = middle + 1
            entry = max(entry, low)
        entries[i] = entry
    return entries


@kernel(
    boolean[::1](
        int64[:, ::1],
        float64[:, ::1],
        int64[:, ::1],
        int64[::1],
        int64[::1],
        REQUIREMENTS,
        SPANS,
        int64,
        boolean,
        float64,
    )
)
def separate_where_paying(
    codes, normalized, values, order, starts, requirements, spans, neighbors, by_density, price
):
    """Separate the records that each group keeps from those that it should give up.

    Parameters
    ----------
    codes, normalized, values, order, starts, requirements, neighbors, by_density
        As for :func:`anonspark.kernels.separation.separate_outliers`.
    spans : Spans
    price : float
        What a record that is given up is expected to lose elsewhere, as a certainty penalty.

    Returns
    -------
    bool ndarray of shape (m,)
        Whether ``order[i]`` is kept. Groups of at most k records are kept as a whole.

    Notes
    -----
    Points are taken in the order of their distance from the reference. The box of a prefix of
    them keeps every record that lies in it, for those cost nothing. Of all boxes whose records
    satisfy the requirements the one is taken for which records kept * penalty of the box + records
    given up * price is smallest. On a tie, to 33 bits, the one that keeps more. The whole group is
    the last prefix, so nothing is given up unless that costs less. O(m d log m) time for a group of
    m distinct points, beside what the scores cost. With criteria beyond k, a judgement for each
    prefix that would be the best so far.
    """
    k = requirements.k
    counts = np.zeros(requirements.shares.shape[0], np.int64)
    present = np.empty(requirements.shares.shape[0], np.int64)
    has_criteria = requirements.kinds.shape[0] > 0
    stays = np.ones(order.shape[0], np.bool_)
    for group in range(starts.shape[0] - 1):
        start, stop = starts[group], starts[group + 1]
        size = stop - start
        if size <= k:
            continue
        first = distinct_points(codes, order, start, stop)
        points = first.shape[0] - 1
        if points == 1:
            continue
        nearest = nearest_to_reference(normalized, order, first, neighbors, by_density)
        records = np.empty(points, np.int64)
        for i in range(points):
            records[i] = order[first[nearest[i]]]
        penalties, boxes = _boxes_of_prefixes(codes, normalized, spans, records)
        entries = _first_boxes_around(codes, spans, records, boxes)
        by_entry = np.argsort(entries, kind="mergesort")
        inside, entered, seen = 0, 0, 0
        chosen, least = points - 1, np.inf
        for prefix in range(points):
            while entered < points and entries[by_entry[entered]] == prefix:
                point = nearest[by_entry[entered]]
                inside += first[point + 1] - first[point]
                if has_criteria:
                    seen = count_values(
                        values, order, first[point], first[point + 1], counts, present, seen
                    )
                entered += 1
            if inside < k:
                continue
            cost = without_noise(inside * penalties[prefix] + (size - inside) * price)
            if cost <= least and (
                not has_criteria or judge(requirements, counts, present, seen, inside)[0] < 0
            ):
                chosen, least = prefix, cost
            if inside == size:
                break
        clear_counts(counts, present, seen)
        for i in range(points):
            if entries[i] > chosen:
                stays[first[nearest[i]] : first[nearest[i] + 1]] = False
    return stays
