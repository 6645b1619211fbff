"""Staged records, packed: one value holds an Arrow stream of some thousands of them.

Row by row, records cost more on their way between engine and tasks, through a shuffle and into
files than all that is done with them. So they travel in packed batches from the moment they are
read until they are published. Neither the engine nor the files see a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Integers
from anonspark.core.fingerprints import table_fingerprint
from anonspark.engine.protocol import ROW_GROUP_BYTES, Engine, OnBatches, Table
from anonspark.engine.raw_columns import is_bytes
from anonspark.engine.tasks import Batches, is_remote, takes_dictionaries, task_number
from anonspark.staged.dictionaries import with_dictionaries, without_dictionaries

RECORDS = "records"
"""Column of the Arrow streams."""

ROWS = "rows"
"""Number of records of a batch."""

BYTES = "bytes"
"""The size of its records, see :func:`bytes_of`."""

FIRST_NUMBER = "first_number"
"""Number of its first record."""

PACKED = pa.schema(
    [
        (FIRST_NUMBER, pa.int64()),
        (ROWS, pa.int64()),
        (BYTES, pa.int64()),
        (RECORDS, pa.binary()),
    ]
)
"""The columns of packed batches. No two records of a table have the same number, and the order of
the numbers has no meaning."""

BATCH_BYTES = ROW_GROUP_BYTES
"""About the size of a packed batch before it is compressed."""

# Task t numbers its records from t times this.
_MOST_IN_TASK = 2**40

# Tasks run in parallel already: handing columns to other threads takes ten times as long as packing
# a small table. What stays in this process and on its disk is not compressed.
_LOCAL = pa.ipc.IpcWriteOptions(use_threads=False)
_REMOTE = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)


@dataclass(frozen=True)
class Records:
    """Staged records as a table with the columns of :data:`PACKED`.

    ``schema`` lists the columns of the records that are read, see :mod:`anonspark.core.columns`.
    """

    packed: Table
    schema: pa.Schema

    @property
    def engine(self) -> Engine:
        """The engine that the records are with."""
        return self.packed.engine

    def map_batches(
        self, function: OnBatches, schema: pa.Schema, names: Sequence[str] | None = None
    ) -> Table:
        """Apply a function to the records of each task, of all columns if ``names`` is None.

        Lazy, no shuffle. The result has ``schema``.
        """
        columns = self.schema.names if names is None else list(names)
        return self.packed.map_batches(_OnRecords(function, columns), schema)

    def repartition(self, function: OnBatches, schema: pa.Schema, tasks: int) -> Table:
        """Apply a function to the records of each task, and send each row to the task it names.

        Lazy. One shuffle of what the function yields. See
        :meth:`anonspark.engine.protocol.Table.repartition`.
        """
        return self.packed.repartition(_OnRecords(function, self.schema.names), schema, tasks)

    def only(self, names: Sequence[str]) -> Records:
        """Restrict the records to some columns: others are not decompressed. Lazy, no shuffle."""
        return Records(self.packed, pa.schema([self.schema.field(name) for name in names]))

    def rows(self, *names: str) -> Table:
        """Return some columns of the records, a row per record. Lazy, no shuffle."""
        return self.named({name: name for name in names or self.schema.names})

    def named(self, columns: Mapping[str, str]) -> Table:
        """Return columns of the records under new names, a row per record. Lazy, no shuffle.

        Maps new names to old ones. The tasks rename: an engine may copy every row to do so.
        """
        schema = pa.schema(
            self.schema.field(column).with_name(name).with_nullable(True)
            for name, column in columns.items()
        )
        return self.map_batches(_Named(list(columns)), schema, list(columns.values()))

    def fingerprint(self, *names: str) -> str:
        """Return a fingerprint of some columns, equal for equal tables in any order. One job."""
        hashed = self.rows(*names).with_hashes({"content": names})
        rows = hashed.select(["content"]).aggregate([], count=ROWS, hashes="content").collect()
        (sums,) = rows.to_pylist()
        return table_fingerprint(
            sums[ROWS], int(sums["content_sum"] or 0), sums["content_xor"] or 0
        )


@dataclass(frozen=True)
class Rows:
    """A table with a row per record, with the methods of :class:`Records` to read it."""

    table: Table

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the records."""
        return self.table.schema

    def rows(self, *names: str) -> Table:
        """Select columns, as :meth:`Records.rows` does."""
        return self.table.select(names)

    def map_batches(self, function: OnBatches, schema: pa.Schema, names: Sequence[str]) -> Table:
        """Apply a function to some columns, as :meth:`Records.map_batches` does."""
        return self.table.select(names).map_batches(function, schema)


