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
    """Return values as float64, or as texts if they are texts or booleans.

    Parameters
    ----------
    values : pyarrow.Array
        As :meth:`anonspark.engine.protocol.Table.read` gives them, or as this function does.

    Returns
    -------
    pyarrow.Array
        Dates are days, timestamps microseconds since 1970. What is infinite is null: it has no
        place between the others.
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


def scale_of(found: pa.DataType, published: PublishedAttribute | None) -> Scale | None:
    """Return what the values of a column are compared as.

    Parameters
    ----------
    found : pyarrow.DataType
        Of the original's column.
    published : PublishedAttribute or None
        Of a quasi-identifier. None for a column that is published as it is.

    Returns
    -------
    str or None
        None for columns without such values, as arrays.
    """
    if published is not None and not published.is_code:
        match published.kind:
            case "integer" | "float" | "decimal":
                return "number"
            case "date" | "timestamp":
                return published.kind
    elif published is not None:
        return "text"
    if is_number(found):
        return "number"
    if pa.types.is_date(found):
        return "date"
    if pa.types.is_timestamp(found):
        return "timestamp"
    if is_text(found) or pa.types.is_boolean(found):
        return "text"
    return None


def reading_of(
    column: str,
    name: str,
    found: pa.DataType,
    scale: Scale,
    published: PublishedAttribute | None,
    missing_markers: Sequence[str],
) -> Reading | None:
    """Return how a column is read, for :func:`comparable`.

    Parameters
    ----------
    column : str
    name : str
        Of the column with the values.
    found : pyarrow.DataType
    scale : Scale
    published : PublishedAttribute or None
        See :func:`scale_of`.
    missing_markers : sequence of str
        Texts that mean missing, as ``input.missing_markers``.

    Returns
    -------
    Reading or None
        None where a column of this type has no values on this scale.
    """
    wanted: pa.DataType
    match scale:
        case "text":
            is_boolean = published is not None and published.kind == "boolean"
            wanted = pa.bool_() if is_boolean else pa.string()
        case "date":
            wanted = pa.date32()
        case "timestamp":
            wanted = pa.timestamp("us")
        case "number":
            single = published is not None and published.type == "float"
            wanted = pa.float32() if single else pa.float64()
    if not is_readable(found, wanted):
        return None
    return Reading(
        column,
        name,
        wanted,
        tuple(missing_markers),
        blanks=" ",
        # By way of the text, which is rounded as the labels are.
        by_text=pa.types.is_decimal(found),
    )
