"""Staged records, packed: some thousands of them in one value.

Row by row, records cost more on their way between engine and tasks, through a shuffle and into
files than all that is done with them. So they travel in packed batches, Arrow streams of many
records, from the moment they are read until they are published. Neither the engine nor the files
see a record.
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
from anonspark.engine.tasks import Batches, is_remote, takes_dictionaries, task_number
from anonspark.staged.dictionaries import with_dictionaries, without_dictionaries

RECORDS = "records"
"""Column of the Arrow streams."""

ROWS = "rows"
"""Number of records of a batch."""

BYTES = "bytes"
"""The size of its records, see :func:`bytes_of`. The same whatever batches they came in."""

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
"""Packed batches: the number of the first record, because records have numbers, all different, in
no meaningful order, how many they are, their size, and the records."""

BATCH_BYTES = ROW_GROUP_BYTES
"""About the size of a packed batch before it is compressed."""

# A task's records are numbered from a multiple of this.
_MOST_IN_TASK = 2**40

# Tasks run beside each other already; handing columns to other threads costs ten times what packing
# a small table does. What stays in this process and on its disk is not compressed.
_LOCAL = pa.ipc.IpcWriteOptions(use_threads=False)
_REMOTE = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)


@dataclass(frozen=True)
class Records:
    """A table of staged records.

    Parameters
    ----------
    packed : Table
        Of :data:`PACKED`.
    schema : pyarrow.Schema
        Return the schema of the records. See :mod:`anonspark.core.columns`.
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
        """Apply a function to the records of each task.

        Parameters
        ----------
        function : callable
            Takes a task's records as Arrow batches. See :mod:`anonspark.engine.protocol`.
        schema : pyarrow.Schema
            Of the result.
        names : sequence of str or None
            The columns that it gets. None for all.

        Returns
        -------
        Table
            Lazy. No shuffle.
        """
        columns = self.schema.names if names is None else list(names)
        return self.packed.map_batches(_OnRecords(function, columns), schema)

    def repartition(self, function: OnBatches, schema: pa.Schema, tasks: int) -> Table:
        """Apply a function to the records of each task, and hand every row to the task it names.

        Parameters
        ----------
        function : callable
            Takes a task's records. Yields what
            :meth:`anonspark.engine.protocol.Table.repartition` wants.
        schema : pyarrow.Schema
            Of the result.
        tasks : int
            At least 1.

        Returns
        -------
        Table
            Lazy. One shuffle of the rows that the function yields.
        """
        return self.packed.repartition(_OnRecords(function, self.schema.names), schema, tasks)

    def only(self, names: Sequence[str]) -> Records:
        """Return the same records, of which some columns alone are read. Lazy, no shuffle."""
        return Records(self.packed, pa.schema([self.schema.field(name) for name in names]))

    def rows(self, *names: str) -> Table:
        """Return some columns of the records, one row a record. Lazy, no shuffle."""
        return self.named({name: name for name in names or self.schema.names})

    def named(self, columns: Mapping[str, str]) -> Table:
        """Return columns of the records under other names, one row a record.

        Parameters
        ----------
        columns : mapping of str to str
            A column's name in the result, and that in the records.

        Returns
        -------
        Table
            Lazy. No shuffle. With its names already: an engine may copy every row to change them.
        """
        schema = pa.schema(
            self.schema.field(column).with_name(name).with_nullable(True)
            for name, column in columns.items()
        )
        return self.map_batches(_Named(list(columns)), schema, list(columns.values()))

    def fingerprint(self, *names: str) -> str:
        """Return a fingerprint of some columns, equal for equal tables in any order.

        Notes
        -----
        One job over these columns.
        """
        hashed = self.rows(*names).with_hashes({"content": names})
        rows = hashed.select(["content"]).aggregate([], count=ROWS, hashes="content").collect()
        (sums,) = rows.to_pylist()
        return table_fingerprint(
            sums[ROWS], int(sums["content_sum"] or 0), sums["content_xor"] or 0
        )


