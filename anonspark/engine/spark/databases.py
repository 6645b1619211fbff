"""Open tables of a database, which one connection of JDBC reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from anonspark.errors import ConfigurationError, DataError
from anonspark.redaction import redact

_FORMAT = "jdbc"
_FETCHED_AT_ONCE = "10000"
"""Rows. Without a number PostgreSQL's driver holds all, and begins no transaction."""


def is_database(data_format: str) -> bool:
    """Return whether a data source is a table of a database.

    >>> is_database("JDBC")
    True
    """
    return data_format.lower() == _FORMAT


def open_database_table(
    spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]
) -> DataFrame:
    """Open a table of the database at one JDBC address. Lazy, but Spark asks for the schema.

    One connection reads the state that the database shows to one statement. Raises
    ConfigurationError if options ask for several connections, which may read different states, and
    DataError if there is not one address.
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
    reader = spark.read.format(_FORMAT).options(**other_options).options(url=url, fetchsize=chosen)
    return reader.load()
