"""Map types of columns in files to those of their values in memory, as Spark does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.compute as pc

BATCH_ROWS = 1 << 16
"""Rows of a file to decode at a time."""

INSTANT = pa.timestamp("us", "UTC")
"""The type of points in time."""


# Spark 2 and others count earlier days by the Julian calendar, and earlier times by the sun.
FIRST_DAY = date(1582, 10, 15)
FIRST_TIME = datetime(1900, 1, 1, tzinfo=UTC)

ORC_INSTANT = "timestamp with local time zone"
"""ORC's name for points in time with a zone, which Spark does not read."""


class TypeNotReadError(Exception):
    """A column has a type that Spark reads in no file. The message is Spark's condition."""


def type_as_read(stored: pa.DataType) -> pa.DataType:
    """Return the type as which Spark reads a type of Parquet, or raise TypeNotReadError.

    >>> type_as_read(pa.uint32()), type_as_read(pa.dictionary(pa.int8(), pa.large_string()))
    (DataType(int64), DataType(string))
    """
    if isinstance(stored, pa.BaseExtensionType):
        if stored.extension_name != "arrow.json":
            raise TypeNotReadError("PARQUET_TYPE_ILLEGAL")
        return pa.string()
    if (plain := _PLAIN.get(stored)) is not None:
        return plain
    if pa.types.is_dictionary(stored):
        return type_as_read(stored.value_type)
    if pa.types.is_null(stored):
        return stored
    if pa.types.is_timestamp(stored) and stored.unit != "ns":
        return INSTANT if stored.tz else pa.timestamp("us")
    if pa.types.is_decimal(stored) and stored.precision <= 38:
        return pa.decimal128(stored.precision, stored.scale)
    if pa.types.is_fixed_size_binary(stored):
        return pa.binary()
    if pa.types.is_duration(stored):
        return pa.int64()
    if pa.types.is_struct(stored):
        return pa.struct([pa.field(field.name, _type_inside(field.type)) for field in stored])
    if pa.types.is_map(stored):
        return pa.map_(type_as_read(stored.key_type), _type_inside(stored.item_type))
    if any(of(stored) for of in LISTS):
        return pa.list_(pa.field("element", _type_inside(stored.value_type)))
    raise TypeNotReadError("PARQUET_TYPE_ILLEGAL")


def _type_inside(stored: pa.DataType) -> pa.DataType:
    """Return the type of values inside of others. Parquet stores nulls there as integers."""
    return pa.int32() if pa.types.is_null(stored) else type_as_read(stored)


LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
"""Tests for lists of all kinds."""

_PLAIN: Mapping[pa.DataType, pa.DataType] = {
    **{
        data_type: data_type
        for data_type in (
            *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
            *(pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32()),
        )
    },
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


def wider(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """Return the type that holds every value of two types unchanged, or None.

    >>> wider(pa.decimal128(9, 2), pa.int32())
    Decimal128Type(decimal128(12, 2))
    >>> wider(pa.int64(), pa.float64()) is None
    True
    """
    pair = [first, second]
    if all(map(pa.types.is_list, pair)):
        inner = wider(first.value_type, second.value_type)
        return None if inner is None else pa.list_(pa.field("element", inner))
    if any(map(pa.types.is_decimal, pair)):
        pair = [_EXACT.get(kind, kind) for kind in pair]
    try:
        schemas = [pa.schema([("column", kind)]) for kind in pair]
        promoted = pa.unify_schemas(schemas, promote_options="permissive").types[0]
    except pa.ArrowException:
        return None
    return promoted if all(_is_held(kind, promoted) for kind in pair) else None


_INTEGERS = pa.int8(), pa.int16(), pa.int32(), pa.int64()
_EXACT = dict(zip(_INTEGERS, (pa.decimal128(digits) for digits in (3, 5, 10, 19)), strict=True))


def _is_held(kind: pa.DataType, joined: pa.DataType) -> bool:
    """Return whether all values of a type are values of one that Arrow promotes it to."""
    if pa.types.is_integer(kind):
        return bool(pa.types.is_integer(joined) or kind != pa.int64())
    if pa.types.is_decimal(kind):
        return bool(pa.types.is_decimal128(joined))
    return bool(kind == joined or pa.types.is_null(kind) or pa.types.is_floating(kind))


def widest(types: Iterable[pa.DataType]) -> pa.DataType | None:
    """Return the type that holds every value of some types unchanged, or None if there is none."""
    joined: pa.DataType | None = pa.null()
    for kind in types:
        joined = None if joined is None else wider(joined, kind)
    return joined


def is_read_as(stored: pa.DataType, target: pa.DataType) -> bool:
    """Return whether :func:`values_as_read` converts values of a stored type to another one."""
    if pa.types.is_timestamp(stored) and stored.unit == "ns":
        stored = pa.timestamp("us", stored.tz)
    try:
        return bool(wider(type_as_read(stored), target) == target)
    except TypeNotReadError:
        return False


def values_as_read(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert values to the type that :func:`type_as_read` returned for theirs."""
    if values.type == target:
        return values
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), target)
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
        # Arrow would round towards 1970, but Spark rounds down.
        values = pc.floor_temporal(values, unit="microsecond")
    return values.cast(target)
