"""Grids: the values at which published ranges may end, whichever records the table has.

Lines are multiples of a step, or the beginnings of units of the calendar. The values from a line to
the next one are a *strip*.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from anonspark.core.arrays import Figures, Integers
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
    """Read a day as days since 1970-01-01, or raise UnfitRangeError.

    >>> day_of("1970-02-01")
    31
    """
    try:
        if _DAY.fullmatch(text):
            return (date.fromisoformat(text) - _DAY_0).days
    except ValueError:
        pass
    raise UnfitRangeError("days, as 2026-01-31")


def day_text(day: int) -> str:
    """Write a day, days since 1970-01-01, as in ISO 8601.

    >>> day_text(31)
    '1970-02-01'
    """
    return (_DAY_0 + timedelta(days=day)).isoformat()


def moment_of(text: str) -> int:
    """Read a moment as microseconds since 1970-01-01 in UTC, or raise UnfitRangeError.

    A day stands for its first moment.

    >>> moment_of("1970-01-01 00:00:01"), moment_of("1970-01-02") // 10**6
    (1000000, 86400)
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
    """Read a finite number exactly as it is written in decimal, or raise UnfitRangeError.

    >>> number_of(0.1)
    Fraction(1, 10)
    """
    if isinstance(bound, str) or (isinstance(bound, float) and not math.isfinite(bound)):
        raise UnfitRangeError("numbers")
    return Fraction(repr(bound))


