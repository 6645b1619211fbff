"""Open the input, and find the column of each attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from anonspark.config import Configuration
from anonspark.engine.raw_columns import UnreadType, WantedColumns, require_distinct, require_read
from anonspark.engine.spark.arrow import arrow_schema, arrow_type
from anonspark.engine.spark.errors import opening_table
from anonspark.engine.spark.fields import with_fields
from anonspark.engine.spark.tables import OpenedTable, open_table, restricted
from anonspark.engine.values.column_plans import require_columns
from anonspark.errors import ConfigurationError, DataError
from anonspark.redaction import redact

_KEY = "attributes."
_JDBC = "jdbc"
_FETCHED_AT_ONCE = "10000"
"""Rows. Without a number PostgreSQL's driver holds all of them, and begins no transaction."""


def open_input(
    spark: SparkSession, configuration: Configuration, *, skips_malformed: bool = False
) -> OpenedTable:
    """Open the input, in which each file has to have every attribute.

    See :func:`anonspark.engine.spark.tables.open_table`, and for databases
    :func:`_open_database_table`.
    """
    options = configuration.input
    selection = WantedColumns.of(configuration, skips_malformed=skips_malformed)
    if options.format.lower() == _JDBC:
        with opening_table(options.paths, options.format, "input.path", "input"):
            frame = _open_database_table(spark, options.paths, options.options)
            return OpenedTable(restricted(frame, selection))
    return open_table(
        spark,
        options.paths,
        options.format,
        options.options,
        path_key="input.path",
        section="input",
        selection=selection,
    )


def _open_database_table(
    spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]
) -> DataFrame:
    """Open a table of the database at one JDBC address. Lazy, but Spark asks for the schema.

    One connection reads the state that the database shows to one statement. Raises
    ConfigurationError for options that ask for several connections, which may read different
    states, and DataError unless there is one address.
    """
    if len(paths) != 1 or not paths[0].startswith("jdbc:"):
        raise DataError(
            f"input.path: found {', '.join(map(redact, paths))} with the format 'jdbc'. Expected "
            "one address that begins with 'jdbc:'. The table is named by the option dbtable, or "
            "query"
        )
    (url,) = paths
    values = {name.lower(): value for name, value in options.items()}
    if "url" in values:
        raise ConfigurationError(
            "input.options.url: found it with the format 'jdbc'. Expected the address in "
            "input.path. Move it there"
        )
    if "partitioncolumn" in values:
        raise ConfigurationError(
            "input.options.partitionColumn: found it, but several connections may read a "
            "record twice or not at all while others write to the table. Remove it to read with "
            "one connection, or export the table to Parquet first"
        )
    # PostgreSQL's dialect needs the option in small letters: else it begins no transaction.
    other_options = {name: value for name, value in options.items() if name.lower() != "fetchsize"}
    fetched = values.get("fetchsize", "0")
    chosen = _FETCHED_AT_ONCE if not fetched.strip("0 ") else fetched
    reader = spark.read.format(_JDBC).options(**other_options).options(url=url, fetchsize=chosen)
    return reader.load()


def select_attributes(table: DataFrame, configuration: Configuration) -> DataFrame:
    """Select the columns of the attributes, each once, in the order of the table.

    Fields of structs count as columns. Raises DataError if columns are missing or ambiguous, or
    have values that no task can read.
    """
    table = with_fields(table)
    require_distinct(table.columns, configuration.attributes, "input")
    schema = _with_unread(table.schema)
    require_columns(schema, configuration)
    require_read(schema, set(configuration.attributes).difference(configuration.identifiers), _KEY)
    names = {*configuration.attributes, *configuration.privacy.unit}
    # By position: a setting of the session decides how names are resolved.
    numbered = [f"column_{index}" for index in range(len(table.columns))]
    # Identifiers of types that cannot be read are null: they are not counted.
    null = sf.lit(None).cast("string")
    chosen = [
        (null if isinstance(field.type, UnreadType) else sf.col(number)).alias(field.name)
        for number, field in zip(numbered, schema, strict=True)
        if field.name in names
    ]
    return table.toDF(*numbered).select(*chosen)


def _with_unread(schema: st.StructType) -> pa.Schema:
    """Return Arrow's schema, with types that no task can read as :class:`UnreadType`."""
    fields = [
        pa.field(field.name, UnreadType(field.dataType.simpleString()))
        if _has_unread(field.dataType)
        else column
        for field, column in zip(schema, arrow_schema(schema), strict=True)
    ]
    return pa.schema(fields)


def _has_unread(data_type: st.DataType) -> bool:
    """Return whether a type, or a type inside it, can neither be an Arrow column nor be stored."""
    match data_type:
        case st.UserDefinedType():
            return True
        case st.ArrayType():
            return _has_unread(data_type.elementType)
        case st.MapType():
            return _has_unread(data_type.keyType) or _has_unread(data_type.valueType)
        case st.StructType():
            return any(_has_unread(field.dataType) for field in data_type)
        case st.DecimalType():
            return bool(data_type.scale < 0)
        case _:
            try:
                arrow_type(data_type)
            except PySparkException:
                return True
            return False
