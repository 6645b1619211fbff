"""Published regions as spread-out mass: how much of each lies between two values."""

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

    Parameters
    ----------
    ends : tuple of (float, float)
        Runs of values, both ends included, in order and apart from each other.
    missing : bool
        Whether the value may be missing.
    elsewhere : int
        Covered values that have no position: those of a hierarchy that the original lacks.
    """

    ends: tuple[tuple[float, float], ...]
    missing: bool = False
    elsewhere: int = 0


@dataclass(frozen=True)
class Spread:
    """Regions of one attribute, each spread evenly over the values that it covers.

    Parameters
    ----------
    low, high : float64 ndarray of shape (runs,)
        Ends of the runs of all regions. Infinite and crossed where a region has none.
    points : float64 ndarray of shape (runs,)
        1 where values are counted: a run of whole numbers has ``high - low + 1`` of them, one
        value has one. 0 where the length of a run counts.
    starts : int64 ndarray of shape (regions,)
        First run of each region.
    total : float64 ndarray of shape (regions,)
        What a region covers: values, or a length. Missing is one more value, and nothing beside a
        length.
    missing : float64 ndarray of shape (regions,)
        The share of it that is missing.
    """

    low: Figures
    high: Figures
    points: Figures
    starts: Integers
    total: Figures
    missing: Figures

    def shares(self, low: Figures, high: Figures) -> Figures:
        """Return the share of each region that lies in each range.

        Parameters
        ----------
        low, high : float64 ndarray of shape (ranges,)
            Both ends included. Whole numbers where values are.

        Returns
        -------
        float64 ndarray of shape (regions, ranges)
            From 0 to 1.
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
        """Return the share of each region that is among some values, float64 ndarray, 0 to 1.

        Parameters
        ----------
        values : float64 ndarray of shape (values,)
            Whole numbers, ascending, of regions whose values are counted.
        """
        inside = np.searchsorted(values, self.high, "right")
        inside -= np.searchsorted(values, self.low, "left")
        return np.add.reduceat(np.maximum(inside, 0), self.starts) / self.total

    def followed_by(self, other: Spread) -> Spread:
        """Return the regions of both, those of the other behind these."""
        pairs = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("low", "high", "points", "total", "missing")
        }
        starts = np.concatenate([self.starts, len(self.low) + other.starts])
        return Spread(starts=starts, **pairs)

    def centers(self) -> Figures:
        """Return the mean of the present values of each region, NaN where it has none."""
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
    """Spread regions over the values that they cover.

    Parameters
    ----------
    regions : sequence of Runs
    whole : bool
        Whether the values are whole numbers, which are counted. Otherwise the length of a run
        counts, and single values do where a region has nothing else.

    Raises
    ------
    ValueError
        If a region covers nothing.

    Notes
    -----
    Python time for each region: give each different one once.
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


def one_run_each(low: Figures, high: Figures, *, whole: bool) -> Spread:
    """Spread regions that are one run each, none of them missing.

    Parameters
    ----------
    low, high : float64 ndarray of shape (regions,)
        Ends, both included.
    whole : bool
        Whether the values are whole numbers, which are counted.
    """
    points = np.ones(len(low)) if whole else (low == high).astype(np.float64)
    starts = np.arange(len(low))
    return Spread(low, high, points, starts, high - low + points, np.zeros(len(low)))


def joined_runs(runs: Iterable[tuple[_N, _N]], *, whole: bool) -> tuple[tuple[_N, _N], ...]:
    """Return runs in order, those that overlap, or follow one another, as one.

    Parameters
    ----------
    runs : iterable of (float, float) or (int, int)
        In any order. Empty ones, whose ends are crossed, are left out.
    whole : bool
        Whether the values are whole numbers: then 3 follows 2.
    """
    step = int(whole)
    joined: list[tuple[_N, _N]] = []
    for first, last in sorted(run for run in runs if run[0] <= run[1]):
        if joined and first <= joined[-1][1] + step:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)
