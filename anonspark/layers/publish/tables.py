"""Writing the metrics tables."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession

from anonspark.engine.files import PublishedFile
from anonspark.engine.spark.arrow import arrow_schema
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.redaction import redact_values

__all__ = ["parquet_file", "write_rows"]


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