@dataclass(frozen=True)
class Rows:
    """A table of records, one row each, which is read as :class:`Records` are.

    Parameters
    ----------
    table : Table
    """

    table: Table

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the records."""
        return self.table.schema

    def rows(self, *names: str) -> Table:
        """Return some columns. As :meth:`Records.rows`."""
        return self.table.select(names)

    def map_batches(self, function: OnBatches, schema: pa.Schema, names: Sequence[str]) -> Table:
        """Apply a function to some columns. As :meth:`Records.map_batches`."""
        return self.table.select(names).map_batches(function, schema)


@dataclass(frozen=True)
class _Named:
    names: Sequence[str]

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            yield pa.RecordBatch.from_arrays(batch.columns, self.names)


@dataclass(frozen=True)
class _OnRecords:
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
    """Packs the records of a task."""

    def __call__(self, batches: Batches) -> Batches:
        """Yield packed batches of some megabytes."""
        packer = Packer()
        for table in together(batches):
            records = with_dictionaries(table)
            yield pa.RecordBatch.from_pydict(packer.pack(records))


class Packer:
    """Packs batches in one task, which numbers their records."""

    def __init__(self) -> None:
        self._next = _MOST_IN_TASK * task_number()

    def pack(self, records: pa.Table) -> dict[str, pa.Array]:
        """Return the columns of :data:`PACKED` for one batch."""
        first = self._next
        self._next += records.num_rows
        return packed_batch(first, records)


def packed_batch(first: int, records: pa.Table) -> dict[str, pa.Array]:
    """Return the columns of :data:`PACKED` for one batch.

    Parameters
    ----------
    first : int
        Number of the first record.
    records : pyarrow.Table
    """
    return {
        FIRST_NUMBER: pa.array([first]),
        ROWS: pa.array([records.num_rows]),
        BYTES: pa.array([bytes_of(records)]),
        RECORDS: pack_tables([records]),
    }


def together(batches: Batches, most_bytes: int = BATCH_BYTES) -> Iterator[pa.Table]:
    """Put batches together until they have a number of bytes. Empty ones are left out.

    Columns of texts may hold dictionaries, and count as if each text stood for itself.
    """
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if waiting and batch.schema != waiting[0].schema:
            # A file may have dictionaries where another has not.
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
    """Return what records take before they are compressed: a sum over the records.

    How they are cut into batches and tasks changes nothing, unlike for ``Table.nbytes``.
    """
    return sum(_bytes_of(chunk) for column in records.columns for chunk in column.chunks)


_TEXTS = (
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_large_string,
    pa.types.is_large_binary,
)


def _bytes_of(values: pa.Array) -> int:
    own_type = values.type
    if pa.types.is_dictionary(own_type):
        # As if each text stood for itself.
        each = bytes_of_each(values.dictionary)
        present = values.indices.drop_null().to_numpy()
        nulls: int = values.null_count
        return 4 * nulls + int(np.bincount(present, minlength=len(each)) @ each)
    if any(is_one(own_type) for is_one in _TEXTS):
        return 4 * len(values) + int(pc.sum(pc.binary_length(values)).as_py() or 0)
    if pa.types.is_struct(own_type):
        return sum(map(_bytes_of, values.flatten()))
    if pa.types.is_list(own_type):
        return 4 * len(values) + _bytes_of(values.flatten())
    if pa.types.is_map(own_type):
        entries = values.cast(pa.list_(pa.struct([own_type.key_field, own_type.item_field])))
        return 4 * len(values) + _bytes_of(entries.flatten())
    if pa.types.is_boolean(own_type) or pa.types.is_null(own_type):
        return len(values)
    if pa.types.is_primitive(own_type) or pa.types.is_decimal(own_type):
        return len(values) * int(own_type.bit_width) // 8
    return int(values.nbytes)


def bytes_of_each(values: pa.Array) -> Integers:
    """Return what each value takes before it is compressed. :func:`bytes_of` is their sum.

    Parameters
    ----------
    values : pyarrow.Array
        Texts, lists, truth values, or numbers, days and times.

    Returns
    -------
    int64 ndarray of shape (n,)
    """
    own_type = values.type
    if pa.types.is_string(own_type):
        lengths: npt.NDArray[np.int32] = pc.fill_null(pc.binary_length(values), 0).to_numpy()
        return lengths.astype(np.int64) + 4
    if pa.types.is_list(own_type):
        ends = np.cumsum(pc.fill_null(pc.list_value_length(values), 0).to_numpy(), dtype=np.int64)
        up_to = np.concatenate([[0], np.cumsum(bytes_of_each(values.flatten()))])
        return np.diff(up_to[ends], prepend=0) + 4
    size = 1 if pa.types.is_boolean(own_type) else int(own_type.bit_width) // 8
    return np.full(len(values), size, np.int64)


def pack_tables(tables: Iterable[pa.Table]) -> pa.Array:
    """Return the records of each table as a value of bytes, an Arrow stream."""
    whole = [records.combine_chunks() for records in tables]
    if is_remote():
        sink = pa.BufferOutputStream()
        ends = _write_streams(whole, sink, _REMOTE)
        content = sink.getvalue()
    else:
        # First for nothing but the size: of memory that grows each part is copied.
        ends = _write_streams(whole, pa.MockOutputStream(), _LOCAL)
        content = pa.allocate_buffer(ends[-1])
        _write_streams(whole, pa.FixedSizeBufferWriter(content), _LOCAL)
    offsets = pa.array(ends, pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), len(whole), [None, offsets, content])


def _write_streams(
    tables: Sequence[pa.Table], sink: pa.NativeFile, options: pa.ipc.IpcWriteOptions
) -> list[int]:
    """Write streams one after another, and return where each begins, and the last one ends."""
    ends = [0]
    for records in tables:
        with pa.ipc.new_stream(sink, records.schema, options=options) as stream:
            stream.write_table(records)
        ends.append(sink.tell())
    return ends


def unpack_table(packed: pa.BinaryScalar, names: Sequence[str] | None = None) -> pa.Table:
    """Return the records of a value that :func:`pack_tables` made.

    Parameters
    ----------
    packed : pyarrow.BinaryScalar
    names : sequence of str or None
        The columns to return, the others are not decompressed. None for all.

    Returns
    -------
    pyarrow.Table
        Columns of texts may hold dictionaries. See :mod:`anonspark.staged.dictionaries`.
    """
    options = pa.ipc.IpcReadOptions(use_threads=False)
    stream = pa.ipc.open_stream(packed.as_buffer(), options=options)
    if names is None:
        return stream.read_all()
    places = sorted(stream.schema.get_field_index(name) for name in names)
    options = pa.ipc.IpcReadOptions(included_fields=places, use_threads=False)
    return pa.ipc.open_stream(packed.as_buffer(), options=options).read_all().select(names)


def unpack_batches(
    packed: Batches, names: Sequence[str] | None = None
) -> Iterator[tuple[int, pa.Table]]:
    """Unpack a task's batches one after another.

    Parameters
    ----------
    packed : iterator of pyarrow.RecordBatch
        Of :data:`PACKED`.
    names : sequence of str or None
        The columns to return. None for all.

    Yields
    ------
    first : int
        Number of the first record.
    records : pyarrow.Table
        Columns of texts may hold dictionaries. See :mod:`anonspark.staged.dictionaries`.
    """
    for batch in packed:
        pairs = zip(batch.column(FIRST_NUMBER), batch.column(RECORDS), strict=True)
        for first, packed in pairs:
            yield first.as_py(), unpack_table(packed, names)
