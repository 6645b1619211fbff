"""Values as texts, and texts as values. docs/configuration.md has the grammar."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from math import inf, isfinite
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.raw_columns import flags

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

# What Arrow reads alike, many times faster.
_USUAL_NUMBER = r"^-?[0-9]{1,25}(?:\.[0-9]{1,25})?$"
_USUAL_DAY = r"^[12][0-9]{3}-[0-9]{2}-[0-9]{2}$"
_USUAL_MOMENT = rf"{_USUAL_DAY[:-1]}[ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?:\.[0-9]{{1,6}})?$"

_MANY_DIGITS = Context(prec=400)

# Between them Java and Arrow write floats alike, of 32 bits and of 64.
_SMALLEST_ALIKE, _LARGEST_ALIKE = 1e-3, 1e6


def parse(texts: pa.Array, target: pa.DataType) -> pa.Array:
    """Read texts as values of another type. What cannot be read is null.

    Blanks around a text do not count, and a moment without a zone is one of UTC.

    Parameters
    ----------
    texts : pyarrow.StringArray
    target : pyarrow.DataType
        Boolean, ``date32``, ``timestamp[us]``, a number or a decimal.
    """
    texts = pc.ascii_trim(texts, " ")
    usual = _usual_form(target)
    if usual is None:
        return _parse_each(texts, target)
    matches = pc.fill_null(pc.match_substring_regex(texts, usual), True)
    quick = _parse_usual(pc.if_else(matches, texts, pa.scalar(None, texts.type)), target)
    odd = pc.invert(matches)
    return pc.replace_with_mask(quick, odd, _parse_each(texts.filter(odd), target))


def _usual_form(target: pa.DataType) -> str | None:
    """Return what texts match that Arrow reads alike. None where there are none."""
    if pa.types.is_floating(target):
        return _USUAL_NUMBER
    if pa.types.is_date(target):
        return _USUAL_DAY
    return _USUAL_MOMENT if pa.types.is_timestamp(target) else None


def _parse_usual(texts: pa.Array, target: pa.DataType) -> pa.Array:
    """Read texts of the usual form, and nulls."""
    quick = pa.timestamp("us") if pa.types.is_timestamp(target) else target
    try:
        return texts.cast(quick).view(target)
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
    if not NUMBER.fullmatch(text) and text.lower() != "nan":
        return None
    return nearest_single(text) if narrow else float(text)


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


def _integer(text: str, *, bits: int) -> int | None:
    return within(int(text), bits) if _WHOLE_NUMBER.fullmatch(text) else None


def within(value: int, bits: int) -> int | None:
    """Return a whole number. None where a signed one of so many bits cannot be it."""
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def _decimal(text: str, target: pa.DataType) -> Decimal | None:
    if not NUMBER.fullmatch(text):
        return None
    try:
        return rounded(Decimal(text), target)
    except InvalidOperation:
        return None  # nobody counts that far


def rounded(value: Decimal, target: pa.DataType) -> Decimal | None:
    """Return a decimal with the places of a type. None where it has too many digits."""
    if value and value.adjusted() > target.precision:
        return None
    try:
        found = value.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP, _MANY_DIGITS)
    except InvalidOperation:
        return None
    return found if not found or found.adjusted() + target.scale < target.precision else None


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if re.fullmatch(_DAY, text) else None
    except ValueError:
        return None


def _microseconds(text: str) -> int | None:
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    zone = (match[2] or "Z").replace("UTC", "Z")
    try:
        moment = datetime.fromisoformat(match[1]).replace(
            tzinfo=datetime.fromisoformat(f"1970-01-01T00:00{zone}").tzinfo
        )
    except ValueError:
        return None
    return (moment - _EPOCH) // timedelta(microseconds=1)


def write(values: pa.Array, *, whole: bool = False) -> pa.Array:
    """Write values as texts.

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
    odd = pa.array(~alike & ~integral & flags(values.is_valid()))
    narrow = values.type.bit_width == 32
    others = _each(values.filter(odd), lambda one: float_text(one, narrow=narrow, whole=whole))
    return pc.replace_with_mask(texts, odd, others)


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
