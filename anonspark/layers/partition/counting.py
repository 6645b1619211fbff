"""Histograms of batches of records: what a task counts, and what the driver derives from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from anonspark.core.arrays import Integers
from anonspark.kernels.descent import (
    BEFORE,
    BEFORE_OR_EQUAL,
    EQUAL,
    accumulate_histograms,
    draw_records,
)
from anonspark.layers.partition.brackets import goes_left, with_distances
from anonspark.layers.partition.cut_tree import (
    Boundary,
    BoundaryArrays,
    CutTree,
    Descent,
    positions_for,
)
from anonspark.layers.partition.unit_criteria import (
    MatchedValues,
    PeopleOfSides,
    PeopleSplit,
    Side,
)

_SMALLEST = np.iinfo(np.int64).min
_LARGEST = np.iinfo(np.int64).max

# Rows of one counting job's result, over all nodes: what reaches the driver.
_RESULT_ROWS = 2**17
# One pass lists each value of the few nodes that were not foreseen.
_MOST_BINS = 2**16
_MOST_VALUES = 2**20
_FEWEST_BINS = 2**4


@dataclass(frozen=True)
class Request:
    """A histogram that the driver asks for.

    Parameters
    ----------
    node : int
        Leaf of the tree whose records are counted.
    key : int
        Column of the key matrix to count by, or ``DISTANCE``.
    lowest, highest : int
        Interval of values that is divided into bins.
    rows : int
        Largest number of records in the interval: few are listed value by value.
    boundary : Boundary or None
        Count only records equal to this in all its keys. Its vantage point is the one that
        distances are measured from.
    goes_left : bool
        Count the records that the boundary sends to the left instead.
    every_value : bool
        Give every value of the interval a bin.
    where : (int, int, int) or None
        Count only records whose value of this column of the key matrix lies in this interval:
        column, lowest, highest.
    """

    node: int
    key: int
    lowest: int
    highest: int
    rows: int
    boundary: Boundary | None = None
    goes_left: bool = False
    every_value: bool = False
    where: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class Draw:
    """A draw of records by content that the driver asks for, in a leaf of the tree.

    ``salt`` distinguishes it from others, and ``limit`` is the largest priority that is taken, see
    :func:`anonspark.kernels.paths.priority`.
    """

    node: int
    salt: int
    limit: int


@dataclass(frozen=True)
class UnitCount(Side):
    """A number of different people of a side, counted up to ``most``."""

    most: int


Question = Request | Draw | UnitCount | PeopleSplit | MatchedValues


@dataclass(frozen=True)
class Histogram:
    """Counted records, bin by bin in ascending order, without empty bins.

    ``minima`` and ``maxima`` are the smallest and largest value of each bin. A bin in which they
    are equal is a single value, so its count is exact.
    """

    counts: Integers
    minima: Integers
    maxima: Integers

    def find(self, rank: int) -> tuple[int, int]:
        """Return the bin of the ``rank``-th smallest record (from 1) and the records below it.

        >>> Histogram(np.array([3, 4]), np.array([0, 10]), np.array([9, 19])).find(5)
        (1, 3)
        """
        cumulative = np.cumsum(self.counts)
        index = int(np.searchsorted(cumulative, rank))
        return index, int(cumulative[index] - self.counts[index])


@dataclass(frozen=True)
class Drawn:
    """Records that were drawn, by ascending priority, each content once."""

    codes: Integers


Answer = Histogram | Drawn | int | PeopleOfSides | list[int]
"""The result of :class:`UnitCount`, a number, at most what was asked for."""


def first_of_node(questions: Sequence[Question], nodes: int) -> Integers:
    """Return where the questions of each of so many nodes begin. They are sorted by node.

    >>> first_of_node([Draw(1, 0, 0), Draw(1, 0, 0), Draw(2, 0, 0)], 3).tolist()
    [0, 0, 2, 3]
    """
    nodes_asked = np.array([question.node for question in questions], np.int64)
    return np.searchsorted(nodes_asked, np.arange(nodes + 1)).astype(np.int64)


def draw_among(
    hashes: Integers, leaves: npt.NDArray[np.int32], draws: Sequence[Draw], nodes: int
) -> tuple[Integers, Integers, npt.NDArray[np.uint64]]:
    """Draw among records, see :func:`~anonspark.kernels.descent.draw_records`.

    ``leaves`` (int32) is the node of each record, and ``draws`` are sorted by node.
    """
    salts = np.array([draw.salt for draw in draws], np.uint64)
    limits = np.array([draw.limit for draw in draws], np.uint64)
    first_draw = first_of_node(draws, nodes)
    drawn: tuple[Integers, Integers, npt.NDArray[np.uint64]] = draw_records(
        np.ascontiguousarray(hashes), leaves, first_draw, salts, limits
    )
    return drawn


@dataclass
class Counter:
    """Counts records of one partition into the histograms of all questions, grouped by node."""

    tree: InitVar[CutTree]
    questions: Sequence[Question]
    descent: Descent = field(init=False)
    requests: list[Request] = field(init=False)
    draws: list[Draw] = field(init=False)
    units: list[UnitCount] = field(init=False)
    _bins: Integers = field(init=False)
    _shifts: Integers = field(init=False)

    def __post_init__(self, tree: CutTree) -> None:
        """Decide for each request how wide its bins are, or that its values are listed instead."""
        self.descent = tree.descent()
        self.requests = [question for question in self.questions if isinstance(question, Request)]
        self.draws = [question for question in self.questions if isinstance(question, Draw)]
        self.units = [question for question in self.questions if isinstance(question, UnitCount)]
        share = max(_RESULT_ROWS // max(len(self.requests), 1), 1)
        values = sum(
            request.highest - request.lowest + 1 for request in self.requests if request.every_value
        )
        bins = min(max(1 << (share.bit_length() - 1), _FEWEST_BINS), _MOST_BINS)
        shifts, sizes = [], []
        for request in self.requests:
            width = request.highest - request.lowest
            shift = max(width.bit_length() - (bins.bit_length() - 1), 0)
            if request.every_value:
                # Many values of many nodes: most of them do not occur, so no room is kept for them.
                shift = 0 if values <= _MOST_VALUES else -1
            elif shift > 0 and request.rows <= bins:
                shift = -1
            shifts.append(shift)
            sizes.append(0 if shift < 0 else (width >> shift) + 1)
        self._shifts = np.array(shifts, np.int64)
        self._bins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def _as_rows(self) -> Integers:
        """Encode the requests for :func:`~anonspark.kernels.descent.accumulate_histograms`."""
        comparisons = {(False, False): EQUAL, (False, True): EQUAL}
        comparisons |= {(True, False): BEFORE, (True, True): BEFORE_OR_EQUAL}
        rows: Integers = np.array(
            [
                [
                    request.key,
                    request.lowest,
                    request.highest,
                    shift,
                    first,
                    comparisons[
                        request.goes_left,
                        request.boundary is None or request.boundary.equal_goes_left,
                    ],
                    *(request.where or (-1, 0, 0)),
                ]
                for request, shift, first in zip(
                    self.requests, self._shifts, self._bins[:-1], strict=True
                )
            ],
            np.int64,
        ).reshape(-1, 9)
        return rows

    def _draw(
        self, keys: Integers, leaves: npt.NDArray[np.int32], drawn: dict[tuple[int, int], list[int]]
    ) -> None:
        """Draw among the records of a batch, by the hashes after their codes."""
        d = len(self.descent.quasi_identifiers)
        draws, rows, priorities = draw_among(keys[:, d], leaves, self.draws, len(self.descent))
        for draw, row, priority in zip(
            draws.tolist(), rows.tolist(), priorities.view(np.int64).tolist(), strict=True
        ):
            # Equal hashes are equal contents, or a collision, which codes decide.
            key = (len(self.requests) + draw, priority)
            codes = keys[row, :d].tolist()
            drawn[key] = min(drawn.get(key, codes), codes)

    def _meet(self, keys: Integers, leaves: npt.NDArray[np.int32], met: list[Integers]) -> None:
        """Add the people of a batch to those met, up to as many as each question asks for."""
        for index, question in enumerate(self.units):
            columns = np.ascontiguousarray(keys[leaves == question.node].T)
            boundary = question.boundary
            measured = with_distances(
                columns, boundary.vantage_point, self.descent.quasi_identifiers
            )
            people = columns[-1][goes_left(measured, boundary) == question.goes_left]
            # The smallest ones: those of all tasks together are the smallest of all, then.
            met[index] = np.union1d(met[index], people)[: question.most]

    def count(self, batches: Iterable[Integers]) -> dict[str, object]:
        """Count the records of a partition, given as key matrices, into a flat table.

        ``request``, ``bin``, ``count``, ``minimum`` and ``maximum`` (int64) describe each bin that
        is not empty. Then follows a row for each drawn record: its draw, numbered on from the
        requests, and its priority as bin. Then a row for each person found: the question, numbered
        on from the draws, and the person as bin. ``codes`` lists the codes of drawn records.
        """
        d = len(self.descent.quasi_identifiers)
        requests = self._as_rows()
        boundaries = BoundaryArrays.of([request.boundary for request in self.requests], d)
        measured = boundaries.measured or self.descent.boundaries.measured
        first_request = first_of_node(self.requests, len(self.descent))
        total = int(self._bins[-1])
        bins = np.empty((total, 3), np.int64)
        bins[:] = 0, _LARGEST, _SMALLEST
        listed: list[tuple[Integers, Integers]] = []
        drawn: dict[tuple[int, int], list[int]] = {}
        met = [np.zeros(0, np.int64) for _ in self.units]
        for keys in batches:
            normalized = positions_for(keys, self.descent.quasi_identifiers, measured=measured)
            leaves = self.descent.find_leaves(keys, normalized)
            listed.append(
                accumulate_histograms(
                    keys,
                    normalized,
                    leaves,
                    first_request,
                    requests,
                    boundaries.keys,
                    boundaries.thresholds,
                    boundaries.points,
                    bins,
                )
            )
            if self.draws:
                self._draw(keys, leaves, drawn)
            self._meet(keys, leaves, met)
        return self._table(bins, listed, drawn, met)

    def _table(
        self,
        bins: Integers,
        listed: Sequence[tuple[Integers, Integers]],
        drawn: Mapping[tuple[int, int], list[int]],
        met: Sequence[Integers],
    ) -> dict[str, object]:
        """Join bins, listed values, drawn records and people to the table of :meth:`count`.

        ``bin`` is also the priority of a drawn record, and the hash of a person, of whom there is
        nothing to sum. Only drawn records have ``codes``.
        """
        filled = np.flatnonzero(bins[:, 0])
        owner = np.searchsorted(self._bins, filled, side="right") - 1
        parts = [(owner, filled - self._bins[owner], *bins[filled].T)]
        if listed:
            parts.append(_count_listed(listed))
        draws = np.array(list(drawn), np.int64).reshape(-1, 2)
        units = np.concatenate([np.zeros(0, np.int64), *met])
        first = len(self.requests) + len(self.draws)
        questions = np.repeat(first + np.arange(len(met)), [len(people) for people in met])
        for numbers, keys in ((draws[:, 0], draws[:, 1]), (questions, units)):
            zeros = np.zeros(len(keys), np.int64)
            parts.append((numbers, keys, zeros, zeros, zeros))
        names = ("request", "bin", "count", "minimum", "maximum")
        table = {
            name: np.concatenate([part[column] for part in parts]).astype(np.int64)
            for column, name in enumerate(names)
        }
        undrawn = len(table["request"]) - len(draws) - len(units)
        return {**table, "codes": [*[None] * undrawn, *drawn.values(), *[None] * len(units)]}

    def answers(self, result: Mapping[str, npt.NDArray[Any]]) -> list[Answer]:
        """Answer each question from the counts of all partitions, summed by bin.

        The rows of a question are put in order: bins by their values, drawn records by priority.
        Questions are numbered by kind, and answers have the order in which they were asked.
        """
        # Priorities are unsigned; flipping the sign bit sorts them as such.
        of_draw = result["request"] >= len(self.requests)
        within = np.where(of_draw, result["bin"] ^ _SMALLEST, result["minimum"])
        order = np.lexsort((within, result["request"]))
        owners = result["request"][order]
        bounds = np.searchsorted(owners, np.arange(len(self.questions) + 1))
        histograms, draws, units = [], [], []
        for number, (start, stop) in enumerate(pairwise(bounds)):
            rows = order[start:stop]
            if number < len(self.requests):
                columns = (result[name][rows] for name in ("count", "minimum", "maximum"))
                histograms.append(Histogram(*(column.astype(np.int64) for column in columns)))
            elif number >= len(self.requests) + len(self.draws):
                question = self.units[number - len(self.requests) - len(self.draws)]
                units.append(min(len(rows), question.most))
            else:
                codes = [list(result["codes"][row]) for row in rows]
                d = len(self.descent.quasi_identifiers)
                draws.append(Drawn(np.array(codes, np.int64).reshape(-1, d)))
        by_kind: dict[type, Iterator[Answer]] = {
            Request: iter(histograms),
            Draw: iter(draws),
            UnitCount: iter(units),
        }
        return [next(by_kind[type(question)]) for question in self.questions]


def _count_listed(listed: Sequence[tuple[Integers, Integers]]) -> tuple[Integers, ...]:
    """Count values that were listed for requests: request, value, count, and twice the value.

    >>> columns = _count_listed([(np.array([1, 0, 1]), np.array([7, 5, 7]))])
    >>> [column.tolist() for column in columns[:3]]
    [[0, 1], [5, 7], [1, 2]]
    """
    owner, value = (np.concatenate([part[side] for part in listed]) for side in (0, 1))
    order = np.lexsort((value, owner))
    owner, value = owner[order], value[order]
    # Sorted, equal ones are neighbours: np.unique would compare whole rows, which is slow.
    is_first = np.ones(len(order), bool)
    is_first[1:] = (np.diff(owner) != 0) | (np.diff(value) != 0)
    starts = np.flatnonzero(is_first)
    value, repeats = value[starts], np.diff(starts, append=len(order))
    return owner[starts], value, repeats, value, value
