"""Columns that Parquet files store otherwise than Spark reads them: without values, or finer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StringType, StructField, StructType

from anonspark.engine.raw_columns import WantedColumns
from anonspark.engine.reading_errors import log_once, note_nanoseconds, type_not_read
from anonspark.engine.spark.arrow import spark_schema
from anonspark.engine.spark.file_schemas import (
    NANOSECONDS,
    NESTED_NANOSECONDS,
    NO_VALUES,
    ParquetFooters,
)
from anonspark.engine.spark.names import quoted
from anonspark.errors import DataError
from anonspark.redaction import redact


def read_stored_columns(
    load: Callable[[StructType, Sequence[str] | None], DataFrame],
    schema: StructType,
    footers: ParquetFooters,
    wanted: WantedColumns | None,
    path_key: str,
) -> DataFrame:
    """Read a table whose columns have no values in some files, or times in nanoseconds.

    Parameters
    ----------
    load : callable
        Takes a schema, and files or None for all of the table.
    schema : StructType
        Of the table, as Spark takes it.
    footers : ParquetFooters
    wanted : WantedColumns or None
        Columns that are read. None for all of them.
    path_key : str
        What named the paths, for messages.

    Returns
    -------
    DataFrame
        A column without values has the type of other files, else text. If all are wanted, those
        that cannot be read are void, which is logged.

    Raises
    ------
    DataError
        If a wanted column has nanoseconds inside of others, or files in folders that name columns
        differ in how columns are stored.
    """
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for file, place in zip(footers.files, footers.places, strict=True):
        alike.setdefault(tuple(sorted(footers.stored[place].items())), []).append(file)
    if footers.folders and len(alike) > 1:
        raise DataError(
            f"{path_key}: {redact(alike.popitem()[1][0])} has other types of columns than files "
            "in other folders, or columns without values. Expected the same in all files. Write "
            "them anew, or set execution.engine to local"
        )
    schema = _schema_as_read(schema, footers)
    unread: dict[str, tuple[str, str]] = {}
    parts = []
    for kinds, files in alike.items():
        stored = {name.lower(): kind for name, kind in kinds}
        part = load(_schema_as_stored(schema, stored), files if len(alike) > 1 else None)
        asked = [
            field.name
            for field in schema
            if field.name.lower() in stored and (wanted is None or wanted.asks(field.name))
        ]
        kinds_of = {name: stored[name.lower()] for name in asked}
        for name, kind in kinds_of.items():
            if kind == NESTED_NANOSECONDS:
                unread.setdefault(name, (kind, files[0]))
        note_nanoseconds(path_key, (name for name in asked if kinds_of[name] == NANOSECONDS))
        columns = [_as_read(field, stored.get(field.name.lower())) for field in schema]
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


def _schema_as_read(schema: StructType, footers: ParquetFooters) -> StructType:
    """Return the columns of a table with the types that they are read as."""
    stored = {name.lower() for kinds in footers.stored for name in kinds}
    stored -= {name.lower() for name in footers.folders}
    types = {
        field.name.lower(): own.dataType
        for one in reversed(footers.schemas)
        for field, own in zip(one, spark_schema(one), strict=True)
        # Of types that Arrow does not have the metadata tells.
        if field.metadata or not pa.types.is_null(field.type)
    }
    return StructType(
        [
            StructField(field.name, types.get(field.name.lower(), StringType()))
            if field.name.lower() in stored
            else field
            for field in schema
        ]
    )


def _schema_as_stored(schema: StructType, stored: Mapping[str, str]) -> StructType:
    """Return the columns that Spark reads in files that are stored alike."""
    kinds = [stored.get(field.name.lower()) for field in schema]
    return StructType(
        [
            StructField(field.name, LongType()) if kind == NANOSECONDS else field
            for field, kind in zip(schema, kinds, strict=True)
            if kind != NO_VALUES
        ]
    )


def _as_read(field: StructField, kind: str | None) -> Column:
    column = sf.col(quoted(field.name))
    if kind == NO_VALUES:
        column = sf.lit(None).cast(field.dataType)
    elif kind == NANOSECONDS:
        name = quoted(field.name)
        # A division alone takes digits off towards 1970.
        micros = sf.expr(f"{name} div 1000 - if({name} % 1000 < 0, 1, 0)")
        column = sf.timestamp_micros(micros).cast(field.dataType)
    return column.alias(field.name)
