"""Answer questions about a node exactly from the records and counts on the driver."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anonspark.core.arrays import Integers
from anonspark.kernels.descent import DISTANCE
from anonspark.layers.partition.brackets import Bracket, agree, goes_left, row_of
from anonspark.layers.partition.counting import Histogram, Question, Request
from anonspark.layers.partition.cut_tree import Boundary
from anonspark.layers.partition.cutting import interval_of_tie

_SMALLEST, _LARGEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True)
class Counted:
    """Records of which only counts are known.

    ``lowest`` and ``highest`` (int64, shape (d,)) are their extremes, crossed without records.
    ``values`` counts the records with each sensitive value, numbered through all attributes.
    """

    rows: int
    lowest: Integers
    highest: Integers
    values: Integers

    @classmethod
    def of(cls, columns: Integers, d: int, values: int) -> Counted:
        """Count records, given as a transposed key matrix."""
        return cls(
            columns.shape[1],
            columns[:d].min(axis=1, initial=_LARGEST),
            columns[:d].max(axis=1, initial=_SMALLEST),
            np.bincount(columns[d + 2 :].ravel(), minlength=values),
        )

    def __add__(self, other: Counted) -> Counted:
        return Counted(
            self.rows + other.rows,
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
            self.values + other.values,
        )


@dataclass(frozen=True)
class Outside:
    """The counted records of a node: those outside of its bracket, on either side.

    ``before`` and ``behind`` (int64, shape (keys + 1,)) count them by the first key in which they
    differ from the end of the bracket. Records that differ in none come last.
    """

    bracket: Bracket
    left: Counted
    right: Counted
    before: Integers
    behind: Integers


class Evidence:
    """What the driver knows of a node, which may answer questions without a pass."""

    def answer(self, questions: Sequence[Question]) -> list[Histogram] | None:
        """Answer all questions of a node exactly, or return None: then it asks all in a pass."""
        histograms = []
        for question in questions:
            histogram = self._histogram(question) if isinstance(question, Request) else None
            if histogram is None:
                return None
            histograms.append(histogram)
        return histograms

    @abstractmethod
    def _histogram(self, request: Request) -> Histogram | None: ...


@dataclass(frozen=True)
class SampleEvidence(Evidence):
    """A node's records in a sample, as if they were all of them.

    ``columns`` (int64, shape (width, n)) are their transposed keys. ``sampled`` is 1 for each that
    counts, and 0 for records that only widen extremes.
    """

    d: int
    columns: Integers
    sampled: Integers

    @property
    def rows(self) -> int:
        """Number of the records that count."""
        return int(self.sampled.sum())

    @property
    def counted(self) -> Integers:
        """Transposed keys of the records that count."""
        return np.compress(self.sampled > 0, self.columns, axis=1)

    def divide(self, boundary: Boundary) -> tuple[SampleEvidence, SampleEvidence]:
        """Divide the evidence between the two sides of a boundary."""
        left = goes_left(self.columns, boundary)
        first, second = (
            SampleEvidence(self.d, np.compress(side, self.columns, axis=1), self.sampled[side])
            for side in (left, ~left)
        )
        return first, second

    def extremes_alone(self, questions: Sequence[Question]) -> list[Histogram] | None:
        """Answer a node's first questions, those about keys by one bin of all records."""
        answers = []
        for question in questions:
            if isinstance(question, Request) and question.key < self.d:
                values = self.columns[question.key]
                histograms = [Histogram(*_bin(self.rows, int(values.min()), int(values.max())))]
            else:
                histograms = self.answer([question]) or []
            if not histograms:
                return None
            answers += histograms
        return answers

    def _histogram(self, request: Request) -> Histogram | None:
        values = self.columns[request.key]
        counted = (values >= request.lowest) & (values <= request.highest)
        if request.where is not None:
            key, lowest, highest = request.where
            counted &= (self.columns[key] >= lowest) & (self.columns[key] <= highest)
        if request.boundary is not None:
            choose = goes_left if request.goes_left else agree
            counted &= choose(self.columns, request.boundary)
        return Histogram(*_sums(values[counted], self.sampled[counted]))


