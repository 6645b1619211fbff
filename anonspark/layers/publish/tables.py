"""Writing the metrics tables."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from anonspark.engine.spark.arrow import arrow_schema
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.layers.publish.files import PublishedFile, read_files
from anonspark.layers.publish.staging import Staging
from anonspark.redaction import redact_values

__all__ = ["parquet_file", "write_rows", "write_table"]

# Whose files stand alone, so that they may have other names.
_PLAIN_FORMATS = ("parquet", "orc")


def write_rows(
    files: FileSystem,
    rows: Sequence[dict[str, object]],
    schema: str,
    release: str,
    directory: str,
) -> PublishedFile:
    """Write a small table as one Parquet file, without a Spark job.

    Parameters
    ----------
    files : FileSystem
    rows : sequence of dict
        Missing keys become nulls; credentials in texts are redacted.
    schema : str
        As DDL.
    release : str
        The release's directory.
    directory : str
        To write to, relative to the release's.

    Returns
    -------
    PublishedFile
    """
    content = parquet_file(files.spark, rows, schema)
    path = f"{directory}/part-00000.parquet"
    files.write_bytes(f"{release}/{path}", content)
    return PublishedFile(path, len(content), len(rows), hashlib.sha256(content).hexdigest())


def write_table(
    table: DataFrame, data_format: str, files: FileSystem, staging: Staging, directory: str
) -> list[PublishedFile]:
    """Write a table by Spark's own writer, and list what it has written.

    Parameters
    ----------
    table : DataFrame
        Its partitions become files, in their order, whose rows keep theirs.
    data_format : str
        A Spark data source.
    files : FileSystem
    staging : Staging
        Of the release.
    directory : str
        To write to, relative to the release's; must not exist.

    Returns
    -------
    list of PublishedFile

    Notes
    -----
    The job that makes the table, and two that read what was written: one for the hashes, one for
    the rows of each file.
    """
    path = f"{staging.release}/{directory}"
    if data_format not in _PLAIN_FORMATS:
        # Its files may name each other.
        table.write.format(data_format).save(path)
    else:
        aside = f"{staging.written}/{directory}"
        table.write.format(data_format).save(aside)
        _take_over(files, aside, path, data_format)
    counted = (
        files.spark.read.format(data_format)
        .load(path)
        .groupBy(sf.input_file_name().alias("file"))
        .count()
        .collect()
    )
    rows = {unquote(row.file).rpartition("/")[2]: row["count"] for row in counted}
    found = read_files(files, path)
    return [replace(one, path=f"{directory}/{one.path}", rows=rows.get(one.path)) for one in found]


def _take_over(files: FileSystem, aside: str, path: str, data_format: str) -> None:
    """Move the files of a table, under names that tell nothing but their order.

    Left behind are the marks of a finished job, for a release has one of its own.
    """
    names = [name for name, _ in files.files_below(aside) if name.startswith("part-")]
    # As Spark names them: part-00000-...
    names.sort(key=lambda name: (int(name.split("-")[1]), name))
    files.make_directory(path)
    for number, name in enumerate(names):
        files.rename(f"{aside}/{name}", f"{path}/part-{number:05d}.{data_format}")
    files.delete(aside)


def parquet_file(spark: SparkSession, rows: Sequence[dict[str, object]], schema: str) -> bytes:
    """Return a small table as the content of a Parquet file; parameters as :func:`write_rows`."""
    # Before Spark 4 a DataFrame alone reads DDL; one without rows costs no job.
    columns_schema = arrow_schema(spark.createDataFrame([], schema).schema)

    def value(row: dict[str, object], field: pa.Field) -> object:
        found = redact_values(row.get(field.name))
        is_big = pa.types.is_decimal(field.type) and isinstance(found, int)
        return Decimal(found) if is_big else found

    columns = [
        pa.array([value(row, field) for row in rows], field.type) for field in columns_schema
    ]
    content = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_arrays(columns, schema=columns_schema), content)
    written: bytes = content.getvalue().to_pybytes()
    return written
