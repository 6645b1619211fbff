"""The format that published records are written in, and read back."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from anonspark.errors import ConfigurationError


def open_published(spark: SparkSession, release: str, data_format: str) -> DataFrame:
    """Open the records of a release.

    Parameters
    ----------
    spark : SparkSession
    release : str
        Its directory.
    data_format : str
        ``output.format``.
    """
    return spark.read.format(data_format).load(f"{release.rstrip('/')}/data")


def require_known_format(spark: SparkSession, data_format: str) -> None:
    """Check, before any work, that Spark can write a format.

    Raises
    ------
    ConfigurationError
    """
    lookup = spark._jvm.org.apache.spark.sql.execution.datasources.DataSource  # type: ignore[union-attr]
    try:
        lookup.lookupDataSource(data_format, spark._jsparkSession.sessionState().conf())
    except Py4JError as error:
        raise ConfigurationError(
            f"output.format: this Spark has no data source {data_format!r}; expected parquet, orc "
            "or the name of one whose package Spark was started with"
        ) from error
