"""Find joint classes: persons whom a coalition cannot distinguish with all its releases."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anonspark.core.columns import SUBJECT
from anonspark.engine.files import PublishedFile
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.tasks import Batches

CLASS = "class"
"""xxHash64, as Spark has it, of what is published of a class."""

RECORDS = "records"
"""The number of records of a class."""

_SUBJECT_TYPE = pa.binary()
_FORMAT = "parquet"


def sensitive_column(index: int) -> str:
    """Return the column of the keyed hashes of a sensitive attribute.

    >>> sensitive_column(0)
    'sensitive_0'
    """
    return f"sensitive_{index}"


def members_schema(sensitive: int) -> pa.Schema:
    """Return the schema of members. ``sensitive`` is the number of sensitive attributes.

    >>> members_schema(1).names
    ['subject_key', 'class', 'sensitive_0']
    """
    values = [(sensitive_column(index), pa.int64()) for index in range(sensitive)]
    return pa.schema([(SUBJECT, _SUBJECT_TYPE), (CLASS, pa.int64()), *values])


@dataclass(frozen=True)
class ReleaseFiles:
    """The files of one release in a ledger, relative to their directories."""

    members: list[PublishedFile]
    classes: list[PublishedFile]

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the hashes of all files."""
        listed = [[file.path, file.sha256] for file in (*self.members, *self.classes)]
        return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def keep(engine: Engine, table: Table, directory: str) -> list[PublishedFile]:
    """Write a table into a directory of a ledger, and remove what a killed process left there."""
    files = engine.files
    files.delete(directory)
    files.make_private_directory(directory)
    written = table.publish(_FORMAT, directory, "data", f"{directory}/.writing")
    files.delete(f"{directory}/.writing")
    # Must be on the disk before an event lists it.
    files.sync_tree(directory)
    return written


def read_kept(engine: Engine, directory: str, columns: Sequence[str]) -> Table:
    """Return columns of a table that :func:`keep` wrote. Lazy."""
    return engine.published(f"{directory}/data", _FORMAT).select(list(columns))


_PERSONS = "persons"
_VALUES = "values"
_CLASSES = "classes"


@dataclass(frozen=True)
class MembersOf:
    """The members of the classes of a release, of :func:`members_schema`.

    ``sensitive`` are the attributes whose hashes the members have.
    """

    release: str
    recipient: str
    members: Table
    sensitive: Sequence[str]


@dataclass(frozen=True)
class Demand:
    """The requirements of joint classes: persons, and different values of sensitive attributes."""

    k: int
    diversity: Mapping[str, int]


def _class_of(position: int) -> str:
    """Return the column of the classes of one of several releases.

    >>> _class_of(1)
    'class_1'
    """
    return f"class_{position}"


def value_column(position: int, attribute: str) -> str:
    """Return the column of the values of a sensitive attribute in one of several releases.

    >>> value_column(1, "pay")
    'value_1_pay'
    """
    return f"value_{position}_{attribute}"


