"""Sensitive values as Python can hold them exactly."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from anonspark.engine.spark.arrow import arrow_type
from anonspark.engine.spark.instants import microseconds
from anonspark.engine.spark.types import TEXT_TYPES


def plain_values(column: Column, data_type: st.DataType) -> tuple[Column, pa.DataType]:
    """Return a column as Python can hold it exactly, and the Arrow type that it has then.

    Parameters
    ----------
    column : Column
        Sensitive values.
    data_type : DataType
        Their type.
    """
    if isinstance(data_type, (st.TimestampType, st.TimestampNTZType)):
        return microseconds(column, data_type), pa.int64()
    if isinstance(data_type, st.DateType):
        return sf.unix_date(column), pa.int32()
    if isinstance(data_type, TEXT_TYPES):
        # Without a collation: values are told apart as they are published.
        return column.cast("string"), pa.string()
    return column, arrow_type(data_type)
