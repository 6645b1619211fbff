"""Declared ranges: two bounds as a configuration writes them, and where they lie."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import numpy as np

from anonspark.core.labels import Kind

Bound = int | float | str
"""A number, or a day or moment written as in ISO 8601."""

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(
    r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?)?"
)
_DAY_0 = date(1970, 1, 1)
_MOMENT_0 = datetime(1970, 1, 1, tzinfo=UTC)


class UnfitRangeError(ValueError):
    """Bounds that values of a kind cannot have. The message says what was expected."""


def day_of(text: str) -> int:
    """Return a day as days since 1970-01-01.

    Raises
    ------
    UnfitRangeError
        If it is none.
    """
    try:
        if _DAY.fullmatch(text):
            return (date.fromisoformat(text) - _DAY_0).days
    except ValueError:
        pass
    raise UnfitRangeError("days, as 2026-01-31")


def day_text(day: int) -> str:
    """Return the text of a day, given as days since 1970-01-01."""
    return (_DAY_0 + timedelta(days=day)).isoformat()


def moment_of(text: str) -> int:
    """Return a moment as microseconds since 1970-01-01 in UTC. Of a day its first one.

    Raises
    ------
    UnfitRangeError
        If it is none.
    """
    try:
        if _MOMENT.fullmatch(text):
            moment = datetime.fromisoformat(text)
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
            return (moment - _MOMENT_0) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        pass
    raise UnfitRangeError("moments, as 2026-01-31 12:30:00, in UTC without an offset")


def number_of(bound: Bound) -> Fraction:
    """Return a number as it is written in decimal.

    Raises
    ------
    UnfitRangeError
        If it is none, or not finite.
    """
    if isinstance(bound, str) or (isinstance(bound, float) and not math.isfinite(bound)):
        raise UnfitRangeError("numbers")
    return Fraction(repr(bound))


def places_of_range(kind: Kind, bounds: Sequence[Bound], *, single: bool = False) -> list[Fraction]:
    """Return where bounds lie: numbers as they are, days and microseconds as their number.

    Parameters
    ----------
    kind : Kind
        Of the values.
    bounds : sequence of (int, float or str)
    single : bool
        Whether numbers have 32 bits: the bounds are then the nearest ones that have.

    Raises
    ------
    UnfitRangeError
        If values of the kind cannot have such bounds.
    """
    if kind in ("date", "timestamp"):
        read = day_of if kind == "date" else moment_of
        return [Fraction(read(str(bound))) for bound in bounds]
    if kind in ("boolean", "category"):
        raise UnfitRangeError("a number, date or timestamp as the column's type")
    numbers = [number_of(bound) for bound in bounds]
    if kind == "integer" and any(number.denominator > 1 for number in numbers):
        raise UnfitRangeError("whole numbers, as the column's are")
    if kind == "integer" and any(not -(2**63) <= number < 2**63 for number in numbers):
        raise UnfitRangeError("whole numbers of 64 bits, as the column's are")
    return [Fraction(_nearest(x, single=single)) for x in numbers] if kind == "float" else numbers


def _nearest(number: Fraction, *, single: bool) -> float:
    """Return the nearest float, of 32 bits where it is to be ``single``."""
    largest = float(np.finfo(np.float32 if single else np.float64).max)
    within = float(min(max(number, Fraction(-largest)), Fraction(largest)))
    return float(np.float32(within)) if single else within


def decimal_places(bounds: Sequence[Bound]) -> int:
    """Return the decimal places that numbers need."""
    places = 0
    for bound in bounds:
        number = number_of(bound)
        while (number * 10**places).denominator > 1:
            places += 1
    return places
