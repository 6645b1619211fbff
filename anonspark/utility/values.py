"""Raw columns as numbers or texts that compare as the attribute's values do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.types import TEXT_TYPES
from anonspark.release.regions import PublishedAttribute

Scale = Literal["number", "date", "timestamp", "text"]
"""What an attribute's values are compared as: dates are days, timestamps microseconds."""

_TIMES = (st.DateType, st.TimestampType, st.TimestampNTZType)


def scale_of(found: st.DataType, published: PublishedAttribute | None) -> Scale | None:
    """Return what the values of a column are compared as.

    Parameters
    ----------
    found : DataType
        Of the original's column.
    published : PublishedAttribute or None
        Of a quasi-identifier; None for a column that is published as it is.

    Returns
    -------
    str or None
        None for columns without such values, as arrays.
    """
    if published is not None and published.rule != "prefix":
        match published.kind:
            case "integer" | "float" | "decimal":
                return "number"
            case "date" | "timestamp":
                return published.kind
    elif published is not None:
        return "text"
    if isinstance(found, st.NumericType):
        return "number"
    if isinstance(found, st.DateType):
        return "date"
    if isinstance(found, st.TimestampType | st.TimestampNTZType):
        return "timestamp"
    if isinstance(found, (*TEXT_TYPES, st.BooleanType)):
        return "text"
    return None


def value_of(
    name: str,
    found: st.DataType,
    scale: Scale,
    published: PublishedAttribute | None,
    missing_markers: Sequence[str],
) -> Column | None:
    """Return a column's values as doubles, or as texts; null where missing or unreadable.

    Parameters
    ----------
    name : str
    found : DataType
    scale : Scale
    published : PublishedAttribute or None
        See :func:`scale_of`.
    missing_markers : sequence of str
        Texts that mean missing, as ``input.missing_markers``.

    Returns
    -------
    Column or None
        None where a column of this type has no values on this scale.
    """
    raw = sf.col(quoted(name))
    is_text = isinstance(found, TEXT_TYPES)
    text = f"trim({quoted(name)})" if is_text else quoted(name)
    match scale:
        case "text":
            if isinstance(found, st.ArrayType | st.MapType | st.StructType | st.BinaryType):
                return None
            value = sf.trim(raw.cast("string"))
            if published is not None and published.kind == "boolean":
                value = sf.expr(f"try_cast({text} AS boolean)").cast("string")
        case "date":
            if not isinstance(found, (*TEXT_TYPES, *_TIMES)):
                return None
            value = sf.expr(f"unix_date(try_cast({text} AS date))").cast("double")
        case "timestamp":
            if not isinstance(found, (*TEXT_TYPES, *_TIMES)):
                return None
            value = sf.expr(f"unix_micros(try_cast({text} AS timestamp))").cast("double")
        case "number":
            if not isinstance(found, (*TEXT_TYPES, st.NumericType)):
                return None
            if isinstance(found, st.DecimalType):
                # By way of the text, which is rounded as the labels are.
                text = f"CAST({quoted(name)} AS string)"
            single = published is not None and published.type == "float"
            own = "float" if single else "double"
            number = sf.expr(f"try_cast({text} AS {own})").cast("double")
            value = sf.when(~sf.isnan(number) & (sf.abs(number) != float("inf")), number)
    if is_text:
        markers = [marker.strip() for marker in missing_markers]
        value = sf.when(~sf.trim(raw).isin(markers), value)
    return value
