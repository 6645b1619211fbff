"""Raw values as :class:`anonspark.engine.raw_columns.Reading` says they are read."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.raw_columns import Reading, flags, is_number, is_plain, is_text
from anonspark.engine.values.value_texts import (
    NUMBER,
    nearest_single,
    parse,
    rounded,
    within,
    write,
)

Flags: TypeAlias = npt.NDArray[np.bool_]


def read_values(reading: Reading, column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return values as they are read, null where they are missing, and which of them are missing.

    Parameters
    ----------
    reading : Reading
    column : pyarrow.Array
        Of length n.

    Returns
    -------
    values : pyarrow.Array
        Of length n and the reading's type.
    missing : pyarrow.BooleanArray
        Of length n.
    """
    column = plain(column)
    missing = are_missing(column, reading.markers)
    value = column if reading.type is None else convert(column, reading.type, reading)
    if is_text(column.type) and not is_text(value.type):
        # A marker means the value that it says, in whatever way a text says it.
        marked = are_missing(value, reading.markers)
        missing = pc.or_(missing, pc.and_(marked, pc.is_valid(value)))
    return pc.if_else(missing, pa.scalar(None, value.type), value), missing


def are_missing(column: pa.Array, markers: Sequence[str]) -> pa.Array:
    """Return which values are missing: nulls, NaN, and what a marker means in the column's type.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray
    markers : sequence of str
        Texts. Of a column of numbers, days or booleans those count that say such a value.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        return pc.fill_null(are_missing(column.dictionary, markers).take(column.indices), True)
    missing = pc.is_null(column, nan_is_null=True)
    values = pc.ascii_trim(column, " ") if is_text(column.type) else column
    known = _values_of_markers([one.strip() for one in markers], column.type)
    return pc.or_(missing, pc.is_in(values, known)) if len(known) else missing


def blank_rows(
    batch: pa.RecordBatch | pa.Table, names: Sequence[str], markers: Sequence[str]
) -> Flags:
    """Return which rows are no records, for they have no value in any of some columns.

    Returns
    -------
    bool ndarray of shape (rows,)
    """
    blank = np.full(len(batch), bool(names))
    for name in names:
        if not blank.any():
            break
        missing = are_missing(batch.column(name), ("", *markers))
        blank &= flags(missing)
    return blank


def _values_of_markers(markers: Sequence[str], own: pa.DataType) -> pa.Array:
    """Return the values of a type that markers say, as the exact number of a decimal."""
    texts = pa.array(markers, pa.string())
    if is_text(own):
        return texts.cast(own)
    if pa.types.is_boolean(own):
        # Of them 0 is no marker for False.
        texts = pa.array([one for one in markers if one.lower() in ("true", "false")], pa.string())
    if pa.types.is_integer(own) or pa.types.is_decimal(own):
        target = own if pa.types.is_decimal(own) else pa.decimal128(20, 0)
        numbers = [Decimal(one) for one in markers if NUMBER.fullmatch(one)]
        exact = pa.array([one for one in numbers if rounded(one, target) == one], target)
        return exact if target == own else _number(exact, own).drop_null()
    return parse(texts, own).drop_null() if is_plain(own) else pa.nulls(0)


def plain(column: pa.Array) -> pa.Array:
    """Return a column whose values stand in it themselves."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def coded_values(column: pa.Array | pa.ChunkedArray) -> pa.DictionaryArray:
    """Return a column as a dictionary, which it may be already."""
    if isinstance(column, pa.ChunkedArray):
        if pa.types.is_dictionary(column.type):
            column = column.unify_dictionaries()
        column = column.combine_chunks()
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def as_floats(column: pa.Array) -> pa.Array:
    """Return numbers, days and times as floats, and texts that are numbers. NaN for all else."""
    if is_text(column.type):
        column = parse(column, pa.float64())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return column.cast(pa.float64(), safe=False).fill_null(float("nan"))


def convert(column: pa.Array, target: pa.DataType, reading: Reading | None = None) -> pa.Array:
    """Convert values to another type. What cannot be converted is null.

    Parameters
    ----------
    column : pyarrow.Array
    target : pyarrow.DataType
    reading : Reading or None
        Says how texts are written and numbers are read.
    """
    own = column.type
    if is_text(target):
        texts = write(column, whole=reading is not None and reading.whole)
        blanks = "" if reading is None else reading.blanks
        return pc.utf8_trim(texts, blanks) if blanks else texts
    if pa.types.is_null(own):
        return pa.nulls(len(column), target)
    if is_text(own):
        return parse(column, target)
    if own.equals(target):
        return column
    if reading is not None and reading.by_text:
        return parse(write(column), target)
    if is_number(own) and is_number(target):
        return _number(column, target)
    # Days and points in time.
    if pa.types.is_date(target):
        micros = column.cast(pa.timestamp("us", own.tz)).view(pa.timestamp("us"))
        return micros.cast(pa.date32(), safe=False)
    if pa.types.is_date(own):
        days = column.cast(pa.date32()).view(pa.int32()).cast(pa.int64())
        return pc.multiply(days, _A_DAY).view(target)
    return column.cast(pa.timestamp("us", own.tz)).view(pa.int64()).view(target)


_A_DAY = 86_400_000_000


def _number(column: pa.Array, target: pa.DataType) -> pa.Array:
    own = column.type
    if pa.types.is_floating(target):
        if pa.types.is_decimal(own):
            # Arrow's own cast is wrong in the last digit at times.
            to_float = nearest_single if target.bit_width == 32 else float
            texts = [None if one is None else str(one) for one in column.to_pylist()]
            floats = [None if text is None else to_float(text) for text in texts]
            return pa.array(floats, target)
        return column.cast(target, safe=False)
    if pa.types.is_integer(target) and not pa.types.is_decimal(own):
        whole = column.cast(target, safe=False)
        same = pc.equal(whole.cast(own, safe=False), column)
        return pc.if_else(same, whole, pa.scalar(None, target))
    values = [_exact(value) for value in column.to_pylist()]
    if pa.types.is_integer(target):
        whole = [None if one is None else within(int(one), target.bit_width) for one in values]
        return pa.array(whole, target)
    return pa.array([None if one is None else rounded(one, target) for one in values], target)


def _exact(value: object) -> Decimal | None:
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return None
    if isinstance(value, float):
        return Decimal(repr(value))
    return Decimal(str(value))


def hashed_as(column: pa.Array, wanted: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """Return values in another type, to be hashed, and which of them that changed.

    Parameters
    ----------
    column : pyarrow.Array
    wanted : pyarrow.DataType
        Equal to the column's, or one that it can be read as.
    """
    column = plain(column)
    own = column.type
    if pa.types.is_nested(wanted):
        texts = [None if value is None else repr(value) for value in column.to_pylist()]
        return pa.array(texts, pa.string()), pa.array(np.zeros(len(column), bool))
    if own.equals(wanted):
        return column, pa.array(np.zeros(len(column), bool))
    converted = convert(column, wanted)
    changed = pc.and_(pc.is_null(converted), pc.is_valid(column))
    floats = pa.types.is_floating(own) and pa.types.is_floating(wanted)
    if not (is_text(own) or is_text(wanted) or floats):
        back = convert(converted, own)
        same = pc.fill_null(pc.equal(back, column), False)
        both_null = pc.and_(pc.is_null(back), pc.is_null(column))
        changed = pc.or_(changed, pc.invert(pc.or_(same, both_null)))
    return converted, changed
