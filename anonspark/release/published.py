"""Published columns as they are told apart."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.types import TEXT_TYPES


def value_of(name: str, data_type: st.DataType) -> Column:
    """Return a column without a collation: texts are told apart as they are published."""
    column = sf.col(quoted(name))
    return column.cast("string") if isinstance(data_type, TEXT_TYPES) else column
