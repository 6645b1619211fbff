"""Tables of a database, read through JDBC in one snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anonspark.engine.spark.java_objects import java_class
from anonspark.errors import ConfigurationError, DataError
from anonspark.redaction import redact

_FORMAT = "jdbc"
_POSTGRESQL = "jdbc:postgresql:"

_FETCHED_AT_ONCE = "10000"
"""Rows. Without a number PostgreSQL's driver holds all of them, and begins no transaction."""

_ONE_SNAPSHOT = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET TRANSACTION SNAPSHOT '{name}'"
)


def is_database(data_format: str) -> bool:
    """Return whether a data source is a table of a database."""
    return data_format.lower() == _FORMAT


@dataclass(frozen=True)
class HeldSnapshot:
    """A transaction that keeps a state of a database, for others to read.

    Parameters
    ----------
    connection : object
        Of Java.
    name : str
        By which other transactions take the same state.
    """

    connection: Any
    name: str

    def close(self) -> None:
        """End the transaction."""
        self.connection.close()


def open_database_table(
    spark: SparkSession,
    paths: Sequence[str],
    options: Mapping[str, str],
    held: list[HeldSnapshot],
    *,
    path_key: str,
    section: str,
) -> DataFrame:
    """Open a table of a database.

    Parameters
    ----------
    spark : SparkSession
    paths : sequence of str
        One address of a database, as JDBC has it.
    options : mapping of str to str
        Of Spark's data source.
    held : list of HeldSnapshot
        Gets the transaction that several connections need to read one state; close it once the
        table is read.
    path_key : str
        What named the address, for messages.
    section : str
        The configuration's section with the options.

    Raises
    ------
    ConfigurationError
        If several connections are asked for that cannot read one state.
    DataError
        If there is not one address.

    Notes
    -----
    Lazy; Spark asks the database for the schema. One connection reads what its database shows to
    one statement; several ones read one state only where a transaction can take that of another
    one: of PostgreSQL.
    """
    if len(paths) != 1 or not paths[0].startswith("jdbc:"):
        raise DataError(
            f"{path_key}: found {', '.join(map(redact, paths))} with the format 'jdbc'; expected "
            "one address that begins with 'jdbc:'; the table is named by the option dbtable, or "
            "query"
        )
    (url,) = paths
    given = {name.lower(): value for name, value in options.items()}
    if "url" in given:
        raise ConfigurationError(
            f"{section}.options.url: found it with the format 'jdbc'; expected the address in "
            f"{path_key}; move it there"
        )
    # PostgreSQL's dialect looks for it in small letters alone, and begins no transaction without.
    others = {name: value for name, value in options.items() if name.lower() != "fetchsize"}
    fetched = given.get("fetchsize", "0")
    chosen = _FETCHED_AT_ONCE if not fetched.strip("0 ") else fetched
    reader = spark.read.format(_FORMAT).options(**others).options(url=url, fetchsize=chosen)
    if "partitioncolumn" in given:
        if not url.startswith(_POSTGRESQL):
            raise ConfigurationError(
                f"{section}.options.partitionColumn: found it with a database whose connections "
                "cannot read one state of a table, so that records may be read twice or not at "
                "all; expected it with PostgreSQL alone; read with one connection, or export the "
                "table to Parquet first"
            )
        if "sessioninitstatement" in given:
            raise ConfigurationError(
                f"{section}.options.sessionInitStatement: found it beside partitionColumn; "
                "expected one of them, for all connections have to begin with the same state; "
                "remove one"
            )
        snapshot = _hold_snapshot(spark, url, options)
        held.append(snapshot)
        reader = reader.option("sessionInitStatement", _ONE_SNAPSHOT.format(name=snapshot.name))
    return reader.load()


def _hold_snapshot(spark: SparkSession, url: str, options: Mapping[str, str]) -> HeldSnapshot:
    """Begin a transaction whose state others can take."""
    parameters = java_class(spark, "java.util.HashMap")()
    for name, value in {**options, "url": url}.items():
        parameters.put(name, value)
    to_scala = java_class(spark, "org.apache.spark.api.python.PythonUtils").toScalaMap
    options_class = "org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions"
    jdbc = java_class(spark, options_class)(to_scala(parameters))
    # As Spark's own connections: with its drivers and its ways to log in.
    connection = (
        java_class(spark, "org.apache.spark.sql.jdbc.JdbcDialects")
        .get(url)
        .createConnectionFactory(jdbc)
        .apply(-1)
    )
    try:
        connection.setAutoCommit(False)
        statement = connection.createStatement()
        statement.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        found = statement.executeQuery("SELECT pg_export_snapshot()")
        found.next()
        return HeldSnapshot(connection, str(found.getString(1)))
    except BaseException:
        connection.close()
        raise
