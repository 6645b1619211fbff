"""The people whom the records of classes are about, and criteria that count them.

They must be known: ``privacy.unit`` identifies them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.columns import UNIT
from anonspark.core.criterion import Criterion
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_text
from anonspark.engine.tasks import Batches
from anonspark.verification.proof.criteria import (
    MEASURED,
    MeasureClasses,
    MeasuredCriterion,
    collect_worst,
)
from anonspark.verification.proof.measures import PeopleOfClasses, SensitiveValues, ValueCounts

if TYPE_CHECKING:
    from anonspark.verification.claims.claim import Claim

_VALUE, _PEOPLE, _RECORDS, _OWNER, _CLASS = "value", "people", "records", "owner", "class"
_ROWS, _GROUPS = "size", "groups"

# Stands for the people themselves, whatever their values.
_ANY = -1


@dataclass(frozen=True)
class MeasuredUnits:
    """The people of the classes of a release.

    ``unit`` are the attributes that identify them, ``classes`` the classes of each number of
    people. ``not_published`` are those of the attributes that the files lack: then the run counted.
    ``with_criteria`` says whether criteria beyond k count people, too. ``agreeing`` are the groups
    of each number of people who have as many records as each other in every class, or None if the
    files do not show which records are of one person.

    >>> units = MeasuredUnits(("person",), {2: 3, 5: 1}, agreeing={1: 4, 2: 2})
    >>> units.fewest, units.alone, units.broken(k=2)
    (2, 4, [])
    """

    unit: tuple[str, ...]
    classes: Mapping[int, int]
    not_published: tuple[str, ...] = ()
    with_criteria: bool = False
    agreeing: Mapping[int, int] | None = None

    @property
    def fewest_agreeing(self) -> int | None:
        """The fewest people who agree with each other in the classes of all their records."""
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
        """Warn of people whom several records single out, or of counts that files do not prove."""
        if self.alone:
            people = "1 person agrees" if self.alone == 1 else f"{self.alone:,} people agree"
            return [
                f"{people} with no one else in the classes of all their records, which the release "
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
    """Return classes, values and the person of records, by a hash. Lazy.

    Columns: ``class_0`` and so on, one for each of ``by``, ``value`` of a sensitive attribute, and
    :data:`~anonspark.core.columns.UNIT` for the attributes that identify people.
    """
    numbered, classes, people = _numbered(data, by, unit, {"value": attribute})
    return numbered.with_hashes({UNIT: people}, 0).select([*classes, "value", UNIT])


def _numbered(
    data: Table, by: Sequence[str], unit: Sequence[str], more: Mapping[str, str]
) -> tuple[Table, list[str], list[str]]:
    """Return columns of classes, of people and others, and the names that the first ones get."""
    classes = {f"class_{index}": name for index, name in enumerate(by)}
    people = {f"person_{index}": name for index, name in enumerate(unit)}
    chosen = data.select({**classes, **people, **more})
    return chosen.map_batches(_Trim(tuple(people)), chosen.schema), list(classes), list(people)


def _listed(names: Sequence[str]) -> str:
    """Write names for a message.

    >>> _listed(["name", "city"])
    "'name', 'city'"
    """
    return ", ".join(map(repr, names))


def measure_units(
    data: Table, claim: Claim, counted: Mapping[int, int] | None
) -> MeasuredUnits | None:
    """Count the people of each class, or return the run's counts if files do not identify people.

    Returns None if records count, or no count of people is known. Runs the jobs of
    :func:`units_of_classes` and :func:`people_who_agree` if the files identify people.
    """
    unit, people_columns = tuple(claim.privacy.unit), claim.people_columns
    if not unit:
        return None
    if people_columns:
        agreeing = people_who_agree(data, claim.columns, people_columns)
        classes = units_of_classes(data, claim.columns, people_columns)
        return MeasuredUnits(unit, classes, agreeing=agreeing)
    if counted is None:
        return None
    hidden = tuple(name for name in unit if name not in claim.as_they_came)
    return MeasuredUnits(unit, counted, hidden)


@dataclass(frozen=True)
class _Trim:
    """Removes blanks at the ends of texts: two spellings of a number are one person."""

    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        """Trim the named columns of each batch."""
        for batch in batches:
            columns = [
                pc.ascii_trim(column, " ")
                if name in self.names and is_text(column.type)
                else column
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, batch.schema.names)


def count_sizes(rows: Table, by: Sequence[str]) -> dict[int, int]:
    """Count the groups of each size of rows that agree in some columns.

    One job with two shuffles: of the groups of each task, and of their sizes.
    """
    sizes = rows.aggregate(by, count=_ROWS).select([_ROWS]).aggregate([_ROWS], count=_GROUPS)
    counted = sizes.collect()
    return dict(zip(counted[_ROWS].to_pylist(), counted[_GROUPS].to_pylist(), strict=True))


def people_who_agree(data: Table, columns: Sequence[str], unit: Sequence[str]) -> dict[int, int]:
    """Count the groups of each number of people with equal numbers of records in every class.

    ``columns`` form classes, ``unit`` identifies people. One job with three shuffles: of people, of
    what their records add up to, and of groups. People with the same classes are found by number,
    exact sum and exclusive or of 64-bit hashes of them.
    """
    numbered, classes, units = _numbered(data, columns, unit, {})
    hashed = numbered.with_hashes({_CLASS: classes}, 0).select([_CLASS, *units])
    people = hashed.aggregate(units, count=_RECORDS, hashes=_CLASS)
    alike = [_RECORDS, f"{_CLASS}_sum", f"{_CLASS}_xor"]
    return count_sizes(people.select(alike), alike)


def units_of_classes(data: Table, columns: Sequence[str], unit: Sequence[str]) -> dict[int, int]:
    """Count the classes of each number of people.

    ``columns`` form classes, ``unit`` identifies people and is published unchanged. One job with
    two shuffles: of the different pairs of a class and a person, and of the classes.
    """
    numbered, classes, units = _numbered(data, columns, unit, {})
    return count_sizes(numbered.aggregate([*classes, *units]), classes)


@dataclass(frozen=True)
class _Encode:
    """Yields the class of each record, its value's number, and its person.

    For people themselves the same again, with a number that stands for any value.
    """

    by: tuple[str, ...]
    attribute: SensitiveValues
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        """Yield the two rows of each record."""
        for batch in batches:
            values = pa.array(self.attribute.encode(batch.column(_VALUE)), pa.int64())
            any_value = pa.repeat(pa.scalar(_ANY, pa.int64()), batch.num_rows)
            for numbers in (values, any_value):
                columns = [*(batch.column(name) for name in self.by), numbers, batch.column(UNIT)]
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


@dataclass(frozen=True)
class _ListOwners:
    """Yields for each class and value the number of its people, and the people of rare values."""

    rare: int
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        """Yield a row a value of each batch, and one for each owner of a rare value."""
        for batch in batches:
            yield self._rows(batch, batch.column(_PEOPLE), batch.column(_RECORDS), None)
            is_rare = pc.less(batch.column(_PEOPLE), self.rare)
            rare_values = batch.filter(pc.and_(is_rare, pc.not_equal(batch.column(_VALUE), _ANY)))
            owners = rare_values.column(UNIT)
            rows = rare_values.take(owners.value_parent_indices())
            yield self._rows(rows, None, None, owners.flatten())

    def _rows(self, rows: pa.RecordBatch, *figures: pa.Array | None) -> pa.RecordBatch:
        """Append figures to the columns of the class. None is 0."""
        columns = [rows.column(name) for name in self.schema.names[: -len(figures)]]
        zeros = pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows)
        columns += [zeros if figure is None else figure for figure in figures]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _read_people(batch: pa.RecordBatch, _: SensitiveValues) -> ValueCounts:
    """Read classes, each a row of lists, as counts of people by value."""
    lists = batch.column(_VALUE).value_lengths().to_numpy()
    classes = np.repeat(np.arange(batch.num_rows), lists)
    values, people, records, owners = (column.flatten().to_numpy() for column in batch.columns)
    is_any, is_owner = values == _ANY, people == 0
    order = np.lexsort((values, classes))
    order = order[~(is_any | is_owner)[order]]
    owners_of_values = PeopleOfClasses(
        people[is_any],
        records[is_any],
        classes[is_owner],
        values[is_owner],
        owners[is_owner],
    )
    return ValueCounts(classes[order], values[order], people[order], owners_of_values)


def measure_people(
    data: Table,
    by: Sequence[str],
    attribute: SensitiveValues,
    criteria: Sequence[Criterion],
) -> list[MeasuredCriterion]:
    """Measure criteria about an attribute that count people, in their order.

    ``data`` has the columns ``by`` that form the classes, ``value``, and the person of the record
    (:data:`~anonspark.core.columns.UNIT`). Distinct values are counted up to the required number.
    One job with three shuffles: of the different triples of class, value and person, twice, and of
    their numbers. No code that formed the classes is used.
    """
    classes = _people_of_values(data, by, attribute, criteria)
    measure = MeasureClasses(tuple((criterion, attribute) for criterion in criteria), _read_people)
    return collect_worst(classes.map_batches(measure, MEASURED), criteria)


def _people_of_values(
    data: Table, by: Sequence[str], attribute: SensitiveValues, criteria: Sequence[Criterion]
) -> Table:
    """Return a row of lists a class: values, people, records, and who has the rare values."""
    pairs = pa.schema([*map(data.schema.field, by), (_VALUE, pa.int64()), (UNIT, pa.int64())])
    rare = max(int(criterion.bound) for criterion in criteria)
    encoded = data.map_batches(_Encode(tuple(by), attribute, pairs), pairs)
    triples = encoded.aggregate(pairs.names, count=_RECORDS)
    counted = triples.aggregate([*by, _VALUE], count=_PEOPLE, sums=[_RECORDS], lists=[UNIT])
    names = [_VALUE, _PEOPLE, _RECORDS, _OWNER]
    schema = pa.schema([*map(pairs.field, by), *((name, pa.int64()) for name in names)])
    counted = counted.map_batches(_ListOwners(rare, schema), schema)
    return counted.aggregate(list(by), lists=names).select(names)
