"""Finished classes: their published columns, their bounds and what they lose."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Figures, Flags
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.core.labels import (
    MISSING,
    category_label,
    end_labels,
    hierarchy_label,
    interval_labels,
    value_labels,
)

Style = Literal["interval", "bounds", "mean"]

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PublishedColumn:
    """A column of the release, with its published name and what it holds.

    ``attribute`` is the index of the quasi-identifier that it describes.
    """

    name: str
    attribute: int
    content: Literal["label", "lowest", "highest", "mean", "set", "missing"]
    arrow_type: pa.DataType


@dataclass(frozen=True)
class ClassFigures:
    """Bounds and loss of classes, arrays of one element a class, or of shape (classes, d).

    ``lowest`` and ``highest`` are the bounds of each quasi-identifier, null if all values are
    missing. ``levels`` (int64) is the level of the hierarchy that each is published at; without a
    hierarchy it is 0 for one value and 1 for several. ``penalties`` (float64) is the certainty
    penalty of each, in [0, 1] (Xu et al. 2006), and ``losses`` the share of the other values of the
    domain that the class covers, in [0, 1] (ILoss, Xiao and Tao 2006).
    """

    sizes: Codes
    lowest: list[pa.Array]
    highest: list[pa.Array]
    levels: Codes
    penalties: Figures
    losses: Figures


@dataclass(frozen=True)
class _Extent:
    """Values that one quasi-identifier covers in each class, without missing ones.

    ``codes`` are the smallest and the largest code of records, whose ends the bounds are.
    """

    lowest: Codes
    highest: Codes
    some_missing: Flags
    all_missing: Flags
    codes: tuple[Codes, Codes]

    @classmethod
    def of(
        cls, identifier: QuasiIdentifier, low: Codes, high: Codes, some: Flags, every: Flags
    ) -> _Extent:
        """Return the extent between two codes, which are the same if all values are missing."""
        ends = identifier.first(low), identifier.last(high)
        low_end, high_end = (np.where(every, low, end) for end in ends)
        return cls(low_end, high_end, some, every, (low, high))


@dataclass(frozen=True)
class Generalizer:
    """Turns classes of records into published columns.

    ``style`` is how a class is published. With ``shows_missing``, missing values are a category, so
    that styles without a label for them need a column that shows them.
    """

    quasi_identifiers: tuple[QuasiIdentifier, ...]
    style: Style
    shows_missing: bool

    def columns(self) -> list[PublishedColumn]:
        """Return the columns that describe quasi-identifiers in the release, in order.

        >>> age = QuasiIdentifier("age", "integer", pa.int64(), 0, 99)
        >>> [column.name for column in Generalizer((age,), "bounds", shows_missing=False).columns()]
        ['age_min', 'age_max']
        """
        columns = []
        for index, quasi_identifier in enumerate(self.quasi_identifiers):
            name, value_type = quasi_identifier.name, quasi_identifier.arrow_type
            if quasi_identifier.is_category and self.style == "bounds":
                columns.append(PublishedColumn(name, index, "set", pa.list_(pa.string())))
                continue
            if quasi_identifier.is_category or self.style == "interval":
                columns.append(PublishedColumn(name, index, "label", pa.string()))
                continue
            if self.style == "bounds":
                columns.append(PublishedColumn(f"{name}_min", index, "lowest", value_type))
                columns.append(PublishedColumn(f"{name}_max", index, "highest", value_type))
            else:
                numeric = quasi_identifier.kind in ("integer", "float", "decimal")
                mean_type = pa.float64() if numeric else value_type
                columns.append(PublishedColumn(name, index, "mean", mean_type))
            if self.shows_missing:
                columns.append(PublishedColumn(f"{name}_missing", index, "missing", pa.bool_()))
        return columns

    @property
    def has_means(self) -> bool:
        """Return whether the bounds of some quasi-identifier are hidden behind a mean."""
        return any(column.content == "mean" for column in self.columns())

    def generalize(self, codes: Codes, starts: Codes) -> tuple[list[pa.Array], ClassFigures]:
        """Generalize classes: an array for each of :meth:`columns`, and the figures.

        ``codes`` (int64, shape (n, d)) are those of the records, class by class, in canonical order
        inside each, and ``starts`` (classes + 1,) where each class begins. No class is empty.

        >>> age = QuasiIdentifier("age", "integer", pa.int64(), 0, 100)
        >>> generalizer = Generalizer((age,), "interval", shows_missing=False)
        >>> ages, starts = np.array([[17], [42], [50]]), np.array([0, 2, 3])
        >>> columns, figures = generalizer.generalize(ages, starts)
        >>> columns[0].to_pylist(), figures.penalties.tolist()
        (['[17-42]', '50'], [[0.25], [0.0]])
        """
        extents = [
            _extent(quasi_identifier, codes[:, index], starts)
            for index, quasi_identifier in enumerate(self.quasi_identifiers)
        ]
        lowest, highest = [], []
        penalties = np.empty((len(starts) - 1, len(self.quasi_identifiers)))
        losses = np.empty_like(penalties)
        levels = np.empty(penalties.shape, np.int64)
        for index, (quasi_identifier, extent) in enumerate(
            zip(self.quasi_identifiers, extents, strict=True)
        ):
            lowest.append(_decode(quasi_identifier, extent.lowest, extent.all_missing))
            highest.append(_decode(quasi_identifier, extent.highest, extent.all_missing))
            penalties[:, index] = _span(quasi_identifier, extent)
            levels[:, index] = _level(quasi_identifier, extent, penalties[:, index])
            losses[:, index] = _loss(quasi_identifier, extent, codes[:, index], starts)
        published = [
            self._column(column, extents[column.attribute], codes[:, column.attribute], starts)
            for column in self.columns()
        ]
        return published, ClassFigures(np.diff(starts), lowest, highest, levels, penalties, losses)

    def penalty(self, codes: Codes, starts: Codes, *, by_sets: bool = False) -> Figures:
        """Return what groups would add to ``gcp_total`` as classes. See :meth:`generalize`.

        It is the number of their records times the weighted sum of certainty penalties. With
        ``by_sets`` a category loses by the number of values in its set, as in ``loss``, and not by
        its span in the order.
        """
        total = np.zeros(len(starts) - 1)
        for index, quasi_identifier in enumerate(self.quasi_identifiers):
            extent = _extent(quasi_identifier, codes[:, index], starts)
            share = _span(quasi_identifier, extent)
            if by_sets and quasi_identifier.is_category:
                domain = quasi_identifier.domain_size
                others = _loss(quasi_identifier, extent, codes[:, index], starts)
                share = others * domain / max(domain - 1, 1)
            total += quasi_identifier.weight * share
        return total * np.diff(starts)

    def _column(
        self, column: PublishedColumn, extent: _Extent, codes: Codes, starts: Codes
    ) -> pa.Array:
        """Build a published column of all classes."""
        quasi_identifier = self.quasi_identifiers[column.attribute]
        match column.content:
            case "missing":
                return pa.array(extent.some_missing)
            case "lowest":
                return _decode(quasi_identifier, extent.lowest, extent.all_missing)
            case "highest":
                return _decode(quasi_identifier, extent.highest, extent.all_missing)
            case "mean":
                return _mean(quasi_identifier, extent, codes, starts, column.arrow_type)
            case "set":
                return pa.array(_category_sets(quasi_identifier, codes, starts), column.arrow_type)
            case "label" if quasi_identifier.hierarchy is not None:
                labels = _hierarchy_labels(quasi_identifier.hierarchy, extent)
                return pa.array(labels, pa.string())
            case "label" if quasi_identifier.is_category:
                sets = _category_sets(quasi_identifier, codes, starts)
                label_of = {categories: category_label(categories) for categories in set(sets)}
                return pa.array([label_of[categories] for categories in sets], pa.string())
            case "label":
                return _interval_labels(quasi_identifier, extent)


def _extent(quasi_identifier: QuasiIdentifier, codes: Codes, starts: Codes) -> _Extent:
    classes = len(starts) - 1
    if not quasi_identifier.has_missing:
        no_missing = np.zeros(classes, bool)
        low, high = (end.reduceat(codes, starts[:-1]) for end in (np.minimum, np.maximum))
        return _Extent.of(quasi_identifier, low, high, no_missing, no_missing)
    missing = codes == quasi_identifier.missing_code
    lowest = np.minimum.reduceat(codes, starts[:-1])
    present_or_low = np.where(missing, np.iinfo(np.int64).min, codes)
    highest = np.maximum.reduceat(present_or_low, starts[:-1])
    some_missing = np.logical_or.reduceat(missing, starts[:-1])
    all_missing = np.logical_and.reduceat(missing, starts[:-1])
    highest = np.where(all_missing, lowest, highest)
    return _Extent.of(quasi_identifier, lowest, highest, some_missing, all_missing)


def _decode(quasi_identifier: QuasiIdentifier, codes: Codes, all_missing: Flags) -> pa.Array:
    if all_missing.any():
        codes = np.where(all_missing, quasi_identifier.missing_code, codes)
    return quasi_identifier.decode(codes)


def _span(quasi_identifier: QuasiIdentifier, extent: _Extent) -> Figures:
    """Return the share of the global range that each class covers, in [0, 1].

    With a hierarchy it is the share of all leaves below the lowest common ancestor, 0 for a leaf.
    """
    if quasi_identifier.hierarchy is not None:
        covered = _covered_leaves(quasi_identifier.hierarchy, extent)
        share = np.where(covered > 1, covered / max(len(quasi_identifier.categories), 1), 0.0)
        # Any value may be missing, so such a class shows nothing for sure.
        return np.where(extent.some_missing & ~extent.all_missing, 1.0, share)
    last = extent.highest
    if quasi_identifier.is_category:
        last = np.where(extent.some_missing, quasi_identifier.missing_code, last)
    positions = quasi_identifier.positions
    span = (positions(last) - positions(extent.lowest)) / quasi_identifier.range
    if not quasi_identifier.is_category:
        # A class with numbers and missing values shows nothing for sure: that is a whole range.
        span = np.where(extent.some_missing & ~extent.all_missing, 1.0, span)
    return np.minimum(span, 1.0)


def _level(quasi_identifier: QuasiIdentifier, extent: _Extent, spans: Figures) -> Codes:
    """Return the level that each class is published at."""
    hierarchy = quasi_identifier.hierarchy
    if hierarchy is None:
        return (spans > 0).astype(np.int64)
    present = np.flatnonzero(~extent.all_missing)
    levels = np.zeros(len(spans), np.int64)
    levels[present] = hierarchy.lowest_common_level(extent.lowest[present], extent.highest[present])
    return np.where(extent.some_missing & ~extent.all_missing, hierarchy.height, levels)


def _loss(
    quasi_identifier: QuasiIdentifier, extent: _Extent, codes: Codes, starts: Codes
) -> Figures:
    """Return the share of the other values of the domain that each class covers."""
    if quasi_identifier.hierarchy is not None:
        # Missing is one more value of the domain, as it is for other categories.
        covered = _covered_leaves(quasi_identifier.hierarchy, extent) + extent.some_missing
        return (covered - 1) / quasi_identifier.domain_size
    if quasi_identifier.is_category:
        distinct = _distinct_codes(codes, starts)[1]
        return (np.diff(distinct) - 1) / quasi_identifier.domain_size
    # A class covers span / step other values between the extremes, of range / step + 1.
    span = _span(quasi_identifier, extent)
    return span * (quasi_identifier.range / (quasi_identifier.range + quasi_identifier.step))


def _distinct_codes(codes: Codes, starts: Codes) -> tuple[Codes, Codes]:
    """Return the distinct codes of each class in order, and where each class begins in them.

    >>> codes, starts = _distinct_codes(np.array([4, 2, 4, 7]), np.array([0, 3, 4]))
    >>> codes.tolist(), starts.tolist()
    ([2, 4, 7], [0, 2, 3])
    """
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((codes, owner))
    sorted_codes, sorted_owner = codes[order], owner[order]
    new = np.ones(len(codes), bool)
    new[1:] = (sorted_codes[1:] != sorted_codes[:-1]) | (sorted_owner[1:] != sorted_owner[:-1])
    return sorted_codes[new], np.searchsorted(sorted_owner[new], np.arange(len(starts)))


def _category_sets(
    quasi_identifier: QuasiIdentifier, codes: Codes, starts: Codes
) -> list[tuple[str | None, ...]]:
    distinct, bounds = _distinct_codes(codes, starts)
    values = quasi_identifier.decode(distinct).cast(pa.string()).to_pylist()
    return [tuple(values[start:stop]) for start, stop in pairwise(bounds)]


def _covered_leaves(hierarchy: Hierarchy, extent: _Extent) -> Codes:
    """Return how many leaves the lowest common ancestor of each class covers, 0 for none."""
    present = np.flatnonzero(~extent.all_missing)
    low, high = extent.lowest[present], extent.highest[present]
    covered = np.zeros(len(extent.all_missing), np.int64)
    covered[present] = hierarchy.leaf_counts(hierarchy.lowest_common_level(low, high), low)
    return covered


def _hierarchy_labels(hierarchy: Hierarchy, extent: _Extent) -> list[str]:
    """Return the label of the lowest common ancestor of each class."""
    present = np.flatnonzero(~extent.all_missing)
    labels = [MISSING] * len(extent.all_missing)
    low, high = extent.lowest[present], extent.highest[present]
    ancestors = hierarchy.labels(hierarchy.lowest_common_level(low, high), low)
    for index, label in zip(present.tolist(), ancestors, strict=True):
        labels[index] = hierarchy_label(label, with_missing=bool(extent.some_missing[index]))
    return labels


def _interval_labels(quasi_identifier: QuasiIdentifier, extent: _Extent) -> pa.StringArray:
    """Write the range of each class as a label, with marks for open ends and missing values."""
    kind, present = quasi_identifier.kind, ~extent.all_missing
    low, high = (
        end_labels(
            value_labels(quasi_identifier.decode(ends[present]), kind),
            kind,
            codes[present] == quasi_identifier.bottom_code,
            codes[present] == quasi_identifier.top_code,
        )
        for ends, codes in zip((extent.lowest, extent.highest), extent.codes, strict=True)
    )
    labels = interval_labels(low, high, kind, extent.some_missing[present])
    if present.all():
        return labels
    all_missing = pa.array([MISSING] * len(present), pa.string())
    return pc.replace_with_mask(all_missing, pa.array(present), labels)


def _mean(
    quasi_identifier: QuasiIdentifier,
    extent: _Extent,
    codes: Codes,
    starts: Codes,
    mean_type: pa.DataType,
) -> pa.Array:
    """Compute the mean of the present values of each class, the same in any order of records."""
    owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    present = (
        codes != quasi_identifier.missing_code
        if quasi_identifier.has_missing
        else np.ones(len(codes), bool)
    )
    counts = np.maximum(np.add.reduceat(present.astype(np.int64), starts[:-1]), 1)
    if quasi_identifier.kind == "float":
        values = quasi_identifier.decode(codes).fill_null(0).to_numpy().astype(np.float64)
        means = np.array(_exact_means(values, present, starts, counts))
        return pa.array(means, mean_type, mask=extent.all_missing)
    # Quotients and remainders apart, so that no sum overflows.
    quotients, remainders = np.divmod(np.where(present, codes, 0), counts[owner])
    more, rest = np.divmod(np.add.reduceat(remainders, starts[:-1]), counts)
    whole = np.add.reduceat(quotients, starts[:-1]) + more
    if quasi_identifier.kind in ("date", "timestamp"):
        # Exact, rounded down to a day or a microsecond.
        return _decode(quasi_identifier, whole, extent.all_missing)
    # Beyond 2^53, float64 has no fractions.
    parts = np.where(np.abs(whole) < 2**53, rest / counts, 0.0)
    means = (whole + parts) / 10.0**quasi_identifier.scale
    return pa.array(means, mean_type, mask=extent.all_missing)


def _exact_means(values: Figures, present: Flags, starts: Codes, counts: Codes) -> list[float]:
    """Compute means from exact sums, because rounding on the way could give single values away."""
    means = []
    for start, stop, count in zip(starts[:-1], starts[1:], counts.tolist(), strict=True):
        # Scaled so that the sum of huge values stays finite. A power of two changes no digit.
        members = values[start:stop][present[start:stop]]
        scale = 2.0**-64 if np.abs(members).max(initial=0.0) > 2.0**900 else 1.0
        shares = (members * scale).tolist()
        mean = math.fsum(shares) / count
        # Add what the first division rounded away.
        mean += math.fsum([*shares, *[-mean] * len(shares)]) / count
        means.append(mean / scale)
    return means