@dataclass(frozen=True)
class _Named:
    """Renames the columns of batches."""

    names: Sequence[str]

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            yield pa.RecordBatch.from_arrays(batch.columns, self.names)


@dataclass(frozen=True)
class _OnRecords:
    """Unpacks some columns of a task's records for a function."""

    function: OnBatches
    names: Sequence[str]

    def __call__(self, packed: Batches) -> Batches:
        coded = takes_dictionaries(self.function)
        tables = (
            table if coded else without_dictionaries(table)
            for _, table in unpack_batches(packed, self.names)
        )
        return self.function(batch for table in tables for batch in table.to_batches())


@dataclass(frozen=True)
class PackRecords:
    """Packs the records of a task, some megabytes in a batch."""

    def __call__(self, batches: Batches) -> Batches:
        """Yield batches with the columns of :data:`PACKED`."""
        packer = Packer()
        for table in together(batches):
            records = with_dictionaries(table)
            yield pa.RecordBatch.from_pydict(packer.pack(records))


class Packer:
    """Packs the batches of one task, and gives their records numbers that no other task gives."""

    def __init__(self) -> None:
        self._next = _MOST_IN_TASK * task_number()

    def pack(self, records: pa.Table) -> dict[str, pa.Array]:
        """Pack one batch, as :func:`packed_batch` does, with the next numbers."""
        first = self._next
        self._next += records.num_rows
        return packed_batch(first, records)


def packed_batch(first: int, records: pa.Table) -> dict[str, pa.Array]:
    """Return the columns of :data:`PACKED` with one row: records with numbers from ``first`` on."""
    return {
        FIRST_NUMBER: pa.array([first]),
        ROWS: pa.array([records.num_rows]),
        BYTES: pa.array([bytes_of(records)]),
        RECORDS: pack_tables([records]),
    }


def together(batches: Batches, most_bytes: int = BATCH_BYTES) -> Iterator[pa.Table]:
    """Concatenate batches until they reach a number of bytes, as :func:`bytes_of` counts them.

    Leaves out empty batches. Columns of texts may be dictionaries.

    >>> batch = pa.record_batch({"age": [39, 41]})
    >>> [len(table) for table in together([batch] * 3, most_bytes=32)]
    [4, 2]
    """
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if waiting and batch.schema != waiting[0].schema:
            # Files of one table may differ in which columns have dictionaries.
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
        waiting.append(batch)
        coded = any(pa.types.is_dictionary(field.type) for field in batch.schema)
        size += bytes_of(pa.Table.from_batches([batch])) if coded else batch.nbytes
        if size >= most_bytes:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def bytes_of(records: pa.Table) -> int:
    """Return the uncompressed size of records: a sum over them, however they are cut into batches.

    ``Table.nbytes`` counts paddings and dictionaries of each batch, too.

    >>> bytes_of(pa.table({"age": pa.array([39, 41], pa.int32()), "sex": ["male", None]}))
    20
    """
    return sum(_bytes_of(chunk) for column in records.columns for chunk in column.chunks)


