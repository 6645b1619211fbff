"""Published columns as they are told apart, and small tables of aggregates on the driver."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from anonspark.columns import quoted
from anonspark.kinds import TEXT_TYPES

__all__ = ["collect_arrow", "value_of"]


def value_of(name: str, data_type: st.DataType) -> Column:
    """Return a column without a collation: texts are told apart as they are published."""
    column = sf.col(quoted(name))
    return column.cast("string") if isinstance(data_type, TEXT_TYPES) else column


def collect_arrow(table: DataFrame) -> pa.Table:
    """Collect a small table as Arrow."""
    if hasattr(table, "toArrow"):
        return table.toArrow()
    # Before Spark 4.
    return pa.Table.from_batches(table._collect_as_arrow())  # type: ignore[operator]
