"""Read Parquet and ORC files, with the columns and types that Spark reads in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc, parquet

from anonspark.engine.data_files import DataFile, DataFiles
from anonspark.engine.local.running import map_in_threads
from anonspark.engine.reading_errors import old_calendar, reading_file, unreadable
from anonspark.engine.struct_fields import StructField, outer_columns, struct_fields
from anonspark.engine.tasks import Batches
from anonspark.engine.values.file_types import (
    BATCH_ROWS,
    FIRST_DAY,
    FIRST_TIME,
    INSTANT,
    LISTS,
    ORC_INSTANT,
    TypeNotReadError,
    type_as_read,
    values_as_read,
    wider,
)
from anonspark.engine.values.whole_files import coded_columns

Read = Callable[[pa.Schema], Batches]
"""Reads the columns of a schema, which are some of a table's. May be called again."""

_PATH = attrgetter("path")

# Footers that are read at the same time.
_READERS = 16

# A text without a dictionary takes more, with its length, unless it is very short.
_BYTES_OF_A_TEXT = 6

_FIRST_DAY = pa.scalar(FIRST_DAY)
_FIRST_TIME = pa.scalar(FIRST_TIME, INSTANT)


@dataclass(frozen=True)
class ColumnarFile:
    """A file that names its columns, with the schema that Spark reads.

    ``parts`` is the number of row groups or stripes. ``read`` takes the index of a part and names
    of columns, and yields batches in the types of the file. ``other_calendar`` says whether old
    days may be those of the Julian calendar. ``unread`` has columns of types that Spark cannot
    read, which the schema lacks. ``nanoseconds`` are columns that are read in microseconds.
    """

    file: DataFile
    schema: pa.Schema
    parts: int
    read: Callable[[int, Sequence[str]], Iterator[pa.RecordBatch]]
    other_calendar: bool = False
    unread: Mapping[str, str] = field(default_factory=dict)
    nanoseconds: tuple[str, ...] = ()


Content = Callable[[DataFile], Any]
"""Returns the path of a file, or a seekable stream of its content."""


def open_columnar(
    files: Sequence[DataFile], data_format: str, where: str, content: Content = _PATH
) -> list[ColumnarFile]:
    """Read the footers of files in parallel. Raises DataError if one cannot be read."""
    open_file = {"parquet": _open_parquet, "orc": open_orc}[data_format]

    def guarded(file: DataFile) -> ColumnarFile:
        with reading_file(where, file.address):
            return open_file(file, content)

    return map_in_threads(guarded, files, _READERS)


def _open_parquet(file: DataFile, content: Content) -> ColumnarFile:
    """Open a Parquet file: its columns with Spark's types, and the function that reads a part."""
    with _parquet_file(content(file)) as opened:
        metadata, stored = opened.metadata, opened.schema_arrow
        kinds = {
            column.path: (column.physical_type, column.logical_type.type)
            for column in map(opened.schema.column, range(len(opened.schema)))
        }
    schema, unread = _as_read(stored, partial(_field_of_parquet, kinds=kinds))
    entries = metadata.metadata or {}
    version = entries.get(b"org.apache.spark.version", b"3").decode()
    return ColumnarFile(
        file,
        schema,
        metadata.num_row_groups,
        partial(_read_row_group, file.path, metadata),
        # A file without Spark's version is one of another program, with today's calendar.
        other_calendar=version.startswith(("1.", "2."))
        or b"org.apache.spark.legacyDateTime" in entries
        or b"org.apache.spark.legacyINT96" in entries,
        unread=unread,
        nanoseconds=tuple(column.name for column in stored if _is_nanoseconds(column)),
    )


def _is_nanoseconds(column: pa.Field) -> bool:
    """Return whether a column has timestamps in nanoseconds."""
    return bool(pa.types.is_timestamp(column.type) and column.type.unit == "ns")


