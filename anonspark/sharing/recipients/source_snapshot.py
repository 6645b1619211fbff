"""Freezing: the columns that are asked for, who each record is about, and who may have it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from anonspark.config import Configuration
from anonspark.core.arrays import Flags
from anonspark.core.columns import SUBJECT
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.raw_columns import (
    Reading,
    batch_with_one_zero,
    flags,
    is_text,
    require_read,
    type_name,
)
from anonspark.engine.tasks import Batches, task_number
from anonspark.engine.values.column_plans import PlannedColumn, plan_columns, require_types
from anonspark.engine.values.text_forms import mean_missing
from anonspark.engine.values.text_reader import Reader, reader_of_texts
from anonspark.engine.values.value_texts import blank_rows, plain, read_values, write
from anonspark.engine.values.value_validation import validate
from anonspark.errors import DataError
from anonspark.release.conditions import Condition, read_column
from anonspark.sharing.ledger.chain import SUBJECT_BYTES, Key

PATTERN = "pattern"
"""64-bit integer. Bit i is set where a record satisfies the i-th recipient's conditions, and has
every quasi-identifier of that recipient where records without are dropped."""

_MOST_IN_TASK = 2**40
_LENGTH_BYTES = 8


def column_of(index: int) -> str:
    """Return the name of a column of the frozen source.

    >>> column_of(2)
    'column_2'
    """
    return f"column_{index}"


@dataclass(frozen=True)
class RowsOf:
    """The records that a recipient may have: conditions, and columns that must not be missing."""

    conditions: tuple[Condition, ...]
    present: tuple[str, ...]


@dataclass(frozen=True)
class FreezeRows:
    """Takes the columns that are asked for, and decides who gets each record. Runs in tasks.

    ``plans`` say how quasi-identifiers are read. ``requests`` are in the order of the recipients'
    names. ``subject`` are columns that identify people, or none if records do, ``record`` those
    that distinguish the records of a person, or none if each has one. ``late`` gives values their
    types when it is known who gets them, or is None if they have types.
    """

    columns: tuple[str, ...]
    plans: Mapping[str, PlannedColumn]
    markers: tuple[str, ...]
    requests: tuple[RowsOf, ...]
    subject: tuple[str, ...]
    key: Key = field(repr=False)
    record: tuple[str, ...] = ()
    late: Reader | None = None

    def schema(self, types: pa.Schema) -> pa.Schema:
        """Return the schema of the frozen source, with the types of the input."""
        fields = [
            pa.field(column_of(index), pa.string() if self._hides(name) else types.field(name).type)
            for index, name in enumerate(self.columns)
        ]
        return pa.schema([*fields, (SUBJECT, pa.binary()), (PATTERN, pa.int64())])

    def __call__(self, batches: Batches) -> Batches:
        """Yield the records of a task with subject and pattern, without blank rows."""
        first = _MOST_IN_TASK * task_number()
        listed = list(dict.fromkeys([*self.columns, *self.subject, *self.record]))
        for rows in map(batch_with_one_zero, batches):
            plainly = self.late.plain if self.late is not None else lambda values: values
            texts = pa.RecordBatch.from_arrays(
                [plainly(column) if is_text(column.type) else column for column in rows.columns],
                rows.schema.names,
            )
            present = pa.array(~blank_rows(texts, listed, self.markers))
            batch, texts = rows.filter(present), texts.filter(present)
            subjects = self._subjects(texts, first)
            first += len(batch)
            columns = [
                self._hidden(texts, name) if self._hides(name) else batch.column(name)
                for name in self.columns
            ]
            arrays = [*columns, subjects, pa.array(self._patterns(texts))]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema(batch.schema))

    def _patterns(self, batch: pa.RecordBatch) -> np.ndarray:
        """Return the pattern of each record: the recipients whose conditions it meets."""
        columns: dict[tuple[str, pa.DataType | None], tuple[pa.Array, Flags]] = {}
        is_missing: dict[str, Flags] = {}
        patterns = np.zeros(len(batch), np.int64)
        for bit, request in enumerate(self.requests):
            holds = np.ones(len(batch), bool)
            for condition in request.conditions:
                name, read_as = condition.column, self.read_as(condition)
                if (name, read_as) not in columns:
                    column = batch.column(name)
                    columns[name, read_as] = read_column(column, read_as, self.markers)
                holds &= condition.holds(*columns[name, read_as])
            for name in request.present:
                if name not in is_missing:
                    column = batch.column(name)
                    is_missing[name] = validate(self.plans[name], column, self.markers).missing
                    if self.late is not None and is_text(column.type):
                        # The column may turn out to be numbers, whose markers differ.
                        is_missing[name] |= flags(mean_missing(column, self.markers, numbers=True))
                holds &= ~is_missing[name]
            patterns |= holds.astype(np.int64) << bit
        return patterns

    def read_as(self, condition: Condition) -> pa.DataType | None:
        """Return the type that a condition reads texts as, or None for the column's own type."""
        plan = self.plans.get(condition.column)
        declared = None if plan is None else plan.read_as
        return declared if self.late is None else declared or condition.type_of_texts

    def _hides(self, name: str) -> bool:
        """Return whether a column is staged as keyed hashes: people are counted, not named."""
        return name in self.subject

    def _hidden(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        """Return a column as keyed hashes."""
        digests = self._digests(batch, [name])
        return pa.array(
            [None if digest is None else digest.hex() for digest in digests], pa.string()
        )

    def _subjects(self, batch: pa.RecordBatch, first: int) -> pa.Array:
        """Return the key of each record: person and record, or its number without people."""
        if not self.subject:
            numbers = range(first, first + len(batch))
            return pa.array(
                [number.to_bytes(SUBJECT_BYTES, "big") for number in numbers], pa.binary()
            )
        people = self._digests(batch, self.subject)
        if not self.record:
            return pa.array(people, pa.binary())
        records = self._digests(batch, self.record)
        keys = [
            None if person is None or record is None else person + record
            for person, record in zip(people, records, strict=True)
        ]
        return pa.array(keys, pa.binary())

    def _digests(self, batch: pa.RecordBatch, names: Sequence[str]) -> list[bytes | None]:
        """Return the keyed hash of some columns of each record, or None if one is missing."""
        texts = []
        for name in names:
            reading = Reading(name, name, None, ("", *self.markers))
            values, missing = read_values(reading, plain(batch.column(name)))
            strings = zip(write(values).to_pylist(), missing.to_pylist(), strict=True)
            texts.append([None if absent else string for string, absent in strings])
        secret = self.key.secret
        return [_digest(parts, secret) for parts in zip(*texts, strict=True)]


def _digest(parts: Sequence[str | None], secret: bytes) -> bytes | None:
    """Return the name of a person, or None if any part of what identifies people is missing.

    >>> _digest(["ab", "c"], b"key") == _digest(["a", "bc"], b"key"), _digest([None], b"key")
    (False, None)
    """
    digest = hashlib.blake2b(key=secret, digest_size=SUBJECT_BYTES)
    for part in parts:
        if part is None:
            return None
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(_LENGTH_BYTES, "big"))
        digest.update(encoded)
    return digest.digest()