@dataclass(frozen=True)
class EqualRecords(Evidence):
    """Records that are equal in every quasi-identifier."""

    counted: Counted

    def _histogram(self, request: Request) -> Histogram | None:
        if request.boundary is not None or request.where is not None:
            return None
        if request.every_value:
            counts = self.counted.values[request.lowest : request.highest + 1]
            present = np.flatnonzero(counts)
            return Histogram(counts[present], request.lowest + present, request.lowest + present)
        value = int(self.counted.lowest[request.key])
        return Histogram(*_bin(self.counted.rows, value, value))


@dataclass(frozen=True)
class PassEvidence(Evidence):
    """The answer of a pass: a node's records inside of its bracket, and counts of the others.

    ``columns`` (int64, shape (width, n)) are the transposed keys of the records that were handed
    back: those inside, and any that come from the brackets of the nodes above. After the keys come
    the distances, if the bracket has a vantage point. ``distances`` is their interval.
    """

    d: int
    columns: Integers
    outside: Outside
    distances: tuple[int, int] = (0, 0)

    @property
    def rows(self) -> int:
        """Number of records of the node."""
        return len(self.columns[0]) + self.outside.left.rows + self.outside.right.rows

    @cached_property
    def _extremes(self) -> tuple[list[int], list[int]]:
        keys = self.columns[: self.d]
        sides = self.outside.left, self.outside.right
        lowest = [keys.min(axis=1, initial=_LARGEST), *(side.lowest for side in sides)]
        highest = [keys.max(axis=1, initial=_SMALLEST), *(side.highest for side in sides)]
        return np.min(lowest, axis=0).tolist(), np.max(highest, axis=0).tolist()

    def _histogram(self, request: Request) -> Histogram | None:
        """Answer a request from the counted pass, or return None if it does not suffice."""
        if request.every_value:
            return self._values(request)
        if request.where is not None or request.goes_left or not self._encloses(request):
            return None
        prefix = request.boundary or Boundary((), ())
        bracket = self.outside.bracket
        if prefix.vantage_point != bracket.vantage_point:
            # Distances from another point: the one that was counted did not allow a cut.
            return None
        below = _known_outside(prefix, bracket, bracket.lower, self.outside.before, 1)
        above = _known_outside(prefix, bracket, bracket.upper, self.outside.behind, -1)
        if below is None or above is None:
            return None
        values = self.columns[row_of(request.key)][agree(self.columns, prefix)]
        if not any((*below, *above)):
            return Histogram(*_sums(values, np.ones_like(values)))
        level = len(prefix.keys)
        if bracket.keys[level] != request.key:
            return None if level else self._one_bin(request.key)
        return self._joint_bins(request, level, values, below, above)

    def _encloses(self, request: Request) -> bool:
        """Return whether no record of the node is beyond the interval of a request."""
        if request.key == DISTANCE:
            return (request.lowest, request.highest) == self.distances
        if request.key >= self.d:
            return (request.lowest, request.highest) == interval_of_tie(request.key, self.d)
        lowest, highest = self._extremes
        return request.lowest <= lowest[request.key] and highest[request.key] <= request.highest

    def _one_bin(self, key: int) -> Histogram:
        lowest, highest = self._extremes
        return Histogram(*_bin(self.rows, lowest[key], highest[key]))

    def _joint_bins(
        self,
        request: Request,
        level: int,
        values: Integers,
        below: tuple[int, int],
        above: tuple[int, int],
    ) -> Histogram:
        """Return a bin for each value inside of a bracket, and one for all records on either side.

        ``level`` is the position of the request's key among those that the bracket compares.
        ``values`` are those of the records that were handed back. ``below`` and ``above`` count the
        other records: those beyond the value of the bracket's end, and those equal to it.
        """
        lowest, highest = request.lowest, request.highest
        if level == 0 and request.key != DISTANCE:
            # The first answer contains a node's extremes.
            lowest, highest = (bounds[request.key] for bounds in self._extremes)
        ends, rows = [], []
        # Values between these are distinguished.
        first, last = lowest, highest
        if any(below):
            ends.append(self.outside.bracket.lower[level])
            rows.append(below[1])
            first = ends[-1] if below[0] else first
        if any(above):
            ends.append(self.outside.bracket.upper[level])
            rows.append(above[1])
            last = ends[-1] if above[0] else last
        before, behind = values < first, values > last
        inside = values[~(before | behind)]
        distinguished = np.concatenate([inside, np.array(ends, np.int64)])
        weights = np.concatenate([np.ones_like(inside), np.array(rows, np.int64)])
        parts = [_sums(distinguished, weights)]
        rows_before = below[0] + int(np.count_nonzero(before))
        rows_behind = above[0] + int(np.count_nonzero(behind))
        if rows_before:
            parts.insert(0, _bin(rows_before, lowest, min(first - 1, highest)))
        if rows_behind:
            parts.append(_bin(rows_behind, max(last + 1, lowest), highest))
        return Histogram(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _values(self, request: Request) -> Histogram | None:
        """Count sensitive values, of all records or of those that go left, or return None."""
        first, last = request.lowest, request.highest
        values = self.columns[request.key]
        sides = [self.outside.left, self.outside.right]
        if request.where is not None:
            return None
        if request.boundary is not None:
            if not request.goes_left or not self.outside.bracket.allows(request.boundary):
                return None
            values = values[goes_left(self.columns, request.boundary)]
            sides = [self.outside.left]
        counts = np.bincount(values - first, minlength=last - first + 1)
        for side in sides:
            counts += side.values[first : last + 1]
        present = np.flatnonzero(counts)
        return Histogram(counts[present], first + present, first + present)


_Bins = tuple[Integers, Integers, Integers]


def _sums(values: Integers, weights: Integers) -> _Bins:
    """Return the count, the smallest and the largest value of a bin for each value that counts.

    >>> [part.tolist() for part in _sums(np.array([7, 5, 7]), np.array([1, 0, 1]))]
    [[2], [7], [7]]
    """
    unique, bin_of_row = np.unique(values, return_inverse=True)
    counts = np.bincount(bin_of_row, weights, len(unique)).astype(np.int64)
    counting = counts > 0
    return counts[counting], unique[counting], unique[counting]


def _bin(rows: int, lowest: int, highest: int) -> _Bins:
    return np.array([rows]), np.array([lowest]), np.array([highest])


def _known_outside(
    prefix: Boundary, bracket: Bracket, end: Sequence[int], counts: Integers, sign: int
) -> tuple[int, int] | None:
    """Count the records outside of one end that agree with a prefix, the values of the first keys.

    ``end`` is the lower (``sign`` 1) or upper (-1) end. ``counts`` (int64, shape (keys + 1,)) holds
    the records outside of it, by the first key in which they differ from it. Returns the records
    beyond the end's value of the next key, and equal to it, or None if the counts do not
    distinguish them.
    """
    if not counts.any():
        return 0, 0
    level = len(prefix.keys)
    shared = min(level, len(end))
    if prefix.keys[:shared] != bracket.keys[:shared]:
        return None
    prefix_values, end_values = prefix.thresholds[:shared], tuple(end[:shared])
    if prefix_values != end_values:
        inside = prefix_values > end_values if sign > 0 else prefix_values < end_values
        return (0, 0) if inside else None
    if level < len(end):
        return int(counts[level]), int(counts[level + 1 :].sum())
    return None if counts[len(end) :].any() else (0, 0)