def _as_read(
    stored: pa.Schema, field_as_read: Callable[[pa.Field], pa.Field]
) -> tuple[pa.Schema, dict[str, str]]:
    """Return the columns that can be read, in the types they are read as, and the others' types."""
    fields, unread = [], {}
    for column in stored:
        try:
            fields.append(field_as_read(column))
        except TypeNotReadError as error:
            unread[column.name] = ORC_INSTANT if str(error) == ORC_INSTANT else str(column.type)
    return pa.schema(fields), unread


def _parquet_file(
    path: Any, metadata: Any = None, dictionaries: Sequence[str] = ()
) -> parquet.ParquetFile:
    """Open a Parquet file, of which some columns become dictionaries."""
    return parquet.ParquetFile(
        path,
        metadata=metadata,
        coerce_int96_timestamp_unit="us",
        pre_buffer=False,
        read_dictionary=list(dictionaries) or None,
    )


def _read_row_group(
    path: str, metadata: Any, number: int, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield batches of a row group, with dictionaries for few different texts."""
    coded = coded_columns(metadata, _texts_of(metadata, names), _BYTES_OF_A_TEXT, number)
    with _parquet_file(path, metadata, coded) as opened:
        yield from opened.iter_batches(BATCH_ROWS, [number], columns=names, use_threads=False)


def _texts_of(metadata: Any, names: Sequence[str]) -> list[str]:
    """Return those of some columns that are texts."""
    leaves = map(metadata.schema.column, range(metadata.num_columns))
    return [
        leaf.path for leaf in leaves if leaf.path in names and leaf.logical_type.type == "STRING"
    ]


def _field_of_parquet(column: pa.Field, kinds: Mapping[str, tuple[str, str]]) -> pa.Field:
    """Return a column with the type as which Spark reads it.

    ``kinds`` has the physical and the logical type of each leaf by its path.
    """
    physical, logical = kinds.get(column.name, ("", ""))
    inside = [kind for path, kind in kinds.items() if path.startswith(f"{column.name}.")]
    if ("INT96", "NONE") in inside and pa.types.is_nested(column.type):
        # Arrow does not show whether timestamps of 96 bits have a zone.
        raise TypeNotReadError("PARQUET_TYPE_ILLEGAL")
    if physical == "INT96":
        return pa.field(column.name, INSTANT)
    if logical == "ENUM":
        return pa.field(column.name, pa.string())
    if _is_nanoseconds(column):
        return pa.field(column.name, INSTANT if column.type.tz else pa.timestamp("us"))
    return pa.field(column.name, type_as_read(column.type))


def open_orc(file: DataFile, content: Content) -> ColumnarFile:
    """Open an ORC file. Hive leaves empty ones for tasks without records."""
    read = partial(_read_stripe, file, content)
    if not file.bytes:
        return ColumnarFile(file, pa.schema([]), 0, read)
    opened = orc.ORCFile(content(file))
    schema, unread = _as_read(opened.schema, lambda f: pa.field(f.name, _type_in_orc(f)))
    return ColumnarFile(
        file,
        schema,
        opened.nstripes,
        read,
        # Spark writes and reads the Julian calendar for old days, but Arrow does not know it.
        other_calendar=True,
        unread=unread,
    )


def _type_in_orc(field: pa.Field) -> pa.DataType:
    """Return the type as which Spark reads a column of ORC."""
    stored = field.type
    # Spark's note on a column of a type that ORC does not have.
    spark_type = (field.metadata or {}).get(b"spark.sql.catalyst.type", b"").decode()
    if spark_type == "timestamp_ntz" and pa.types.is_int64(stored):
        return pa.timestamp("us")
    if spark_type.startswith("interval"):
        raise TypeNotReadError("INTERVAL")
    if pa.types.is_timestamp(stored):
        if stored.tz:
            raise TypeNotReadError(ORC_INSTANT)
        return INSTANT
    if pa.types.is_struct(stored):
        return pa.struct([pa.field(inner.name, _type_in_orc(inner)) for inner in stored])
    if pa.types.is_map(stored):
        return pa.map_(_type_in_orc(stored.key_field), _type_in_orc(stored.item_field))
    if any(of(stored) for of in LISTS):
        return pa.list_(pa.field("element", _type_in_orc(stored.value_field)))
    return type_as_read(stored)


def _read_stripe(
    file: DataFile, content: Content, number: int, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield batches of a stripe."""
    stripe = orc.ORCFile(content(file)).read_stripe(number, columns=list(names))
    for start in range(0, len(stripe), BATCH_ROWS):
        yield stripe.slice(start, BATCH_ROWS)


def reads_of(
    file: ColumnarFile,
    files: DataFiles,
    columns: Sequence[str],
    inner: Collection[str],
    where: str,
) -> list[Read]:
    """Return the functions that read a file, one for each part.

    ``columns`` are those of all files of the table, in order, because old ORC files of Hive only
    number theirs. ``inner`` has lower-case names of columns that are fields of structs.
    """
    by_name: dict[str, str] = {name.lower(): name for name in file.schema.names}
    if file.schema.names and all(re.fullmatch(r"_col\d+", name) for name in file.schema.names):
        by_name |= zip(map(str.lower, columns), file.schema.names, strict=False)
    constants = {name.lower(): value for name, value in files.constants(file.file.folders).items()}
    stored_fields = _stored_fields(file.schema, by_name, inner)
    return [
        partial(_read_part, file, number, stored_fields, constants, where)
        for number in range(file.parts)
    ]


def _stored_fields(
    schema: pa.Schema, by_name: Mapping[str, str], inner: Collection[str]
) -> dict[str, StructField]:
    """Return the columns of a file, or fields inside them, by the table's lower-case names."""
    types = dict(zip(schema.names, schema.types, strict=True))
    stored_fields = {
        name: StructField(column, column, (), types[column])
        for name, column in by_name.items()
        if name not in inner
    }
    renamed = pa.schema([(name, types[column]) for name, column in by_name.items()])
    return stored_fields | {
        name.lower(): replace(inner_field, column=by_name[inner_field.column])
        for name, inner_field in struct_fields(renamed).items()
        if name.lower() in inner
    }


def _read_part(
    file: ColumnarFile,
    number: int,
    stored_fields: Mapping[str, StructField],
    constants: Mapping[str, pa.Scalar],
    where: str,
    selection: pa.Schema,
) -> Batches:
    """Yield batches of a part with the columns of a schema, null if the file lacks them."""
    columns_read = [
        stored_fields[name.lower()]
        for name in selection.names
        if name.lower() in stored_fields and name.lower() not in constants
    ]
    # At least one column is read, for the number of rows.
    reading = outer_columns(columns_read) or file.schema.names[:1]
    with reading_file(where, file.file.address):
        for batch in file.read(number, reading):
            arrays = []
            for field in selection:
                name = field.name.lower()
                if name in constants:
                    arrays.append(pa.repeat(constants[name], len(batch)))
                elif name in stored_fields:
                    arrays.append(_column(file, batch, stored_fields[name], field, where))
                else:
                    arrays.append(pa.nulls(len(batch), field.type))
            yield pa.RecordBatch.from_arrays(arrays, selection.names)


def _column(
    file: ColumnarFile, batch: pa.RecordBatch, stored: StructField, field: pa.Field, where: str
) -> pa.Array:
    """Return a column in the table's type. Raises DataError if the file's values do not fit."""
    if wider(stored.type, field.type) != field.type:
        raise unreadable(where, file.file.address)
    values = stored.values(batch.column(stored.column))
    if pa.types.is_string(field.type) and values.type == pa.dictionary(pa.int32(), pa.string()):
        return values
    values = values_as_read(values, field.type)
    if file.other_calendar and pa.types.is_temporal(field.type):
        first = _FIRST_DAY if pa.types.is_date(field.type) else _FIRST_TIME.cast(field.type)
        if pc.any(pc.less(values, first)).as_py():
            raise old_calendar(where, stored.name, file.file.address)
    return values
