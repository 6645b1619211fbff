"""Convert raw values to declared types, and to texts. docs/configuration.md has the grammar."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from math import inf, isfinite
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.raw_columns import (
    Reading,
    flags,
    is_number,
    is_plain,
    is_text,
    with_one_zero,
)

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""Texts that are numbers."""

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_BOOLEANS = dict.fromkeys(("t", "true", "y", "yes", "1"), True) | dict.fromkeys(
    ("f", "false", "n", "no", "0"), False
)
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
_MOMENT = re.compile(rf"({_DAY}(?:[ T]{_CLOCK})?)(?: ?(Z|UTC|[+-][0-9]{{2}}(?::?[0-9]{{2}})?))?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Texts that Arrow reads equally, and many times faster.
_USUAL_NUMBER = r"^-?[0-9]{1,25}(?:\.[0-9]{1,25})?$"
_USUAL_DAY = r"^[12][0-9]{3}-[0-9]{2}-[0-9]{2}$"
_USUAL_MOMENT = rf"{_USUAL_DAY[:-1]}[ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?:\.[0-9]{{1,6}})?$"

_MANY_DIGITS = Context(prec=400)

# Java and Arrow write floats between them equally, of 32 bits and of 64.
_SMALLEST_ALIKE, _LARGEST_ALIKE = 1e-3, 1e6


def parse(texts: pa.Array, target: pa.DataType) -> pa.Array:
    """Read texts as booleans, ``date32``, ``timestamp[us]``, numbers or decimals, or null.

    Strips blanks. A moment without a zone is in UTC.

    >>> parse(pa.array([" 39", "1e3", "?"]), pa.float64()).to_pylist()
    [39.0, 1000.0, None]
    """
    texts = pc.ascii_trim(texts, " ")
    pattern = _usual_form(target)
    if pattern is None:
        return _parse_each(texts, target)
    matches = pc.fill_null(pc.match_substring_regex(texts, pattern), True)
    quick = _parse_usual(pc.if_else(matches, texts, pa.scalar(None, texts.type)), target)
    rare = pc.invert(matches)
    return with_one_zero(pc.replace_with_mask(quick, rare, _parse_each(texts.filter(rare), target)))


def _usual_form(target: pa.DataType) -> str | None:
    """Return the pattern of texts that Arrow reads equally, or None if there are none."""
    if pa.types.is_floating(target):
        return _USUAL_NUMBER
    if pa.types.is_date(target):
        return _USUAL_DAY
    return _USUAL_MOMENT if pa.types.is_timestamp(target) else None


def _parse_usual(texts: pa.Array, target: pa.DataType) -> pa.Array:
    """Read texts of the usual form, and nulls, by Arrow."""
    quick = pa.timestamp("us") if pa.types.is_timestamp(target) else target
    try:
        return texts.cast(quick).view(target)
    except pa.ArrowInvalid:
        # A day or a time of day does not exist: its text becomes null.
        return _parse_each(texts, target)


def _parse_each(texts: pa.Array, target: pa.DataType) -> pa.Array:
    """Read each different text once, by Python."""
    coded = coded_values(texts)
    read = _reader(target)
    values = [None if text is None else read(text) for text in coded.dictionary.to_pylist()]
    return pa.array(values, target).take(coded.indices)


def _reader(target: pa.DataType) -> Callable[[str], Any]:
    """Return the function that reads one text as a value of a type, or None if it is none."""
    if pa.types.is_floating(target):
        return lambda text: _float(text, narrow=target.bit_width == 32)
    if pa.types.is_decimal(target):
        return lambda text: _decimal(text, target)
    if pa.types.is_boolean(target):
        return lambda text: _BOOLEANS.get(text.lower())
    if pa.types.is_date(target):
        return _day
    if pa.types.is_timestamp(target):
        return _microseconds
    return lambda text: _integer(text, bits=target.bit_width)


def _float(text: str, *, narrow: bool) -> float | None:
    """Read a text as a float, or NaN, of 64 bits or, if narrow, of 32."""
    if not NUMBER.fullmatch(text) and text.lower() != "nan":
        return None
    return nearest_single(text) if narrow else float(text)


def nearest_single(text: str) -> float:
    """Return the float of 32 bits that is nearest to the number of a text.

    Through 64 bits, a number just next to the middle of two such floats would be rounded twice.

    >>> nearest_single("16777217.0000000001")
    16777218.0
    """
    double = float(text)
    with np.errstate(over="ignore"):
        rounded_double = np.float32(double)
        single = float(rounded_double)
        other = float(np.nextafter(rounded_double, np.float32(inf if double > single else -inf)))
    if single != double and isfinite(other) and double - single == other - double:
        exact, middle = Decimal(text), Decimal(double)
        if exact != middle and (exact > middle) == (other > single):
            return other
    return single


def _integer(text: str, *, bits: int) -> int | None:
    """Read a text as a whole number of some bits, or None."""
    return within(int(text), bits) if _WHOLE_NUMBER.fullmatch(text) else None


def within(value: int, bits: int) -> int | None:
    """Return a whole number, or None if it needs more bits.

    >>> within(127, bits=8), within(128, bits=8)
    (127, None)
    """
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def _decimal(text: str, target: pa.DataType) -> Decimal | None:
    """Read a text as a decimal of a type, or None."""
    if not NUMBER.fullmatch(text):
        return None
    try:
        return rounded(Decimal(text), target)
    except InvalidOperation:
        return None  # the exponent is beyond that of any decimal


def rounded(value: Decimal, target: pa.DataType) -> Decimal | None:
    """Round a decimal to the places of a type, or return None if it has too many digits.

    >>> rounded(Decimal("1.005"), pa.decimal128(4, 2)), rounded(Decimal(100), pa.decimal128(4, 2))
    (Decimal('1.01'), None)
    """
    if value and value.adjusted() > target.precision:
        return None
    try:
        value = value.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP, _MANY_DIGITS)
    except InvalidOperation:
        return None
    return value if not value or value.adjusted() + target.scale < target.precision else None


