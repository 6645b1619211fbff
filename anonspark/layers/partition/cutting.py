"""Define what all cut rules use: exact halves of a node, and criteria on both sides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from anonspark.core.criteria import Counts, Criteria, PeopleOfGroup
from anonspark.core.encoding import QuasiIdentifier
from anonspark.kernels.descent import DISTANCE
from anonspark.kernels.vantage_points import UNITS
from anonspark.layers.partition.counting import Histogram, Question, Request, UnitCount
from anonspark.layers.partition.cut_tree import Boundary
from anonspark.layers.partition.node import Asking, Node
from anonspark.layers.partition.unit_criteria import (
    MatchedValues,
    PeopleOfSides,
    PeopleSplit,
    at_most_matched,
)


def ask(requests: Sequence[Request]) -> Asking[list[Histogram]]:
    """Ask for histograms."""
    answers = yield list(requests)
    return [answer for answer in answers if isinstance(answer, Histogram)]


def find_rank(request: Request, histogram: Histogram, rank: int) -> Asking[tuple[int, int, int]]:
    """Find the ``rank``-th smallest value (from 1) exactly, zooming in on the bin that holds it.

    ``request`` and ``histogram`` are the first question and its answer. Returns the value, the
    records below it and the records equal to it.
    """
    (run,) = yield from find_ranks(request, histogram, [rank])
    return run


def find_ranks(
    request: Request, histogram: Histogram, ranks: Sequence[int]
) -> Asking[list[tuple[int, int, int]]]:
    """Find the values of several ascending ranks, in about as many passes as for one rank.

    Returns results of :func:`find_rank` by ascending value, each value once.
    """
    runs: set[tuple[int, int, int]] = set()
    waiting = [(histogram, 0, list(ranks))]
    while waiting:
        # Ranks that fall into the same bin are looked for in one histogram of it.
        zoomed: dict[Request, tuple[int, list[int]]] = {}
        for counted, below, sought_ranks in waiting:
            for rank in sought_ranks:
                index, smaller = counted.find(rank - below)
                lowest, highest = int(counted.minima[index]), int(counted.maxima[index])
                rows = int(counted.counts[index])
                if lowest == highest:
                    runs.add((lowest, below + smaller, rows))
                    continue
                bin_of_rank = replace(request, lowest=lowest, highest=highest, rows=rows)
                zoomed.setdefault(bin_of_rank, (below + smaller, []))[1].append(rank)
        if not zoomed:
            break
        histograms = yield from ask(list(zoomed))
        waiting = [
            (answer, below, sought_ranks)
            for answer, (below, sought_ranks) in zip(histograms, zoomed.values(), strict=True)
        ]
    return sorted(runs)


_SMALLEST_HASH, _LARGEST_HASH = -(2**63), 2**63 - 1


def half(
    node: Node,
    keys: Sequence[int],
    *,
    vantage_point: tuple[float, ...] | None = None,
    distances: tuple[int, int] = (0, 0),
    first: tuple[Request, Histogram] | None = None,
) -> Asking[Boundary]:
    """Find the boundary that sends the first half of a node's records, rounded down, to the left.

    ``keys`` order the records: quasi-identifiers or ``DISTANCE``, and then the record hash and the
    number. ``distances`` is the interval of all distance keys from the ``vantage_point``. ``first``
    is the question about the first key and its answer, if it was asked before. Takes a few counting
    passes for the first key, and for each further key that is needed to break ties.
    """
    d = len(node.lowest)
    missing, tied_rows = node.rows // 2, node.rows
    boundary = Boundary((), (), vantage_point=vantage_point)
    for index, key in enumerate((*keys, d, d + 1)):
        if index == 0 and first is not None:
            request, histogram = first
        else:
            lowest, highest = distances if key == DISTANCE else _interval(node, key)
            request = Request(node.number, key, lowest, highest, tied_rows, boundary)
            (histogram,) = yield from ask([request])
        threshold, below, tied_rows = yield from find_rank(request, histogram, missing)
        missing -= below
        boundary = replace(
            boundary, keys=(*boundary.keys, key), thresholds=(*boundary.thresholds, threshold)
        )
        if missing == tied_rows:
            return boundary
    raise ValueError("records that are equal in every key have equal numbers, too")


def _interval(node: Node, key: int) -> tuple[int, int]:
    d = len(node.lowest)
    return (node.lowest[key], node.highest[key]) if key < d else interval_of_tie(key, d)


def interval_of_distances(quasi_identifiers: Sequence[QuasiIdentifier]) -> tuple[int, int]:
    """Return the interval of all distance keys. The largest is one beyond all rounding."""
    total = 0.0
    for quasi_identifier in quasi_identifiers:
        span = quasi_identifier.range / quasi_identifier.unit
        # Missing numbers lie one range beyond the largest.
        total += (span * (2 if quasi_identifier.has_missing else 1)) ** 2
    return 0, int(1.001 * math.sqrt(total) * UNITS)


def interval_of_tie(key: int, d: int) -> tuple[int, int]:
    """Return the interval of all record hashes, or of all numbers of records."""
    return (_SMALLEST_HASH, _LARGEST_HASH) if key == d else (0, _LARGEST_HASH)


def ask_values(
    node: Node, criteria: Criteria, goes_left: Boundary | None = None
) -> Asking[list[Counts]]:
    """Count a node's sensitive values, for each sensitive attribute.

    With a boundary, only the records that it sends to the left count.
    """
    requests = value_requests(node, criteria, goes_left)
    if not requests:
        return []
    histograms = yield from ask(requests)
    return counts_of_values(criteria, histograms)


def value_requests(
    node: Node,
    criteria: Criteria,
    goes_left: Boundary | None = None,
    where: tuple[int, int, int] | None = None,
) -> list[Request]:
    """Return the requests of :func:`ask_values`, to ask them together with others.

    ``where`` is that of :class:`Request`. There are no requests if people are counted.
    """
    if criteria.units is not None:
        return []
    d = len(node.lowest)
    first_value = criteria.first_value.tolist()
    return [
        Request(
            node.number,
            d + 2 + index,
            first_value[index],
            first_value[index + 1] - 1,
            node.rows,
            goes_left,
            goes_left=goes_left is not None,
            every_value=True,
            where=where,
        )
        for index in range(len(criteria.sensitive))
    ]


def counts_of_values(criteria: Criteria, histograms: Sequence[Histogram]) -> list[Counts]:
    """Return the answers to :func:`value_requests` as counts of every value."""
    if criteria.units is not None:
        return []
    first_value = criteria.first_value
    counts = []
    for index, histogram in enumerate(histograms):
        different = first_value[index + 1] - first_value[index]
        dense = np.zeros(int(different), np.int64)
        dense[histogram.minima - first_value[index]] = histogram.counts
        counts.append(dense)
    return counts


def sides_satisfy(
    node: Node, boundary: Boundary, left_rows: int, criteria: Criteria, values: Sequence[Counts]
) -> Asking[bool]:
    """Return whether both sides of a cut satisfy the criteria.

    The boundary sends ``left_rows`` records to the left, and ``values`` are the counts of the
    node's sensitive values. One counting pass, none if k is the only criterion, and those of
    :func:`sides_have_units`, or :func:`first_allowed` if criteria count people.
    """
    if min(left_rows, node.rows - left_rows) < criteria.k:
        return False
    if criteria.counts_people:
        return (yield from first_allowed(node, [boundary], [0], criteria)) is not None
    if criteria.criteria:
        left = yield from ask_values(node, criteria, boundary)
        right = [total - part for total, part in zip(values, left, strict=True)]
        if not (
            criteria.satisfied_by(left_rows, left)
            and criteria.satisfied_by(node.rows - left_rows, right)
        ):
            return False
    return (yield from sides_have_units(node, boundary, left_rows, criteria))


def sides_have_units(
    node: Node, boundary: Boundary, left_rows: int, criteria: Criteria
) -> Asking[bool]:
    """Return whether both sides of a cut hold k people. See :func:`sides_satisfy`.

    One counting pass if fewer than k people could have all records of a side. Otherwise, and if
    records are counted, none.
    """
    units = criteria.units
    if units is None:
        return True
    questions: list[Question] = [
        UnitCount(node.number, boundary, goes_left, criteria.k)
        for goes_left, rows in ((True, left_rows), (False, node.rows - left_rows))
        if rows <= units.of_fewer_than_k
    ]
    if not questions:
        return True
    answers = yield questions
    return all(answer == criteria.k for answer in answers)


def first_allowed(
    node: Node, boundaries: Sequence[Boundary], order: Sequence[int], criteria: Criteria
) -> Asking[int | None]:
    """Return the first boundary both of whose sides satisfy criteria that count people, or None.

    ``boundaries`` are those of one quasi-identifier, ascending, and are tried in the ``order`` of
    their indices. One pass counts the people on the sides of all boundaries. Distinct l-diversity
    takes one more for each boundary that is tried and may satisfy it by different values.
    """
    if not order:
        return None
    (sides,) = yield [PeopleSplit(node.number, tuple(boundaries))]
    if not isinstance(sides, PeopleOfSides):
        raise TypeError("expected the people of sides")
    for position in order:
        people = [at_most_matched(*sides.side(position, left=left)) for left in (True, False)]
        if not all(_satisfy(person, criteria) for person in people):
            continue
        answers = yield [
            MatchedValues(node.number, boundaries[position], left) for left in (True, False)
        ]
        matched = [answer for answer in answers if isinstance(answer, list)]
        pairs = zip(people, matched, strict=True)
        people = [replace(person, matched=values) for person, values in pairs]
        if all(_satisfy(person, criteria) for person in people):
            return position
    return None


def _satisfy(people: PeopleOfGroup, criteria: Criteria) -> bool:
    return people.number >= criteria.k and criteria.violated_by_people(people) is None
