"""The people whom the records of classes are about, and criteria that count them.

They must be known: ``privacy.unit`` identifies them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Figures
from anonspark.core.columns import UNIT
from anonspark.core.criterion import Criterion
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_text
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

if TYPE_CHECKING:
    from anonspark.verification.claims import Claim

_VALUE, _PEOPLE, _RECORDS, _OWNER, _SIZE = "value", "people", "records", "owner", "values"
_FIRST, _LAST, _CLASS = "first", "last", "class"
_ROWS, _GROUPS = "size", "groups"

_PARTS = pa.schema([(_VALUE, pa.int64()), (_SIZE, pa.int64())])

# Stands for the people themselves, whatever their values.
_ANY = -1


@dataclass(frozen=True)
class MeasuredUnits:
    """The people of the classes of a release.

    Parameters
    ----------
    unit : tuple of str
        The attributes that identify them.
    classes : mapping of int to int
        Classes of each number of people.
    not_published : tuple of str
        Of the attributes those without which the files do not show it: then the run counted.
    with_criteria : bool
        Whether criteria beyond k count people, too.
    agreeing : mapping of int to int or None
        Groups of each number of people who have as many records as each other in every class. None
        where the files do not show which records are of one person.
    """

    unit: tuple[str, ...]
    classes: Mapping[int, int]
    not_published: tuple[str, ...] = ()
    with_criteria: bool = False
    agreeing: Mapping[int, int] | None = None

    @property
    def fewest_agreeing(self) -> int | None:
        """People who agree with another one in the classes of all records, at least. With him."""
        return None if self.agreeing is None else min(self.agreeing)

    @property
    def alone(self) -> int | None:
        """People who agree with no one else in the classes of all their records."""
        return None if self.agreeing is None else self.agreeing.get(1, 0)

    @property
    def fewest(self) -> int:
        """People of the class that has the fewest."""
        return min(self.classes)

    def broken(self, k: int) -> list[str]:
        """Report the promise that is not kept, in one sentence at most."""
        if self.fewest >= k:
            return []
        return [
            f"the records of a class of the release are about {self.fewest:,} people, expected k = "
            f"{k} at least. The release must not be used"
        ]

    def warnings(self) -> list[str]:
        """Report who is found by several records, or what the files do not prove."""
        if self.alone:
            who = "1 person agrees" if self.alone == 1 else f"{self.alone:,} people agree"
            return [
                f"{who} with no one else in the classes of all their records, which the release "
                "shows to be of one person. An attacker who knows the quasi-identifiers of all "
                "records of such a person finds them, whatever k is. Leave out output.pseudonyms, "
                "or publish fewer or coarser quasi-identifiers"
            ]
        if not self.not_published:
            return []
        counted = "k and the criteria beyond it count" if self.with_criteria else "k counts"
        return [
            f"{counted} people, identified by {_listed(self.unit)}. {_listed(self.not_published)} "
            "is not published, so the files prove that each class has k records, not that they are "
            "about k people: the run counted them before it published"
        ]


def people_of_records(data: Table, attribute: str, unit: Sequence[str], by: Sequence[str]) -> Table:
    """Return classes, values and the person of records, by a hash.

    Parameters
    ----------
    data : Table
        Published records.
    attribute : str
        A sensitive one.
    unit : sequence of str
        Attributes that identify people, published as they came.
    by : sequence of str
        Columns that form classes.

    Returns
    -------
    Table
        ``class_0`` and so on, ``value`` and :data:`~anonspark.core.columns.UNIT`.
    """
    numbered, classes, people = _numbered(data, by, unit, {"value": attribute})
    return numbered.with_hashes({UNIT: people}, 0).select([*classes, "value", UNIT])


def _numbered(
    data: Table, by: Sequence[str], unit: Sequence[str], more: Mapping[str, str]
) -> tuple[Table, list[str], list[str]]:
    """Return columns of classes, of people and others, and the names that the first ones get."""
    classes = {f"class_{place}": name for place, name in enumerate(by)}
    people = {f"person_{place}": name for place, name in enumerate(unit)}
    chosen = data.select({**classes, **people, **more})
    return chosen.map_batches(_Trim(tuple(people)), chosen.schema), list(classes), list(people)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def measure_units(
    data: Table, claim: Claim, counted: Mapping[int, int] | None
) -> MeasuredUnits | None:
    """Count the people of each class, or return what the run says of them.

    Parameters
    ----------
    data : Table
        Published records.
    claim : Claim
    counted : mapping of int to int or None
        Classes of each number of people, as the run counted them. None where it did not.

    Returns
    -------
    MeasuredUnits or None
        None where records count, or nothing is stated about people.

    Notes
    -----
    That of :func:`units_of_classes`, where the files identify people.
    """
    unit, told_apart = tuple(claim.privacy.unit), claim.people_columns
    if not unit:
        return None
    if told_apart:
        agreeing = people_who_agree(data, claim.columns, told_apart)
        classes = units_of_classes(data, claim.columns, told_apart)
        return MeasuredUnits(unit, classes, agreeing=agreeing)
    if counted is None:
        return None
    hidden = tuple(name for name in unit if name not in claim.as_they_came)
    return MeasuredUnits(unit, counted, hidden)


@dataclass(frozen=True)
class _Trim:
    """Takes blanks off the ends of texts: two spellings of a number are one person."""

    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            columns = [
                pc.ascii_trim(column, " ")
                if name in self.names and is_text(column.type)
                else column
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, batch.schema.names)


def count_sizes(rows: Table, by: Sequence[str]) -> dict[int, int]:
    """Return how many groups there are of each number of rows that agree in some columns.

    Notes
    -----
    One job with two shuffles: of the groups of each task, and of their sizes.
    """
    sizes = rows.aggregate(by, count=_ROWS).select([_ROWS]).aggregate([_ROWS], count=_GROUPS)
    found = sizes.collect()
    return dict(zip(found[_ROWS].to_pylist(), found[_GROUPS].to_pylist(), strict=True))


def people_who_agree(data: Table, columns: Sequence[str], unit: Sequence[str]) -> dict[int, int]:
    """Count the people who have as many records as each other in every class.

    Parameters
    ----------
    data : Table
        Published records.
    columns : sequence of str
        Those that form classes.
    unit : sequence of str
        Those that identify people.

    Returns
    -------
    dict of int to int
        Groups of each number of people.

    Notes
    -----
    One job with three shuffles: of people, of what their records add up to, and of groups. People
    with the same classes are found by number, exact sum and exclusive or of 64-bit hashes of them.
    """
    numbered, classes, units = _numbered(data, columns, unit, {})
    hashed = numbered.with_hashes({_CLASS: classes}, 0).select([_CLASS, *units])
    people = hashed.aggregate(units, count=_RECORDS, hashes=_CLASS)
    alike = [_RECORDS, f"{_CLASS}_sum", f"{_CLASS}_xor"]
    return count_sizes(people.select(alike), alike)


def units_of_classes(data: Table, columns: Sequence[str], unit: Sequence[str]) -> dict[int, int]:
    """Count the people of each class in published records.

    Parameters
    ----------
    data : Table
    columns : sequence of str
        Those that form classes.
    unit : sequence of str
        Those that identify people, published as they came.

    Returns
    -------
    dict of int to int
        Classes of each number of people.

    Notes
    -----
    One job with two shuffles: of the different pairs of a class and a person, and of the classes.
    """
    numbered, classes, units = _numbered(data, columns, unit, {})
    return count_sizes(numbered.aggregate([*classes, *units]), classes)


@dataclass(frozen=True)
class SharesOfPeople:
    """The figures of each value in the whole input.

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
    """Yields what class each record is of, its value's number, and whom it is about.

    For people themselves the same again, with a number that stands for any value.
    """

    by: tuple[str, ...]
    attribute: SensitiveValues
    schema: pa.Schema
    people: bool = True

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            values = pa.array(self.attribute.encode(batch.column(_VALUE)), pa.int64())
            anybody = pa.repeat(pa.scalar(_ANY, pa.int64()), batch.num_rows)
            for own in (values, anybody) if self.people else (values,):
                columns = [*(batch.column(name) for name in self.by), own, batch.column(UNIT)]
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


