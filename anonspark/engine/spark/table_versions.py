"""Find and read the version of a table of Delta Lake or Apache Iceberg."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from anonspark.config.input import CATALOG_TABLE
from anonspark.engine.spark.filesystem import files_of
from anonspark.errors import ConfigurationError, DataError

# Options of a configuration that choose a version, in small letters. The last two are Iceberg's.
_CHOSEN = frozenset({"versionasof", "timestampasof", "branch", "tag"})

_VERSION = "versionAsOf"
"""Spark's option: a number of Delta's log, or a snapshot of Iceberg."""

_KINDS = ("delta", "iceberg")
_PART = r"(?:\w+|`[^`]+`)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")
_CLAUSES = {"versionasof": "VERSION AS OF", "timestampasof": "TIMESTAMP AS OF"}

_COMMIT = re.compile(r"(\d{20})\.json")


def current_version(
    spark: SparkSession, paths: Sequence[str], data_format: str, options: Mapping[str, str]
) -> dict[str, str]:
    """Return the option that reads a table as it is now, whatever is written to it afterwards.

    Returns nothing if the format has no versions, the options choose one, or the table has none
    yet. Lists Delta's log, or asks its catalog. For Iceberg a job reads one row of metadata. Raises
    Spark's error if the table cannot be opened.
    """
    kind = data_format.lower()
    lower_names = {name.lower() for name in options}
    if kind not in (*_KINDS, CATALOG_TABLE) or lower_names & _CHOSEN or len(paths) != 1:
        return {}
    if kind == CATALOG_TABLE:
        (matched_name,) = paths
        if _versioned_format(spark, matched_name, "input.path") == "delta":
            newest = spark.sql(f"DESCRIBE HISTORY {matched_name} LIMIT 1").head()
            return {} if newest is None else {_VERSION: str(newest["version"])}
        references = spark.table(f"{matched_name}.refs")
    elif kind == "delta":
        # The newest commit is never cleaned up, and its number has 20 digits in every table.
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
    """Open a table by its name in a catalog, as SQL writes it. Lazy.

    The option ``versionAsOf`` or ``timestampAsOf`` chooses a version. SQL names it, as versions of
    Spark before 4 ignore options of the reader. Raises DataError if it is no name, or the table has
    no versions, ConfigurationError if there are other options, and Spark's error if there is no
    such table or version.
    """
    matched_name = ", ".join(paths)
    _versioned_format(spark, matched_name, key)
    selected = {option.lower(): value for option, value in options.items()}
    if len(selected) > 1 or not selected.keys() <= _CLAUSES.keys():
        raise ConfigurationError(
            f"input.options: found {', '.join(options)} for a table of a catalog. Expected "
            "versionAsOf or timestampAsOf. Remove the others"
        )
    if not selected:
        return spark.table(matched_name)
    ((option, value),) = selected.items()
    escaped = value.replace("\\", r"\\").replace("'", r"\'")
    escaped_version = f"{_CLAUSES[option]} '{escaped}'"
    return spark.sql(f"SELECT * FROM {matched_name} {escaped_version}")  # noqa: S608 - matched above


def _versioned_format(spark: SparkSession, name: str, key: str) -> str:
    """Return the format of a table of a catalog.

    Raises DataError if the name is not safe to write into SQL, or the format keeps no versions.
    """
    key = "input.table" if key == "input.path" else key
    if not _NAME.fullmatch(name):
        raise DataError(
            f"{key}: {name} is no name of a table. Expected catalog.schema.table, and "
            "backticks around names with other signs than letters, digits and underscores"
        )
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").where("col_name = 'Provider'")
    # The last row counts: a column may have this name.
    kind = next((str(row["data_type"]).lower() for row in reversed(described.collect())), "")
    if kind not in _KINDS:
        raise DataError(
            f"{key}: {name} is no table of Delta Lake or Iceberg, whose versions let a "
            "continued run and a proof read the same records. Expected such a table. Name the "
            "files of others by input.path, or copy the view to a table"
        )
    return kind
