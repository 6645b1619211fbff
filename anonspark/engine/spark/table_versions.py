"""Open tables by their names, at a version where Delta Lake or Apache Iceberg keep several."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from anonspark.config.input import CATALOG_TABLE
from anonspark.engine.spark.filesystem import files_of
from anonspark.errors import ConfigurationError, DataError

# Options by which a configuration says itself what to read, as they are compared; the last ones are
# Iceberg's.
_CHOSEN = frozenset({"versionasof", "timestampasof", "branch", "tag"})

_VERSION = "versionAsOf"
"""Spark's option: a number of Delta's log, or a snapshot of Iceberg."""

KINDS = ("delta", "iceberg")
"""Formats whose tables keep versions."""

_PART = r"(?:\w+|`[^`]+`)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")
_CLAUSES = {"versionasof": "VERSION AS OF", "timestampasof": "TIMESTAMP AS OF"}

_COMMIT = re.compile(r"(\d{20})\.json")


def current_version(
    spark: SparkSession, paths: Sequence[str], data_format: str, options: Mapping[str, str]
) -> dict[str, str]:
    """Return the option that reads a table as it is now, whatever is written to it afterwards.

    Parameters
    ----------
    spark : SparkSession
    paths : sequence of str
        A table of these formats has one.
    data_format : str
        Of the data source.
    options : mapping of str to str
        Of the data source.

    Returns
    -------
    dict of str to str
        Empty where the format keeps no versions, the options name one, or the table has none yet.

    Raises
    ------
    PySparkException, Py4JError
        If the table cannot be opened.

    Notes
    -----
    Of Delta its log is listed, or its catalog is asked. Of Iceberg a job reads one row of metadata.
    """
    kind = data_format.lower()
    lower_names = {name.lower() for name in options}
    if kind not in (*KINDS, CATALOG_TABLE) or lower_names & _CHOSEN or len(paths) != 1:
        return {}
    if kind == CATALOG_TABLE:
        (matched_name,) = paths
        kind = table_kind(spark, matched_name, "input.path")
        if kind not in KINDS:
            return {}
        if kind == "delta":
            newest = spark.sql(f"DESCRIBE HISTORY {matched_name} LIMIT 1").head()
            return {} if newest is None else {_VERSION: str(newest["version"])}
        references = spark.table(f"{matched_name}.refs")
    elif kind == "delta":
        # The newest commit is never cleaned up; its number has as many digits in every table.
        listed = files_of(spark).children(f"{paths[0].rstrip('/')}/_delta_log")
        names = (_COMMIT.fullmatch(commit.rpartition("/")[2]) for commit in listed)
        commits = [int(name[1]) for name in names if name is not None]
        return {_VERSION: str(max(commits))} if commits else {}
    else:
        references = spark.read.format(data_format).options(**options).load(f"{paths[0]}#refs")
    row = references.where(sf.col("name") == "main").select("snapshot_id").head()
    return {} if row is None else {_VERSION: str(row.snapshot_id)}


def open_catalog_table(
    spark: SparkSession, paths: Sequence[str], options: Mapping[str, str], key: str
) -> DataFrame:
    """Open a table by its name in a catalog.

    Parameters
    ----------
    spark : SparkSession
    paths : sequence of str
        One name, as SQL writes it.
    options : mapping of str to str
        ``versionAsOf`` or ``timestampAsOf``. Without them, the table as it is now.
    key : str
        What named the table, for messages.

    Raises
    ------
    DataError
        If it is no name.
    ConfigurationError
        If there are other options.
    PySparkException
        If there is no such table or version.

    Notes
    -----
    Lazy. Options of Spark's reader would be ignored by versions before 4, so SQL names the version.
    """
    matched_name = ", ".join(paths)
    table_kind(spark, matched_name, key)
    selected = {option.lower(): value for option, value in options.items()}
    if len(selected) > 1 or not selected.keys() <= _CLAUSES.keys():
        raise ConfigurationError(
            f"input.options: found {', '.join(options)} for a table of a catalog. Expected "
            "versionAsOf or timestampAsOf. Remove the others"
        )
    if not selected:
        return spark.table(matched_name)
    ((option, value),) = selected.items()
    escaped_version = f"{_CLAUSES[option]} {sql_text(value)}"
    return spark.sql(f"SELECT * FROM {matched_name} {escaped_version}")  # noqa: S608 - matched above


def table_kind(spark: SparkSession, matched_name: str, key: str) -> str:
    """Return the format of a table of a catalog, in small letters, empty of a view.

    Raises
    ------
    DataError
        If it is no name: nothing else may come into SQL.
    PySparkException
        If there is no such table.
    """
    key = "input.table" if key == "input.path" else key
    if not _NAME.fullmatch(matched_name):
        raise DataError(
            f"{key}: {matched_name} is no name of a table. Expected catalog.schema.table, and "
            "backticks around names with other signs than letters, digits and underscores"
        )
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {matched_name}").where("col_name = 'Provider'")
    # The last one: a column may have this name.
    return next((str(row["data_type"]).lower() for row in reversed(described.collect())), "")


def sql_text(value: str) -> str:
    r"""Return a literal of SQL.

    >>> print(sql_text("it's"))
    'it\'s'
    """
    escaped = value.replace("\\", r"\\").replace("'", r"\'")
    return f"'{escaped}'"
