"""Convert Spark's types and tables to Arrow's, and back, on every version of Spark.

The arguments of pyspark's functions for types differ between versions.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as st
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type

# Points in time are in UTC, as in our sessions. From Spark 4.3 on this is an argument.
_POINTS_IN_TIME: Mapping[str, Any] = (
    {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_type).parameters else {}
)

SPARK_TYPE = b"spark_type"
"""Key of a field's metadata: its type of Spark, which Arrow cannot express."""


def arrow_type(data_type: st.DataType) -> pa.DataType:
    """Return Arrow's type for a type of Spark. Points in time are in UTC.

    >>> arrow_type(st.ArrayType(st.LongType()))
    ListType(list<element: int64>)
    """
    return to_arrow_type(data_type, **_POINTS_IN_TIME)


def arrow_schema(schema: st.StructType) -> pa.Schema:
    """Return Arrow's schema for a schema of Spark. Points in time are in UTC.

    What Arrow cannot express, such as the collation of a text, is in the metadata of its field, for
    :func:`spark_schema`.
    """
    return pa.schema(map(_arrow_field, schema))


def _arrow_field(field: st.StructField) -> pa.Field:
    """Return Arrow's field for a column of Spark."""
    try:
        converted = arrow_type(field.dataType)
    except PySparkException:
        # Arrow has no such type. The column cannot be read, but need not be.
        return pa.field(field.name, pa.null(), True, {SPARK_TYPE: field.dataType.json()})
    extra = None if spark_type(converted) == field.dataType else {SPARK_TYPE: field.dataType.json()}
    return pa.field(field.name, converted, field.nullable, extra)


def spark_schema(schema: pa.Schema) -> st.StructType:
    """Return Spark's schema for one of Arrow. The inverse of :func:`arrow_schema`.

    >>> spark_schema(pa.schema({"age": pa.int64()})).simpleString()
    'struct<age:bigint>'
    """
    return st.StructType(
        [st.StructField(field.name, _spark_type_of(field), field.nullable) for field in schema]
    )


def _spark_type_of(field: pa.Field) -> st.DataType:
    """Return Spark's type of a field, by its metadata if these have it."""
    type_json = (field.metadata or {}).get(SPARK_TYPE)
    if type_json is None:
        return spark_type(field.type)
    return st.StructType.fromJson(
        {"fields": [{"name": "", "type": json.loads(type_json), "nullable": True, "metadata": {}}]}
    )[0].dataType


def spark_type(data_type: pa.DataType) -> st.DataType:
    """Return Spark's type for a type of Arrow. A timestamp without a zone stays so.

    >>> spark_type(pa.timestamp("us")).simpleString()
    'timestamp_ntz'
    """
    return from_arrow_type(data_type, prefer_timestamp_ntz=True)


def collect_arrow(table: DataFrame) -> pa.Table:
    """Collect a small table as Arrow: one Spark job, all rows on the driver."""
    if hasattr(table, "toArrow"):
        return table.toArrow()
    # Before Spark 4. Without rows there is no batch with the schema.
    batches = table._collect_as_arrow()  # type: ignore[operator]
    return pa.Table.from_batches(batches, None if batches else arrow_schema(table.schema))