def _bytes_of(values: pa.Array) -> int:
    """Add the sizes of values: a number has its width, a text or a list 4 bytes for its length."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        # Count every text in full, as if there were no dictionary.
        text_bytes = bytes_of_each(values.dictionary)
        indices = values.indices.drop_null().to_numpy()
        nulls: int = values.null_count
        return 4 * nulls + int(np.bincount(indices, minlength=len(text_bytes)) @ text_bytes)
    if is_bytes(kind):
        return 4 * len(values) + int(pc.sum(pc.binary_length(values)).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(map(_bytes_of, values.flatten()))
    if pa.types.is_list(kind):
        return 4 * len(values) + _bytes_of(values.flatten())
    if pa.types.is_map(kind):
        entries = values.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
        return 4 * len(values) + _bytes_of(entries.flatten())
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return len(values)
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
        return len(values) * int(kind.bit_width) // 8
    return int(values.nbytes)


def bytes_of_each(values: pa.Array) -> Integers:
    """Return the uncompressed size of each value, int64 (n,). :func:`bytes_of` is their sum.

    Accepts texts, lists, booleans and types of fixed width: numbers, days and moments.

    >>> bytes_of_each(pa.array(["male", "other", None])).tolist()
    [8, 9, 4]
    """
    kind = values.type
    if pa.types.is_string(kind):
        lengths: npt.NDArray[np.int32] = pc.fill_null(pc.binary_length(values), 0).to_numpy()
        return lengths.astype(np.int64) + 4
    if pa.types.is_list(kind):
        ends = np.cumsum(pc.fill_null(pc.list_value_length(values), 0).to_numpy(), dtype=np.int64)
        bytes_before = np.concatenate([[0], np.cumsum(bytes_of_each(values.flatten()))])
        return np.diff(bytes_before[ends], prepend=0) + 4
    size = 1 if pa.types.is_boolean(kind) else int(kind.bit_width) // 8
    return np.full(len(values), size, np.int64)


def pack_tables(tables: Iterable[pa.Table]) -> pa.Array:
    """Write each table as a value of bytes, an Arrow stream, compressed if tasks run elsewhere.

    >>> packed = pack_tables([pa.table({"age": [39]}), pa.table({"age": [41, 43]})])
    >>> [unpack_table(stream)["age"].to_pylist() for stream in packed]
    [[39], [41, 43]]
    """
    whole = [records.combine_chunks() for records in tables]
    if is_remote():
        sink = pa.BufferOutputStream()
        ends = _write_streams(whole, sink, _REMOTE)
        content = sink.getvalue()
    else:
        # Write once to learn the size: a buffer that grows is copied each time.
        ends = _write_streams(whole, pa.MockOutputStream(), _LOCAL)
        content = pa.allocate_buffer(ends[-1])
        _write_streams(whole, pa.FixedSizeBufferWriter(content), _LOCAL)
    offsets = pa.array(ends, pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), len(whole), [None, offsets, content])


def _write_streams(
    tables: Sequence[pa.Table], sink: pa.NativeFile, options: pa.ipc.IpcWriteOptions
) -> list[int]:
    """Write streams one after another. Return where each begins, and where the last one ends."""
    ends = [0]
    for records in tables:
        with pa.ipc.new_stream(sink, records.schema, options=options) as stream:
            stream.write_table(records)
        ends.append(sink.tell())
    return ends


def unpack_table(packed: pa.BinaryScalar, names: Sequence[str] | None = None) -> pa.Table:
    """Read the records of a value of :func:`pack_tables`, all columns if ``names`` is None.

    Other columns are not decompressed. Columns of texts may be dictionaries.

    >>> (packed,) = pack_tables([pa.table({"age": [39], "sex": ["male"]})])
    >>> unpack_table(packed, ["sex"]).to_pylist()
    [{'sex': 'male'}]
    """
    options = pa.ipc.IpcReadOptions(use_threads=False)
    stream = pa.ipc.open_stream(packed.as_buffer(), options=options)
    if names is None:
        return stream.read_all()
    indices = sorted(stream.schema.get_field_index(name) for name in names)
    options = pa.ipc.IpcReadOptions(included_fields=indices, use_threads=False)
    return pa.ipc.open_stream(packed.as_buffer(), options=options).read_all().select(names)


def unpack_batches(
    packed: Batches, names: Sequence[str] | None = None
) -> Iterator[tuple[int, pa.Table]]:
    """Unpack a task's batches: yield the number of the first record, and the records.

    Columns of texts may hold dictionaries. Returns all columns if ``names`` is None.
    """
    for batch in packed:
        pairs = zip(batch.column(FIRST_NUMBER), batch.column(RECORDS), strict=True)
        for first, packed in pairs:
            yield first.as_py(), unpack_table(packed, names)
