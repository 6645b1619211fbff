"""The regions of an earlier release, as codes of the quasi-identifiers of a new table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.arrays import Flags
from anonspark.core.encoding import QuasiIdentifier
from anonspark.errors import ConfigurationError
from anonspark.kernels.box_tree import build_box_tree
from anonspark.kernels.region_assignment import assign_points
from anonspark.labels.region_matching import class_columns
from anonspark.labels.regions import (
    CategoryRegion,
    Interval,
    Leaves,
    OrderedRegion,
    PublishedAttribute,
    Region,
    UnreadableLabelError,
    read_label,
    read_regions,
)
from anonspark.staged.keys import normalized_positions, positions_of

Codes = npt.NDArray[np.int64]
Positions = npt.NDArray[np.float64]

# Cells of a grid by which points are sorted, and its largest number of dimensions.
_CELLS = 16
_MOST_SORTED = 15


@dataclass(frozen=True)
class ReadRegions:
    """The regions of a release, attribute by attribute.

    ``regions`` are the different ones of each attribute. ``numbers`` (int64, shape (classes, d))
    says which of them each class has.
    """

    attributes: Sequence[PublishedAttribute]
    regions: Sequence[Sequence[Region]]
    numbers: Codes


def read_class_regions(
    classes: pa.Table, attributes: Sequence[PublishedAttribute], hierarchies: Mapping[str, Leaves]
) -> ReadRegions:
    """Read the regions of all classes of a release.

    ``classes`` are of :func:`anonspark.labels.region_matching.collect_classes`, and ``hierarchies``
    those that come from files. Suppressed records are left out, because no record can be mapped to
    their class. Raises DataError if labels cannot be read, and ConfigurationError if the release
    publishes means.
    """
    regions, numbers = [], []
    for index, item in enumerate(attributes):
        leaves = None if item.rule else hierarchies.get(item.name)
        labels = class_columns(classes, attributes, index)
        different, regions_of_classes = read_regions(labels, item, leaves)
        regions.append(different)
        numbers.append(regions_of_classes)
    matrix = np.stack(numbers, axis=1)
    everything = np.ones(len(matrix), bool)
    for j, different in enumerate(regions):
        suppressed = np.array([item.is_everything and item.missing for item in different])
        everything &= suppressed[matrix[:, j]]
    # Records that were suppressed are no class that anything could be mapped to.
    return ReadRegions(attributes, regions, matrix[~everything])


def widened(
    column: QuasiIdentifier, regions: Sequence[Region], *, declared: bool
) -> QuasiIdentifier:
    """Extend the range of a new table's quasi-identifier to include the regions of a release.

    ``declared`` says whether the order of its categories is declared. Raises ConfigurationError if
    that order lacks a category of the release, or the new type cannot hold its numbers.
    """
    has_missing = column.has_missing or any(item.missing for item in regions)
    column = replace(column, has_missing=has_missing)
    if column.hierarchy is not None or column.kind == "boolean":
        return column
    if column.kind == "category":
        values = {
            value
            for item in regions
            if isinstance(item, CategoryRegion)
            for value in item.values or ()
        }
        new = values - set(column.categories)
        if new and declared:
            raise ConfigurationError(
                f"attributes.{column.name}.order: lacks {len(new):,} values that the labels of "
                "model.release have. Expected all of them. Add them"
            )
        categories = column.categories if not new else tuple(sorted({*column.categories, *new}))
        return replace(column, categories=categories, lowest=0, highest=len(categories) - 1)
    ends = [
        end
        for item in regions
        if isinstance(item, OrderedRegion)
        for interval in item.intervals or ()
        for end in (interval.low, interval.high)
    ]
    scale = column.scale
    if column.kind == "decimal":
        scale = max([scale, *(_decimal_places(end) for end in ends)])
        factor = 10 ** (scale - column.scale)
        column = replace(
            column, scale=scale, lowest=column.lowest * factor, highest=column.highest * factor
        )
    codes = _codes(column, ends)
    if not len(codes):
        return column
    lowest, highest = min(column.lowest, int(codes.min())), max(column.highest, int(codes.max()))
    if column.range_declared and (lowest, highest) != (column.lowest, column.highest):
        raise ConfigurationError(
            f"attributes.{column.name}.range: the labels of model.release reach beyond it. "
            "Expected all of them inside. Widen it, or name another release"
        )
    column = replace(column, lowest=lowest, highest=highest)
    if not column.holds_ends:
        raise ConfigurationError(
            f"attributes.{column.name}: found the type {column.arrow_type} in the new table, which "
            "cannot hold values of the labels of model.release. Expected the type of its table. "
            "Cast the column"
        )
    return column


def _decimal_places(value: Any) -> int:
    """Return how many decimal places a number needs, 0 for infinite ones.

    >>> [_decimal_places(value) for value in (1, 2.50, math.inf)]
    [0, 1, 0]
    """
    exponent = Decimal(str(value)).normalize().as_tuple().exponent
    return max(-int(exponent), 0) if isinstance(exponent, int) else 0


def _codes(column: QuasiIdentifier, values: Sequence[Any]) -> Codes:
    """Return the codes of ends of labels. Days and moments may also be given as numbers.

    An infinite end is the column's bottom or top. Raises ConfigurationError if it has none.
    """
    open_ends = {-math.inf: column.bottom, math.inf: column.top}
    closed = [open_ends.get(value, value) for value in values]
    if None in closed:
        raise ConfigurationError(
            f"attributes.{column.name}: model.release has labels without an end. Expected its "
            "bottom and top. Add them"
        )
    if column.kind == "float":
        floats = np.array(closed, np.float64).astype(column.arrow_type.to_pandas_dtype())
        return column.encode(pa.array(floats, column.arrow_type))
    if column.kind == "decimal":
        closed = [Fraction(value) * 10**column.scale for value in closed]
    return column.coarsened(np.array([int(value) for value in closed], np.int64))


@dataclass(frozen=True)
class CodeSets:
    """Sets of codes of one attribute, one after the other: set i begins at ``starts[i]``."""

    codes: Codes
    starts: Codes

    @classmethod
    def of(cls, sets: Sequence[Codes]) -> CodeSets:
        """Join some sets."""
        codes = np.concatenate(sets) if sets else np.zeros(0, np.int64)
        return cls(codes, np.cumsum([0, *map(len, sets)]))

    @property
    def sizes(self) -> Codes:
        """Number of codes of each set."""
        return np.diff(self.starts)

    def ends(self, rows: Flags | None = None) -> tuple[Codes, Codes, Flags]:
        """Return the smallest and largest code of each set, and which sets are empty.

        Only codes in the mask ``rows`` count, or all if it is None.

        >>> low, high, is_empty = CodeSets.of([np.array([4, 2]), np.array([], np.int64)]).ends()
        >>> int(low[0]), int(high[0]), is_empty.tolist()
        (2, 4, [False, True])
        """
        codes = self.codes
        numbers = np.repeat(np.arange(len(self.starts) - 1), self.sizes)
        if rows is not None:
            codes, numbers = codes[rows], numbers[rows]
        low = np.full(len(self.starts) - 1, np.iinfo(np.int64).max)
        high = np.full(len(low), np.iinfo(np.int64).min)
        np.minimum.at(low, numbers, codes)
        np.maximum.at(high, numbers, codes)
        return low, high, low > high


@dataclass(frozen=True)
class MappedRegions:
    """Regions as codes.

    The ranges of the ``quasi_identifiers`` of the new table hold all regions. ``members`` are, for
    each attribute and each of its different regions, the codes that a class of the region covers
    for certain: all categories, the ends of intervals, and missing. ``numbers`` (int64, shape
    (regions, d)) says which of them each region has.
    """

    quasi_identifiers: tuple[QuasiIdentifier, ...]
    members: tuple[CodeSets, ...]
    numbers: Codes

    @classmethod
    def of(cls, read: ReadRegions, quasi_identifiers: Sequence[QuasiIdentifier]) -> MappedRegions:
        """Encode regions for quasi-identifiers of :func:`widened`, and sort them by their codes."""
        members = tuple(
            _sets(column, attribute, regions)
            for column, attribute, regions in zip(
                quasi_identifiers, read.attributes, read.regions, strict=True
            )
        )
        numbers = np.unique(read.numbers, axis=0)
        # Regions that no value of the new table can be in are left out.
        filled = np.ones(len(numbers), bool)
        for j, sets in enumerate(members):
            filled &= sets.sizes[numbers[:, j]] > 0
        result = cls(tuple(quasi_identifiers), members, numbers[filled])
        low, high = result._ends
        keys = [*high.T[::-1], *low.T[::-1]]
        return replace(result, numbers=result.numbers[np.lexsort(keys)])

    @property
    def number(self) -> int:
        """Return the number of regions."""
        return len(self.numbers)

    @cached_property
    def _ends(self) -> tuple[Codes, Codes]:
        """Lowest and highest code that each region covers, missing ones among them."""
        low, high = np.empty_like(self.numbers), np.empty_like(self.numbers)
        for j, sets in enumerate(self.members):
            lowest, highest, _ = sets.ends()
            low[:, j], high[:, j] = lowest[self.numbers[:, j]], highest[self.numbers[:, j]]
        return low, high

    @cached_property
    def _with_missing(self) -> list[int]:
        """Quasi-identifiers whose values may be missing."""
        return [j for j, column in enumerate(self.quasi_identifiers) if column.has_missing]

    @cached_property
    def _boxes(self) -> Positions:
        """Return the normalized ends of each region.

        A quasi-identifier with missing values has one more dimension, in which they are as far from
        present ones as its whole range is wide.
        """
        d = len(self.quasi_identifiers)
        boxes = np.zeros((self.number, 2, d + len(self._with_missing)))
        for j, (column, sets) in enumerate(zip(self.quasi_identifiers, self.members, strict=True)):
            present = np.ones(len(sets.codes), bool)
            if column.has_missing:
                present = sets.codes != column.missing_code
            lowest, highest, has_none = sets.ends(present)
            numbers = self.numbers[:, j]
            # If no value is present, the other dimension holds all that is known.
            for end, ends, default in ((0, lowest, column.lowest), (1, highest, column.highest)):
                positions = column.positions(np.where(has_none, default, ends))
                boxes[:, end, j] = column.normalized(positions)[numbers]
            if column.has_missing:
                has_missing = np.zeros(len(sets.sizes), bool)
                has_missing[np.repeat(np.arange(len(sets.sizes)), sets.sizes)[~present]] = True
                axis = d + self._with_missing.index(j)
                boxes[:, 0, axis] = np.where(has_none, column.weight, 0.0)[numbers]
                boxes[:, 1, axis] = np.where(has_missing, column.weight, 0.0)[numbers]
        return boxes

    @cached_property
    def positions(self) -> tuple[Positions, Positions]:
        """Ends of each region on the real line, missing values at their positions there."""
        low, high = (positions_of(codes, self.quasi_identifiers) for codes in self._ends)
        return low, high

    @cached_property
    def _tree(self) -> tuple[npt.NDArray[Any], ...]:
        members, nodes, node_boxes = build_box_tree(self._boxes, False)
        boxes = self._boxes[members]
        edges = (boxes[:, 1] - boxes[:, 0]).sum(axis=1)
        return boxes, edges, members, nodes, node_boxes

    def __getstate__(self) -> dict[str, object]:
        # Tasks make the tree anew, which takes less time than its way to them.
        names = ("quasi_identifiers", "members", "numbers")
        return {name: getattr(self, name) for name in names}

    def assign(self, codes: Codes) -> Codes:
        """Return the region of each record from its codes (int64, shape (n, d)).

        See :func:`anonspark.kernels.region_assignment.assign_points`.
        """
        d = codes.shape[1]
        points = np.zeros((len(codes), d + len(self._with_missing)), np.float64)
        points[:, :d] = normalized_positions(codes, self.quasi_identifiers)
        for j, column in enumerate(self.quasi_identifiers):
            if column.has_missing:
                missing = codes[:, j] == column.missing_code
                points[missing, j] = np.nan
                points[missing, d + self._with_missing.index(j)] = column.weight
        numbers: Codes = assign_points(points, _near_each_other(points), *self._tree)
        return numbers

    def covered(self, regions: Codes) -> tuple[Codes, Codes]:
        """Return codes that classes of some regions certainly cover, and the owner of each row.

        The codes have the shape (more, d). An owner is an index into ``regions``, ascending.
        """
        lengths = np.stack(
            [sets.sizes[self.numbers[regions, j]] for j, sets in enumerate(self.members)], axis=1
        )
        rows = lengths.max(axis=1)
        owners = np.repeat(np.arange(len(regions)), rows)
        offsets = np.arange(len(owners)) - np.repeat(np.cumsum(rows) - rows, rows)
        codes = np.empty((len(owners), len(self.members)), np.int64)
        for j, sets in enumerate(self.members):
            number = self.numbers[regions[owners], j]
            codes[:, j] = sets.codes[sets.starts[number] + offsets % lengths[owners, j]]
        return codes, owners


def _near_each_other(points: Positions) -> Codes:
    """Return an order of points in which neighbours are near to each other in most dimensions."""
    cells = np.nan_to_num(points * _CELLS).clip(0, _CELLS - 1).astype(np.int64)
    keys = np.zeros(len(points), np.int64)
    for j in range(min(points.shape[1], _MOST_SORTED)):
        keys = keys * _CELLS + cells[:, j]
    return np.argsort(keys, kind="stable")


def _sets(
    column: QuasiIdentifier, attribute: PublishedAttribute, regions: Sequence[Region]
) -> CodeSets:
    """Return the codes that classes of regions certainly cover, none for an empty region."""
    if column.is_category or column.hierarchy is not None:
        return CodeSets.of([_categories(column, attribute, region) for region in regions])
    everything = (Interval(0, 0),)
    covered = []
    for region in regions:
        if not isinstance(region, OrderedRegion):
            raise TypeError(f"a region of {column.name} is not that of a number")
        covered.append(everything if region.intervals is None else region.intervals)
    ends = [end for intervals in covered for span in intervals for end in (span.low, span.high)]
    codes = _codes(column, ends)
    missing = np.array([region.missing and column.has_missing for region in regions], bool)
    sizes = np.array([2 * len(intervals) for intervals in covered], np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes + missing)])
    coded = np.full(int(starts[-1]), column.missing_code, np.int64)
    # Missing ones stand behind the others of their region.
    positions = np.arange(len(codes)) + np.repeat(starts[:-1] - np.cumsum(sizes) + sizes, sizes)
    coded[positions] = codes
    for index, region in enumerate(regions):
        if isinstance(region, OrderedRegion) and region.intervals is None:
            coded[starts[index] : starts[index] + 2] = (column.lowest, column.highest)
    return CodeSets(coded, starts.astype(np.int64))


def _categories(column: QuasiIdentifier, attribute: PublishedAttribute, region: Region) -> Codes:
    missing = [column.missing_code] if region.missing and column.has_missing else []
    values = column.categories if column.kind == "category" else ("false", "true")
    leaves = values if column.hierarchy is None else column.hierarchy.leaves
    present = [code for code, value in enumerate(leaves) if _holds(region, value, attribute)]
    return np.array([*present, *missing], np.int64)


def _holds(region: Region, value: str, attribute: PublishedAttribute) -> bool:
    """Return whether a category is in a region."""
    if isinstance(region, CategoryRegion):
        return region.values is None or value in region.values
    if region.intervals is None:
        return True
    try:
        point = read_label(value, attribute)
    except UnreadableLabelError:
        return False
    if not isinstance(point, OrderedRegion) or not point.intervals:
        return False
    return any(_inside(point.intervals[0], interval) for interval in region.intervals)


def _inside(point: Interval, interval: Interval) -> bool:
    """Return whether the low end of a point lies in an interval."""
    low, high = point.low, interval.high
    above = low > interval.low or (low == interval.low and interval.low_included)  # type: ignore[operator]
    below = low < high or (low == high and interval.high_included)  # type: ignore[operator]
    return bool(above and below)
