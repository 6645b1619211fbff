"""Published regions as mass that is spread evenly: how much of each lies between two values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from anonspark.core.arrays import Figures, Integers

_N = TypeVar("_N", int, float)

_BLOCK = 1 << 22
"""Runs times ranges that are compared at once: bounds the memory."""


@dataclass(frozen=True)
class Runs:
    """The values that one region covers.

    ``ends`` are runs of values, both ends included, in order and apart from each other.
    ``elsewhere`` counts covered values without a position: those that only a hierarchy has.
    """

    ends: tuple[tuple[float, float], ...]
    missing: bool = False
    elsewhere: int = 0


@dataclass(frozen=True)
class Spread:
    """Regions of one attribute, each spread evenly over the values that it covers.

    ``low`` and ``high`` (float64, shape (runs,)) are the ends of the runs of all regions, infinite
    and crossed for a region without one. ``points`` is 1 if values are counted (a run of whole
    numbers has ``high - low + 1`` of them, a single value is 1) and 0 if the length of a run
    counts. ``starts`` (int64, shape (regions,)) is the first run of each region. ``total`` is the
    number of values or the length that a region covers: a missing value counts as one value, and as
    no length. ``missing`` is the share of the region that is missing.
    """

    low: Figures
    high: Figures
    points: Figures
    starts: Integers
    total: Figures
    missing: Figures

    def shares(self, low: Figures, high: Figures) -> Figures:
        """Return the share of each region in each range, shape (regions, ranges).

        Both ends of a range are included. They are whole numbers if the values are.

        >>> whole_numbers = spread_out([Runs(((1, 10),))], whole=True)
        >>> whole_numbers.shares(np.array([1.0, 5.0]), np.array([2.0, 20.0])).tolist()
        [[0.2, 0.6]]
        """
        shares = np.empty((len(self.starts), len(low)))
        stops = np.append(self.starts[1:], len(self.low))
        first = 0
        while first < len(self.starts):
            most = self.starts[first] + max(1, _BLOCK // max(1, len(low)))
            last = max(first + 1, int(np.searchsorted(stops, most, "right")))
            runs = slice(self.starts[first], stops[last - 1])
            common = np.minimum(self.high[runs, None], high)
            common -= np.maximum(self.low[runs, None], low)
            apart = common < 0
            common += self.points[runs, None]
            common[apart] = 0.0
            sums = np.add.reduceat(common, self.starts[first:last] - self.starts[first], axis=0)
            shares[first:last] = sums / self.total[first:last, None]
            first = last
        return shares

    def share_of(self, values: Figures) -> Figures:
        """Return the share of each region among some values, which are counted, not measured.

        ``values`` are whole numbers, ascending.
        """
        inside = np.searchsorted(values, self.high, "right")
        inside -= np.searchsorted(values, self.low, "left")
        return np.add.reduceat(np.maximum(inside, 0), self.starts) / self.total

    def followed_by(self, other: Spread) -> Spread:
        """Append the regions of another spread of the same attribute."""
        pairs = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("low", "high", "points", "total", "missing")
        }
        starts = np.concatenate([self.starts, len(self.low) + other.starts])
        return Spread(starts=starts, **pairs)

    def centers(self) -> Figures:
        """Return the mean of the present values of each region, NaN for a region without any.

        >>> regions = [Runs(((1, 2), (9, 9))), Runs((), missing=True)]
        >>> spread_out(regions, whole=True).centers().tolist()
        [4.0, nan]
        """
        length = self._lengths()
        middle = np.where(length > 0, self.low, 0.0) / 2 + np.where(length > 0, self.high, 0.0) / 2
        sums = np.add.reduceat(length * middle, self.starts)
        lengths = np.add.reduceat(length, self.starts)
        means: Figures = np.full(len(sums), np.nan)
        np.divide(sums, lengths, out=means, where=lengths > 0)
        return means

    def _lengths(self) -> Figures:
        return np.where(self.high >= self.low, self.high - self.low + self.points, 0.0)


def spread_out(regions: Sequence[Runs], *, whole: bool) -> Spread:
    """Spread regions over the values that they cover. Takes Python time for each region.

    With ``whole``, values are whole numbers and are counted. Otherwise the length of a run counts,
    and single values only count in regions without length. Raises ValueError for a region that
    covers nothing.
    """
    low: list[float] = []
    high: list[float] = []
    points: list[float] = []
    starts, total, missing = [], [], []
    for region in regions:
        starts.append(len(low))
        has_length = not whole and any(first < last for first, last in region.ends)
        point = 0.0 if has_length else 1.0
        covered = sum(last - first + point for first, last in region.ends)
        others = 0 if has_length else region.elsewhere + region.missing
        if covered + others <= 0:
            raise ValueError("a region that covers nothing")
        for first, last in region.ends or ((np.inf, -np.inf),):
            low.append(first)
            high.append(last)
            points.append(point)
        total.append(covered + others)
        missing.append(0.0 if has_length else region.missing / (covered + others))
    return Spread(
        np.array(low, np.float64),
        np.array(high, np.float64),
        np.array(points, np.float64),
        np.array(starts, np.int64),
        np.array(total, np.float64),
        np.array(missing, np.float64),
    )


def spread_intervals(low: Figures, high: Figures, *, whole: bool) -> Spread:
    """Spread regions that are one run each and never missing. Both ends are included.

    >>> spread_intervals(np.array([0.0]), np.array([4.0]), whole=True).total.tolist()
    [5.0]
    """
    points = np.ones(len(low)) if whole else (low == high).astype(np.float64)
    starts = np.arange(len(low))
    return Spread(low, high, points, starts, high - low + points, np.zeros(len(low)))


def joined_runs(runs: Iterable[tuple[_N, _N]], *, whole: bool) -> tuple[tuple[_N, _N], ...]:
    """Sort runs, and join those that overlap or, with whole numbers, follow each other.

    Runs whose ends are crossed are empty and are left out.

    >>> joined_runs([(5, 6), (1, 2), (3, 3), (9, 8)], whole=True)
    ((1, 3), (5, 6))
    >>> joined_runs([(5.0, 6.0), (1.0, 2.0), (3.0, 3.0)], whole=False)
    ((1.0, 2.0), (3.0, 3.0), (5.0, 6.0))
    """
    step = int(whole)
    joined: list[tuple[_N, _N]] = []
    for first, last in sorted(run for run in runs if run[0] <= run[1]):
        if joined and first <= joined[-1][1] + step:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)