def _day(text: str) -> date | None:
    """Read a text as a day, or None."""
    try:
        return date.fromisoformat(text) if re.fullmatch(_DAY, text) else None
    except ValueError:
        return None


def _microseconds(text: str) -> int | None:
    """Read a text as a moment, in microseconds since 1970, or return None.

    >>> _microseconds("1970-01-01 01:00 +01"), _microseconds("1970-01-01T00:00:01Z")
    (0, 1000000)
    """
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    offset = (match[2] or "Z").replace("UTC", "Z")
    try:
        zone = datetime.fromisoformat(f"1970-01-01T00:00{offset}").tzinfo
        moment = datetime.fromisoformat(match[1]).replace(tzinfo=zone)
    except ValueError:
        return None
    return (moment - _EPOCH) // timedelta(microseconds=1)


def write(values: pa.Array, *, whole: bool = False) -> pa.Array:
    """Write numbers, booleans, dates, timestamps or texts as texts.

    If ``whole``, floats that are whole numbers have no point.

    >>> write(pa.array([17.0, 0.1])).to_pylist(), write(pa.array([17.0]), whole=True).to_pylist()
    (['17.0', '0.1'], ['17'])
    """
    data_type = values.type
    if pa.types.is_dictionary(data_type):
        return write(values.cast(data_type.value_type), whole=whole)
    if pa.types.is_floating(data_type):
        return _float_texts(values, whole=whole)
    if pa.types.is_decimal(data_type):
        return _write_each(values, lambda value: format(value, "f"))
    if pa.types.is_timestamp(data_type):
        micros = values.cast(pa.timestamp("us", data_type.tz)).view(pa.int64())
        return _write_each(micros, _timestamp_text)
    if pa.types.is_date(data_type):
        return _write_each(values.cast(pa.date32()).view(pa.int32()), _date_text)
    return values.cast(pa.string())


