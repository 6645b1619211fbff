"""Writing the metrics tables."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import cast

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from anonspark.filesystem import FileSystem

__all__ = ["parquet_file", "write_rows"]


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
    files.write_bytes(f"{path}/part-00000.parquet", parquet_file(rows, schema))


def parquet_file(rows: Sequence[dict[str, object]], schema: str) -> bytes:
    """Return a small table as the content of a Parquet file; parameters as :func:`write_rows`."""
    # A struct, as the schema names several columns.
    arrow_schema = to_arrow_schema(cast(StructType, StructType.fromDDL(schema)))

    def value(row: dict[str, object], field: pa.Field) -> object:
        found = row.get(field.name)
        is_big = pa.types.is_decimal(field.type) and isinstance(found, int)
        return Decimal(found) if is_big else found  # type: ignore[arg-type]

    columns = [pa.array([value(row, field) for row in rows], field.type) for field in arrow_schema]
    content = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_arrays(columns, schema=arrow_schema), content)
    written: bytes = content.getvalue().to_pybytes()
    return written
