"""The types of texts in a CSV file, and their values: Spark's rule, whatever the order of records.

Spark tries one type after the other, beginning with the one it has so far: a whole number of 32 and
of 64 bits, one of up to 38 digits, a double, a day, a point in time, a truth value, a text. Where
this makes the type depend on which record comes first, nothing is inferred but an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Flag, auto
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.local.day_patterns import DayPattern

INSTANT = pa.timestamp("us", "UTC")


class Kinds(Flag):
    """What values were found in a column."""

    NONE = 0
    INT = auto()
    LONG = auto()
    DECIMAL = auto()
    DOUBLE = auto()
    DATE = auto()
    TIME = auto()
    BOOLEAN = auto()
    TEXT = auto()
    # A number that cannot be a year, and what Spark dates today or by rules that are not ours.
    NO_YEAR = auto()
    ODD = auto()
    # Days in the form that the option dateFormat says, and such of years that are not ours.
    OWN_DATE = auto()
    ODD_DATE = auto()


_NUMBERS = Kinds.INT | Kinds.LONG | Kinds.DECIMAL | Kinds.DOUBLE
_TIMES = Kinds.DATE | Kinds.TIME
_OWN_DATES = Kinds.OWN_DATE | Kinds.ODD_DATE


class UnknownTypeError(Exception):
    """The type of a column is not told by its values; the message says why."""


@dataclass(frozen=True)
class Found:
    """What is known of the values of a column.

    Parameters
    ----------
    kinds : Kinds
    digits : int
        Of the longest number of more than 64 bits.
    """

    kinds: Kinds = Kinds.NONE
    digits: int = 0

    def __or__(self, other: Found) -> Found:
        return Found(self.kinds | other.kinds, max(self.digits, other.digits))

    def type(self) -> pa.DataType:
        """Return the type of the column.

        Raises
        ------
        UnknownTypeError
            If it would depend on the order of the records, or on the day.
        """
        kinds = self.kinds
        numbers, times = kinds & _NUMBERS, kinds & _TIMES
        boolean = kinds & Kinds.BOOLEAN
        if kinds & Kinds.TEXT or not (kinds & ~Kinds.NO_YEAR):
            return pa.string()
        if kinds & _OWN_DATES:
            if kinds & ~_OWN_DATES:
                return pa.string()
            if kinds & Kinds.ODD_DATE:
                raise UnknownTypeError("days of years with a sign, or of the year 0")
            return pa.date32()
        if kinds & Kinds.ODD:
            if boolean or (numbers and kinds & Kinds.NO_YEAR):
                return pa.string()
            raise UnknownTypeError("times without a day, or in an unusual form")
        if boolean:
            return pa.string() if numbers or times else pa.bool_()
        if numbers and times:
            if kinds & Kinds.NO_YEAR:
                return pa.string()
            raise UnknownTypeError("whole numbers that may be years, and days or times")
        if times:
            return INSTANT if times & Kinds.TIME else pa.date32()
        return self._number()

    def _number(self) -> pa.DataType:
        kinds = self.kinds
        if kinds & Kinds.DOUBLE:
            return pa.float64()
        if kinds & Kinds.DECIMAL:
            if self.digits < (20 if kinds & Kinds.LONG else 10 if kinds & Kinds.INT else 0):
                raise UnknownTypeError("whole numbers of more and of fewer than 64 bits")
            return pa.decimal128(self.digits, 0)
        return pa.int64() if kinds & Kinds.LONG else pa.int32()


_YEAR = r"^[+-]?[0-9]{4,7}$"
_SHORT = r"^[+-]?[0-9]{1,9}$"
_WHOLE = r"^[+-]?[0-9]{1,18}$"
_FRACTION = r"^[+-]?[0-9]*\.[0-9]+$"
_DAY = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"


def look_at(values: pa.Array, known: Found, days: DayPattern | None = None) -> Found:
    """Return what is known of a column after some more values.

    Parameters
    ----------
    values : pyarrow.Array
        Of texts; nulls and empty ones tell nothing.
    known : Found
    days : DayPattern or None
        How days are written; None for as 2026-01-31, which is a point in time beside a pattern.

    Notes
    -----
    Usual forms are looked at by Arrow, others one different value after the other.
    """
    if known.kinds & Kinds.TEXT:
        return known
    different = values.unique()
    different = different.filter(pc.greater(pc.binary_length(different), 0))
    for pattern, kind, to in _USUAL:
        if not len(different):
            return known
        matches = pc.match_substring_regex(different, pattern)
        of_kind = different.filter(matches)
        if not len(of_kind) or (to is not None and not _casts(of_kind, to)):
            continue
        different = different.filter(pc.invert(matches))
        kinds = Kinds.TIME if kind is Kinds.DATE and days is not None else kind
        if kind & _NUMBERS and not known.kinds & Kinds.NO_YEAR:
            years = pc.match_substring_regex(of_kind, _YEAR)
            kinds |= Kinds.NONE if pc.all(years).as_py() else Kinds.NO_YEAR
        known |= Found(kinds)
    for text in different.to_pylist():
        known |= _look_at_one(text, days)
        if known.kinds & Kinds.TEXT:
            break
    return known


_USUAL: tuple[tuple[str, Kinds, pa.DataType | None], ...] = (
    (_SHORT, Kinds.INT, None),
    (r"^[+-]?[1-9][0-9]{10,17}$", Kinds.LONG, None),
    (_FRACTION, Kinds.DOUBLE, None),
    (_DAY, Kinds.DATE, pa.date32()),
    (_TIME, Kinds.TIME, pa.timestamp("us")),
)


def _casts(values: pa.Array, to: pa.DataType) -> bool:
    try:
        values.cast(to)
    except pa.ArrowInvalid:
        return False
    return True


def _look_at_one(text: str, days: DayPattern | None) -> Found:
    year = Kinds.NONE if re.fullmatch(_YEAR, text) else Kinds.NO_YEAR
    if (whole := _whole(text)) is not None:
        if -(2**31) <= whole < 2**31:
            return Found(Kinds.INT | year)
        if -(2**63) <= whole < 2**63:
            return Found(Kinds.LONG | year)
    digits = _digits(text)
    if digits is not None and digits <= 38:
        return Found(Kinds.DECIMAL | year, digits)
    if _double(text) is not None:
        return Found(Kinds.DOUBLE | year)
    if days is not None and days.day(text) is not None:
        return Found(Kinds.OWN_DATE)
    if days is not None and days.is_unusual(text):
        return Found(Kinds.ODD_DATE)
    if days is None and _day(text) is not None:
        return Found(Kinds.DATE)
    told = _time(text)
    if told is not None:
        return Found(Kinds.ODD if told is _ODD else Kinds.TIME)
    if text.lower() in ("true", "false"):
        return Found(Kinds.BOOLEAN)
    return Found(Kinds.TEXT)


def convert(values: pa.Array, to: pa.DataType, days: DayPattern | None = None) -> pa.Array:
    """Return texts as values of the type that was inferred from them.

    Parameters
    ----------
    values : pyarrow.Array
        Of texts.
    to : pyarrow.DataType
    days : DayPattern or None
        As of :func:`look_at`.

    Raises
    ------
    ValueError
        If a text is none of the type; the message does not tell it.
    """
    if pa.types.is_string(to):
        return values
    if pa.types.is_boolean(to):
        values = pc.utf8_lower(values)
        if not pc.all(pc.is_in(values, pa.array(["true", "false", None]))).as_py():
            raise ValueError("no truth value")
        return pc.equal(values, "true")
    if pa.types.is_date(to) and days is not None:
        return _one_by_one(values, to, days.day)
    usual = _WHOLE if pa.types.is_integer(to) else None
    if pa.types.is_temporal(to):
        usual = _DAY if pa.types.is_date(to) else _TIME
    try:
        if usual is None or pc.all(pc.match_substring_regex(values, usual)).as_py() is not False:
            # Arrow has no sign in front of positive numbers.
            plain = pc.replace_substring_regex(values, r"^\+", "") if usual is _WHOLE else values
            naive = pa.timestamp("us") if pa.types.is_timestamp(to) else to
            return plain.cast(naive).cast(to)
    except pa.ArrowInvalid:
        pass
    return _one_by_one(values, to, _reader_of(to))


def _reader_of(to: pa.DataType) -> Callable[[str], Any]:
    if pa.types.is_integer(to):
        return _whole
    if pa.types.is_decimal(to):
        return _decimal
    if pa.types.is_floating(to):
        return _double
    return _day if pa.types.is_date(to) else _time


def _one_by_one(values: pa.Array, to: pa.DataType, read: Callable[[str], Any]) -> pa.Array:
    encoded = values.dictionary_encode()
    found = [read(text) for text in encoded.dictionary.to_pylist()]
    if None in found or _ODD in found:
        raise ValueError("a text is no value of the column's type")
    return pa.array(found, to).take(encoded.indices)


def _whole(text: str) -> int | None:
    """Return a whole number as Java reads it, with digits of any script."""
    if re.fullmatch(r"[+-]?\d+", text) and max(text) < "\U00010000":
        return int(text)
    return None


_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,9})?")


def _decimal(text: str) -> Decimal | None:
    return Decimal(text) if _DECIMAL.fullmatch(text) else None


def _digits(text: str) -> int | None:
    """Return how many digits a number without a fraction has; None for others."""
    number = _decimal(text)
    if number is None or number.as_tuple().exponent != 0:
        return None
    return len(number.as_tuple().digits)


_DOUBLE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?([fFdD]?)")
_HEXADECIMAL = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
_BLANKS = "".join(map(chr, range(33)))
_WORDS = {"NaN": math.nan, "Inf": math.inf, "-Inf": -math.inf}
_JAVA_WORDS = {"NaN": math.nan, "Infinity": math.inf}


def _double(text: str) -> float | None:
    """Return a double as Java reads it, or by the words that Spark has for some."""
    if text in _WORDS:
        return _WORDS[text]
    text = text.strip(_BLANKS)
    if match := _DOUBLE.fullmatch(text):
        return float(text.removesuffix(match[1]))
    if match := _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(match[1])
        except OverflowError:
            return -math.inf if text.startswith("-") else math.inf
    word = _JAVA_WORDS.get(text.removeprefix("-") if text[:1] == "-" else text.removeprefix("+"))
    return None if word is None else -word if text[:1] == "-" else word


def _day(text: str) -> date | None:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


# What may be a point in time to Spark, by rules that are not ours.
_ODD = object()
_MAY_BE_TIME = re.compile(
    r"[+-]?[0-9]{4,6}-[0-9]{1,2}(-[0-9]{1,2}([ T].+)?)?"
    r"|T?[0-9]{1,2}:[0-9]{1,2}([: A-Z+-].*)?",
    re.DOTALL,
)
_POINT = re.compile(
    r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})"
    r"(?:[ T](?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})"
    r"(?:\.(?P<fraction>[0-9]{1,9}))?(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?)?)?)?)?)?"
)


def _time(text: str) -> datetime | object | None:
    """Return a point in time as Spark reads it; ``_ODD`` for what it may read in another way."""
    text = text.strip(_BLANKS + "\x7f")
    match = _POINT.fullmatch(text)
    if match is None or match["year"] == "0000":
        return _ODD if _MAY_BE_TIME.fullmatch(text) else None
    parts = {name: int(match[name] or default) for name, default in _PARTS.items()}
    micros = int((match["fraction"] or "").ljust(6, "0")[:6])
    try:
        moment = datetime(**parts, microsecond=micros, tzinfo=UTC)
        if (zone := match["zone"]) not in (None, "Z"):
            hours, minutes = int(zone[1:3]), int(zone[4:])
            if hours > 18 or minutes > 59 or (hours == 18 and minutes):
                return None
            offset = timedelta(hours=hours, minutes=minutes) * (-1 if zone[0] == "-" else 1)
            moment = moment.replace(tzinfo=timezone(offset)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment


_PARTS = {"year": 1, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0}
