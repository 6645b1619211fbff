"""Add fields of structs as columns of a DataFrame (:mod:`anonspark.engine.struct_fields`)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from anonspark.engine.spark.arrow import arrow_schema, spark_schema
from anonspark.engine.struct_fields import struct_fields, with_field, with_struct_fields


def with_fields(table: DataFrame) -> DataFrame:
    """Add the fields of a table's structs as columns. Spark only reads those that are selected."""
    # By position: a setting of the session decides how names are resolved.
    numbered = [f"column_{index}" for index in range(len(table.columns))]
    if (text := table.schema.json()).count('"void"'):
        # Like in files, columns without values are texts, and integers inside of others.
        typed = json.loads(text.replace('ype":"void"', 'ype":"integer"'))
        types = [
            "string" if isinstance(field.dataType, st.NullType) else column.dataType
            for field, column in zip(table.schema, st.StructType.fromJson(typed), strict=True)
        ]
        cast = [sf.col(name).cast(kind) for name, kind in zip(numbered, types, strict=True)]
        table = table.toDF(*numbered).select(*cast).toDF(*table.columns)
    schema = arrow_schema(_of_structs(table.schema))
    inner = struct_fields(schema)
    if not inner:
        return table
    column_by_name = dict(zip(table.columns, numbered, strict=True))
    outer = iter(numbered)
    columns = [
        (
            reduce(Column.getField, inner[name].path, sf.col(column_by_name[inner[name].column]))
            if name in inner
            else sf.col(next(outer))
        ).alias(name)
        for name in with_struct_fields(schema).names
    ]
    return table.toDF(*numbered).select(*columns)


def _of_structs(schema: st.StructType) -> st.StructType:
    """Return a schema without types that are structs for Arrow alone, as vectors of Spark ML."""
    return st.StructType(
        [st.StructField(field.name, _of_structs_alone(field.dataType)) for field in schema]
    )


def _of_structs_alone(data_type: st.DataType) -> st.DataType:
    """Return a type without types that are structs only for Arrow."""
    if isinstance(data_type, st.UserDefinedType):
        return st.NullType()
    return _of_structs(data_type) if isinstance(data_type, st.StructType) else data_type


def with_lacking(
    table: DataFrame, lacking: Iterable[pa.Field], of_files: Iterable[pa.Schema]
) -> st.StructType:
    """Add columns, or fields of structs, that only some files have to the schema of a table.

    ``lacking`` are those of :func:`anonspark.engine.data_files.require_columns`, and ``of_files``
    the schemas of the files.
    """
    schema = table.schema
    schemas = list(of_files)
    columns = {name.lower() for of_file in schemas for name in of_file.names}
    for new in lacking:
        if new.name.lower() in columns:
            schema = st.StructType([*schema, *spark_schema(pa.schema([new]))])
            continue
        parts = (part for of_file in schemas for part in struct_fields(of_file).values())
        inner = next(part for part in parts if _is(part.name, new.name))
        at = next((i for i, column in enumerate(schema) if _is(column.name, inner.column)), None)
        fields = list(schema)
        if at is None:
            at = len(fields)
            outer = pa.field(inner.column, pa.struct([]))
        else:
            outer = arrow_schema(st.StructType([fields[at]])).field(0)
        fields[at : at + 1] = spark_schema(pa.schema([with_field(outer, inner)]))
        schema = st.StructType(fields)
    return schema


def _is(left: str, right: str) -> bool:
    return left.lower() == right.lower()
