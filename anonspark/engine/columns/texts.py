"""Values as texts, and texts as values, in the way of SQL as Spark speaks it.

What is odd is looked at value by value in Python, each different text once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NUMBER = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_INFINITIES = {"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"}
_BOOLEANS = dict.fromkeys(("t", "true", "y", "yes", "1"), True) | dict.fromkeys(
    ("f", "false", "n", "no", "0"), False
)
_DATE = re.compile(r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIMESTAMP = re.compile(
    r"([+-]?[0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T](?:([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?)?)?(.*))?)?)?)?",
    re.DOTALL,
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?(?::?([0-9]{2}))?")

# What SQL takes off the ends of a text before it reads it as something else.
_CONTROLS = "".join(map(chr, range(0x21)))

_MANY_DIGITS = Context(prec=400)
_LARGEST = np.iinfo(np.int64)


def parse(texts: pa.Array, target: pa.DataType) -> pa.Array:
    """Read texts as values of another type; what cannot be read is null.

    Parameters
    ----------
    texts : pyarrow.StringArray
    target : pyarrow.DataType
        Boolean, ``date32``, ``timestamp[us]``, a number or a decimal.
    """
    if pa.types.is_floating(target):
        quick = _quick_floats(texts, target)
        if quick is not None:
            return quick
    coded = texts.dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    read = _reader(target)
    values = [
        None if text is None else read(text.strip(_CONTROLS))
        for text in coded.dictionary.to_pylist()
    ]
    return pa.array(values, target).take(coded.indices)


def _quick_floats(texts: pa.Array, target: pa.DataType) -> pa.Array | None:
    """Read texts that are nothing but usual numbers; None where one is not."""
    if not pc.all(
        pc.match_substring_regex(texts, r"^ *-?[0-9]+(\.[0-9]+)? *$"), min_count=0
    ).as_py():
        return None
    return pc.ascii_trim(texts, " ").cast(target)


def _reader(target: pa.DataType) -> Callable[[str], Any]:
    if pa.types.is_floating(target):
        narrow = np.float32 if target.bit_width == 32 else np.float64
        return lambda text: _float(text, narrow)
    if pa.types.is_integer(target):
        return _integer
    if pa.types.is_decimal(target):
        return lambda text: _decimal(text, target)
    if pa.types.is_boolean(target):
        return lambda text: _BOOLEANS.get(text.lower())
    if pa.types.is_date(target):
        return _days
    return lambda text: _microseconds(text, zoned=target.tz is not None)


def _float(text: str, narrow: Callable[[str], Any]) -> float | None:
    match = _NUMBER.fullmatch(text)
    if match is not None:
        with np.errstate(over="ignore"):
            return float(narrow(match[1]))
    lowered = text.lower()
    if lowered in _INFINITIES:
        return float(lowered)
    return float("nan") if lowered == "nan" else None


def _integer(text: str) -> int | None:
    if not _WHOLE_NUMBER.fullmatch(text):
        return None
    value = int(text)
    return value if _LARGEST.min <= value <= _LARGEST.max else None


def _decimal(text: str, target: pa.DataType) -> Decimal | None:
    match = _NUMBER.fullmatch(text)
    if match is None or match[1] != match[0]:
        return None
    return rounded(Decimal(match[1]), target)


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
    return _days_of(int(match[1]), int(match[2] or 1), int(match[3] or 1))


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
    zone = (match[8] or "").strip(_CONTROLS)
    offset = _offset(zone, micros) if zone else 0
    if offset is None:
        return None
    return micros - offset if zoned else micros


def _offset(zone: str, micros: int) -> int | None:
    """Return what a zone is ahead of UTC at a local time, in microseconds."""
    if zone in ("Z", "UTC", "GMT", "UT"):
        return 0
    match = _OFFSET.fullmatch(zone)
    if match is not None:
        seconds = int(match[2]) * 3600 + int(match[3] or 0) * 60 + int(match[4] or 0)
        return (
            (seconds if match[1] == "+" else -seconds) * 1_000_000 if seconds <= 18 * 3600 else None
        )
    try:
        local = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
        ahead = local.replace(tzinfo=ZoneInfo(zone)).utcoffset()
    except (ValueError, OverflowError, OSError, LookupError):
        return None
    return None if ahead is None else ahead // timedelta(microseconds=1)


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
        return _each(
            values, lambda value: float_text(value, narrow=own.bit_width == 32, whole=whole)
        )
    if pa.types.is_decimal(own):
        return _each(values, lambda value: format(value, "f"))
    if pa.types.is_timestamp(own):
        micros = values.cast(pa.timestamp("us", own.tz)).view(pa.int64())
        return _each(micros, _timestamp_text)
    if pa.types.is_date(own):
        return _each(values.cast(pa.date32()).view(pa.int32()), _date_text)
    return values.cast(pa.string())


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
    """Return the shortest text that reads back as the same float, in the form that Java has."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if whole and abs(value) < _WHOLE and value == int(value):
        return str(int(value))
    sign, digits, exponent = Decimal(str(np.float32(value)) if narrow else repr(value)).as_tuple()
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


def truncated(value: Decimal) -> int | None:
    """Return a number without its places; None where 64 bits do not hold it."""
    found = int(value.to_integral_value(ROUND_DOWN))
    return found if _LARGEST.min <= found <= _LARGEST.max else None
