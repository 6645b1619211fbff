"""Raw values as Spark reads them (:class:`anonspark.engine.raw_columns.Reading`)."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from anonspark.engine.raw_columns import Reading, is_number, is_text
from anonspark.engine.spark.arrow import spark_type
from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.types import TEXT_TYPES

_FLOATS = (st.FloatType, st.DoubleType)
_NESTED = (st.ArrayType, st.MapType, st.StructType)

# Beyond, floats are not told apart by their whole numbers.
_WHOLE = 1e15


def read_column(reading: Reading, found: st.DataType) -> tuple[Column, Column]:
    """Return the values of a column as they are read, and which of them are missing.

    Parameters
    ----------
    reading : Reading
    found : DataType
        Of the column.
    """
    raw = sf.col(quoted(reading.column))
    value = _value(reading, raw, found)
    missing = raw.isNull()
    if isinstance(found, TEXT_TYPES):
        markers = [marker.strip() for marker in reading.markers]
        missing |= sf.trim(raw.cast("string")).isin(markers)
        if reading.type is not None and is_number(reading.type):
            number = sf.expr(f"try_cast(trim({quoted(reading.column)}) AS double)")
            missing |= sf.coalesce(sf.isnan(number), sf.lit(False))
    elif isinstance(found, _FLOATS):
        missing |= sf.isnan(raw)
    return sf.when(~missing, value).alias(reading.name), missing.alias(reading.missing)


def _value(reading: Reading, raw: Column, found: st.DataType) -> Column:
    wanted = reading.type
    if wanted is None:
        return raw
    if is_text(wanted):
        written = raw.cast("string")
        if reading.whole and isinstance(found, _FLOATS):
            whole = sf.when((sf.rint(raw) == raw) & (sf.abs(raw) < sf.lit(_WHOLE)), raw)
            written = sf.coalesce(whole.cast("bigint").cast("string"), written)
        return sf.btrim(written, sf.lit(reading.blanks)) if reading.blanks else written
    text, target = quoted(reading.column), _target(wanted, found)
    if isinstance(found, TEXT_TYPES):
        text = f"trim({text})"
    elif reading.by_text:
        text = f"CAST({text} AS string)"
    return sf.expr(f"try_cast({text} AS {target})")


def _target(wanted: pa.DataType, found: st.DataType) -> str:
    if pa.types.is_timestamp(wanted):
        return "timestamp_ntz" if isinstance(found, st.TimestampNTZType) else "timestamp"
    return spark_type(wanted).simpleString()


def hashed_as(name: str, found: st.DataType, wanted: st.DataType) -> tuple[Column, Column]:
    """Return a column in another type, to be hashed, and whether that changed its values.

    Parameters
    ----------
    name : str
    found, wanted : DataType
    """
    value = sf.col(quoted(name))
    if found.simpleString() == wanted.simpleString():
        return hashable(value, wanted), sf.lit(False)
    is_text, to_text = isinstance(found, TEXT_TYPES), isinstance(wanted, TEXT_TYPES)
    target = "string" if to_text else wanted.simpleString()
    text = f"trim({quoted(name)})" if is_text and not to_text else quoted(name)
    converted = sf.expr(f"try_cast({text} AS {target})")
    changed = converted.isNull() & value.isNotNull()
    if not (is_text or to_text or (isinstance(found, _FLOATS) and isinstance(wanted, _FLOATS))):
        back = sf.expr(f"try_cast(try_cast({text} AS {target}) AS {found.simpleString()})")
        changed |= ~back.eqNullSafe(value)
    return hashable(converted, wanted), changed


def hashable(column: Column, data_type: st.DataType) -> Column:
    """Return nested values as texts, for hashes skip the nulls in them."""
    if isinstance(data_type, _NESTED):
        return sf.to_json(sf.struct(column.alias("value")))
    return column.cast("string") if isinstance(data_type, TEXT_TYPES) else column
