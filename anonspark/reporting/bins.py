"""Bins of numbers and times: edges that no single person gave, each bin with k people or more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Literal

import numpy as np

from anonspark.core.arrays import Figures

Scale = Literal["whole", "real", "date", "timestamp"]
"""What the values are: whole numbers, any numbers, days or microseconds since 1970-01-01 UTC."""

_MOST_BINS = 12
_EDGE_SHARE = 0.02
_DAY = 86_400_000_000
_SECOND = 1_000_000

# Widths of bins of time, in days and in microseconds. Months and years are cut by the calendar.
_MONTHS = (1, 3, 6, 12, 24, 60, 120, 240, 600, 1200)
_DAYS = (1, 2, 5, 10)
_MOMENTS = tuple(
    [_SECOND * seconds for seconds in (1, 5, 15, 30, 60, 300, 900, 1800)]
    + [_SECOND * 3600 * hours for hours in (1, 3, 6, 12)]
)


@dataclass(frozen=True)
class Bins:
    """Bins of an ordered attribute, of which the first and the last one are open.

    Edges ascend. Bin i holds the values from edge i - 1, included, to edge i, not included.

    >>> Bins("whole", (20.0, 40.0)).labels
    ['below 20', '20 to 39', '40 and more']
    """

    scale: Scale
    edges: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.edges) + 1

    @property
    def labels(self) -> list[str]:
        """Names of the bins, none of which reveals the smallest or largest value."""
        if not self.edges:
            return ["all values"]
        if self.scale == "timestamp" and not any(edge % _DAY for edge in self.edges):
            return Bins("date", tuple(edge // _DAY for edge in self.edges)).labels
        times = self.scale in ("date", "timestamp")
        before, after = ("before {}", "{} and later") if times else ("below {}", "{} and more")
        names = [before.format(self._text(self.edges[0]))]
        for low, high in pairwise(self.edges):
            names.append(self._label(low, high))
        return [*names, after.format(self._text(self.edges[-1]))]

    def ranges(self, *, whole: bool) -> tuple[Figures, Figures]:
        """Return the first and last value of each bin, whole ones of whole numbers.

        >>> Bins("whole", (20.0, 40.0)).ranges(whole=True)
        (array([-inf,  20.,  40.]), array([19., 39., inf]))
        """
        edges = np.array(self.edges, np.float64)
        before = edges - 1 if whole else np.nextafter(edges, -np.inf)
        return np.append(-np.inf, edges), np.append(before, np.inf)

    def _label(self, low: float, high: float) -> str:
        if self.scale == "whole":
            first, last = int(low), int(high) - 1
            return f"{first:,}" if first == last else f"{first:,} to {last:,}"
        if self.scale == "date":
            return _days_label(int(low), int(high))
        return f"{self._text(low)} to below {self._text(high)}"

    def _text(self, edge: float) -> str:
        match self.scale:
            case "date":
                day = date(1970, 1, 1) + timedelta(days=int(edge))
                return str(day.year) if (day.month, day.day) == (1, 1) else day.isoformat()
            case "timestamp":
                moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(edge))
                midnight = int(edge) % _DAY == 0
                return moment.strftime("%Y-%m-%d" if midnight else "%Y-%m-%d %H:%M:%S")
            case "whole":
                return f"{int(edge):,}"
            case _:
                return f"{edge:,.10g}"


def _days_label(low: int, high: int) -> str:
    first = date(1970, 1, 1) + timedelta(days=low)
    last = date(1970, 1, 1) + timedelta(days=high - 1)
    if first == last:
        return str(first)
    if first.day != 1 or (last + timedelta(days=1)).day != 1:
        return f"{first} to {last}"
    if (first.month, last.month) == (1, 12):
        return str(first.year) if first.year == last.year else f"{first.year} to {last.year}"
    begin, end = f"{first:%Y-%m}", f"{last:%Y-%m}"
    if first.year == last.year and last.month - first.month == 5 and first.month in (1, 7):
        return f"{first.year}, {'1st' if first.month == 1 else '2nd'} half"
    return begin if begin == end else f"{begin} to {end}"


def plan_bins(scale: Scale, values: Figures, counts: Figures, k: int) -> Bins:
    """Choose at most 14 bins with round edges: numbers, months, years, or parts of the clock.

    ``values`` (n,) are positions of records, such as the middles of their classes, and ``counts``
    (n,) the records at each. At least k records lie at or below the first edge, and as many above
    the last one.

    >>> ages = np.arange(18.0, 70.0)
    >>> plan_bins("whole", ages, np.full(len(ages), 10.0), k=5).labels[:2]
    ['below 20', '20 to 24']
    """
    order = np.argsort(values, kind="stable")
    values, reached = values[order], np.cumsum(counts[order])
    total = float(reached[-1]) if len(reached) else 0.0
    for outside in (max(k, math.ceil(_EDGE_SHARE * total)), k):
        if 2 * outside > total:
            continue
        low = float(values[np.searchsorted(reached, outside)])
        high = float(values[np.searchsorted(reached, total - outside, "right")])
        edges = [edge for edge in _round_edges(scale, low, high) if low < edge <= high]
        if edges:
            return Bins(scale, tuple(float(edge) for edge in edges))
    return Bins(scale, ())


def _round_edges(scale: Scale, low: float, high: float) -> Sequence[float]:
    """Return multiples of a round step from low to high, perhaps also beyond."""
    span = high - low
    if span <= 0 or not math.isfinite(span):
        return []
    if scale == "date":
        return _date_edges(low, high)
    if scale == "timestamp":
        if span > _MOST_BINS * _MOMENTS[-1]:
            return [edge * _DAY for edge in _date_edges(low / _DAY, high / _DAY)]
        moments = next(step for step in _MOMENTS if span <= _MOST_BINS * step)
        return [float(moments * multiple) for multiple in _multiples(low, high, moments)]
    step = _round_step(span / _MOST_BINS)
    if scale == "whole":
        step = max(step, 1.0)
    if step == 0.0:
        return []
    # Rounded through text, so that 3 steps of 0.1 are 0.3.
    return [float(f"{step * multiple:.12g}") for multiple in _multiples(low, high, step)]


def _multiples(low: float, high: float, step: float) -> range:
    return range(math.floor(low / step), math.ceil(high / step) + 1)


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2, 5, 10, ... (times a power of ten) that is not below a number.

    >>> _round_step(3.0), _round_step(0.011)
    (5.0, 0.02)
    """
    power = 10.0 ** math.floor(math.log10(least)) if least > 0 else 0.0
    return next((power * digit for digit in (1, 2, 5, 10) if power * digit >= least), power * 10)


