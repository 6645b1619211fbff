"""Attributes as columns of numbers: for marginals (bins, groups) and for associations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.release.regions import (
    CategoryRegion,
    CodeOrder,
    Leaves,
    OrderedRegion,
    PublishedAttribute,
    read_regions,
)
from anonspark.reporting.association import SCALE
from anonspark.reporting.bins import Bins
from anonspark.reporting.groups import Groups

Figures = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Regions whose parts are held at a time.
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Intervals:
    """Published regions of an ordered attribute.

    Parameters
    ----------
    owner : int64 ndarray of shape (intervals,)
        Region of each interval, ascending.
    low, high : float64 ndarray of shape (intervals,)
        Ends; of whole numbers and days the upper end is the first value behind it.
    middle : float64 ndarray of shape (regions,)
        Mean of the middles of its intervals, NaN where there are none.
    missing, untold : bool ndarray of shape (regions,)
        Whether the value may be missing; whether it may be anything.
    """

    owner: Integers
    low: Figures
    high: Figures
    middle: Figures
    missing: npt.NDArray[np.bool_]
    untold: npt.NDArray[np.bool_]

    def between(self, start: int, stop: int) -> Intervals:
        """Return the regions from one, included, to another one, not included."""
        first, last = np.searchsorted(self.owner, [start, stop])
        return Intervals(
            self.owner[first:last] - start,
            self.low[first:last],
            self.high[first:last],
            self.middle[start:stop],
            self.missing[start:stop],
            self.untold[start:stop],
        )


@dataclass(frozen=True)
class ValueSets:
    """Published regions of a category.

    Parameters
    ----------
    values : list of tuple of str
        Present values of each region; none where it may be anything.
    missing, untold : bool ndarray of shape (regions,)
        Whether the value may be missing; whether it may be anything.
    """

    values: list[tuple[str, ...]]
    missing: npt.NDArray[np.bool_]
    untold: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class CodeRuns:
    """Published regions of a masked code.

    Parameters
    ----------
    codes : CodeOrder
        All that there are.
    owner : int64 ndarray of shape (runs,)
        Region of each run, ascending.
    start, stop : int64 ndarray of shape (runs,)
        Places among the codes; the stop is not included.
    missing, untold : bool ndarray of shape (regions,)
        Whether the value may be missing; whether it may be anything.
    """

    codes: CodeOrder
    owner: Integers
    start: Integers
    stop: Integers
    missing: npt.NDArray[np.bool_]
    untold: npt.NDArray[np.bool_]

    @property
    def values(self) -> list[tuple[str, ...]]:
        """The codes of each region; each is listed as often as a region has it."""
        values: list[list[str]] = [[] for _ in range(len(self.missing))]
        for owner, start, stop in zip(self.owner, self.start, self.stop, strict=True):
            values[owner] += self.codes.texts[start:stop]
        return [tuple(own) for own in values]


def read_intervals(
    columns: Sequence[pa.Array | pa.ChunkedArray], attribute: PublishedAttribute
) -> tuple[Intervals, Integers]:
    """Read the published columns of an ordered attribute.

    Parameters
    ----------
    columns : sequence of pyarrow.Array or pyarrow.ChunkedArray
        Means are read as what they are: single values.
    attribute : PublishedAttribute

    Returns
    -------
    regions : Intervals
        The different regions.
    numbers : int64 ndarray of shape (rows,)
        The region of each row.

    Raises
    ------
    DataError
        If labels cannot be read.
    """
    means = attribute.style == "mean" and attribute.rule is None
    read_as = replace(attribute, style="interval") if means else attribute
    regions, numbers = read_regions(columns, read_as)
    step = 1.0 if attribute.kind in ("integer", "date") and not means else 0.0
    owner, low, high = [], [], []
    middle = np.full(len(regions), np.nan)
    missing, untold = np.zeros(len(regions), bool), np.zeros(len(regions), bool)
    for number, region in enumerate(regions):
        if not isinstance(region, OrderedRegion):
            raise TypeError(f"{attribute.name}: not an ordered attribute")
        missing[number], untold[number] = region.missing, region.intervals is None
        middles = []
        for interval in region.intervals or ():
            first, last = float(interval.low), float(interval.high)
            owner.append(number)
            low.append(first if interval.low_included else first + step)
            high.append(last + step if interval.high_included else last)
            middles.append((low[-1] + max(high[-1] - step, low[-1])) / 2)
        if middles:
            middle[number] = sum(middles) / len(middles)
    ends = np.array(low, np.float64), np.array(high, np.float64)
    return Intervals(np.array(owner, np.int64), *ends, middle, missing, untold), numbers


def read_sets(
    columns: Sequence[pa.Array | pa.ChunkedArray],
    attribute: PublishedAttribute,
    leaves: Leaves | None = None,
) -> tuple[ValueSets, Integers]:
    """Read the published columns of a category; the mask of a code stands for itself.

    Parameters
    ----------
    columns : sequence of pyarrow.Array or pyarrow.ChunkedArray
    attribute : PublishedAttribute
    leaves : mapping of str to collection of str, or None
        What the labels of its hierarchy's file stand for.

    Returns
    -------
    regions : ValueSets
        The different regions.
    numbers : int64 ndarray of shape (rows,)
        The region of each row.

    Raises
    ------
    DataError
        If labels cannot be read.
    """
    regions, numbers = read_regions(columns, attribute, leaves)
    values: list[tuple[str, ...]] = []
    for region in regions:
        if isinstance(region, CategoryRegion):
            values.append(region.values or ())
            continue
        values.append(tuple(str(interval.low)[6:] for interval in region.intervals or ()))
    missing = np.array([region.missing for region in regions], bool)
    untold = np.array([_may_be_anything(region) for region in regions], bool)
    return ValueSets(values, missing, untold), numbers


def read_codes(
    columns: Sequence[pa.Array | pa.ChunkedArray], attribute: PublishedAttribute, codes: CodeOrder
) -> tuple[CodeRuns, Integers]:
    """Read the published column of a masked code.

    Parameters
    ----------
    columns : sequence of pyarrow.Array or pyarrow.ChunkedArray
    attribute : PublishedAttribute
    codes : CodeOrder
        All that there are.

    Returns
    -------
    regions : CodeRuns
        The different regions.
    numbers : int64 ndarray of shape (rows,)
        The region of each row.

    Raises
    ------
    DataError
        If labels cannot be read.
    """
    regions, numbers = read_regions(columns, attribute)
    runs = [
        (number, *codes.run(interval))
        for number, region in enumerate(regions)
        if isinstance(region, OrderedRegion)
        for interval in region.intervals or ()
    ]
    owner, start, stop = np.array(runs, np.int64).reshape(-1, 3).T
    missing = np.array([region.missing for region in regions], bool)
    untold = np.array([_may_be_anything(region) for region in regions], bool)
    return CodeRuns(codes, owner, start, stop, missing, untold), numbers


def _may_be_anything(region: OrderedRegion | CategoryRegion) -> bool:
    if isinstance(region, CategoryRegion):
        return region.values is None
    return region.intervals is None


@dataclass(frozen=True)
class OrderedAxis:
    """An ordered attribute.

    Parameters
    ----------
    bins : Bins
    low, high : float
        Smallest and largest value, between which positions are measured; never shown.
    """

    bins: Bins
    low: float
    high: float

    @property
    def width(self) -> int:
        """Columns of :meth:`columns`: presence, position, and two of the squared position."""
        return 4

    def parts(self, regions: Intervals) -> Figures:
        """Return the part of each region in each bin, missing, and untold.

        Returns
        -------
        float64 ndarray of shape (regions, bins + 2)
            Rows add up to 1. Missing, where it is possible, counts like one bin that is covered.
        """
        n = len(regions.middle)
        parts = np.zeros((n, len(self.bins) + 2))
        np.add.at(parts[:, :-2], regions.owner, self.bins.spread(regions.low, regions.high))
        intervals = np.bincount(regions.owner, minlength=n)
        covered = (parts[:, :-2] > 0).sum(axis=1)
        parts[:, :-2] /= np.maximum(intervals, 1)[:, None]
        missing = np.where(regions.missing, 1 / (covered + 1), 0.0)
        parts[:, :-2] *= (1 - missing)[:, None]
        parts[:, -2] = missing
        parts[regions.untold] = 0.0
        parts[regions.untold, -1] = 1.0
        return parts

    def totals(self, regions: Intervals, records: Figures) -> Figures:
        """Return the records in each bin, missing, and untold.

        Parameters
        ----------
        regions : Intervals
        records : float64 ndarray of shape (regions,)
            How many there are of each.

        Returns
        -------
        float64 ndarray of shape (bins + 2,)

        Notes
        -----
        The parts of 65,536 regions at a time are held.
        """
        totals = np.zeros(len(self.bins) + 2)
        for start in range(0, len(records), _BLOCK):
            stop = min(start + _BLOCK, len(records))
            totals += records[start:stop] @ self.parts(regions.between(start, stop))
        return totals

    def columns(self, values: Figures) -> Figures:
        """Return presence, position and squared position; values are not finite where missing.

        Returns
        -------
        float64 ndarray of shape (rows, 4)
            Multiples of 1 / SCALE. The square is the third one, and the fourth one by SCALE:
            rounded like the position it would be 0 where most values lie far from the largest.
        """
        present = np.isfinite(values)
        span = self.high - self.low
        position = np.where(present, values - self.low, 0.0) / (span if span > 0 else 1.0)
        units = np.rint(np.clip(position, 0.0, 1.0) * SCALE).astype(np.int64)
        high, low = np.divmod(units * units, SCALE)
        columns: Figures = np.stack([present * SCALE, units, high, low], axis=1) / SCALE
        return columns


@dataclass(frozen=True)
class GroupAxis:
    """A category.

    Parameters
    ----------
    groups : Groups
    codes : CodeOrder or None
        Where they are masked by a rule.
    """

    groups: Groups
    codes: CodeOrder | None = None

    @property
    def width(self) -> int:
        """Columns of :meth:`columns`: one a group."""
        return len(self.groups)

    @cached_property
    def _places(self) -> list[Integers]:
        """Places of the codes of each group, ascending."""
        texts = [] if self.codes is None else self.codes.texts
        last = len(self.groups) - 1
        group = np.array([self.groups.places.get(text, last) for text in texts], np.int64)
        return [np.flatnonzero(group == number) for number in range(len(self.groups))]

    def _spread(self, regions: ValueSets | CodeRuns) -> tuple[Figures, Figures]:
        """Return the part of each region in each group, and how many values it has."""
        if isinstance(regions, ValueSets):
            sizes = np.array([len(values) for values in regions.values], np.float64)
            return self.groups.spread(regions.values), sizes
        n = len(regions.missing)
        spread = np.zeros((n, len(self.groups)))
        for number, places in enumerate(self._places):
            inside = np.searchsorted(places, regions.stop) - np.searchsorted(places, regions.start)
            spread[:, number] = np.bincount(regions.owner, inside, n)
        sizes = spread.sum(axis=1)
        # As sets of values that are not known.
        spread[sizes == 0, -1] = 1.0
        return spread / np.maximum(sizes, 1)[:, None], sizes

    def parts(self, regions: ValueSets | CodeRuns) -> Figures:
        """Return the part of each region in each group, missing, and untold.

        Returns
        -------
        float64 ndarray of shape (regions, groups + 2)
            Rows add up to 1. Missing, where it is possible, counts like one more value.
        """
        parts = np.zeros((len(regions.missing), len(self.groups) + 2))
        parts[:, :-2], sizes = self._spread(regions)
        missing = np.where(regions.missing, 1 / (sizes + 1), 0.0)
        parts[:, :-2] *= (1 - missing)[:, None]
        parts[:, -2] = missing
        parts[regions.untold] = 0.0
        parts[regions.untold, -1] = 1.0
        if self.groups.with_missing:
            parts[:, -3] += parts[:, -2]
            parts[:, -2] = 0.0
        return parts

    def columns(self, values: pa.Array | pa.ChunkedArray) -> Figures:
        """Return 1 in the column of each value's group; none where it is missing and not in one."""
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        encoded = values.dictionary_encode()
        last = len(self.groups) - 1
        places = [self.groups.places.get(value, last) for value in encoded.dictionary.to_pylist()]
        # The last row is that of missing values.
        parts = np.zeros((len(places) + 1, len(self.groups)))
        parts[np.arange(len(places)), places] = 1.0
        parts[-1, last] = float(self.groups.with_missing)
        indices = encoded.indices.fill_null(len(places)).to_numpy(zero_copy_only=False)
        columns: Figures = parts[indices]
        return columns
