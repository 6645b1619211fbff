"""Spark's types as Arrow's, and batches in the form of a schema."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import types as st

from anonspark.engine.spark.arrow import arrow_schema, arrow_type, spark_type
from anonspark.engine.values.batches import conform

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


SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string())])


@pytest.mark.parametrize("dictionaries", [False, True])
def test_values_are_the_same(dictionaries: bool) -> None:
    batch = pa.record_batch(
        {
            "text": pa.array(["a", None, "a"]).dictionary_encode(),
            "other": pa.array([1, 2, 3]),
            "number": pa.array([4, 5, 6], pa.int32()),
        }
    )
    found = conform(batch, SCHEMA, dictionaries=dictionaries)
    assert found.schema.names == ["number", "text"]
    assert found.column(0).equals(pa.array([4, 5, 6]))
    assert pa.types.is_dictionary(found.column(1).type) == dictionaries
    assert found.column(1).to_pylist() == ["a", None, "a"]
