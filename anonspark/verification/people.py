"""Measuring criteria that count people: whom the records are about has to be known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Figures, Integers
from anonspark.core.columns import UNIT
from anonspark.core.criterion import Criterion
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.engine.values.grouping import find_groups
from anonspark.verification.criteria import MeasuredCriterion, satisfies, worst_of
from anonspark.verification.sensitive_values import SensitiveValues

# Pairs that one task holds.
_TASK_PAIRS = 2_000_000

_VALUE, _PEOPLE, _RECORDS, _OWNER, _SIZE = "value", "people", "records", "owner", "values"
_FIRST, _LAST, _CLASS = "first", "last", "number of the class"

_PARTS = pa.schema([(_VALUE, pa.int64()), (_SIZE, pa.int64())])

# Stands for the people themselves, whatever their values.
_ANY = -1

_MEASURED = pa.schema(
    [
        ("criterion", pa.int32()),
        ("smallest", pa.float64()),
        ("largest", pa.float64()),
        ("violating", pa.int64()),
        ("records", pa.int64()),
    ]
)


@dataclass(frozen=True)
class SharesOfPeople:
    """What the whole input has of each value.

    Parameters
    ----------
    having : float64 ndarray of shape (values,)
        Share of people who have it.
    even : float64 ndarray of shape (values,)
        Its share where each person counts as one, in equal parts for each of his or her values.
    """

    having: Figures
    even: Figures


@dataclass(frozen=True)
class _Encode:
    """Yields what class each record is of, its value's number, and whom it is about; and any."""

    by: tuple[str, ...]
    attribute: SensitiveValues
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            values = pa.array(self.attribute.encode(batch.column(_VALUE)), pa.int64())
            for own in (values, pa.repeat(pa.scalar(_ANY, pa.int64()), batch.num_rows)):
                columns = [*(batch.column(name) for name in self.by), own, batch.column(UNIT)]
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


@dataclass(frozen=True)
class _CountOwners:
    """Yields of each class and value the people who have it; of rare ones also who they are."""

    by: tuple[str, ...]
    rare: int
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        received = [batch for batch in batches if batch.num_rows]
        if not received:
            return
        table = pa.Table.from_batches(received)
        # Arrow groups by no sets, so that classes are their numbers meanwhile.
        groups = find_groups([table[name] for name in self.by])
        labels = table.select(list(self.by)).take(pa.array(groups.first))
        table = table.append_column(_CLASS, pa.array(groups.numbers))
        keys = [_CLASS, _VALUE]
        counted = table.group_by(keys).aggregate([(UNIT, "count"), (_RECORDS, "sum")])
        counted = counted.rename_columns([*keys, _PEOPLE, _RECORDS])
        none = pa.repeat(pa.scalar(0, pa.int64()), len(counted))
        yield from self._labelled(counted.append_column(_OWNER, none), labels)
        if not self.rare:
            return
        # Who they are, of each class and value as a list; classes may be of missing values.
        owners = table.filter(pc.not_equal(table[_VALUE], _ANY)).group_by(keys)
        lists = owners.aggregate([(UNIT, "list")]).rename_columns([*keys, _OWNER])
        few = lists.filter(pc.less(pc.list_value_length(lists[_OWNER]), self.rare))
        few = few.combine_chunks()
        listed = (
            few[_OWNER].combine_chunks() if few[_OWNER].num_chunks != 1 else few[_OWNER].chunk(0)
        )
        rows = few.drop_columns([_OWNER]).take(listed.value_parent_indices())
        none = pa.repeat(pa.scalar(0, pa.int64()), len(rows))
        for name, column in ((_PEOPLE, none), (_RECORDS, none), (_OWNER, listed.flatten())):
            rows = rows.append_column(name, column)
        yield from self._labelled(rows, labels)

    def _labelled(self, rows: pa.Table, labels: pa.Table) -> Batches:
        """Yield rows with the labels of their classes."""
        figures = [rows[name] for name in self.schema.names[len(self.by) :]]
        columns = [*labels.take(rows[_CLASS]).columns, *figures]
        yield from pa.table(columns, self.schema.names).cast(self.schema).to_batches()


