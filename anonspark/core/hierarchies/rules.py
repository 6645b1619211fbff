"""Hierarchies from rules, over the values that occur.

Values come as text, in the form in which they are staged. They are the leaves. The top of each
hierarchy is labelled ``*``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from anonspark.core.hierarchies.hierarchy import Hierarchy

TOP = "*"
"""Label of everything."""

MASK = "*"
"""The sign for a masked character."""

CalendarLevel = Literal["month", "quarter", "year", "decade"]


def interval_hierarchy(
    values: Iterable[str], widths: Sequence[float], origin: float = 0, top: float | None = None
) -> Hierarchy:
    """Build the hierarchy of half-open intervals, labelled as in ``[20-25[`` and ``90+``.

    Parameters
    ----------
    values : iterable of str
        Different finite numbers, written in decimal, with or without an exponent.
    widths : sequence of float
        Widths of the intervals from fine to coarse, each a multiple of the one before. Taken as
        they are written in decimal: 0.1 is a tenth.
    origin : float
        An end of intervals of all widths.
    top : float or None
        Numbers from here on are one group at all levels. Others end here at the latest.

    Returns
    -------
    Hierarchy
        Leaves in numeric order.
    """
    decimals = [_decimal(width) for width in widths]
    start = _decimal(origin)
    last = start if top is None else _decimal(top)
    places = max(_places(number) for number in (*decimals, start, last))
    # In units of the last decimal place all ends are whole numbers.
    units = [int(width.scaleb(places)) for width in decimals]
    first = int(start.scaleb(places))
    end = None if top is None else int(last.scaleb(places))
    numbers = sorted((Fraction(value), value) for value in values)
    rows = []
    for number, value in numbers:
        beyond = number * 10**places - first
        row = [value]
        for unit in units:
            low = first + beyond // unit * unit
            high = low + unit if end is None else min(low + unit, end)
            row.append(f"[{_number_text(low, places)}-{_number_text(high, places)}[")
        if end is not None and number * 10**places >= end:
            row[1:] = [f"{_number_text(end, places)}+"] * len(units)
        rows.append([*row, TOP])
    return Hierarchy.from_rows(rows, height=len(widths) + 1)


def _decimal(number: float) -> Decimal:
    return Decimal(repr(number)).normalize()


def _places(number: Decimal) -> int:
    return max(0, -int(number.as_tuple().exponent))


def _number_text(units: int, places: int) -> str:
    """Write a number of units of the last decimal place, without trailing zeros."""
    digits = f"{abs(units):0{places + 1}d}"
    whole, fraction = digits[: len(digits) - places], digits[len(digits) - places :].rstrip("0")
    sign = "-" if units < 0 else ""
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


def prefix_hierarchy(values: Iterable[str], masked: Sequence[int]) -> Hierarchy:
    """Build the hierarchy of codes whose last characters are masked, as in ``061**``.

    Parameters
    ----------
    values : iterable of str
        Different codes without the sign that masks. If there is one of a single character, all
        have a single character. Otherwise its mask would be the label of everything.
    masked : sequence of int
        Number of characters that each level masks, ascending. In a shorter code, all.

    Returns
    -------
    Hierarchy
        Leaves by length, then by code point: masking keeps the length.
    """
    rows = [
        [value, *(_masked(value, count) for count in masked), TOP]
        for value in sorted(values, key=lambda value: (len(value), value))
    ]
    return Hierarchy.from_rows(rows, height=len(masked) + 1)


def beginning_hierarchy(values: Iterable[str], shown: Sequence[int]) -> Hierarchy:
    """Build the hierarchy of codes by their first characters, as in ``E11*``.

    Parameters
    ----------
    values : iterable of str
        Different codes, of any lengths, without the sign that masks.
    shown : sequence of int
        Number of characters that each level shows, descending. A code with fewer stays as it is.

    Returns
    -------
    Hierarchy
        Leaves by code point.
    """
    rows = [
        [value, *(value[:count] + MASK * (len(value) >= count) for count in shown), TOP]
        for value in sorted(values)
    ]
    return Hierarchy.from_rows(rows, height=len(shown) + 1)


def _masked(value: str, count: int) -> str:
    shown = max(len(value) - count, 0)
    return value[:shown] + MASK * (len(value) - shown)


def calendar_hierarchy(values: Iterable[str], levels: Sequence[CalendarLevel]) -> Hierarchy:
    """Build the hierarchy of dates: ``2020-01``, ``2020-Q1``, ``2020``, ``2020s``.

    Parameters
    ----------
    values : iterable of str
        Different dates, written as in ISO 8601. Years may have more than four digits or a sign.
    levels : sequence of {"month", "quarter", "year", "decade"}
        From fine to coarse.

    Returns
    -------
    Hierarchy
        Leaves in the order of time.
    """
    dates = sorted((*_year_month_day(value), value) for value in values)
    rows = []
    for _, month, _, value in dates:
        year = value.rsplit("-", 2)[0]
        labels = {
            "month": value.rpartition("-")[0],
            "quarter": f"{year}-Q{(month + 2) // 3}",
            "year": year,
            "decade": f"{_decade(year)}s",
        }
        rows.append([value, *(labels[level] for level in levels), TOP])
    return Hierarchy.from_rows(rows, height=len(levels) + 1)


def _decade(year: str) -> str:
    """Return the first year of a year's decade, written as the year is."""
    first = int(year) // 10 * 10
    sign = "-" if first < 0 else year[: year.startswith("+")]
    return f"{sign}{abs(first):04d}"


def _year_month_day(value: str) -> tuple[int, int, int]:
    year, month, day = value.rsplit("-", 2)
    return int(year), int(month), int(day)
