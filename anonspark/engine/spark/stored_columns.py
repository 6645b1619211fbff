"""Read columns that files store differently: narrower, without values, or in nanoseconds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from itertools import chain

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, LongType, StructField, StructType

from anonspark.engine.data_files import FileSchemas
from anonspark.engine.raw_columns import WantedColumns
from anonspark.engine.reading_errors import log_once, note_nanoseconds, type_not_read
from anonspark.engine.spark.arrow import spark_type
from anonspark.engine.spark.file_schemas import (
    NANOSECONDS,
    NESTED_NANOSECONDS,
    NO_VALUES,
    ParquetFooters,
)
from anonspark.engine.spark.names import quoted
from anonspark.engine.values.file_types import widest
from anonspark.redaction import redact


def read_stored_columns(
    load: Callable[[StructType, Sequence[str] | None], DataFrame],
    schema: StructType,
    listed: FileSchemas,
    selection: WantedColumns | None,
    path_key: str,
) -> DataFrame:
    """Read a table whose files store a column as different types, without values or in nanoseconds.

    ``load`` reads with a schema some files, or all of the table (None). ``schema`` is Spark's. A
    column gets the type that holds its values in all files, or text if it has no values. If no
    columns are selected, those that cannot be read are void, which is logged. Raises DataError if a
    wanted column has nanoseconds inside of others.
    """
    stored = listed.stored if isinstance(listed, ParquetFooters) else [{}] * len(listed.schemas)
    read = _types_as_read(schema, listed)
    schema = StructType([read.get(field.name.lower(), field) for field in schema])
    by_schema = []
    for of_file, kinds_of_file in zip(listed.schemas, stored, strict=True):
        kinds = {name.lower(): kind for name, kind in kinds_of_file.items()}
        by_schema.append((kinds, _schema_as_stored(schema, of_file, kinds, read)))
    # Files whose columns are stored alike are read as one part.
    files_by_form: dict[str, list[int]] = {}
    for index, schema_index in enumerate(listed.schema_of_file):
        files_by_form.setdefault(by_schema[schema_index][1].json(), []).append(index)
    unread: dict[str, tuple[str, str]] = {}
    parts = []
    for indices in files_by_form.values():
        files = [listed.files[index] for index in indices]
        kinds, as_stored = by_schema[listed.schema_of_file[indices[0]]]
        part = load(as_stored, files if len(files_by_form) > 1 else None)
        names = [
            field.name
            for field in schema
            if field.name.lower() in kinds and (selection is None or selection.asks(field.name))
        ]
        for name in names:
            if kinds[name.lower()] == NESTED_NANOSECONDS:
                unread.setdefault(name, (NESTED_NANOSECONDS, files[0]))
        note_nanoseconds(path_key, (name for name in names if kinds[name.lower()] == NANOSECONDS))
        columns = [_as_read(field, kinds.get(field.name.lower())) for field in schema]
        parts.append(part.select(*columns))
    for name, (kind, file) in unread.items():
        error = type_not_read(f"{path_key}: {redact(file)}", kind, column=name)
        if selection is not None:
            raise error
        log_once(logging.WARNING, str(error))
    table = reduce(DataFrame.union, parts)
    nothing = sf.lit(None)
    return table.select(
        *(
            (nothing if field.name in unread else sf.col(quoted(field.name))).alias(field.name)
            for field in schema
        )
    )


def _types_as_read(schema: StructType, listed: FileSchemas) -> dict[str, StructField]:
    """Return the columns, by lower-case name, in types that hold the values of all files."""
    columns: dict[str, list[pa.Field]] = {}
    for column in chain.from_iterable(listed.schemas):
        columns.setdefault(column.name.lower(), []).append(column)
    for name in listed.folders:
        columns.pop(name.lower(), None)
    read = {}
    for field in schema:
        stored = columns.get(field.name.lower(), ())
        joined = widest(column.type for column in stored)
        # Metadata mark types that Arrow does not have.
        if stored and joined is not None and not any(column.metadata for column in stored):
            joined = pa.string() if pa.types.is_null(joined) else joined
            read[field.name.lower()] = StructField(field.name, spark_type(joined))
    return read


def _schema_as_stored(
    schema: StructType, of_file: pa.Schema, kinds: Mapping[str, str], read: Collection[str]
) -> StructType:
    """Return the columns to read in files that store them alike, with the types that they store."""
    stored: dict[str, DataType] = {
        column.name.lower(): spark_type(column.type)
        for column in of_file
        if column.name.lower() in {*read}.difference(kinds)
    }
    stored |= {name: LongType() for name, kind in kinds.items() if kind == NANOSECONDS}
    return StructType(
        [
            StructField(field.name, stored.get(field.name.lower(), field.dataType))
            for field in schema
            if kinds.get(field.name.lower()) != NO_VALUES
        ]
    )


def _as_read(field: StructField, kind: str | None) -> Column:
    """Convert a column from the kind in which it is stored."""
    column = sf.col(quoted(field.name))
    if kind == NO_VALUES:
        column = sf.lit(None)
    elif kind == NANOSECONDS:
        # A division alone would round towards 1970.
        micros = sf.expr(
            f"{quoted(field.name)} div 1000 - if({quoted(field.name)} % 1000 < 0, 1, 0)"
        )
        column = sf.timestamp_micros(micros)
    return column.cast(field.dataType).alias(field.name)
