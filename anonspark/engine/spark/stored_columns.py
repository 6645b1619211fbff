"""Columns that files store otherwise than Spark reads them: narrower, without values, or finer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StructField, StructType

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
    found: FileSchemas,
    wanted: WantedColumns | None,
    path_key: str,
) -> DataFrame:
    """Read a table whose columns are narrower or without values in some files, or in nanoseconds.

    Parameters
    ----------
    load : callable
        Takes a schema, and files or None for all of the table.
    schema : StructType
        Of the table, as Spark takes it.
    found : FileSchemas
    wanted : WantedColumns or None
        Columns that are read. None for all of them.
    path_key : str
        What named the paths, for messages.

    Returns
    -------
    DataFrame
        A column has the type that holds its values in all files, text where none has any. If all
        are wanted, those that cannot be read are void, which is logged.

    Raises
    ------
    DataError
        If a wanted column has nanoseconds inside of others.
    """
    stored = found.stored if isinstance(found, ParquetFooters) else [{}] * len(found.schemas)
    read = _types_as_read(schema, found)
    schema = StructType([read.get(field.name.lower(), field) for field in schema])
    by_schema = []
    for one, own in zip(found.schemas, stored, strict=True):
        kinds = {name.lower(): kind for name, kind in own.items()}
        by_schema.append((kinds, _schema_as_stored(schema, one, kinds, read)))
    alike: dict[str, list[int]] = {}
    for at, place in enumerate(found.places):
        alike.setdefault(by_schema[place][1].json(), []).append(at)
    unread: dict[str, tuple[str, str]] = {}
    parts = []
    for numbers in alike.values():
        files = [found.files[at] for at in numbers]
        kinds, as_stored = by_schema[found.places[numbers[0]]]
        part = load(as_stored, files if len(alike) > 1 else None)
        asked = [
            field.name
            for field in schema
            if field.name.lower() in kinds and (wanted is None or wanted.asks(field.name))
        ]
        for name in asked:
            if kinds[name.lower()] == NESTED_NANOSECONDS:
                unread.setdefault(name, (NESTED_NANOSECONDS, files[0]))
        note_nanoseconds(path_key, (name for name in asked if kinds[name.lower()] == NANOSECONDS))
        columns = [_as_read(field, kinds.get(field.name.lower())) for field in schema]
        parts.append(part.select(*columns))
    for name, (kind, file) in unread.items():
        error = type_not_read(f"{path_key}: {redact(file)}", kind, column=name)
        if wanted is not None:
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


def _types_as_read(schema: StructType, found: FileSchemas) -> dict[str, StructField]:
    """Return the columns, by their names in small letters, in the type that files show for them."""
    types: dict[str, list[pa.Field]] = {}
    for own in (own for one in found.schemas for own in one):
        types.setdefault(own.name.lower(), []).append(own)
    read = {}
    for field in schema:
        name = field.name.lower()
        of_files = types.get(name, ())
        known = widest(own.type for own in of_files)
        is_folder = name in map(str.lower, found.folders)
        # Of types that Arrow does not have the metadata tells.
        if known is not None and of_files and not (is_folder or any(o.metadata for o in of_files)):
            known = pa.string() if pa.types.is_null(known) else known
            read[name] = StructField(field.name, spark_type(known))
    return read


def _schema_as_stored(
    schema: StructType, of_file: pa.Schema, kinds: Mapping[str, str], read: Collection[str]
) -> StructType:
    """Return the columns that Spark reads in files that are stored alike."""
    types = {own.name.lower(): own.type for own in of_file}
    fields = []
    for field in schema:
        name = field.name.lower()
        own = field
        if kinds.get(name) == NANOSECONDS:
            own = StructField(field.name, LongType())
        elif name in read and name in types and name not in kinds:
            own = StructField(field.name, spark_type(types[name]))
        if kinds.get(name) != NO_VALUES:
            fields.append(own)
    return StructType(fields)


def _as_read(field: StructField, kind: str | None) -> Column:
    column = sf.col(quoted(field.name))
    if kind == NO_VALUES:
        column = sf.lit(None)
    elif kind == NANOSECONDS:
        name = quoted(field.name)
        # A division alone takes digits off towards 1970.
        micros = sf.expr(f"{name} div 1000 - if({name} % 1000 < 0, 1, 0)")
        column = sf.timestamp_micros(micros)
    return column.cast(field.dataType).alias(field.name)