@dataclass(frozen=True)
class _ListOwners:
    """Yields of each class and value the people who have it. Of rare ones also who they are."""

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
    their numbers. One more with three for ordered distances. Nothing of what formed the classes is
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


def _pairs_of(data: Table, by: Iterable[str]) -> pa.Schema:
    """Return the columns of classes, of a value's number, and of whom it is about."""
    return pa.schema([*map(data.schema.field, by), (_VALUE, pa.int64()), (UNIT, pa.int64())])


def _people_of_values(
    data: Table, by: Sequence[str], attribute: SensitiveValues, criteria: Sequence[Criterion]
) -> Table:
    """Return a row of lists a class: values, how many people and records, and of rare ones who."""
    pairs = _pairs_of(data, by)
    rare = max((int(one.bound) for one in criteria if one.kind == "distinct"), default=0)
    encoded = data.map_batches(_Encode(tuple(by), attribute, pairs), pairs)
    different = encoded.aggregate(pairs.names, count=_RECORDS)
    names = [_VALUE, _PEOPLE, _RECORDS]
    counted = different.aggregate(
        [*by, _VALUE], count=_PEOPLE, sums=[_RECORDS], lists=[UNIT] if rare else []
    )
    if rare:
        names.append(_OWNER)
        fields = [*map(pairs.field, by), *((name, pa.int64()) for name in names)]
        schema = pa.schema(fields)
        counted = counted.map_batches(_ListOwners(rare, schema), schema)
    return counted.aggregate(list(by), lists=names).select(names)


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
    pairs = _pairs_of(data, by)
    encoded = data.map_batches(_Encode(tuple(by), attribute, pairs, people=False), pairs)
    twice = {name: name for name in (*by, UNIT)} | {_FIRST: _VALUE, _LAST: _VALUE}
    people = encoded.select(twice).aggregate(
        [*by, UNIT], count=_RECORDS, least=[_FIRST], most=[_LAST]
    )
    alike = people.select([*by, _FIRST, _LAST, _RECORDS])
    counted = alike.aggregate([*by, _FIRST, _LAST], count=_PEOPLE, sums=[_RECORDS])
    names = [_FIRST, _LAST, _PEOPLE, _RECORDS]
    classes = counted.aggregate(list(by), lists=names).select(names)
    measured = classes.map_batches(_MeasureRanges(tuple(criteria), shares), MEASURED)
    return collect_worst(measured, criteria)


@dataclass(frozen=True)
class _Parts:
    """Yields for each value of a person how many values he or she has, and people themselves."""

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
    schema = _pairs_of(data, ())
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
