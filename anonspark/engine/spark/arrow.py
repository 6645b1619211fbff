"""Spark's types and tables as Arrow's, alike on every version of Spark.

pyspark translates the types in functions whose arguments differ between its versions.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as st
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type

__all__ = ["arrow_schema", "arrow_type", "collect_arrow", "spark_type"]

# Points in time are in UTC, as in our sessions; from Spark 4.3 on this has to be said.
_POINTS_IN_TIME: Mapping[str, Any] = (
    {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_type).parameters else {}
)


def arrow_type(data_type: st.DataType) -> pa.DataType:
    """Return Arrow's type for a type of Spark; points in time are in UTC."""
    return to_arrow_type(data_type, **_POINTS_IN_TIME)


def arrow_schema(schema: st.StructType) -> pa.Schema:
    """Return Arrow's schema for a schema of Spark; points in time are in UTC."""
    return pa.schema(
        pa.field(field.name, arrow_type(field.dataType), field.nullable) for field in schema
    )


def spark_type(data_type: pa.DataType) -> st.DataType:
    """Return Spark's type for a type of Arrow; a timestamp without a zone stays without."""
    return from_arrow_type(data_type, prefer_timestamp_ntz=True)


def collect_arrow(table: DataFrame) -> pa.Table:
    """Collect a small table as Arrow: one Spark job, all rows on the driver."""
    if hasattr(table, "toArrow"):
        return table.toArrow()
    # Before Spark 4. A table without rows has no batches to tell its schema from.
    batches = table._collect_as_arrow()  # type: ignore[operator]
    return pa.Table.from_batches(batches, None if batches else arrow_schema(table.schema))
