"""Spark's types as Arrow's."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import types as st

from anonspark.engine.spark.arrow import arrow_schema, arrow_type, spark_type

PAIRS = [
    (st.BooleanType(), pa.bool_()),
    (st.ByteType(), pa.int8()),
    (st.ShortType(), pa.int16()),
    (st.IntegerType(), pa.int32()),
    (st.LongType(), pa.int64()),
    (st.FloatType(), pa.float32()),
    (st.DoubleType(), pa.float64()),
    (st.DecimalType(38, 0), pa.decimal128(38, 0)),
    (st.StringType(), pa.string()),
    (st.BinaryType(), pa.binary()),
    (st.DateType(), pa.date32()),
    (st.TimestampType(), pa.timestamp("us", "UTC")),
    (st.TimestampNTZType(), pa.timestamp("us")),
    (st.ArrayType(st.TimestampType()), pa.list_(pa.timestamp("us", "UTC"))),
]


@pytest.mark.parametrize(("spark", "arrow"), PAIRS, ids=str)
def test_types_there_and_back(spark: st.DataType, arrow: pa.DataType) -> None:
    assert arrow_type(spark) == arrow
    assert spark_type(arrow) == spark


def test_schema() -> None:
    schema = st.StructType().add("seen", "timestamp", False).add("name", "string")
    assert arrow_schema(schema) == pa.schema(
        [pa.field("seen", pa.timestamp("us", "UTC"), False), pa.field("name", pa.string())]
    )
