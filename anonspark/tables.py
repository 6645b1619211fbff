"""Opening tables, whatever their format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from anonspark.errors import ConfigurationError, DataError
from anonspark.filesystem import FileSystem
from anonspark.spark_errors import condition_of

__all__ = ["open_table"]


def open_table(
    spark: SparkSession,
    paths: Sequence[str],
    data_format: str,
    options: Mapping[str, str],
    *,
    path_key: str,
    section: str | None = None,
    schema: str | None = None,
) -> DataFrame:
    """Open a table.

    Parameters
    ----------
    spark : SparkSession
    paths : sequence of str
    data_format : str
        Spark data source.
    options : mapping of str to str
        Of the data source.
    path_key : str
        What named the paths, for messages.
    section : str or None
        The configuration's section with format and options; None where they were found otherwise.
    schema : str or None
        Names and types of the columns, as DDL; None reads or infers them.

    Returns
    -------
    DataFrame
        Lazy; formats without a schema (CSV, JSON) may take a job to infer it.

    Raises
    ------
    DataError
        If a path does not exist or cannot be opened in this format.
    ConfigurationError
        If Spark does not know the format.
    """
    files = FileSystem(spark)
    problems = [
        f"{path_key}: nothing is at {path}; check the path, and that the cluster can reach it"
        for path in paths
        if not files.matches(path)
    ]
    if problems:
        raise DataError(*problems)
    # A malformed record must not become a row of nulls unseen.
    defaults = {"mode": "FAILFAST"} if data_format in ("csv", "json") else {}
    if data_format == "csv":
        # Where columns are pruned, a record with too few or too many of them passes for sound.
        defaults["columnPruning"] = "false"
    try:
        reader = spark.read.format(data_format).options(**defaults).options(**options)
        if schema is not None:
            reader = reader.schema(schema)
        return reader.load(list(paths))
    except AnalysisException as error:
        remedy = "its format" if section is None else f"{section}.format and {section}.options"
        raise DataError(
            f"{path_key}: cannot read {', '.join(paths)} as {data_format} "
            f"({condition_of(error) or 'no reason given'}); check {remedy}"
        ) from error
    except Py4JError as error:
        if "DATA_SOURCE_NOT_FOUND" not in str(error):
            raise
        where = path_key if section is None else f"{section}.format"
        raise ConfigurationError(
            f"{where}: this Spark has no data source {data_format!r}; expected parquet, "
            "csv, orc, json or the name of one whose package Spark was started with"
        ) from error
