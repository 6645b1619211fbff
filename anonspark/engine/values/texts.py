"""Values as texts, and texts as values, in the way of SQL as Spark speaks it.

What is odd is looked at value by value in Python, each different text once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import partial
from math import inf, isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.values.time_zones import seconds_ahead

_FLOAT = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEXADECIMAL = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
# In the digits of any script, as Java reads decimals.
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_INFINITIES = {"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"}
_BOOLEANS = dict.fromkeys(("t", "true", "y", "yes", "1"), True) | dict.fromkeys(
    ("f", "false", "n", "no", "0"), False
)
_DATE = re.compile(r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
# A zone stands behind seconds only.
_TIMESTAMP = re.compile(
    r"([+-]?[0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T]([0-9]{1,2})"
    r"(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?([^0-9].*)?)?)?)?)?)?",
    re.DOTALL,
)

# What Arrow reads as SQL does.
_USUAL_NUMBER = r"^ *-?[0-9]{1,25}(?:\.[0-9]{1,25})? *$"
_FULL_TIMESTAMP = r"^[12][0-9]{3}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?$"

# What SQL takes off the ends of a text before it reads it as a number with a point, or as
# something else.
_CONTROLS = "".join(map(chr, range(0x21)))
_ALL_CONTROLS = f"{_CONTROLS}\x7f"

_MANY_DIGITS = Context(prec=400)

# Between them Java and Arrow write floats alike, of 32 bits and of 64.
_SMALLEST_ALIKE, _LARGEST_ALIKE = 1e-3, 1e6


def parse(texts: pa.Array, target: pa.DataType) -> pa.Array:
    """Read texts as values of another type; what cannot be read is null.

    Parameters
    ----------
    texts : pyarrow.StringArray
    target : pyarrow.DataType
        Boolean, ``date32``, ``timestamp[us]``, a number or a decimal.
    """
    usual = _usual_form(target)
    if usual is None:
        return _parse_each(texts, target)
    matches = pc.fill_null(pc.match_substring_regex(texts, usual), True)
    quick = _parse_usual(pc.if_else(matches, texts, pa.scalar(None, texts.type)), target)
    odd = pc.invert(matches)
    return pc.replace_with_mask(quick, odd, _parse_each(texts.filter(odd), target))


def _usual_form(target: pa.DataType) -> str | None:
    """Return what texts match that Arrow reads as SQL does; None where there are none."""
    if pa.types.is_floating(target):
        return _USUAL_NUMBER
    return _FULL_TIMESTAMP if pa.types.is_timestamp(target) else None


def _parse_usual(texts: pa.Array, target: pa.DataType) -> pa.Array:
    """Read texts of the usual form, and nulls."""
    if pa.types.is_floating(target):
        return pc.ascii_trim(texts, " ").cast(target)
    try:
        return texts.cast(pa.timestamp("us")).view(target)
    except pa.ArrowInvalid:
        # A day that is in no calendar, or an hour that no clock shows.
        return _parse_each(texts, target)


def _parse_each(texts: pa.Array, target: pa.DataType) -> pa.Array:
    """Read each different text once."""
    coded = texts.dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    read = _reader(target)
    values = [None if text is None else read(text) for text in coded.dictionary.to_pylist()]
    return pa.array(values, target).take(coded.indices)


def _reader(target: pa.DataType) -> Callable[[str], Any]:
    """Return what reads one text as a value, or None, of a type."""
    if pa.types.is_floating(target):
        return lambda text: _float(text.strip(_CONTROLS), narrow=target.bit_width == 32)
    if pa.types.is_decimal(target):
        return lambda text: _decimal(text.strip(_CONTROLS), target)
    read: Callable[[str], Any]
    if pa.types.is_boolean(target):
        read = _boolean
    elif pa.types.is_date(target):
        read = _days
    elif pa.types.is_timestamp(target):
        read = partial(_microseconds, zoned=target.tz is not None)
    else:
        read = partial(_integer, bits=target.bit_width)
    return lambda text: read(text.strip(_ALL_CONTROLS))


def _float(text: str, *, narrow: bool) -> float | None:
    match = _FLOAT.fullmatch(text)
    if match is not None:
        return nearest_single(match[1]) if narrow else float(match[1])
    lowered = text.lower()
    if lowered in _INFINITIES:
        return float(lowered)
    if lowered == "nan":
        return float("nan")
    match = _HEXADECIMAL.fullmatch(text)
    if match is None:
        return None
    try:
        return float.fromhex(match[1])
    except OverflowError:
        return -inf if text.startswith("-") else inf


def nearest_single(text: str) -> float:
    """Return the float of 32 bits that is nearest to a number.

    By way of 64 bits some numbers would be rounded twice: those that come to lie just between two.
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


def _boolean(text: str) -> bool | None:
    return _BOOLEANS.get(text.lower())


def _integer(text: str, *, bits: int) -> int | None:
    return within(int(text), bits) if _WHOLE_NUMBER.fullmatch(text) else None


