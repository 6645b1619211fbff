"""Opening tables beside a release: its original, a population, releases of other tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from pyspark.sql import DataFrame, SparkSession

from anonspark.engine.raw_columns import WantedColumns
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.tables import open_table
from anonspark.release.manifest import Manifest

_FORMATS = {".csv": "csv", ".json": "json", ".orc": "orc", ".avro": "avro", ".parquet": "parquet"}

_CSV_OPTIONS = {"header": "true", "inferSchema": "true"}


def open_original(
    spark: SparkSession, path: str, manifest: Manifest, key: str = "--original"
) -> DataFrame:
    """Open the table that a release was made of.

    Parameters
    ----------
    spark : SparkSession
    path : str
        Any Hadoop URI.
    manifest : Manifest
        Of the release; ``configuration.input`` tells format and options, unless the path's name
        ends like a file of another format.
    key : str
        What named the path, for messages.

    Raises
    ------
    DataError, ConfigurationError
        As :func:`anonspark.engine.spark.tables.open_table`.

    Notes
    -----
    Lazy; CSV and JSON may take a job to infer their types.
    """
    described = manifest.input
    told = _format_of_name(path)
    if not described or (told is not None and told != described["format"]):
        return open_by_suffix(spark, path, key)
    wanted = WantedColumns(
        {name: one.get("role") != "identifier" for name, one in manifest.attributes.items()},
        described.get("missing_columns", "error"),
    )
    return open_table(
        spark,
        [path],
        described["format"],
        dict(described.get("options", {})),
        path_key=key,
        wanted=wanted,
    )


def open_by_suffix(
    spark: SparkSession, path: str, key: str, texts: Sequence[str] = ()
) -> DataFrame:
    """Open a table by how its file's name ends, Parquet where that tells nothing.

    Parameters
    ----------
    spark : SparkSession
    path : str
        A file or directory; CSV files have a header, and their types are inferred.
    key : str
        What named the path, for messages.
    texts : sequence of str
        Columns of a CSV file that are read as they are written, but for bounds.

    Raises
    ------
    DataError, ConfigurationError
        As :func:`anonspark.engine.spark.tables.open_table`.
    """
    told = _format_of_name(path)
    if told is None:
        inside = FileSystem(spark).matches(f"{path.rstrip('/')}/*")
        told = next(filter(None, map(_format_of_name, inside)), "parquet")
    if told != "csv":
        return open_table(spark, [path], told, {}, path_key=key)
    table = open_table(spark, [path], told, _CSV_OPTIONS, path_key=key)
    if not texts:
        return table
    schema = ", ".join(
        f"{quoted(column.name)} "
        f"{'string' if _is_label(column.name, texts) else column.dataType.simpleString()}"
        for column in table.schema
    )
    return open_table(spark, [path], told, {"header": "true"}, path_key=key, schema=schema)


def _is_label(column: str, texts: Sequence[str]) -> bool:
    """Return whether a column is read as text; bounds are compared as what they are."""
    return column in texts and not (
        column.endswith(("_min", "_max", "_missing")) and column.rpartition("_")[0] not in texts
    )


def _format_of_name(path: str) -> str | None:
    name = PurePosixPath(path.rstrip("/")).name.lower()
    suffixes = PurePosixPath(name.removesuffix(".gz").removesuffix(".bz2")).suffixes
    return _FORMATS.get(suffixes[-1]) if suffixes else None