def _float_texts(values: pa.Array, *, whole: bool) -> pa.Array:
    """Write floats of usual sizes by Arrow, far faster than Python, and the others singly."""
    numbers = np.asarray(pc.fill_null(values, 0).to_numpy(zero_copy_only=False))
    sizes = np.abs(numbers)
    rounded_numbers = numbers == np.rint(numbers)
    is_usual = (sizes >= _SMALLEST_ALIKE) & (sizes < _LARGEST_ALIKE) & ~rounded_numbers
    integral = rounded_numbers & (sizes < (_WHOLE if whole else _LARGEST_ALIKE))
    integers = pa.array(np.where(integral, numbers, 0).astype(np.int64)).cast(pa.string())
    if not whole:
        integers = pc.binary_join_element_wise(integers, "0", ".")
    texts = pc.if_else(pa.array(integral), integers, values.cast(pa.string()))
    texts = pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string()))
    rare = pa.array(~is_usual & ~integral & flags(values.is_valid()))
    narrow = values.type.bit_width == 32
    rest = _write_each(values.filter(rare), lambda x: float_text(x, narrow=narrow, whole=whole))
    return pc.replace_with_mask(texts, rare, rest)


def _write_each(values: pa.Array, text_of: Callable[[Any], str]) -> pa.Array:
    """Write each different value once."""
    coded = coded_values(values)
    texts = [None if value is None else text_of(value) for value in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices)


# Beyond, two floats may have the same whole number of so many digits.
_WHOLE = 1e15


def float_text(value: float, *, narrow: bool = False, whole: bool = False) -> str:
    """Return the shortest text that reads back as the same float, in the form of Java 19.

    Older versions write some floats with another digit.

    >>> float_text(0.1), float_text(1e7), float_text(0.1, narrow=True)
    ('0.1', '1.0E7', '0.1')
    """
    if value != value:
        return "NaN"
    if value in (inf, -inf):
        return "Infinity" if value > 0 else "-Infinity"
    if whole and abs(value) < _WHOLE and value == int(value):
        return str(int(value))
    shortest = str(np.float32(value)) if narrow else repr(value)
    sign, digits, exponent = Decimal(shortest).as_tuple()
    if len("".join(map(str, digits)).strip("0")) == 1:
        # Java writes at least two digits, and those are the nearest.
        sign, digits, exponent = Decimal(f"{value:.1e}").as_tuple()
    if not any(digits):
        return "0.0"
    plain = "".join(map(str, digits)).rstrip("0")
    first = len(digits) + int(exponent) - 1  # the power of ten of the first digit
    if -3 <= first < 7:
        if first < 0:
            text = f"0.{'0' * (-first - 1)}{plain}"
        else:
            padded = plain.ljust(first + 1, "0")
            text = f"{padded[: first + 1]}.{padded[first + 1 :] or '0'}"
    else:
        text = f"{plain[0]}.{plain[1:] or '0'}E{first}"
    return f"-{text}" if sign else text


def _date_text(days: int) -> str:
    """Write a day since 1970, in any year of the Gregorian calendar.

    >>> _date_text(0), _date_text(-719_529)
    ('1970-01-01', '-0001-12-31')
    """
    cycles, within = divmod(days + 719_162, 146_097)
    day = date.fromordinal(within + 1)
    year = day.year + 400 * cycles
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{day.month:02d}-{day.day:02d}"


