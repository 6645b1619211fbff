"""Tables of counts of all candidates and the target, in one pass over the records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Integers
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading
from anonspark.engine.tasks import Batches
from anonspark.engine.values.value_texts import read_values, write
from anonspark.sharing.selection.domains import Domain, Rows

MOST_CELLS = 10_000_000
"""Cells of all tables together at most."""

_COUNTS = pa.schema([("cell", pa.int64()), ("records", pa.int64())])

_PERSON, _KEY, _CODES = "person", "record_key", "codes"
_CODED = pa.schema([(_PERSON, pa.string()), (_KEY, pa.int64()), (_CODES, pa.binary())])

# Records of a task, more or less.
_TASK_RECORDS = 2**20
# Codes that wait for those of the same person, before all but the first of each are forgotten.
_WAITING = 2**21

_LEFT_OUT = -1


@dataclass(frozen=True)
class Person:
    """The person of records, if a person may have several.

    Records without a value in ``column`` are left out. Of a person at most ``records`` count: those
    with the smallest keys, which are 64-bit hashes of their content, keyed with ``key``.
    """

    column: str
    records: int
    key: int


def count_tables(
    table: Table,
    candidates: Sequence[Domain],
    target: Domain,
    markers: Sequence[str],
    *,
    drop_missing: bool,
    person: Person | None = None,
) -> list[Integers]:
    """Count the records of each row and class, int64 of shape (rows, classes) for each candidate.

    The counts are exact and must not leave the process. Records whose target is missing or not
    declared are left out, and with ``drop_missing`` those with a missing candidate. One job, with a
    shuffle of the cells that each task counts. With a person another job before it counts the
    records, and their codes are shuffled. No other columns are read.
    """
    coding = _Coding(tuple(candidates), target, tuple(markers), drop_missing, person)
    cells = _count_cells(table.select(coding.columns), coding)
    counts = cells.aggregate(["cell"], sums=["records"]).collect()
    flat = np.zeros(coding.starts[-1], np.int64)
    flat[counts["cell"].to_numpy()] = counts["records"].to_numpy()
    tables = np.split(flat, coding.starts[1:-1])
    return [counts_of_cells.reshape(-1, coding.classes) for counts_of_cells in tables]


def _count_cells(records: Table, coding: _Coding) -> Table:
    """Count the records of each cell in each task, or at most so many of each person."""
    person = coding.person
    if person is None:
        return records.map_batches(_CountCells(coding), _COUNTS)
    tasks = records.count() // _TASK_RECORDS + 1
    coded = records.with_hashes({_KEY: records.schema.names}, person.key)
    together = coded.map_batches(_CodePeople(coding), _CODED).group([_PERSON], tasks)
    return together.map_batches(_CountPeople(coding, person.records), _COUNTS)


@dataclass(frozen=True)
class _Coding:
    """The rule by which records become rows and classes. Columns are numbered, not named."""

    candidates: tuple[Domain, ...]
    target: Domain
    markers: tuple[str, ...]
    drop_missing: bool
    person: Person | None

    @property
    def _names(self) -> list[str]:
        """The columns that are read, candidates first."""
        person = [self.person.column] if self.person else []
        return [*(candidate.name for candidate in self.candidates), self.target.name, *person]

    @property
    def columns(self) -> dict[str, str]:
        """The columns that are read, by their numbers. Each is read once."""
        return {self._number(name): name for name in self._names}

    def _number(self, name: str) -> str:
        """Return the numbered name of a column."""
        return f"column_{self._names.index(name)}"

    @property
    def classes(self) -> int:
        """The number of classes of the target."""
        return len(self.target.labels)

    @property
    def starts(self) -> Integers:
        """Where the cells of each table start among all of them, and their number."""
        return np.cumsum([0, *(candidate.rows * self.classes for candidate in self.candidates)])

    def rows_and_classes(self, batch: pa.RecordBatch) -> tuple[list[Rows], Rows]:
        """Return the rows of each candidate, and the classes, negative for records left out."""
        classes = self.target.rows_of(batch.column(self._number(self.target.name)), self.markers)
        left_out = classes >= self.target.other
        rows = [
            candidate.rows_of(batch.column(self._number(candidate.name)), self.markers)
            for candidate in self.candidates
        ]
        if self.drop_missing:
            for candidate, row in zip(self.candidates, rows, strict=True):
                left_out |= row == candidate.missing
        return rows, np.where(left_out, np.int32(_LEFT_OUT), classes)

    def people(self, batch: pa.RecordBatch, column: str) -> pa.Array:
        """Return the texts of persons, null for records without one."""
        reading = Reading(column, column, None, ("", *self.markers))
        values, _ = read_values(reading, batch.column(self._number(column)))
        return pc.ascii_trim(write(values, whole=True), " ").cast(pa.string())

    def add(self, counts: Integers, rows: Sequence[Rows], classes: Rows) -> None:
        """Add records to the counts of all cells."""
        counted = classes != _LEFT_OUT
        if not counted.all():
            rows, classes = [row[counted] for row in rows], classes[counted]
        for start, candidate, indices in zip(
            self.starts.tolist(), self.candidates, rows, strict=False
        ):
            cells = candidate.rows * self.classes
            added = np.bincount(indices * np.int64(self.classes) + classes, minlength=cells)
            counts[start : start + cells] += added

    def batch_of(self, counts: Integers) -> pa.RecordBatch:
        """Return the cells with at least one person."""
        occupied = np.flatnonzero(counts)
        return pa.record_batch([pa.array(occupied), pa.array(counts[occupied])], schema=_COUNTS)


@dataclass(frozen=True)
class _CountCells:
    """Counts a task's records of every cell."""

    coding: _Coding

    def __call__(self, batches: Batches) -> Batches:
        counts = np.zeros(self.coding.starts[-1], np.int64)
        for batch in batches:
            self.coding.add(counts, *self.coding.rows_and_classes(batch))
        yield self.coding.batch_of(counts)


