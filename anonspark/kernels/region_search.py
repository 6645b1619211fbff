"""Find the regions that hold a point, by a tree of boxes over the published classes.

A region is a product of sets of codes, one a dimension. Each set lies in a box. Where it has gaps,
its runs of codes are listed as well, and compared once the box holds the point.

Points and regions that belong together can be matched one to one: a region has room for as many
points as its class has records.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from anonspark.kernels.box_tree import build_box_tree
from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import boolean, float64, int32, int64, types, void

# Fewer places of a group are looked at one by one.
_FEW_PLACES = 24

_CODES = int32[:, ::1]

REGIONS = (*(_CODES,) * 3, int64[::1], _CODES, int64[::1], int64[:, ::1], _CODES, _CODES)
"""Types of regions and their tree, as :func:`count_points` takes them: from ``low`` on."""


def build_region_tree(
    low: npt.NDArray[np.int32], high: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[Any], ...]:
    """Build a tree over boxes.

    Parameters
    ----------
    low, high : int32 ndarray of shape (n, d)
        First and last code of each box, both included. ``low > high`` holds nothing.

    Returns
    -------
    members, nodes
        Of :func:`~anonspark.kernels.box_tree.build_box_tree`, which documents the cost.
    node_low, node_high : int32 ndarray of shape (nodes, d)
        The box around all boxes of a node.
    """
    boxes = np.stack([low, high], axis=1).astype(np.float64)
    members, nodes, node_boxes = build_box_tree(boxes, True)
    ends = np.clip(node_boxes, -(2**31), 2**31 - 1).astype(np.int32)
    return members, nodes, *(np.ascontiguousarray(ends[:, end]) for end in range(2))


@kernel(boolean(_CODES, int64, _CODES, _CODES, int64))
def _in_box(points, point, low, high, box):
    for j in range(points.shape[1]):
        if points[point, j] < low[box, j] or points[point, j] > high[box, j]:
            return False
    return True


@kernel(boolean(_CODES, int64, _CODES, int64[::1], _CODES, int64))
def _in_runs(points, point, gaps, offsets, runs, region):
    for j in range(points.shape[1]):
        listed = gaps[region, j]
        if listed < 0:
            continue
        code = points[point, j]
        # The last run that begins at the code or before it.
        first, last = offsets[listed], offsets[listed + 1]
        while last - first > 1:
            middle = (first + last) // 2
            if runs[middle, 0] <= code:
                first = middle
            else:
                last = middle
        if code < runs[first, 0] or code > runs[first, 1]:
            return False
    return True


@kernel(int64(_CODES, int64, *REGIONS, int64[::1]))
def _regions_of(
    points, point, low, high, gaps, offsets, runs, members, nodes, node_low, node_high, regions
):
    """Fill ``regions`` with the regions that hold a point. Return how many."""
    stack = np.empty(130, np.int64)
    stack[0] = 0
    depth = 1
    count = 0
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if not _in_box(points, point, node_low, node_high, node):
            continue
        if nodes[node, 2] >= 0:
            stack[depth] = nodes[node, 2]
            stack[depth + 1] = node + 1
            depth += 2
            continue
        for position in range(nodes[node, 0], nodes[node, 1]):
            region = members[position]
            if _in_box(points, point, low, high, region) and _in_runs(
                points, point, gaps, offsets, runs, region
            ):
                regions[count] = region
                count += 1
    return count


@kernel(void(_CODES, *REGIONS, int64[::1]))
def count_points(
    points, low, high, gaps, offsets, runs, members, nodes, node_low, node_high, counts
):
    """Count the points of each region.

    Parameters
    ----------
    points : int32 ndarray of shape (points, d)
        Codes.
    low, high : int32 ndarray of shape (n, d)
        The box of each region, both ends included.
    gaps : int32 ndarray of shape (n, d)
        The list of runs with the codes of a region's set, -1 if that is its whole box.
    offsets : int64 ndarray of shape (lists + 1,)
        Where each list begins in ``runs``. None is empty.
    runs : int32 ndarray of shape (runs, 2)
        First and last code of each run, ascending inside a list, apart from each other.
    members, nodes, node_low, node_high
        The tree, see :func:`build_region_tree`.
    counts : int64 ndarray of shape (n,)
        The counts are added here.

    Notes
    -----
    O(log n + found) a point where the regions overlap little. O(n) at worst.
    """
    regions = np.empty(len(members), np.int64)
    for point in range(len(points)):
        count = _regions_of(
            points, point, low, high, gaps, offsets, runs, members, nodes, node_low, node_high,
            regions,
        )  # fmt: skip
        for i in range(count):
            counts[regions[i]] += 1


@kernel(float64[::1](_CODES, *REGIONS, float64[::1]))
def sum_shares(points, low, high, gaps, offsets, runs, members, nodes, node_low, node_high, shares):
    """Add up a figure of all regions that hold each point.

    Parameters
    ----------
    points, low, high, gaps, offsets, runs, members, nodes, node_low, node_high
        See :func:`count_points`.
    shares : float64 ndarray of shape (n,)
        Figure of each region.

    Returns
    -------
    float64 ndarray of shape (points,)
        Added from the smallest figure to the largest, so that the order of the regions does not
        matter. 0 if no region holds the point.
    """
    regions = np.empty(len(members), np.int64)
    sums = np.zeros(len(points), np.float64)
    for point in range(len(points)):
        count = _regions_of(
            points, point, low, high, gaps, offsets, runs, members, nodes, node_low, node_high,
            regions,
        )  # fmt: skip
        ordered = np.sort(shares[regions[:count]])
        for i in range(count):
            sums[point] += ordered[i]
    return sums


@kernel(int64(int64[::1], int32[::1], int64[::1], int64[::1]))
def _largest_matching(starts, pairs, room, held):
    """Return how many points can be given places, each one of those that hold it.

    Hopcroft and Karp (1973), with places that have room for several points: points without a place
    take over places along shortest ways, many ways at a time, as long as there is one.

    ``starts`` and ``pairs`` give the places of each point, ``held`` the points of each place.
    """
    n, m = len(starts) - 1, len(room)
    # Where the points with a place are listed, place by place.
    first = np.zeros(m + 1, np.int64)
    for position in range(m):
        first[position + 1] = first[position] + min(room[position], held[position])
    partner = np.empty(first[m], np.int32)
    used = np.zeros(m, np.int64)
    has_place = np.zeros(n, np.bool_)
    matched = 0
    for point in range(n):
        for pair in range(starts[point], starts[point + 1]):
            position = pairs[pair]
            if used[position] < first[position + 1] - first[position]:
                partner[first[position] + used[position]] = point
                used[position] += 1
                has_place[point] = True
                matched += 1
                break
    if matched == min(n, first[m]):
        return matched
    level = np.empty(n, np.int32)
    place_level = np.empty(m, np.int32)
    next_pair = np.empty(n, np.int64)
    next_given = np.empty(m, np.int64)
    queue = np.empty(n, np.int32)
    way = np.empty(n + 1, np.int32)
    taken_over = np.empty(n + 1, np.int64)
    while True:
        level[:] = -1
        place_level[:] = -1
        end = 0
        for point in range(n):
            if not has_place[point]:
                level[point] = 0
                queue[end] = point
                end += 1
        begin, last_level = 0, n + 1
        while begin < end and level[queue[begin]] < last_level:
            point = queue[begin]
            begin += 1
            for pair in range(starts[point], starts[point + 1]):
                position = pairs[pair]
                if place_level[position] >= 0:
                    continue
                place_level[position] = level[point] + 1
                if used[position] < first[position + 1] - first[position]:
                    last_level = place_level[position]
                    continue
                for slot in range(first[position], first[position] + used[position]):
                    level[partner[slot]] = place_level[position]
                    queue[end] = partner[slot]
                    end += 1
        if last_level > n:
            return matched
        next_pair[:] = starts[:-1]
        next_given[:] = 0
        for root in range(n):
            if has_place[root]:
                continue
            way[0] = root
            depth = 0
            while depth >= 0:
                point = way[depth]
                if next_pair[point] == starts[point + 1]:
                    depth -= 1
                    continue
                position = pairs[next_pair[point]]
                if place_level[position] != level[point] + 1:
                    next_pair[point] += 1
                elif used[position] < first[position + 1] - first[position]:
                    partner[first[position] + used[position]] = point
                    used[position] += 1
                    for step in range(depth, 0, -1):
                        partner[taken_over[step]] = way[step - 1]
                    has_place[root] = True
                    matched += 1
                    break
                elif next_given[position] == used[position]:
                    next_pair[point] += 1
                else:
                    slot = first[position] + next_given[position]
                    next_given[position] += 1
                    if level[partner[slot]] == place_level[position]:
                        depth += 1
                        way[depth] = partner[slot]
                        taken_over[depth] = slot


@kernel(
    types.Tuple((int64[::1], int64[::1], int64[::1]))(
        _CODES, int64[::1], int64[::1], int64[::1], int64[::1], int64, *REGIONS
    )
)
def match_groups(
    points,
    first_points,
    first_places,
    places,
    room,
    most_pairs,
    low,
    high,
    gaps,
    offsets,
    runs,
    members,
    nodes,
    node_low,
    node_high,
):
    """Match the points of each group one to one with its places in the regions that hold them.

    Parameters
    ----------
    points : int32 ndarray of shape (points, d)
        Codes, group by group.
    first_points, first_places : int64 ndarray of shape (groups + 1,)
        Where the points and the places of each group begin.
    places : int64 ndarray of shape (places,)
        The region of each place, ascending inside a group, each once.
    room : int64 ndarray of shape (places,)
        How many points each place takes. At least 1.
    most_pairs : int
        Groups that have more pairs of a point and a place that holds it are not matched. At most
        2^31 - 1.
    low, high, gaps, offsets, runs, members, nodes, node_low, node_high
        See :func:`count_points`.

    Returns
    -------
    held : int64 ndarray of shape (places,)
        Points of the group in each place's region.
    holding : int64 ndarray of shape (points,)
        Places of the group whose region holds each point.
    matched : int64 ndarray of shape (groups,)
        How many points can be given a place, at most. -1 where that is not known.

    Notes
    -----
    O(pairs) for groups none of whose points has a choice, O(pairs sqrt(points)) at worst, beside
    the search for the regions. 4 bytes a pair of the largest group.
    """
    groups = len(first_points) - 1
    held = np.zeros(len(places), np.int64)
    holding = np.zeros(len(points), np.int64)
    matched = np.zeros(groups, np.int64)
    regions = np.empty(len(members), np.int64)
    pairs = np.empty(1024, np.int32)
    for group in range(groups):
        begin, end = first_points[group], first_points[group + 1]
        first, last = first_places[group], first_places[group + 1]
        if begin == end or first == last:
            continue
        starts = np.zeros(end - begin + 1, np.int64)
        count = 0
        choice, all_kept = False, True
        for point in range(begin, end):
            # Candidates are the whole group's places, or those that the tree finds.
            few = last - first <= _FEW_PLACES
            if few:
                candidates = last - first
            else:
                candidates = _regions_of(
                    points, point, low, high, gaps, offsets, runs, members, nodes, node_low,
                    node_high, regions,
                )  # fmt: skip
            index = 0
            for candidate in range(candidates):
                if few:
                    position = first + candidate
                    region = places[position]
                    if not (
                        _in_box(points, point, low, high, region)
                        and _in_runs(points, point, gaps, offsets, runs, region)
                    ):
                        continue
                else:
                    position = first + np.searchsorted(places[first:last], regions[candidate])
                    if position == last or places[position] != regions[candidate]:
                        continue
                held[position] += 1
                index += 1
                if count == most_pairs:
                    all_kept = False
                if all_kept:
                    if count == len(pairs):
                        longer = np.empty(2 * count, np.int32)
                        longer[:count] = pairs
                        pairs = longer
                    pairs[count] = position - first
                    count += 1
            holding[point] = index
            choice |= index > 1
            starts[point - begin + 1] = count
        if not choice:
            for position in range(first, last):
                matched[group] += min(room[position], held[position])
        elif all_kept:
            matched[group] = _largest_matching(
                starts, pairs[:count], room[first:last], held[first:last]
            )
        else:
            matched[group] = -1
    return held, holding, matched