def _timestamp_text(micros: int) -> str:
    """Write microseconds since 1970, without zeros at the end of the fraction.

    >>> _timestamp_text(1_500_000)
    '1970-01-01 00:00:01.5'
    """
    days, within = divmod(micros, 86_400_000_000)
    seconds, fraction = divmod(within, 1_000_000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    rest = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{_date_text(days)} {clock}{rest}"


Flags: TypeAlias = npt.NDArray[np.bool_]


def read_values(reading: Reading, column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Read a column as the type of a reading, null if missing or unreadable.

    Also return which values are missing, as booleans of Arrow.

    >>> reading = Reading("age", "age", pa.int64(), markers=("-9",))
    >>> values, missing = read_values(reading, pa.array(["39", "-9", "?"]))
    >>> values.to_pylist(), missing.to_pylist()
    ([39, None, None], [False, True, False])
    """
    column = plain(column)
    missing = are_missing(column, reading.markers)
    value = column if reading.type is None else convert(column, reading.type, reading)
    if is_text(column.type) and not is_text(value.type):
        # A marker means its value, in whatever form a text has it.
        marked = are_missing(value, reading.markers)
        missing = pc.or_(missing, pc.and_(marked, pc.is_valid(value)))
    return pc.if_else(missing, pa.scalar(None, value.type), value), missing


def are_missing(column: pa.Array, markers: Sequence[str]) -> pa.Array:
    """Return which values are null, NaN, or that of a marker in the column's type.

    >>> are_missing(pa.array([39, -9, None]), ["-9", "?"]).to_pylist()
    [False, True, True]
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        return pc.fill_null(are_missing(column.dictionary, markers).take(column.indices), True)
    missing = pc.is_null(column, nan_is_null=True)
    values = pc.ascii_trim(column, " ") if is_text(column.type) else column
    marked = _values_of_markers([marker.strip() for marker in markers], column.type)
    return pc.or_(missing, pc.is_in(values, marked)) if len(marked) else missing


def blank_rows(
    batch: pa.RecordBatch | pa.Table, names: Sequence[str], markers: Sequence[str]
) -> Flags:
    """Return which rows lack a value in all of some columns, bool (rows,): they are no records.

    >>> rows = pa.table({"age": [39, None], "city": ["?", "?"]})
    >>> blank_rows(rows, ["age", "city"], ["?"]).tolist()
    [False, True]
    """
    blank = np.full(len(batch), bool(names))
    for name in names:
        if not blank.any():
            break
        missing = are_missing(batch.column(name), ("", *markers))
        blank &= flags(missing)
    return blank


def _values_of_markers(markers: Sequence[str], data_type: pa.DataType) -> pa.Array:
    """Return the values of a type that markers stand for, exact numbers for decimals."""
    texts = pa.array(markers, pa.string())
    if is_text(data_type):
        return texts.cast(data_type)
    if pa.types.is_boolean(data_type):
        # The marker 0 does not mean False.
        texts = pa.array(
            [marker for marker in markers if marker.lower() in ("true", "false")], pa.string()
        )
    if pa.types.is_integer(data_type) or pa.types.is_decimal(data_type):
        target = data_type if pa.types.is_decimal(data_type) else pa.decimal128(20, 0)
        numbers = [Decimal(marker) for marker in markers if NUMBER.fullmatch(marker)]
        exact = pa.array(
            [number for number in numbers if rounded(number, target) == number], target
        )
        return exact if target == data_type else _number(exact, data_type).drop_null()
    return parse(texts, data_type).drop_null() if is_plain(data_type) else pa.nulls(0)


def plain(column: pa.Array) -> pa.Array:
    """Return a column as an array without a dictionary."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def coded_values(column: pa.Array | pa.ChunkedArray) -> pa.DictionaryArray:
    """Return a column as an array with a dictionary.

    >>> coded_values(pa.array(["m", "f", "m"])).indices.to_pylist()
    [0, 1, 0]
    """
    if isinstance(column, pa.ChunkedArray):
        if pa.types.is_dictionary(column.type):
            column = column.unify_dictionaries()
        column = column.combine_chunks()
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def as_floats(column: pa.Array) -> pa.Array:
    """Return numbers, days, times, and texts that are numbers as floats, and NaN for all else.

    >>> as_floats(pa.array(["39", "?"])).to_pylist()
    [39.0, nan]
    """
    if is_text(column.type):
        column = parse(column, pa.float64())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return column.cast(pa.float64(), safe=False).fill_null(float("nan"))


def convert(column: pa.Array, target: pa.DataType, reading: Reading | None = None) -> pa.Array:
    """Convert values to another type. Values that it cannot hold become null.

    A reading declares how texts are written and numbers are read.

    >>> convert(pa.array([1.0, 1.5]), pa.int64()).to_pylist()
    [1, None]
    """
    data_type = column.type
    if is_text(target):
        texts = write(column, whole=reading is not None and reading.whole)
        blanks = "" if reading is None else reading.blanks
        return pc.utf8_trim(texts, blanks) if blanks else texts
    if pa.types.is_null(data_type):
        return pa.nulls(len(column), target)
    if is_text(data_type):
        return parse(column, target)
    if data_type.equals(target):
        return column
    if reading is not None and reading.by_text:
        return parse(write(column), target)
    if is_number(data_type) and is_number(target):
        return _number(column, target)
    # Only days and moments are left.
    if pa.types.is_date(target):
        micros = column.cast(pa.timestamp("us", data_type.tz)).view(pa.timestamp("us"))
        return micros.cast(pa.date32(), safe=False)
    if pa.types.is_date(data_type):
        days = column.cast(pa.date32()).view(pa.int32()).cast(pa.int64())
        return pc.multiply(days, _A_DAY).view(target)
    return column.cast(pa.timestamp("us", data_type.tz)).view(pa.int64()).view(target)


_A_DAY = 86_400_000_000


def _number(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert numbers to another type of numbers. Values that it cannot hold become null."""
    data_type = column.type
    if pa.types.is_floating(target):
        if pa.types.is_decimal(data_type):
            # Arrow's cast is sometimes wrong in the last digit.
            to_float = nearest_single if target.bit_width == 32 else float
            texts = [None if value is None else str(value) for value in column.to_pylist()]
            floats = [None if text is None else to_float(text) for text in texts]
            return pa.array(floats, target)
        return column.cast(target, safe=False)
    if pa.types.is_integer(target) and not pa.types.is_decimal(data_type):
        whole = column.cast(target, safe=False)
        is_exact = pc.equal(whole.cast(data_type, safe=False), column)
        return pc.if_else(is_exact, whole, pa.scalar(None, target))
    values = [_exact(value) for value in column.to_pylist()]
    if pa.types.is_integer(target):
        whole = [None if x is None else within(int(x), target.bit_width) for x in values]
        return pa.array(whole, target)
    return pa.array([None if value is None else rounded(value, target) for value in values], target)


def _exact(value: object) -> Decimal | None:
    """Return a number as a decimal, a float by its shortest text, or None if it is not finite."""
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return None
    if isinstance(value, float):
        return Decimal(repr(value))
    return Decimal(str(value))


def hashed_as(column: pa.Array, target: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """Convert values to another type, to hash them, and return which the cast changed.

    The type is the column's, or one as which it can be read.

    >>> [part.to_pylist() for part in hashed_as(pa.array([1.0, 1.5]), pa.int64())]
    [[1, None], [False, True]]
    """
    column = with_one_zero(plain(column))
    data_type = column.type
    if pa.types.is_nested(target):
        texts = [None if value is None else repr(value) for value in column.to_pylist()]
        return pa.array(texts, pa.string()), pa.array(np.zeros(len(column), bool))
    if data_type.equals(target):
        return column, pa.array(np.zeros(len(column), bool))
    converted = convert(column, target)
    changed = pc.and_(pc.is_null(converted), pc.is_valid(column))
    floats = pa.types.is_floating(data_type) and pa.types.is_floating(target)
    if not (is_text(data_type) or is_text(target) or floats):
        back = convert(converted, data_type)
        same = pc.fill_null(pc.equal(back, column), False)
        both_null = pc.and_(pc.is_null(back), pc.is_null(column))
        changed = pc.or_(changed, pc.invert(pc.or_(same, both_null)))
    return converted, changed