def bound_numbers(kind: Kind, bounds: Sequence[Bound], *, single: bool = False) -> list[Fraction]:
    """Return bounds as numbers: days and microseconds are counted from 1970-01-01.

    With ``single``, floats have 32 bits, and the bounds are the nearest of these. Raises
    UnfitRangeError if values of the kind cannot have such bounds.

    >>> bound_numbers("date", ["1970-01-01", "1970-02-01"])
    [Fraction(0, 1), Fraction(31, 1)]
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
    """Return the nearest float, of 32 bits if ``single``."""
    largest = float(np.finfo(np.float32 if single else np.float64).max)
    within = float(min(max(number, Fraction(-largest)), Fraction(largest)))
    return float(np.float32(within)) if single else within


def decimal_places(bounds: Sequence[Bound]) -> int:
    """Return how many decimal places numbers need.

    >>> decimal_places([1, 0.25, 1.5])
    2
    """
    places = 0
    for bound in bounds:
        number = number_of(bound)
        while (number * 10**places).denominator > 1:
            places += 1
    return places


Lines = npt.NDArray[Any]
CalendarUnit = Literal["minute", "hour", "day", "week", "month", "quarter", "year", "decade"]
CALENDAR_UNITS: tuple[CalendarUnit, ...] = get_args(CalendarUnit)

_MINUTES = {"minute": 1, "hour": 60, "day": 1440, "week": 7 * 1440}
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_MINUTES_OF = {**_MINUTES, **{unit: 43_200 * months for unit, months in _MONTHS.items()}}
_MICROS = 60_000_000
# The first Monday after 1970-01-01, in days.
_MONDAY = 4
# Months from the year 0 to 1970.
_MONTHS_TO_1970 = 1970 * 12

# Strips of these kinds end at the line above, because no label can exclude it. So do decimals,
# because the records decide how many places they have.
_CONTINUOUS: tuple[Kind, ...] = ("float", "decimal", "timestamp")

# Steps of the default grid in the range of an attribute, at least; of those of the calendar.
_DEFAULT_STEPS, _DEFAULT_UNITS = 200, 120

# Larger numbers may share their nearest float.
_EXACT, _EXACT_SINGLE = 2**51, 2**22


class UnfitGridError(ValueError):
    """A grid that values of a kind cannot have. The message says what was expected."""


@dataclass(frozen=True)
class Grid:
    """A grid of the values of one attribute.

    The step is a positive number, or of days and moments a unit of the calendar in UTC. All methods
    take and return int64 codes (days and microseconds since 1970-01-01), or float64 values of the
    kind ``float``. With ``single``, floats and the lines among them have 32 bits.
    """

    step: Fraction | CalendarUnit
    kind: Kind
    single: bool = False

    def floor(self, values: Lines, scale: int = 0) -> Lines:
        """Return the line at or below each value. Decimals have ``scale`` places.

        >>> Grid(Fraction(5), "integer").floor(np.array([-1, 0, 12])).tolist()
        [-5, 0, 10]
        """
        if isinstance(self.step, str) and self.step in _MONTHS:
            return self._day_of_month(self._months(values))
        if self.kind == "float":
            numerator, denominator = self._ratio
            lines = np.floor(values * (denominator / numerator))
            # The quotient is rounded, the lines are exact.
            lines -= self._line(lines) > values
            lines += self._line(lines + 1) <= values
            return self._line(lines)
        step, first = self._units(scale), self._first
        return (values - first) // step * step + first

    def following(self, lines: Lines, scale: int = 0) -> Lines:
        """Return the line above each line.

        >>> Grid("year", "date").following(np.array([0])).tolist()
        [365]
        """
        if isinstance(self.step, str) and self.step in _MONTHS:
            return self._day_of_month(self._months(lines) + _MONTHS[self.step])
        if self.kind == "float":
            numerator, denominator = self._ratio
            return self._line(np.rint(lines * (denominator / numerator)) + 1)
        return lines + self._units(scale)

    def last(self, lines: Lines, scale: int = 0) -> Lines:
        """Return the upper end of the strip at each line.

        It is the last value of whole numbers and days, and the line above for other kinds.

        >>> Grid(Fraction(5), "integer").last(np.array([10])).tolist()
        [14]
        """
        return self.following(lines, scale) - gap(self.kind)

    def is_exact(self, largest: Fraction) -> bool:
        """Return whether floats hold all lines up to a number."""
        if self.kind != "float":
            return True
        numerator, denominator = self._ratio
        most = _EXACT_SINGLE if self.single else _EXACT
        return largest * denominator < most and numerator < most

    @property
    def _ratio(self) -> tuple[int, int]:
        step = Fraction(self.step)
        return step.numerator, step.denominator

    def _line(self, numbers: Figures) -> Figures:
        # Both are exact, so the quotient is the float that is written as the line.
        numerator, denominator = self._ratio
        lines: Figures = numbers * numerator / denominator + 0.0
        return lines.astype(np.float32).astype(np.float64) if self.single else lines

    def _units(self, scale: int) -> int:
        """Return the step in units of the codes."""
        if isinstance(self.step, str):
            minutes = _MINUTES[self.step]
            return minutes // 1440 if self.kind == "date" else minutes * _MICROS
        return int(self.step * 10**scale)

    @property
    def _first(self) -> int:
        if self.step != "week":
            return 0
        return _MONDAY if self.kind == "date" else _MONDAY * 1440 * _MICROS

    @property
    def _clock(self) -> str:
        return "datetime64[D]" if self.kind == "date" else "datetime64[us]"

    def _months(self, values: Integers) -> Integers:
        """Return the month in which the unit of each value begins, counted from the year 0."""
        months = values.astype(self._clock).astype("datetime64[M]").astype(np.int64)
        size = _MONTHS[str(self.step)]
        return (months + _MONTHS_TO_1970) // size * size

    def _day_of_month(self, months: Integers) -> Integers:
        begun = (months - _MONTHS_TO_1970).astype("datetime64[M]")
        return begun.astype(self._clock).astype(np.int64)


def gap(kind: Kind) -> int:
    """Return by how much the values of a strip end before the line above, in codes.

    >>> gap("integer"), gap("float")
    (1, 0)
    """
    return int(kind not in _CONTINUOUS)


def read_grid(step: float | str, kind: Kind) -> Grid:
    """Return the grid of a configured step. Raises UnfitGridError if the kind cannot have it.

    >>> read_grid(0.5, "float").step
    Fraction(1, 2)
    """
    if kind in ("date", "timestamp"):
        units = CALENDAR_UNITS if kind == "timestamp" else CALENDAR_UNITS[2:]
        for unit in units:
            if step == unit:
                return Grid(unit, kind)
        raise UnfitGridError(f"one of {', '.join(units)}")
    if kind in ("boolean", "category") or isinstance(step, str):
        raise UnfitGridError("a number, and only of numbers, for days and moments a unit of time")
    number = Fraction(repr(step))
    if kind == "integer" and number.denominator > 1:
        raise UnfitGridError("a whole number, as the column's are")
    return Grid(number, kind)


def default_grid(kind: Kind, low: Fraction, high: Fraction, places: int) -> Grid | None:
    """Propose a grid of some 200 to 500 steps in a range, or None for equal values and names.

    A step is 1, 2 or 5 times a power of ten, the largest with at least 200 steps in the range, but
    for decimals no finer than their ``places``. For days and moments it is the longest of a month,
    week, day, hour or minute with at least 120 in the range.

    >>> default_grid("integer", Fraction(0), Fraction(1000), 0).step
    Fraction(5, 1)
    >>> default_grid("date", Fraction(0), Fraction(3650), 0).step
    'month'
    """
    if kind in ("boolean", "category") or low >= high:
        return None
    width = high - low
    if kind in ("date", "timestamp"):
        minutes = width * 1440 if kind == "date" else width / _MICROS
        units = ("month", "week", "day", "hour", "minute")[: 3 if kind == "date" else 5]
        fit = [unit for unit in units if minutes >= _DEFAULT_UNITS * _MINUTES_OF[unit]]
        return read_grid(fit[0] if fit else units[-1], kind)
    exponent = len(str(int(width))) if width >= 1 else -len(str(int(1 / width)))
    steps = (
        Fraction(digit) * Fraction(10) ** power
        for power in range(exponent, exponent - 8, -1)
        for digit in (5, 2, 1)
    )
    step = next(step for step in steps if step * _DEFAULT_STEPS <= width)
    if kind != "float":
        step = max(step, Fraction(1, 10**places))
    return Grid(step, kind)


def grid_text(grid: Grid) -> float | str:
    """Return the step of a grid as a configuration or a manifest writes it.

    >>> grid_text(Grid(Fraction(1, 2), "float")), grid_text(Grid("month", "date"))
    (0.5, 'month')
    """
    if isinstance(grid.step, str):
        return grid.step
    return int(grid.step) if grid.step.denominator == 1 else float(grid.step)