def _date_edges(low: float, high: float) -> list[float]:
    """Choose edges of a few bins for dates, as days since 1970: on days, months or years."""
    span = high - low
    for days in _DAYS:
        if span <= _MOST_BINS * days:
            return [float(days * multiple) for multiple in _multiples(low, high, days)]
    months = next((step for step in _MONTHS if span <= _MOST_BINS * step * 30.5), _MONTHS[-1])
    epoch = date(1970, 1, 1)
    # Years that the calendar has: 1 to 9999.
    first = epoch + timedelta(days=max(math.floor(low), -719_162))
    last = epoch + timedelta(days=min(math.ceil(high), 2_932_896))
    steps = range(first.year * 12 // months, (last.year * 12 + 11) // months + 1)
    starts = (divmod(step * months, 12) for step in steps)
    return [
        float((date(year, month + 1, 1) - epoch).days)
        for year, month in starts
        if 1 <= year <= date.max.year
    ]


def merge_bins(bins: Bins, counts: Sequence[Figures], k: int) -> tuple[Bins, list[list[int]]]:
    """Join adjacent bins until each has k records in every table of counts (bins,).

    Also return the old bins in each new one. A table with fewer than k records leaves one bin.

    >>> merge_bins(Bins("whole", (10.0, 20.0)), [np.array([3.0, 4.0, 9.0])], k=5)
    (Bins(scale='whole', edges=(20.0,)), [[0, 1], [2]])
    """
    members: list[list[int]] = []
    current: list[int] = []
    for index in range(len(bins)):
        current.append(index)
        if all(sum(table[position] for position in current) >= k for table in counts):
            members.append(current)
            current = []
    if current and members:
        members[-1] += current
    elif current:
        members = [current]
    edges = tuple(bins.edges[group[0] - 1] for group in members[1:])
    return Bins(bins.scale, edges), members
