"""Writing the metrics tables."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
from pyarrow import parquet

from anonspark.arrow import arrow_schema
from anonspark.filesystem import FileSystem

__all__ = ["write_rows"]


def write_rows(
    files: FileSystem, rows: Sequence[dict[str, object]], schema: str, path: str
) -> None:
    """Write a small table as one Parquet file, without a Spark job.

    Parameters
    ----------
    files : FileSystem
    rows : sequence of dict
        Missing keys become nulls.
    schema : str
        As DDL.
    path : str
        Directory to write to.
    """
    # Before Spark 4 a DataFrame alone reads DDL; one without rows costs no job.
    columns_schema = arrow_schema(files.spark.createDataFrame([], schema).schema)

    def value(row: dict[str, object], field: pa.Field) -> object:
        found = row.get(field.name)
        is_big = pa.types.is_decimal(field.type) and isinstance(found, int)
        return Decimal(found) if is_big else found  # type: ignore[arg-type]

    columns = [
        pa.array([value(row, field) for row in rows], field.type) for field in columns_schema
    ]
    content = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_arrays(columns, schema=columns_schema), content)
    files.write_bytes(f"{path}/part-00000.parquet", content.getvalue().to_pybytes())
