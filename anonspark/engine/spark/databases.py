"""Tables of a database, read through one connection of JDBC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from anonspark.errors import ConfigurationError, DataError
from anonspark.redaction import redact

_FORMAT = "jdbc"
_FETCHED_AT_ONCE = "10000"
"""Rows. Without a number PostgreSQL's driver holds all of them, and begins no transaction."""


def is_database(data_format: str) -> bool:
    """Return whether a data source is a table of a database."""
    return data_format.lower() == _FORMAT


def open_database_table(
    spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]
) -> DataFrame:
    """Open a table of a database.

    Parameters
    ----------
    spark : SparkSession
    paths : sequence of str
        One address of a database, as JDBC has it.
    options : mapping of str to str
        Of Spark's data source.

    Raises
    ------
    ConfigurationError
        If the options ask for several connections, which cannot be proven to read one state.
    DataError
        If there is not one address.

    Notes
    -----
    Lazy. Spark asks the database for the schema. One connection reads what its database shows to
    one statement.
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
    # PostgreSQL's dialect looks for it in small letters alone, and begins no transaction without.
    others = {name: value for name, value in options.items() if name.lower() != "fetchsize"}
    fetched = values.get("fetchsize", "0")
    chosen = _FETCHED_AT_ONCE if not fetched.strip("0 ") else fetched
    reader = spark.read.format(_FORMAT).options(**others).options(url=url, fetchsize=chosen)
    return reader.load()
