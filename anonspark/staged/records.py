"""Staged records, packed: some thousands of them in one value.

Row by row, records cost more on their way between Java and Python, through a shuffle and into
files than all that is done with them. So they travel as parcels, Arrow streams of many records,
from the moment they are read until they are published; neither Spark nor the files see a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from anonspark.engine.spark.tasks import Batches, map_batches

__all__ = [
    "BYTES",
    "FIRST_NUMBER",
    "PARCELS",
    "PARCEL_BYTES",
    "RECORDS",
    "ROWS",
    "STAGED_PARCELS",
    "PackRecords",
    "Packer",
    "Records",
    "bytes_of",
    "open_parcels",
    "pack_table",
    "parcel_of",
    "together",
    "unpack_table",
]

RECORDS = "records"
"""Column of the parcels."""

ROWS = "rows"
"""Their number of records."""

BYTES = "bytes"
"""What their records take, see :func:`bytes_of`; the same whatever parcels they came in."""

FIRST_NUMBER = "first_number"
"""Number of their first record."""

PARCELS = StructType(
    [
        StructField(FIRST_NUMBER, LongType()),
        StructField(ROWS, LongType()),
        StructField(BYTES, LongType()),
        StructField(RECORDS, BinaryType()),
    ]
)
"""Parcels: the number of the first record, for records have numbers, all different, in no order
that would mean anything; how many they are; what they take; and the records."""

PARCEL_BYTES = 16 * 2**20
"""What a parcel has before it is compressed, more or less."""

STAGED_PARCELS = {
    "compression": "none",
    "parquet.enable.dictionary": "false",
    # A reader takes a whole row group into memory, and a writer does not look at its size before it
    # has a hundred rows, unless told so.
    "parquet.block.size": str(PARCEL_BYTES),
    "parquet.page.size.row.check.min": "1",
}
"""Options of files of parcels, which are large and compressed already."""

# A task's records are numbered from a multiple of this.
_MOST_IN_TASK = 2**40

_WRITE_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True)
class Records:
    """A table of staged records.

    Parameters
    ----------
    parcels : DataFrame
        Of :data:`PARCELS`.
    schema : StructType
        Of the records; see :mod:`anonspark.staged.columns`.
    """

    parcels: DataFrame
    schema: StructType

    def map_batches(
        self,
        function: Callable[[Batches], Batches],
        schema: StructType | str,
        names: Sequence[str] | None = None,
    ) -> DataFrame:
        """Apply a function to the records of each task.

        Parameters
        ----------
        function : callable
            Takes a task's records as Arrow batches; see
            :func:`anonspark.engine.spark.tasks.map_batches`.
        schema : StructType or str
            Of the result.
        names : sequence of str or None
            The columns that it gets; None for all.

        Returns
        -------
        DataFrame
            Lazy; no shuffle.
        """
        wanted = self.schema.names if names is None else list(names)
        return map_batches(self.parcels, _OnRecords(function, wanted), schema)

    def rows(self, *names: str) -> DataFrame:
        """Return some columns of the records, one row a record; lazy, no shuffle."""
        return self.named({name: name for name in names or self.schema.names})

    def named(self, columns: Mapping[str, str]) -> DataFrame:
        """Return columns of the records under other names, one row a record.

        Parameters
        ----------
        columns : mapping of str to str
            A column's name in the result, and that in the records.

        Returns
        -------
        DataFrame
            Lazy; no shuffle. With its names already: Spark would copy every row to change them.
        """
        schema = StructType(
            [StructField(name, self.schema[own].dataType) for name, own in columns.items()]
        )
        return self.map_batches(_Named(list(columns)), schema, list(columns.values()))


@dataclass(frozen=True)
class _Named:
    names: Sequence[str]

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            yield pa.RecordBatch.from_arrays(batch.columns, self.names)


@dataclass(frozen=True)
class _OnRecords:
    function: Callable[[Batches], Batches]
    names: Sequence[str]

    def __call__(self, parcels: Batches) -> Batches:
        return self.function(
            batch for _, table in open_parcels(parcels, self.names) for batch in table.to_batches()
        )


@dataclass(frozen=True)
class PackRecords:
    """Packs the records of a task."""

    def __call__(self, batches: Batches) -> Batches:
        """Yield parcels of some megabytes."""
        packer = Packer()
        for table in together(batches):
            yield pa.RecordBatch.from_pydict(packer.pack(table))


class Packer:
    """Makes parcels in one task, which numbers their records."""

    def __init__(self) -> None:
        context = TaskContext.get()
        self._next = _MOST_IN_TASK * (context.partitionId() if context else 0)

    def pack(self, records: pa.Table) -> dict[str, pa.Array]:
        """Return the columns of :data:`PARCELS` for one parcel."""
        first = self._next
        self._next += records.num_rows
        return parcel_of(first, records)


def parcel_of(first: int, records: pa.Table) -> dict[str, pa.Array]:
    """Return the columns of :data:`PARCELS` for one parcel.

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
        RECORDS: pa.array([pack_table(records)], pa.binary()),
    }


def together(batches: Batches, most_bytes: int = PARCEL_BYTES) -> Iterator[pa.Table]:
    """Put batches together until they have a number of bytes; empty ones are left out."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        size += batch.nbytes
        if size >= most_bytes:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def bytes_of(records: pa.Table) -> int:
    """Return what records take before they are compressed: a sum over the records.

    How they are cut into batches, parcels and tasks changes nothing, unlike for ``Table.nbytes``.
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


def pack_table(records: pa.Table) -> bytes:
    """Return records as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, records.schema, options=_WRITE_OPTIONS) as stream:
        stream.write_table(records.combine_chunks())
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpack_table(packed: pa.BinaryScalar, names: Sequence[str] | None = None) -> pa.Table:
    """Return the records of a value that :func:`pack_table` made.

    Parameters
    ----------
    packed : pyarrow.BinaryScalar
    names : sequence of str or None
        The columns to return, the others are not decompressed; None for all.
    """
    stream = pa.ipc.open_stream(packed.as_buffer())
    if names is None:
        return stream.read_all()
    places = sorted(stream.schema.get_field_index(name) for name in names)
    options = pa.ipc.IpcReadOptions(included_fields=places)
    return pa.ipc.open_stream(packed.as_buffer(), options=options).read_all().select(names)


def open_parcels(
    parcels: Batches, names: Sequence[str] | None = None
) -> Iterator[tuple[int, pa.Table]]:
    """Open a task's parcels one after another.

    Parameters
    ----------
    parcels : iterator of pyarrow.RecordBatch
        Of :data:`PARCELS`.
    names : sequence of str or None
        The columns to return; None for all.

    Yields
    ------
    first : int
        Number of the first record.
    records : pyarrow.Table
    """
    for batch in parcels:
        pairs = zip(batch.column(FIRST_NUMBER), batch.column(RECORDS), strict=True)
        for first, packed in pairs:
            yield first.as_py(), unpack_table(packed, names)