def plan_freezing(
    schema: pa.Schema,
    configuration: Configuration,
    hierarchies: Mapping[str, Hierarchy],
    requests: Sequence[RowsOf],
    names: Sequence[str],
    subject: Sequence[str],
    key: Key,
    record: Sequence[str] = (),
) -> FreezeRows:
    """Check the columns of the input, and decide how to read them.

    ``configuration`` is that of all requested attributes, and ``requests`` and ``names`` are in the
    order of the recipients. Raises DataError if a column is missing, or a condition does not fit
    its type.
    """
    conditioned = [condition.column for request in requests for condition in request.conditions]
    columns = tuple(dict.fromkeys([*configuration.attributes, *conditioned]))
    missing = [
        name for name in dict.fromkeys([*columns, *subject, *record]) if name not in schema.names
    ]
    if missing:
        raise DataError(
            *(
                f"attributes.{name}: the input has no such column. It has "
                f"{', '.join(map(repr, schema.names)) or 'no columns'}"
                for name in missing
            )
        )
    require_read(schema, [*columns, *subject, *record], "attributes.")
    require_types(schema, configuration)
    plans = {plan.column.name: plan for plan in plan_columns(schema, configuration, hierarchies)}
    markers = tuple(configuration.input.missing_markers)
    late = reader_of_texts(configuration)[1]
    freezing = FreezeRows(
        columns, plans, markers, tuple(requests), tuple(subject), key, tuple(record), late
    )
    problems = []
    for name, request in zip(names, requests, strict=True):
        for condition in request.conditions:
            read_as = freezing.read_as(condition) or schema.field(condition.column).type
            problems += [
                f"recipients.{name}.where.{condition.column}: {problem}"
                for problem in condition.problems(read_as)
            ]
    if problems:
        raise DataError(*problems)
    return freezing


def type_family(data_type: pa.DataType) -> str:
    """Return what a type has in common with those whose values have the same texts.

    >>> type_family(pa.int8()), type_family(pa.decimal128(9, 2))
    ('integer', 'decimal with 2 places')
    """
    if pa.types.is_integer(data_type):
        return "integer"
    if pa.types.is_decimal(data_type):
        return f"decimal with {data_type.scale} places"
    return type_name(data_type)