@dataclass(frozen=True)
class _MeasureClasses:
    """Measures the classes of one task: one row a class, with lists."""

    criteria: tuple[Criterion, ...]
    shares: SharesOfPeople

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            if not batch.num_rows:
                continue
            lists = [batch.column(name) for name in (_VALUE, _PEOPLE, _RECORDS, _OWNER)]
            bounds = np.concatenate([[0], np.cumsum(lists[0].value_lengths().to_numpy())])
            flat = [one.flatten().to_numpy() for one in lists]
            figures = np.empty((batch.num_rows, len(self.criteria)))
            records = np.empty(batch.num_rows, np.int64)
            for place in range(batch.num_rows):
                own = ClassOfPeople.of(*(one[bounds[place] : bounds[place + 1]] for one in flat))
                records[place] = own.records
                for index, criterion in enumerate(self.criteria):
                    figures[place, index] = own.figure(criterion, self.shares)
            for index, criterion in enumerate(self.criteria):
                violating = ~satisfies(criterion, figures[:, index])
                worst = worst_of(criterion, figures[:, index])
                row = [index, worst, worst, int(violating.sum()), int(records[violating].sum())]
                named = dict(zip(_MEASURED.names, row, strict=True))
                yield pa.RecordBatch.from_pylist([named], schema=_MEASURED)


@dataclass(frozen=True)
class ClassOfPeople:
    """The people of a class.

    Parameters
    ----------
    number : int
        Of different people.
    records : int
    values, counts : int64 ndarray of shape (values,)
        The different values, and how many people have each.
    owned, owners : int64 ndarray of shape (pairs,)
        Rare values, and who has them.
    """

    number: int
    records: int
    values: Integers
    counts: Integers
    owned: Integers
    owners: Integers

    @classmethod
    def of(
        cls, values: Integers, people: Integers, records: Integers, owners: Integers
    ) -> ClassOfPeople:
        """Read what was found of a class."""
        anybody, counted = values == _ANY, people > 0
        number = int(people[anybody][0])
        size = int(records[anybody][0])
        own = counted & ~anybody
        return cls(number, size, values[own], people[own], values[~counted], owners[~counted])

    def figure(self, criterion: Criterion, shares: SharesOfPeople) -> float:
        """Return the figure that a criterion bounds, of the worst way to count people."""
        match criterion.kind:
            case "distinct":
                return float(self.matched(int(criterion.bound)))
            case "alpha":
                return float(self.counts.max() / self.number)
            case "beta":
                with np.errstate(divide="ignore"):
                    gains = self.counts / self.number / shares.having[self.values]
                return max(float(gains.max()) - 1.0, 0.0)
            case "equal distance":
                more = self.counts / self.number - shares.even[self.values]
                # Rounded once: values stand in any order.
                return min(math.fsum(np.maximum(more, 0.0)), 1.0)
            case "entropy":
                shares_of_worst = self.least_even() / self.number
                return float(np.exp(-(shares_of_worst * np.log(shares_of_worst)).sum()))
            case "recursive":
                worst = self.least_even()
                tail = worst[int(criterion.bound) - 1 :].sum()
                return float(worst[0] / tail) if tail else float("inf")
            case _:
                raise ValueError(f"{criterion.kind} does not count people")

    def least_even(self) -> Integers:
        """Return how many people stand for each value where that is least even."""
        so_far = np.minimum(np.cumsum(np.sort(self.counts)[::-1]), self.number)
        own = np.diff(so_far, prepend=0)
        return own[own > 0]

    def matched(self, most: int) -> int:
        """Return the values that are of another person each, at most so many."""
        free = int((self.counts >= most).sum())
        owners: dict[int, int] = {}
        by_value: dict[int, list[int]] = {}
        for value, owner in zip(self.owned.tolist(), self.owners.tolist(), strict=True):
            by_value.setdefault(value, []).append(owner)
        for value in by_value:
            if free + len(owners) >= most:
                break
            _find_owner(value, by_value, owners, set())
        return min(free + len(owners), most)


