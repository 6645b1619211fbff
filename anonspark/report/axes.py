"""Attributes as columns of numbers: for marginals (bins, groups) and for associations."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.report.bins import Bins
from anonspark.report.groups import Groups
from anonspark.verification.regions import (
    CategoryRegion,
    Leaves,
    OrderedRegion,
    PublishedAttribute,
    code_key,
    read_regions,
)

__all__ = ["GroupAxis", "Intervals", "OrderedAxis", "ValueSets", "read_intervals", "read_sets"]

Figures = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_EMPTY = np.empty(0)


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
    codes: Sequence[str] | None = None,
) -> tuple[ValueSets, Integers]:
    """Read the published columns of a category, or of a masked code.

    Parameters
    ----------
    columns : sequence of pyarrow.Array or pyarrow.ChunkedArray
    attribute : PublishedAttribute
    leaves : mapping of str to collection of str, or None
        What the labels of its hierarchy's file stand for.
    codes : sequence of str or None
        Of a masked code: all codes there are, sorted by
        :func:`~anonspark.verification.regions.code_key`. Without them a mask stands for itself.

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
    keys = [code_key(code) for code in codes or ()]
    values: list[tuple[str, ...]] = []
    for region in regions:
        if isinstance(region, CategoryRegion):
            values.append(region.values or ())
            continue
        own: list[str] = []
        for interval in region.intervals or ():
            low, high = str(interval.low), str(interval.high)
            if codes is None:
                own.append(low[6:])
            else:
                own += codes[bisect_left(keys, low) : bisect_right(keys, high)]
        values.append(tuple(own))
    missing = np.array([region.missing for region in regions], bool)
    untold = np.array([_may_be_anything(region) for region in regions], bool)
    return ValueSets(values, missing, untold), numbers


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
        """Columns of :meth:`columns`: presence, position, squared position."""
        return 3

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

    def columns(self, values: Figures) -> Figures:
        """Return presence, position and squared position; values are NaN where missing."""
        present = ~np.isnan(values)
        span = self.high - self.low
        position = np.where(present, values - self.low, 0.0) / (span if span > 0 else 1.0)
        position = np.clip(position, 0.0, 1.0)
        return np.stack([present.astype(np.float64), position, position**2], axis=1)


@dataclass(frozen=True)
class GroupAxis:
    """A category.

    Parameters
    ----------
    groups : Groups
    """

    groups: Groups

    @property
    def width(self) -> int:
        """Columns of :meth:`columns`: one a group."""
        return len(self.groups)

    def parts(self, regions: ValueSets) -> Figures:
        """Return the part of each region in each group, missing, and untold.

        Returns
        -------
        float64 ndarray of shape (regions, groups + 2)
            Rows add up to 1. Missing, where it is possible, counts like one more value.
        """
        parts = np.zeros((len(regions.values), len(self.groups) + 2))
        parts[:, :-2] = self.groups.spread(regions.values)
        sizes = np.array([len(values) for values in regions.values], np.float64)
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