@dataclass(frozen=True)
class Signatures:
    """The signature of each person: the class, or null for absent, in each release.

    ``table`` has a row for each person, kept on the cluster until :meth:`release`. ``attributes``
    are the sensitive ones whose values are there, too. If ``repeated``, rows are records, of which
    a person may have several.
    """

    releases: Sequence[MembersOf]
    table: Table
    attributes: Sequence[str]
    repeated: bool = False

    @classmethod
    def of(
        cls, releases: Sequence[MembersOf], attributes: Sequence[str], *, repeated: bool = False
    ) -> Signatures:
        """Combine what the releases reveal about each person. One shuffle of all members.

        ``attributes`` are those of the criteria of :class:`Demand`. With ``repeated``, a person may
        have several records. Then a person counts once in each joint class.
        """
        columns = [_class_of(position) for position in range(len(releases))]
        columns += [
            value_column(position, name)
            for position, release in enumerate(releases)
            for name in attributes
            if name in release.sensitive
        ]
        schema = pa.schema([(SUBJECT, pa.binary()), *((name, pa.int64()) for name in columns)])
        wide = None
        for position, side in enumerate(releases):
            named = {CLASS: _class_of(position)} | {
                sensitive_column(side.sensitive.index(name)): value_column(position, name)
                for name in attributes
                if name in side.sensitive
            }
            part = side.members.select([SUBJECT, *named]).map_batches(_Widen(named, schema), schema)
            wide = part if wide is None else wide.union(part)
        if wide is None:
            raise ValueError("joint classes of no release")
        signatures = wide.aggregate([SUBJECT], most=columns).persist()
        return cls(releases, signatures, tuple(attributes), repeated)

    def release(self) -> None:
        """Free the memory on the cluster."""
        self.table.unpersist()

    def check(self, coalition: Sequence[str], demand: Demand) -> list[dict[str, object]]:
        """Measure the joint classes of a coalition of recipients.

        First comes a row about the number of persons, then one for each sensitive attribute of
        which several values are demanded and that a release of the coalition publishes. See
        docs/recipients.md for their keys. There is no row for a coalition with one release, which
        was proven by itself. One shuffle of the signatures, and one of two columns for each
        attribute and release that publishes it. Only figures are collected.
        """
        positions = [i for i, side in enumerate(self.releases) if side.recipient in coalition]
        result: dict[str, object] = {
            "recipients": list(coalition),
            "releases": [self.releases[position].release for position in positions],
        }
        if len(positions) < 2:
            return []
        columns = [_class_of(position) for position in positions]
        sizes = self._sizes(columns)
        total = {
            "persons": sum(size * number for size, number in sizes.items()),
            "joint_classes": sum(sizes.values()),
            "smallest": min(sizes, default=0),
            "required": demand.k,
            "persons_below": sum(s * number for s, number in sizes.items() if s < demand.k),
            "persons_alone": sizes.get(1, 0),
        }
        result |= total
        rows = [
            result
            | {"attribute": None, "required_l": None, "smallest_l": None}
            | {"holds": total["persons_below"] == 0}
        ]
        for attribute, required in demand.diversity.items():
            smallest, below = self._diversity(attribute, positions, columns, required)
            if smallest is not None:
                rows.append(
                    result
                    | {"attribute": attribute, "required_l": required, "smallest_l": smallest}
                    | {"persons_below": below, "holds": smallest >= required}
                )
        return rows

    def _sizes(self, columns: Sequence[str]) -> dict[int, int]:
        """Return the number of joint classes of each size."""
        if self.repeated:
            schema = pa.schema([(PERSON, pa.int64()), *((name, pa.int64()) for name in columns)])
            number_people = NumberPeople(schema)
            people = self.table.select([SUBJECT, *columns]).map_batches(number_people, schema)
            groups = people.aggregate([*columns, PERSON]).aggregate(columns, count=_PERSONS)
        else:
            groups = self.table.aggregate(columns, count=_PERSONS)
        numbers = groups.map_batches(_Present(list(columns), (_PERSONS,)), _NUMBERS)
        counts = numbers.aggregate([_PERSONS], count=_CLASSES).collect()
        return dict(zip(counts[_PERSONS].to_pylist(), counts[_CLASSES].to_pylist(), strict=True))

    def _diversity(
        self, attribute: str, positions: Sequence[int], columns: Sequence[str], required: int
    ) -> tuple[int | None, int]:
        """Return the fewest values of a joint class, and the persons of those with too few."""
        publishing = [i for i in positions if attribute in self.releases[i].sensitive]
        if not publishing:
            return None, 0
        # A joint class is in a release as a whole or not at all; each release has its own values.
        schema = pa.schema(
            [*((name, pa.int64()) for name in (*columns, _POSITION)), *_VALUES_AND_PERSONS]
        )
        counted = None
        for index in publishing:
            value = value_column(index, attribute)
            by_value = self.table.aggregate([*columns, value], count=_PERSONS)
            groups = by_value.aggregate(columns, count=_VALUES, sums=[_PERSONS])
            part = groups.map_batches(_InRelease(index, list(columns), schema), schema)
            counted = part if counted is None else counted.union(part)
        if counted is None:
            raise ValueError("no release has the attribute")
        fewest = counted.aggregate(columns, least=[_VALUES], most=[_PERSONS])
        numbers = fewest.map_batches(
            _Present(list(columns), (_VALUES, _PERSONS)), _VALUES_AND_PERSONS
        )
        counts = numbers.aggregate([_VALUES], sums=[_PERSONS]).collect().to_pylist()
        below = sum(row[_PERSONS] for row in counts if row[_VALUES] < required)
        return min((row[_VALUES] for row in counts), default=None), below


def people_of(subjects: pa.Array) -> pa.Array:
    """Return the person of each key, as 64 bits: few people may be taken for one, and none for two.

    >>> people_of(pa.array([b"aaaaaaaa1", b"aaaaaaaa2"])).to_pylist()
    [7016996765293437281, 7016996765293437281]
    """
    first = b"".join(subject[:_BYTES] for subject in subjects.to_pylist())
    return pa.array(np.frombuffer(first, "<i8"))


@dataclass(frozen=True)
class NumberPeople:
    """Replaces the keys of records by numbers of the people they are about.

    The schema has :data:`PERSON`.
    """

    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        """Yield the records of each batch."""
        for batch in batches:
            arrays = [
                people_of(batch.column(SUBJECT))
                if field.name == PERSON
                else batch.column(field.name).cast(field.type)
                for field in self.schema
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)


PERSON = "person"
"""64-bit name of a person, of the first bytes of the key."""

_BYTES = 8
_POSITION = "place"
_NUMBERS = pa.schema([(_PERSONS, pa.int64())])
_VALUES_AND_PERSONS = pa.schema([(_VALUES, pa.int64()), (_PERSONS, pa.int64())])


@dataclass(frozen=True)
class _Widen:
    """Moves the columns of one release to their positions among those of all."""

    named: Mapping[str, str]
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            renamed = {new: batch.column(name) for name, new in self.named.items()}
            renamed[SUBJECT] = batch.column(SUBJECT)
            columns = [
                renamed[field.name] if field.name in renamed else pa.nulls(len(batch), field.type)
                for field in self.schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


@dataclass(frozen=True)
class _InRelease:
    """Yields the joint classes that are in one release, and its position."""

    position: int
    columns: list[str]
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            rows = batch.filter(batch.column(_class_of(self.position)).is_valid())
            new = {_POSITION: pa.array(np.full(len(rows), self.position, np.int64))}
            arrays = [
                new[field.name] if field.name in new else rows.column(field.name).cast(field.type)
                for field in self.schema
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)


@dataclass(frozen=True)
class _Present:
    """Yields numbers of the groups that are in one release at least."""

    classes: list[str]
    numbers: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            present = np.zeros(len(batch), bool)
            for name in self.classes:
                present |= batch.column(name).is_valid().to_numpy(zero_copy_only=False)
            rows = batch.select(list(self.numbers)).filter(pa.array(present))
            schema = pa.schema([(name, pa.int64()) for name in self.numbers])
            yield pa.RecordBatch.from_arrays(
                [column.cast(pa.int64()) for column in rows.columns], schema=schema
            )
