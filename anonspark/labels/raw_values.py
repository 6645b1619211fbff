"""Raw values as plain numbers and texts, whatever type they were read with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.raw_columns import (
    Reading,
    is_number,
    is_readable,
    is_text,
    is_time,
    time_numbers,
)
from anonspark.labels.regions import PublishedAttribute


def comparable(values: pa.Array) -> pa.Array:
    """Convert raw values to float64: dates to days, timestamps to microseconds since 1970.

    Texts stay, and booleans become texts. Infinity becomes null, as an axis has no position for it.

    >>> comparable(pa.array([1.5, float("inf")])).to_pylist()
    [1.5, None]
    """
    if is_text(values.type):
        return values
    if pa.types.is_boolean(values.type):
        return values.cast(pa.string())
    if is_time(values.type):
        values = time_numbers(values)
    numbers = pc.cast(values, pa.float64(), safe=False)
    return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, pa.float64()))


Scale = Literal["number", "date", "timestamp", "text"]
"""The form in which values are compared: dates are days, timestamps microseconds."""


def scale_of(data_type: pa.DataType, published: PublishedAttribute | None) -> Scale | None:
    """Return the scale on which a column's values are compared, or None for lists and the like.

    ``published`` is the quasi-identifier, or None for a column that is published unchanged.

    >>> scale_of(pa.int32(), None), scale_of(pa.list_(pa.string()), None)
    ('number', None)
    """
    if published is not None and not published.is_code:
        match published.kind:
            case "integer" | "float" | "decimal":
                return "number"
            case "date" | "timestamp":
                return published.kind
    elif published is not None:
        return "text"
    if is_number(data_type):
        return "number"
    if pa.types.is_date(data_type):
        return "date"
    if pa.types.is_timestamp(data_type):
        return "timestamp"
    if is_text(data_type) or pa.types.is_boolean(data_type):
        return "text"
    return None


def reading_of(
    column: str,
    name: str,
    data_type: pa.DataType,
    scale: Scale,
    published: PublishedAttribute | None,
    missing_markers: Sequence[str],
) -> Reading | None:
    """Return how to read a raw column as values of a scale, or None if its type cannot be read.

    The result is for :func:`comparable`. ``name`` is that of the column to write.

    >>> reading_of("age", "value", pa.string(), "number", None, ["?"]).markers
    ('?',)
    """
    kind, raw_type = (None, None) if published is None else (published.kind, published.type)
    read_as: pa.DataType = {
        "text": pa.bool_() if kind == "boolean" else pa.string(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
        "number": pa.float32() if raw_type == "float" else pa.float64(),
    }[scale]
    if not is_readable(data_type, read_as):
        return None
    return Reading(
        column,
        name,
        read_as,
        tuple(missing_markers),
        blanks=" ",
        # Decimals are read from their texts, which are rounded as the labels are.
        by_text=pa.types.is_decimal(data_type),
    )
