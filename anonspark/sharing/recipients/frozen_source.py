"""The frozen source: the input read once for all recipients, with who each record is about.

It is a private copy of the columns as they came, packed, with two companions: the key of the
subject, and the pattern, which shows whose conditions a record satisfies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from anonspark.core.columns import ATOM, SUBJECT
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.tasks import Batches
from anonspark.errors import DataError
from anonspark.sharing.recipients.freezing import PATTERN, FreezeRows, type_family
from anonspark.staged.records import PACKED, PackRecords, Records

MOST_PATTERNS = 100_000
"""Patterns at most: they are collected."""


@dataclass(frozen=True)
class FrozenSource:
    """A table that was read once for all recipients.

    Parameters
    ----------
    records : Records
        Columns as they came, numbered. :data:`~anonspark.core.columns.SUBJECT`,
        :data:`PATTERN`, and :data:`~anonspark.core.columns.ATOM` where there are atoms.
    columns : tuple of str
        Names of the columns in the input.
    subject_types : tuple of str
        Families of the types of the columns that identify people, and records.
    """

    records: Records
    columns: tuple[str, ...]
    subject_types: tuple[str, ...] = ()

    @classmethod
    def again(cls, engine: Engine, path: str, document: Mapping[str, Any]) -> FrozenSource:
        """Return what an earlier attempt has staged, given what it stored about it."""
        schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(document["schema"])))
        records = Records(engine.staged([path], PACKED), schema)
        return cls(records, tuple(document["columns"]), tuple(document["subject_types"]))

    def as_dict(self) -> dict[str, object]:
        """Return what :meth:`again` needs, as JSON has it."""
        schema = self.records.schema.serialize().to_pybytes().hex()
        types = list(self.subject_types)
        return {"columns": list(self.columns), "schema": schema, "subject_types": types}

    @property
    def has_atoms(self) -> bool:
        """Return whether each record has the name of the group that no release divides."""
        return ATOM in self.records.schema.names

    def fresh(self, *names: str) -> Table:
        """Return some columns of the records that have no atom. Lazy."""
        if not self.has_atoms:
            return self.records.rows(*names)
        schema = pa.schema([self.records.schema.field(name) for name in names])
        return self.records.rows(*names, ATOM).map_batches(_WithoutAtom(names), schema)

    def strata(self, *, without_atom: bool = False) -> dict[int, int]:
        """Return the number of records of each pattern.

        Parameters
        ----------
        without_atom : bool
            Whether records that have an atom are passed over.

        Raises
        ------
        DataError
            If there are more than :data:`MOST_PATTERNS`.

        Notes
        -----
        One job with a shuffle of the different patterns.
        """
        rows = self.fresh(PATTERN) if without_atom else self.records.rows(PATTERN)
        patterns = rows.aggregate([PATTERN], count="records")
        found = patterns.collect(MOST_PATTERNS + 1)
        if len(found) > MOST_PATTERNS:
            raise DataError(
                f"recipients: their conditions divide the records into more than {MOST_PATTERNS:,} "
                "groups that different recipients may have. Expected fewer. Make plans of some "
                "recipients each"
            )
        pairs = zip(found[PATTERN].to_pylist(), found["records"].to_pylist(), strict=True)
        return dict(pairs)


def rows_of(strata: Mapping[int, int], bit: int) -> int:
    """Return how many records a recipient may have, given the strata."""
    return sum(number for pattern, number in strata.items() if pattern >> bit & 1)


def freeze(engine: Engine, table: Table, freezing: FreezeRows, path: str) -> FrozenSource:
    """Write the private copy of the input that all releases are made of.

    Parameters
    ----------
    engine : Engine
    table : Table
        The input.
    freezing : FreezeRows
    path : str
        A new directory, private.

    Notes
    -----
    One pass over the input that writes Parquet.
    """
    schema = freezing.schema(table.schema)
    names = list(dict.fromkeys([*freezing.columns, *freezing.subject, *freezing.record]))
    frozen = table.select(names).map_batches(freezing, schema)
    frozen.map_batches(PackRecords(), PACKED).stage(path)
    types = [
        type_family(table.schema.field(name).type) for name in (*freezing.subject, *freezing.record)
    ]
    records = Records(engine.staged([path], PACKED), schema)
    return FrozenSource(records, freezing.columns, tuple(types))


def source_fingerprint(frozen: FrozenSource, subject: Sequence[str], run_id: str) -> str:
    """Return a fingerprint, equal for two sources about the same people.

    Parameters
    ----------
    frozen : FrozenSource
    subject : sequence of str
        The columns that identify people. Without any, sources of one run alone can be the same.
    run_id : str

    Notes
    -----
    One job.
    """
    text = run_id
    if subject:
        keys = frozen.records.map_batches(_FirstBytes(), _KEYS, [SUBJECT])
        (row,) = keys.aggregate([], count="people", hashes="key").collect().to_pylist()
        text = f"{row['people']} {row['key_sum']} {row['key_xor']}"
    return hashlib.sha256(text.encode()).hexdigest()


_KEYS = pa.schema([("key", pa.int64())])


@dataclass(frozen=True)
class _FirstBytes:
    """Yields the first 64 bits of the keys of subjects."""

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            joined = b"".join(one[:8] for one in batch.column(SUBJECT).drop_null().to_pylist())
            yield pa.RecordBatch.from_arrays([pa.array(np.frombuffer(joined, "<i8"))], schema=_KEYS)


_COUNTS = pa.schema([("records", pa.int64()), ("subjects", pa.int64())])


@dataclass(frozen=True)
class _CountRepeated:
    """Counts subjects by the number of their records. Missing ones are of 0 records."""

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            known = batch.column(SUBJECT).is_valid().to_numpy(zero_copy_only=False)
            records = batch.column("records").to_numpy(zero_copy_only=False)
            own = np.where(known, np.minimum(records, 2), 0)
            numbers = np.where(known, 1, records)
            yield pa.RecordBatch.from_arrays(
                [pa.array(own, pa.int64()), pa.array(numbers, pa.int64())], schema=_COUNTS
            )


def require_subjects(
    frozen: FrozenSource, subject: Sequence[str], record: Sequence[str] = ()
) -> None:
    """Check that every record has a person, and no person has two equal records.

    Parameters
    ----------
    frozen : FrozenSource
    subject : sequence of str
        The columns that identify people.
    record : sequence of str
        The columns that distinguish the records of a person. Empty where each has one.

    Raises
    ------
    DataError

    Notes
    -----
    One shuffle of the keys.
    """
    counted = frozen.records.rows(SUBJECT).aggregate([SUBJECT], count="records")
    found = counted.map_batches(_CountRepeated(), _COUNTS).aggregate(["records"], sums=["subjects"])
    numbers = {row["records"]: row["subjects"] for row in found.collect().to_pylist()}
    keys = ", ".join([*subject, *record])
    if numbers.get(0):
        raise DataError(
            f"subject: {numbers[0]:,} records have no person because {keys} is missing. Expected "
            "it in every record. Complete them, or leave them out of the input"
        )
    if numbers.get(2) and record:
        raise DataError(
            f"record: {numbers[2]:,} records occur several times, identified by {keys}. Expected "
            "each once. Name the columns that distinguish the records of a person"
        )
    if numbers.get(2):
        raise DataError(
            f"subject: {numbers[2]:,} people have several records, identified by {keys}. Expected "
            "one record a person. Name the columns that distinguish records as record, so that "
            "people are counted, or bring the table to one record each"
        )


@dataclass(frozen=True)
class _WithoutAtom:
    """Yields columns of records that have no atom."""

    names: Sequence[str]

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            kept = batch.filter(batch.column(ATOM).is_null()).select(list(self.names))
            yield pa.RecordBatch.from_arrays(kept.columns, list(self.names))
