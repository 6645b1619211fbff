"""Attributes as columns of numbers: for marginals (bins, groups)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from anonspark.core.arrays import Figures
from anonspark.core.uniform_mass import Runs, Spread, spread_out
from anonspark.release.axes import Axis
from anonspark.release.regions import CategoryRegion, PublishedAttribute, Region
from anonspark.reporting.bins import Bins
from anonspark.reporting.groups import Groups

# Regions whose parts are held at a time.
_BLOCK = 1 << 16


def numbers_axis(attribute: PublishedAttribute) -> Axis:
    """Return the axis of an ordered attribute."""
    whole = attribute.kind in ("integer", "date") and not attribute.is_mean
    return Axis.of_regions(attribute, (), whole=whole)


def spread_present(axis: Axis, regions: Sequence[Region]) -> Spread:
    """Spread regions over the present values that they cover. Over none where all are possible."""
    runs = (Runs(()) if region.is_everything else axis.runs(region) for region in regions)
    present = [Runs(run.ends, elsewhere=run.elsewhere or int(not run.ends)) for run in runs]
    return spread_out(present, whole=axis.whole)


def _with_special(parts: Figures, regions: Sequence[Region], covered: Figures) -> Figures:
    """Return the parts of present values with two columns more, missing and untold.

    Parameters
    ----------
    parts : float64 ndarray of shape (regions, columns)
    regions : sequence of Region
    covered : float64 ndarray of shape (regions,)
        What is covered of the present ones, of which missing is one more.
    """
    may_miss = np.array([region.missing for region in regions], bool)
    covers_all = np.array([region.is_everything for region in regions], bool)
    missing = np.where(may_miss, 1 / (covered + 1), 0.0)
    result = np.column_stack([parts * (1 - missing)[:, None], missing, np.zeros(len(parts))])
    result[covers_all] = 0.0
    result[covers_all, -1] = 1.0
    return result


@dataclass(frozen=True)
class OrderedAxis:
    """An ordered attribute.

    Parameters
    ----------
    bins : Bins
    axis : Axis
        On which published regions lie.
    """

    bins: Bins
    axis: Axis

    def parts(self, regions: Sequence[Region]) -> Figures:
        """Return the part of each region in each bin, missing, and untold.

        Returns
        -------
        float64 ndarray of shape (regions, bins + 2)
            Rows add up to 1. Missing, where it is possible, counts like one bin that is covered.
        """
        spread = spread_present(self.axis, regions)
        parts = spread.shares(*self.bins.ranges(whole=self.axis.whole))
        return _with_special(parts, regions, (parts > 0).sum(axis=1))

    def totals(self, regions: Sequence[Region], records: Figures) -> Figures:
        """Return the records in each bin, missing, and untold.

        Parameters
        ----------
        regions : sequence of Region
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
            block = slice(start, start + _BLOCK)
            totals += records[block] @ self.parts(regions[block])
        return totals


@dataclass(frozen=True)
class GroupAxis:
    """A category.

    Parameters
    ----------
    groups : Groups
    axis : Axis
        On which published regions lie.
    """

    groups: Groups
    axis: Axis

    @cached_property
    def _members(self) -> list[Figures]:
        """Positions of the texts of each group but the last, ascending."""
        index_of = {text.strip(" "): index for text, index in self.groups.places.items()}
        group = np.array([index_of.get(text, -1) for text in self.axis.texts], np.int64)
        return [
            np.flatnonzero(group == index).astype(np.float64)
            for index in range(len(self.groups) - 1)
        ]

    def parts(self, regions: Sequence[Region]) -> Figures:
        """Return the part of each region in each group, missing, and untold.

        Returns
        -------
        float64 ndarray of shape (regions, groups + 2)
            Rows add up to 1. Missing, where it is possible, counts like one more value.
        """
        spread = spread_present(self.axis, regions)
        shares = [spread.share_of(members) for members in self._members]
        rest = np.maximum(1.0 - sum(shares, np.zeros(len(regions))), 0.0)
        has_some = np.array([_has_present(region) for region in regions], bool)
        parts = _with_special(
            np.column_stack([*shares, rest]), regions, np.where(has_some, spread.total, 0.0)
        )
        if self.groups.with_missing:
            parts[:, -3] += parts[:, -2]
            parts[:, -2] = 0.0
        return parts

    def columns(self, values: pa.Array) -> Figures:
        """Return a 1 in the column of each value's group, and no 1 for a value without a group."""
        encoded = values.dictionary_encode()
        last = len(self.groups) - 1
        numbers = [self.groups.places.get(value, last) for value in encoded.dictionary.to_pylist()]
        # The last row is that of missing values.
        parts = np.zeros((len(numbers) + 1, len(self.groups)))
        parts[np.arange(len(numbers)), numbers] = 1.0
        parts[-1, last] = float(self.groups.with_missing)
        indices = encoded.indices.fill_null(len(numbers)).to_numpy(zero_copy_only=False)
        columns: Figures = parts[indices]
        return columns


def _has_present(region: Region) -> bool:
    return bool(region.values if isinstance(region, CategoryRegion) else region.intervals)