def _find_owner(
    value: int, by_value: Mapping[int, list[int]], owners: dict[int, int], asked: set[int]
) -> bool:
    """Give a value an owner, whose value gets another one if need be."""
    for owner in by_value[value]:
        if owner in asked:
            continue
        asked.add(owner)
        if owner not in owners or _find_owner(owners[owner], by_value, owners, asked):
            owners[owner] = value
            return True
    return False


def measure_people(
    data: Table,
    by: Sequence[str],
    attribute: SensitiveValues,
    criteria: Sequence[Criterion],
    shares: SharesOfPeople,
    rows: int,
) -> list[MeasuredCriterion]:
    """Measure what classes have of criteria that count people.

    Parameters
    ----------
    data : Table
        Columns that form the classes, ``value``, and whom the record is about
        (:data:`~anonspark.core.columns.UNIT`).
    by : sequence of str
        Those that form the classes.
    attribute : SensitiveValues
        What ``value`` holds.
    criteria : sequence of Criterion
        About this attribute.
    shares : SharesOfPeople
        What they are compared with.
    rows : int
        Of the data, about.

    Returns
    -------
    list of MeasuredCriterion
        In the order of the criteria. Distinct values are counted up to what is asked for.

    Notes
    -----
    One job with three shuffles: of the different triples of class, value and person, twice, and of
    their numbers. Nothing of what formed the classes is called.
    """
    ordered = [one for one in criteria if one.kind == "ordered distance"]
    if ordered:
        others = [one for one in criteria if one not in ordered]
        found = dict(
            zip(others, measure_people(data, by, attribute, others, shares, rows), strict=True)
        )
        found |= zip(ordered, _measure_ranges(data, by, attribute, ordered, shares), strict=True)
        return [found[one] for one in criteria]
    if not criteria:
        return []
    fields = [data.schema.field(name) for name in by]
    pairs = pa.schema([*fields, (_VALUE, pa.int64()), (UNIT, pa.int64())])
    schema = pa.schema(
        [*fields, *((name, pa.int64()) for name in (_VALUE, _PEOPLE, _RECORDS, _OWNER))]
    )
    rare = max((int(one.bound) for one in criteria if one.kind == "distinct"), default=0)
    encoded = data.map_batches(_Encode(tuple(by), attribute, pairs), pairs)
    different = encoded.aggregate(pairs.names, count=_RECORDS)
    together = different.group([*by, _VALUE], rows // _TASK_PAIRS + 1)
    counted = together.map_batches(_CountOwners(tuple(by), rare, schema), schema)
    names = [_VALUE, _PEOPLE, _RECORDS, _OWNER]
    classes = counted.aggregate(list(by), lists=names).select(names)
    return _worst(
        classes.map_batches(_MeasureClasses(tuple(criteria), shares), _MEASURED), criteria
    )


def _worst(measured: Table, criteria: Sequence[Criterion]) -> list[MeasuredCriterion]:
    """Return what the worst classes have of each criterion."""
    found = (
        measured.aggregate(
            ["criterion"], sums=["violating", "records"], least=["smallest"], most=["largest"]
        )
        .collect()
        .sort_by("criterion")
    )
    return [
        MeasuredCriterion(
            criterion,
            row["smallest" if criterion.type.worst_is_smallest else "largest"],
            row["violating"],
            row["records"],
        )
        for criterion, row in zip(criteria, found.to_pylist(), strict=True)
    ]


@dataclass(frozen=True)
class _EncodeRanges:
    """Yields what class each record is of, whom it is about, and the number of its value, twice."""

    by: tuple[str, ...]
    attribute: SensitiveValues
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            values = pa.array(self.attribute.encode(batch.column(_VALUE)), pa.int64())
            own = [*(batch.column(name) for name in self.by), batch.column(UNIT), values, values]
            yield pa.RecordBatch.from_arrays(own, schema=self.schema)


@dataclass(frozen=True)
class _MeasureRanges:
    """Measures the classes of one task by ordered distance: one row a class, with lists."""

    criteria: tuple[Criterion, ...]
    shares: SharesOfPeople

    def __call__(self, batches: Batches) -> Batches:
        expected = np.cumsum(self.shares.even)
        for batch in batches:
            for place in range(batch.num_rows):
                first, last, people, size = (
                    batch.column(name)[place].values.to_numpy()
                    for name in (_FIRST, _LAST, _PEOPLE, _RECORDS)
                )
                distance = np.zeros(len(expected))
                for ends in (first, last):
                    below = np.bincount(ends, people, len(expected)).cumsum() / people.sum()
                    distance = np.maximum(distance, np.abs(below - expected))
                figure = float(distance.sum() / max(len(expected) - 1, 1))
                for index, criterion in enumerate(self.criteria):
                    violates = not satisfies(criterion, np.array([figure]))[0]
                    records = int(size.sum()) if violates else 0
                    row = [index, figure, figure, int(violates), records]
                    named = dict(zip(_MEASURED.names, row, strict=True))
                    yield pa.RecordBatch.from_pylist([named], schema=_MEASURED)


def _measure_ranges(
    data: Table,
    by: Sequence[str],
    attribute: SensitiveValues,
    criteria: Sequence[Criterion],
    shares: SharesOfPeople,
) -> list[MeasuredCriterion]:
    """Measure ordered distances: by the first and the last value of each person of a class."""
    fields = [data.schema.field(name) for name in by]
    schema = pa.schema([*fields, *((name, pa.int64()) for name in (UNIT, _FIRST, _LAST))])
    encoded = data.map_batches(_EncodeRanges(tuple(by), attribute, schema), schema)
    people = encoded.aggregate([*by, UNIT], count=_RECORDS, least=[_FIRST], most=[_LAST])
    alike = people.select([*by, _FIRST, _LAST, _RECORDS])
    counted = alike.aggregate([*by, _FIRST, _LAST], count=_PEOPLE, sums=[_RECORDS])
    names = [_FIRST, _LAST, _PEOPLE, _RECORDS]
    classes = counted.aggregate(list(by), lists=names).select(names)
    measured = classes.map_batches(_MeasureRanges(tuple(criteria), shares), _MEASURED)
    return _worst(measured, criteria)


@dataclass(frozen=True)
class _Parts:
    """Yields for each value of a person how many values he or she has; and people themselves."""

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            values = batch.column(_VALUE)
            owners, own = values.value_parent_indices(), values.flatten()
            # Whose number stands among the values of each.
            sizes = pc.subtract(batch.column(_PEOPLE), 1).take(owners)
            yield pa.RecordBatch.from_arrays([own, sizes], schema=_PARTS)


def shares_of_people(data: Table, attribute: SensitiveValues, unknown: int = 0) -> SharesOfPeople:
    """Return what a table has of each value, by people.

    Parameters
    ----------
    data : Table
        Columns ``value`` and :data:`~anonspark.core.columns.UNIT`.
    attribute : SensitiveValues
        What ``value`` holds.
    unknown : int
        People at most who may have any value: shares are then the largest that they can be.

    Notes
    -----
    One job with three shuffles, of the different pairs of a value and a person, of people and of
    numbers.
    """
    schema = pa.schema([(_VALUE, pa.int64()), (UNIT, pa.int64())])
    pairs = data.map_batches(_Encode((), attribute, schema), schema).aggregate(schema.names)
    people = pairs.aggregate([UNIT], count=_PEOPLE, lists=[_VALUE]).select([_VALUE, _PEOPLE])
    counted = people.map_batches(_Parts(), _PARTS).aggregate(_PARTS.names, count=_PEOPLE).collect()
    having = np.zeros(len(attribute.values) + 1, np.int64)
    parts: list[list[float]] = [[] for _ in range(len(attribute.values) + 1)]
    for row in counted.to_pylist():
        # The people themselves stand at the end.
        having[row[_VALUE]] += row[_PEOPLE]
        parts[row[_VALUE]].append(row[_PEOPLE] / row[_SIZE])
    even = np.array([math.fsum(own) for own in parts[:-1]])
    number = max(int(having[-1]), 1)
    return SharesOfPeople(
        np.minimum((having[:-1] + unknown) / number, 1.0),
        np.minimum((even + unknown) / number, 1.0),
    )


def unknown_people(share: float, rows: int) -> int:
    """Return how many people at most are behind a share of all records that is not published."""
    return round(share * rows / (1.0 - share)) if share < 1.0 else rows