def within(value: int, bits: int) -> int | None:
    """Return a whole number; None where a signed one of so many bits cannot be it."""
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def _decimal(text: str, target: pa.DataType) -> Decimal | None:
    if not _DECIMAL.fullmatch(text):
        return None
    try:
        return rounded(Decimal(text), target)
    except InvalidOperation:
        return None  # nobody counts that far


def rounded(value: Decimal, target: pa.DataType, rounding: str = ROUND_HALF_UP) -> Decimal | None:
    """Return a decimal with the places of a type; None where it has too many digits."""
    if value and value.adjusted() > target.precision:
        return None
    try:
        found = value.quantize(Decimal(1).scaleb(-target.scale), rounding, _MANY_DIGITS)
    except InvalidOperation:
        return None
    return found if not found or found.adjusted() + target.scale < target.precision else None


def _days(text: str) -> int | None:
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    days = _days_of(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    return None if days is None else within(days, 32)


def _days_of(year: int, month: int, day: int) -> int | None:
    """Return days since 1970, in the calendar of today in all years."""
    # Python knows the years 1 to 9999; the calendar repeats itself every 400 years.
    cycles, within = divmod(year - 1, 400)
    try:
        own = date(within + 1, month, day)
    except ValueError:
        return None
    return own.toordinal() - date(1970, 1, 1).toordinal() + cycles * 146_097


def _microseconds(text: str, *, zoned: bool) -> int | None:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    days = _days_of(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    hour, minute, second = (int(match[place] or 0) for place in (4, 5, 6))
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int(((match[7] or "") + "000000")[:6])
    micros = ((days * 24 + hour) * 60 + minute) * 60_000_000 + second * 1_000_000 + fraction
    ahead = seconds_ahead((match[8] or "UTC").strip(_CONTROLS), micros // 1_000_000)
    if ahead is None:
        return None
    return within(micros - ahead * 1_000_000 if zoned else micros, 64)


def write(values: pa.Array, *, whole: bool = False) -> pa.Array:
    """Write values as texts, as SQL does.

    Parameters
    ----------
    values : pyarrow.Array
        Numbers, booleans, dates, timestamps or texts.
    whole : bool
        Whether floats that are whole numbers have no point.
    """
    own = values.type
    if pa.types.is_dictionary(own):
        return write(values.cast(own.value_type), whole=whole)
    if pa.types.is_floating(own):
        return _float_texts(values, whole=whole)
    if pa.types.is_decimal(own):
        return _each(values, lambda value: format(value, "f"))
    if pa.types.is_timestamp(own):
        micros = values.cast(pa.timestamp("us", own.tz)).view(pa.int64())
        return _each(micros, _timestamp_text)
    if pa.types.is_date(own):
        return _each(values.cast(pa.date32()).view(pa.int32()), _date_text)
    return values.cast(pa.string())


def _float_texts(values: pa.Array, *, whole: bool) -> pa.Array:
    """Write those of the usual sizes by Arrow, which is many times faster than Python."""
    numbers = np.asarray(pc.fill_null(values, 0).to_numpy(zero_copy_only=False))
    sizes = np.abs(numbers)
    rounded_numbers = numbers == np.rint(numbers)
    alike = (sizes >= _SMALLEST_ALIKE) & (sizes < _LARGEST_ALIKE) & ~rounded_numbers
    integral = rounded_numbers & (sizes < (_WHOLE if whole else _LARGEST_ALIKE))
    if not whole:
        integral &= ~np.signbit(numbers) | (numbers != 0)
    integers = pa.array(np.where(integral, numbers, 0).astype(np.int64)).cast(pa.string())
    if not whole:
        integers = pc.binary_join_element_wise(integers, "0", ".")
    texts = pc.if_else(pa.array(integral), integers, values.cast(pa.string()))
    texts = pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string()))
    odd = pa.array(~alike & ~integral & _flags(values.is_valid()))
    narrow = values.type.bit_width == 32
    others = _each(values.filter(odd), lambda one: float_text(one, narrow=narrow, whole=whole))
    return pc.replace_with_mask(texts, odd, others)


def _flags(booleans: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(booleans.to_numpy(zero_copy_only=False), np.bool_)


def _each(values: pa.Array, text_of: Callable[[Any], str]) -> pa.Array:
    """Write each different value once."""
    coded = values.dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    texts = [None if one is None else text_of(one) for one in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices)


# Beyond, floats are not told apart by their whole numbers.
_WHOLE = 1e15


def float_text(value: float, *, narrow: bool = False, whole: bool = False) -> str:
    """Return the shortest text that reads back as the same float, as Java has it from 19 on.

    Older ones write some floats with a digit more than it takes.
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
        # Java writes two digits at least, and takes the nearest of those.
        sign, digits, exponent = Decimal(f"{value:.1e}").as_tuple()
    if not any(digits):
        return "-0.0" if sign else "0.0"
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
    cycles, within = divmod(days + 719_162, 146_097)
    own = date.fromordinal(within + 1)
    year = own.year + 400 * cycles
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{own.month:02d}-{own.day:02d}"


def _timestamp_text(micros: int) -> str:
    days, within = divmod(micros, 86_400_000_000)
    seconds, fraction = divmod(within, 1_000_000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    rest = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{_date_text(days)} {clock}{rest}"
