"""The records of a union: the place of each reveals nothing about the part that it came from.

Classes are divided among files, and ordered in them, by a keyed hash of what is published of their
quasi-identifiers. Inside of a class the order is that of a keyed hash of the whole record. So the
same records give the same files for any division among holders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.arrays import Flags, Integers
from anonspark.core.columns import published_column
from anonspark.engine.files import PublishedFile
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.engine.values.hashing import content_hash
from anonspark.layers.partition.distribution import (
    SENT,
    Addressed,
    pack_by_task,
    received_tables,
)
from anonspark.layers.publish.file_assignment import Division, MoreThan, files_for
from anonspark.layers.publish.staging import Staging
from anonspark.staged.dictionaries import put_together, with_dictionaries, without_dictionaries
from anonspark.staged.records import bytes_of

_NAME, _CONTENT = "class_name", "content"
"""Keyed hashes of a record's class, and of all that is published of it."""

_COPIES, _FILE = "copies", "file"
"""The number of equal records of a row, and the file that it was sent to. -1 for a record."""

_RECORDS = "records"

_HASHES = pa.schema([(_NAME, pa.int64()), (_CONTENT, pa.int64())])

# Records in memory are usually at most so many times as large as their file.
_COMPRESSION = 4

# Size of a row group before it is encoded: it travels as one value.
_ROW_GROUP_BYTES = 32 * 2**20


@dataclass(frozen=True)
class _Among:
    """Keeps the hashes of records of some classes."""

    names: tuple[int, ...]

    def __call__(self, batches: Batches) -> Batches:
        names = np.array(self.names, np.int64)
        for batch in batches:
            yield batch.filter(pa.array(np.isin(batch.column(_NAME).to_numpy(), names)))


