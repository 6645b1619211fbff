"""Measuring criteria that count people: whom the records are about has to be known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Figures
from anonspark.core.columns import UNIT
from anonspark.core.criterion import Criterion
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.verification.criteria import (
    MEASURED,
    Asked,
    MeasureClasses,
    MeasuredCriterion,
    collect_worst,
    satisfies,
    worst_classes,
)
from anonspark.verification.measures import PeopleOfClasses, ValueCounts
from anonspark.verification.sensitive_values import SensitiveValues

_VALUE, _PEOPLE, _RECORDS, _OWNER, _SIZE = "value", "people", "records", "owner", "values"
_FIRST, _LAST = "first", "last"

_PARTS = pa.schema([(_VALUE, pa.int64()), (_SIZE, pa.int64())])

# Stands for the people themselves, whatever their values.
_ANY = -1


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

    def asked(self, criterion: Criterion, attribute: SensitiveValues) -> Asked:
        """Return a criterion, and the attribute with the shares that classes are compared with."""
        return criterion, replace(attribute, shares=self.even if criterion.is_even else self.having)


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
class _ListOwners:
    """Yields of each class and value the people who have it; of rare ones also who they are."""

    rare: int
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            yield self._rows(batch, batch.column(_PEOPLE), batch.column(_RECORDS), None)
            is_rare = pc.less(batch.column(_PEOPLE), self.rare)
            few = batch.filter(pc.and_(is_rare, pc.not_equal(batch.column(_VALUE), _ANY)))
            owners = few.column(UNIT)
            rows = few.take(owners.value_parent_indices())
            yield self._rows(rows, None, None, owners.flatten())

    def _rows(self, rows: pa.RecordBatch, *figures: pa.Array | None) -> pa.RecordBatch:
        columns = [rows.column(name) for name in self.schema.names[: -len(figures)]]
        none = pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows)
        columns += [none if one is None else one for one in figures]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _read_people(batch: pa.RecordBatch, _: SensitiveValues) -> ValueCounts:
    """Return the people of classes, each a row of lists."""
    lists = batch.column(_VALUE).value_lengths().to_numpy()
    classes = np.repeat(np.arange(batch.num_rows), lists)
    values, people, records, *owners = (one.flatten().to_numpy() for one in batch.columns)
    anybody, owned = values == _ANY, people == 0
    order = np.lexsort((values, classes))
    order = order[~(anybody | owned)[order]]
    whose = PeopleOfClasses(
        people[anybody],
        records[anybody],
        classes[owned],
        values[owned],
        # Without them nobody is asked for.
        owners[0][owned] if owners else classes[owned],
    )
    return ValueCounts(classes[order], values[order], people[order], whose)


def measure_people(
    data: Table,
    by: Sequence[str],
    attribute: SensitiveValues,
    criteria: Sequence[Criterion],
    shares: SharesOfPeople,
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

    Returns
    -------
    list of MeasuredCriterion
        In the order of the criteria. Distinct values are counted up to what is asked for.

    Notes
    -----
    One job with three shuffles: of the different triples of class, value and person, twice, and of
    their numbers; one more with three for ordered distances. Nothing of what formed the classes is
    called.
    """
    ordered = [one for one in criteria if one.kind == "ordered distance"]
    others = [one for one in criteria if one not in ordered]
    found: dict[Criterion, MeasuredCriterion] = {}
    if ordered:
        found |= zip(ordered, _measure_ranges(data, by, attribute, ordered, shares), strict=True)
    if others:
        classes = _people_of_values(data, by, attribute, others)
        measure = MeasureClasses(
            tuple(shares.asked(one, attribute) for one in others), _read_people
        )
        measured = classes.map_batches(measure, MEASURED)
        found |= zip(others, collect_worst(measured, others), strict=True)
    return [found[one] for one in criteria]


def _people_of_values(
    data: Table, by: Sequence[str], attribute: SensitiveValues, criteria: Sequence[Criterion]
) -> Table:
    """Return a row of lists a class: values, how many people and records, and of rare ones who."""
    fields = [data.schema.field(name) for name in by]
    pairs = pa.schema([*fields, (_VALUE, pa.int64()), (UNIT, pa.int64())])
    rare = max((int(one.bound) for one in criteria if one.kind == "distinct"), default=0)
    encoded = data.map_batches(_Encode(tuple(by), attribute, pairs), pairs)
    different = encoded.aggregate(pairs.names, count=_RECORDS)
    names = [_VALUE, _PEOPLE, _RECORDS]
    counted = different.aggregate(
        [*by, _VALUE], count=_PEOPLE, sums=[_RECORDS], lists=[UNIT] if rare else []
    )
    if rare:
        names.append(_OWNER)
        schema = pa.schema([*fields, *((name, pa.int64()) for name in names)])
        counted = counted.map_batches(_ListOwners(rare, schema), schema)
    return counted.aggregate(list(by), lists=names).select(names)


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
            if not batch.num_rows:
                continue
            distances, records = [], []
            for row in range(batch.num_rows):
                *ends, people, size = (column[row].values.to_numpy() for column in batch.columns)
                below = [np.bincount(one, people, len(expected)).cumsum() for one in ends]
                gaps = np.abs(np.array(below) / people.sum() - expected).max(axis=0)
                distances.append(gaps.sum() / max(len(expected) - 1, 1))
                records.append(int(size.sum()))
            figures = np.array(distances)
            measured = [(figures, satisfies(one, figures)) for one in self.criteria]
            yield worst_classes(self.criteria, measured, np.array(records))


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
    measured = classes.map_batches(_MeasureRanges(tuple(criteria), shares), MEASURED)
    return collect_worst(measured, criteria)


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