@dataclass(frozen=True)
class _CodePeople:
    """Makes rows and classes of the records that persons have."""

    coding: _Coding

    def __call__(self, batches: Batches) -> Batches:
        """Encode the records of persons as bytes of int32: the rows of the tables and the class."""
        person = self.coding.person
        if person is None:
            raise ValueError("no one has records")
        for batch in batches:
            rows, classes = self.coding.rows_and_classes(batch)
            people = self.coding.people(batch, person.column)
            counted = np.flatnonzero((classes != _LEFT_OUT) & np.asarray(people.is_valid()))
            codes = np.stack([*rows, classes], axis=1)[counted].astype(np.int32)
            ends = np.arange(len(counted) + 1, dtype=np.int32) * np.int32(codes.shape[1] * 4)
            buffers = [None, pa.py_buffer(ends), pa.py_buffer(codes.tobytes())]
            yield pa.record_batch(
                [
                    people.take(pa.array(counted)),
                    batch.column(_KEY).take(pa.array(counted)),
                    pa.Array.from_buffers(pa.binary(), len(counted), buffers),
                ],
                schema=_CODED,
            )


@dataclass(frozen=True)
class _CountPeople:
    """Counts the records of persons who are in this task alone, at most ``most`` of each."""

    coding: _Coding
    most: int

    def __call__(self, batches: Batches) -> Batches:
        counts = np.zeros(self.coding.starts[-1], np.int64)
        waiting, size, limit = [_CODED.empty_table()], 0, _WAITING
        for batch in batches:
            waiting.append(pa.Table.from_batches([batch]))
            size += len(batch)
            if size > limit:
                waiting = [_first_of_each(waiting, self.most)]
                size = len(waiting[0])
                limit = max(_WAITING, 2 * size)
        codes = _read_codes(_first_of_each(waiting, self.most)[_CODES], len(self.coding.candidates))
        self.coding.add(counts, list(codes.T[:-1]), codes[:, -1])
        yield self.coding.batch_of(counts)


def _first_of_each(tables: Sequence[pa.Table], most: int) -> pa.Table:
    """Return at most ``most`` records of each person, those with the smallest keys.

    >>> table = pa.table({"person": ["a", "a", "b"], "record_key": [2, 1, 3]})
    >>> _first_of_each([table], 1)["record_key"].to_pylist()
    [1, 3]
    """
    table = pa.concat_tables(tables).combine_chunks()
    people = table[_PERSON].combine_chunks().dictionary_encode().indices.to_numpy()
    order = np.lexsort((table[_KEY].to_numpy(), people))
    people = people[order]
    begins = np.flatnonzero(np.diff(people, prepend=-1))
    sizes = np.diff(begins, append=len(people))
    ranks = np.arange(len(people)) - np.repeat(begins, sizes)
    return table.take(pa.array(order[ranks < most]))


def _read_codes(column: pa.ChunkedArray, candidates: int) -> Rows:
    """Return the rows of each candidate, and the class, of each record."""
    return np.frombuffer(b"".join(column.to_pylist()), np.int32).reshape(-1, candidates + 1)