@dataclass(frozen=True)
class _Hash:
    """Adds the hashes of records to their columns, which may then hold dictionaries.

    The columns ``by`` form classes.
    """

    by: tuple[str, ...]
    key: int

    def tables(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield a table for each batch."""
        for batch in batches:
            if batch.num_rows:
                table = with_dictionaries(pa.Table.from_batches([batch]))
                name = content_hash([table.column(column) for column in self.by], self.key)
                content = content_hash(table.columns, self.key)
                yield table.append_column(_NAME, pa.array(name)).append_column(
                    _CONTENT, pa.array(content)
                )

    def __call__(self, batches: Batches) -> Batches:
        """Yield the hashes alone."""
        for table in self.tables(batches):
            yield from table.select(_HASHES.names).combine_chunks().to_batches()


@dataclass(frozen=True)
class _Pack:
    """Packs records, by the tasks that make the files.

    ``equal`` are contents of which there are more equal records than stay together in a file. Of
    these a batch sends one row to each file, with their number.
    """

    hash: _Hash
    division: Division
    equal: tuple[int, ...]

    def __call__(self, batches: Batches) -> Batches:
        yield from pack_by_task(self._addressed(batches), self.division.files)

    def _addressed(self, batches: Batches) -> Iterator[Addressed]:
        """Yield the records of each batch with the file of each."""
        for table in self.hash.tables(batches):
            names, contents = (table.column(name).to_numpy() for name in (_NAME, _CONTENT))
            shared = np.isin(contents, np.array(self.equal, np.int64))
            alone = np.flatnonzero(~shared)
            if len(alone):
                files = self.division.files_of(names[alone], contents[alone], 0)
                ones, no_file = np.ones(len(alone), np.int64), np.full(len(alone), -1, np.int32)
                yield Addressed(_with(table.take(pa.array(alone)), ones, no_file), files)
            if shared.any():
                yield self._for_all_files(table, names, contents, np.flatnonzero(shared))

    def _for_all_files(
        self,
        table: pa.Table,
        names: Integers,
        contents: Integers,
        indices: Integers,
    ) -> Addressed:
        """Send a row of each content, with the number of its records, to every file."""
        order = indices[np.lexsort((contents[indices], names[indices]))]
        starts = _starts(names[order], contents[order])
        copies = np.diff(starts, append=len(order))
        number = self.division.files
        files = np.tile(np.arange(number, dtype=np.int32), len(starts))
        rows = table.take(pa.array(np.repeat(order[starts], number)))
        return Addressed(_with(rows, np.repeat(copies, number), files), files)


@dataclass(frozen=True)
class _AsItIs:
    """Sends what names its task already."""

    def __call__(self, batches: Batches) -> Batches:
        yield from batches


@dataclass(frozen=True)
class _InOrder:
    """Sorts the records of a task's file, and gives their columns the names of the release.

    ``most_bytes`` is what the records take that are handed over together.
    """

    schema: pa.Schema
    files: int
    most_bytes: int

    def __call__(self, batches: Batches) -> Batches:
        """Yield the records of a file in order, each as often as the file has copies of it."""
        tables = list(received_tables(batches))
        if not tables:
            return
        records = put_together(tables)
        names, contents, copies, files = (
            records.column(name).to_numpy() for name in (_NAME, _CONTENT, _COPIES, _FILE)
        )
        order = np.lexsort((contents, names))
        # Only rows that stand for equal records of several batches are added up.
        starts = _starts(names[order], contents[order], files[order] >= 0)
        order, totals = order[starts], np.add.reduceat(copies[order], starts)
        share = totals // self.files + (files[order] < totals % self.files)
        repeats = np.where(files[order] >= 0, share, totals)
        records = records.select([published_column(index) for index in range(len(self.schema))])
        records = records.take(pa.array(order)).combine_chunks()
        step = max(self.most_bytes * len(records) // max(bytes_of(records), 1), 1)
        indices = np.repeat(np.arange(len(records)), repeats)
        for start in range(0, len(indices), step):
            part = records.take(pa.array(indices[start : start + step]))
            named = without_dictionaries(part).rename_columns(self.schema.names)
            yield from named.combine_chunks().to_batches()


def _with(records: pa.Table, copies: Integers, files: npt.NDArray[np.int32]) -> pa.Table:
    """Append the number of copies and the file of each record."""
    return records.append_column(_COPIES, pa.array(copies)).append_column(_FILE, pa.array(files))


def _starts(
    names: Integers,
    contents: Integers,
    together: Flags | None = None,
) -> Integers:
    """Return where equal pairs begin, in order. A pair that is not ``together`` begins anew.

    >>> _starts(np.array([1, 1, 2]), np.array([7, 7, 7])).tolist()
    [0, 2]
    """
    first = np.ones(len(names), bool)
    first[1:] = (names[1:] != names[:-1]) | (contents[1:] != contents[:-1])
    if together is not None:
        first |= ~together
    return np.flatnonzero(first)


@dataclass(frozen=True)
class Extent:
    """The size of a union: records, bytes of its parts on the disk, and the largest class."""

    rows: int
    stored: int
    largest: int


def write_union(
    tables: Sequence[Table], by: Sequence[str], extent: Extent, key: int, staging: Staging
) -> list[PublishedFile]:
    """Write the records of a union to the directory ``data`` of a release, as Parquet.

    ``tables`` are the records of each part, with the same columns, of which ``by`` form classes.
    ``key`` is the secret key of the hashes that order the records, 64 bits, signed. One job with
    one shuffle of all records. If a class may be too large for a file, one with a shuffle of class
    sizes. If one is, another that counts equal records of such classes.
    """
    schema = pa.schema([field.with_nullable(True) for field in tables[0].schema])
    names = schema.names
    numbers = {published_column(position): name for position, name in enumerate(names)}
    numbered = [table.select(numbers) for table in tables]
    hashed = _Hash(tuple(published_column(names.index(name)) for name in by), key)
    files, most = files_for(extent.rows, extent.stored * _COMPRESSION)
    large: tuple[int, ...] = ()
    equal: tuple[int, ...] = ()
    if files > 1 and extent.largest > most:
        large = tuple(_frequent(_each(numbered, hashed).select([_NAME]), most)[_NAME].to_pylist())
    if large:
        contents = _each(numbered, hashed).map_batches(_Among(large), _HASHES).select([_CONTENT])
        equal = tuple(_frequent(contents, most)[_CONTENT].to_pylist())
    division = Division(files, most, large, {})
    # Parts are packed before they are united, so that no record travels unpacked.
    pack = _Pack(hashed, division, equal)
    packed = [table.map_batches(pack, SENT) for table in numbered]
    sent = _together(packed).repartition(_AsItIs(), SENT, files)
    ordered = sent.map_batches(_InOrder(schema, files, _ROW_GROUP_BYTES), schema)
    return ordered.publish("parquet", staging.release, "data", staging.written)


def _each(tables: Sequence[Table], hashed: _Hash) -> Table:
    """Return the hashes of all records."""
    return _together([table.map_batches(hashed, _HASHES) for table in tables])


def _together(tables: Sequence[Table]) -> Table:
    """Unite tables."""
    return reduce(lambda first, second: first.union(second), tables)


def _frequent(hashes: Table, most: int) -> pa.Table:
    """Return the hashes that occur more than ``most`` times. They are few."""
    counted = hashes.aggregate(hashes.schema.names, count=_RECORDS)
    return counted.map_batches(MoreThan(_RECORDS, most), counted.schema).collect()
