"""How the values of each quasi-identifier are distributed, before and after, by bins and groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from anonspark.core.arrays import Figures
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.core.labels import KIND_WORDS
from anonspark.core.uniform_mass import Runs, Spread, spread_out
from anonspark.labels.axes import Axis
from anonspark.labels.regions import (
    CategoryRegion,
    OrderedRegion,
    PublishedAttribute,
    Region,
    read_regions,
)
from anonspark.reporting.attributes import RECORDS, Attribute
from anonspark.reporting.bins import Bins, merge_bins, plan_bins
from anonspark.reporting.original import BinCounts, Original

OTHER = "other values"
"""Name of the group of all values that have none of their own."""

_MOST_GROUPS = 15
_COVERED = 0.8
_LONGEST_BEGINNING = 6

Naming = Callable[[str], str]


@dataclass(frozen=True)
class Groups:
    """Groups of a category's values. The last one is :data:`OTHER`, perhaps with missing values.

    ``group_of`` has the group of each value that is not in the last one. ``with_missing`` says that
    fewer than k values are missing, so that they are in the last group.
    """

    names: tuple[str, ...]
    group_of: Mapping[str, int]
    with_missing: bool = False

    def __len__(self) -> int:
        return len(self.names)


def plan_groups(
    regions: Sequence[Sequence[str]],
    counts: Figures,
    k: int,
    namings: Sequence[Naming],
    missing: float = 0.0,
) -> Groups:
    """Choose groups that certainly hold at least k people each, the largest first.

    ``regions`` are values of the original, one each, or published sets of values, ``counts``
    (regions,) their records, and ``missing`` the records without a value. ``namings`` name the
    group of a value, from fine to coarse. The first naming with few groups that leave out few
    records is used. If the regions are single values, the group of all other values also has k
    records or none.

    >>> plan_groups([("a",), ("b",), ("c",)], np.array([9.0, 6.0, 2.0]), 5, [str]).names
    ('a', 'other values')
    """
    total = float(counts.sum())
    best: tuple[float, dict[str, float], Naming] | None = None
    for naming in namings:
        counted: dict[str, float] = {}
        different: set[str] = set()
        for region, count in zip(regions, counts.tolist(), strict=True):
            named = {naming(value) for value in region}
            different |= named
            if len(named) == 1:
                name = named.pop()
                counted[name] = counted.get(name, 0.0) + count
        frequent = {name: count for name, count in counted.items() if count >= k}
        largest = sorted(frequent, key=lambda name: (-frequent[name], name))[:_MOST_GROUPS]
        covered = sum(frequent[name] for name in largest)
        if best is None or covered > best[0]:
            best = covered, {name: frequent[name] for name in largest}, naming
        if len(different) <= _MOST_GROUPS + 1 and covered >= _COVERED * total:
            best = covered, {name: frequent[name] for name in largest}, naming
            break
    _, frequent, naming = best or (0.0, {}, str)
    with_missing = 0 < missing < k
    rest = total - sum(frequent.values()) + (missing if with_missing else 0.0)
    while frequent and 0 < rest < k:
        smallest = min(frequent, key=lambda name: (frequent[name], name))
        rest += frequent.pop(smallest)
    positions = {name: index for index, name in enumerate(frequent)}
    group_of = {
        value: positions[naming(value)]
        for region in regions
        for value in region
        if naming(value) in positions
    }
    names = [*map(_shown, frequent), f"{OTHER} or missing" if with_missing else OTHER]
    return Groups(tuple(names), group_of, with_missing)


def _shown(name: str) -> str:
    return name if name.strip() else f'"{name}"'


def beginnings(values: Sequence[str]) -> list[Naming]:
    """Return namings by the first characters, long ones first, if all values have a digit.

    >>> [naming("12345") for naming in beginnings(["12345", "99"])][-2:]
    ['12…', '1…']
    """
    if not values or not all(any(map(str.isdigit, value)) for value in values):
        return []
    longest = min(_LONGEST_BEGINNING, max(map(len, values)) - 1)
    return [_begins(length) for length in range(longest, 0, -1)]


def _begins(length: int) -> Naming:
    return lambda value: value if len(value) <= length else f"{value[:length]}…"


def levels_of(hierarchy: Hierarchy) -> list[Naming]:
    """Return namings by the levels of a hierarchy above the values, fine ones first."""
    namings: list[Naming] = []
    for level in hierarchy.levels[:-1]:
        runs = pairwise([*level.starts, len(hierarchy.leaves)])
        labels = {
            leaf: label
            for label, (start, stop) in zip(level.labels, runs, strict=True)
            for leaf in hierarchy.leaves[start:stop]
        }
        namings.append(lambda value, labels=labels: labels.get(value, value))  # type: ignore[misc]
    return namings


# Regions whose parts are held at a time.
_BLOCK = 1 << 16


def numbers_axis(attribute: PublishedAttribute) -> Axis:
    """Return the axis of an ordered attribute."""
    whole = attribute.kind in ("integer", "date") and not attribute.is_mean
    return Axis.of_regions(attribute, (), whole=whole)


def spread_present(axis: Axis, regions: Sequence[Region]) -> Spread:
    """Spread regions over the present values that they cover, or over none if all are possible."""
    runs = (Runs(()) if region.is_everything else axis.runs(region) for region in regions)
    present = [Runs(run.ends, elsewhere=run.elsewhere or int(not run.ends)) for run in runs]
    return spread_out(present, whole=axis.whole)


def _with_special(parts: Figures, regions: Sequence[Region], covered: Figures) -> Figures:
    """Append columns for missing and any value to the parts (regions, columns) of present ones.

    ``covered`` (regions,) counts the present values that are covered, of which missing is one more.
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
    """The bins of an ordered attribute, and the axis on which published regions lie."""

    bins: Bins
    axis: Axis

    def parts(self, regions: Sequence[Region]) -> Figures:
        """Divide each region among the bins, missing and "any value": (regions, bins + 2).

        Rows add up to 1. If a region's value may be missing, that counts like one more bin.
        """
        spread = spread_present(self.axis, regions)
        parts = spread.shares(*self.bins.ranges(whole=self.axis.whole))
        return _with_special(parts, regions, (parts > 0).sum(axis=1))

    def totals(self, regions: Sequence[Region], records: Figures) -> Figures:
        """Sum the parts of so many records in each region: (bins + 2,).

        Holds the parts of 65,536 regions at a time.
        """
        totals = np.zeros(len(self.bins) + 2)
        for start in range(0, len(records), _BLOCK):
            block = slice(start, start + _BLOCK)
            totals += records[block] @ self.parts(regions[block])
        return totals


@dataclass(frozen=True)
class GroupAxis:
    """The groups of a category, and the axis on which published regions lie."""

    groups: Groups
    axis: Axis

    @cached_property
    def _members(self) -> list[Figures]:
        """Positions of the texts of each group but the last, ascending."""
        index_of = {text.strip(" "): index for text, index in self.groups.group_of.items()}
        group = np.array([index_of.get(text, -1) for text in self.axis.texts], np.int64)
        return [
            np.flatnonzero(group == index).astype(np.float64)
            for index in range(len(self.groups) - 1)
        ]

    def parts(self, regions: Sequence[Region]) -> Figures:
        """Divide each region among the groups, missing and "any value": (regions, groups + 2).

        Rows add up to 1. If a region's value may be missing, that counts like one more value.
        """
        spread = spread_present(self.axis, regions)
        shares = [spread.share_of(members) for members in self._members]
        rest = np.maximum(1.0 - sum(shares, np.zeros(len(regions))), 0.0)
        has_some = np.array([_has_present(region) for region in regions], bool)
        parts = _with_special(
            np.column_stack([*shares, rest]), regions, np.where(has_some, spread.total, 0.0)
        )
        # The last group then includes missing values. The columns are last group, missing, any.
        if self.groups.with_missing:
            parts[:, -3] += parts[:, -2]
            parts[:, -2] = 0.0
        return parts

    def columns(self, values: pa.Array) -> Figures:
        """Return a 1 in the column of each value's group, and no 1 for a value without a group."""
        encoded = values.dictionary_encode()
        last = len(self.groups) - 1
        numbers = [
            self.groups.group_of.get(value, last) for value in encoded.dictionary.to_pylist()
        ]
        # The last row is that of missing values.
        parts = np.zeros((len(numbers) + 1, len(self.groups)))
        parts[np.arange(len(numbers)), numbers] = 1.0
        parts[-1, last] = float(self.groups.with_missing)
        indices = encoded.indices.fill_null(len(numbers)).to_numpy(zero_copy_only=False)
        columns: Figures = parts[indices]
        return columns


def _has_present(region: Region) -> bool:
    return bool(region.values if isinstance(region, CategoryRegion) else region.intervals)


MISSING = "missing"
ANY_VALUE = "any value (*)"


@dataclass(frozen=True)
class Marginal:
    """The distribution of one quasi-identifier, over labels of bins or groups in order.

    ``before`` are records of the original, each k or more or 0, or None without an original.
    ``after`` are records of the release, each spread evenly over what its published value covers.
    """

    attribute: str
    kind: str
    labels: tuple[str, ...]
    before: tuple[int, ...] | None
    after: tuple[float, ...]


class OrderedLabels(NamedTuple):
    """The different published regions of an ordered attribute, and the span of their values."""

    axis: Axis
    regions: Sequence[Region]
    records: Figures
    bins: Bins


def ordered_labels(counted: pa.Table, attribute: Attribute, k: int) -> OrderedLabels:
    """Return the published regions of an ordered attribute, by its counted labels."""
    published, scale = attribute.published, attribute.scale
    if published is None or scale is None:
        raise TypeError(f"{attribute.name}: not an ordered quasi-identifier")
    columns, counts = counted.columns[:-1], counted[RECORDS].to_numpy().astype(np.float64)
    regions, numbers = read_regions(columns, published, means=True)
    axis = numbers_axis(published)
    spread = spread_present(axis, regions)
    middles = spread.centers()
    records = np.bincount(numbers, counts, len(regions)).astype(np.float64)
    present = ~np.isnan(middles)
    bins = plan_bins(scale, middles[present], records[present], k)
    return OrderedLabels(axis, regions, records, bins)


def ordered_marginal(
    attribute: Attribute, labels: OrderedLabels, original: BinCounts | None, k: int
) -> Marginal:
    """Compute the distribution of an ordered attribute over bins with k records or more."""
    missing = 0.0
    axis = OrderedAxis(labels.bins, labels.axis)
    after = axis.totals(labels.regions, labels.records)
    tables = [after[:-2]]
    if original is not None:
        missing = original.missing
        tables.append(original.counts)
    bins, members = merge_bins(labels.bins, tables, k)
    names = bins.labels
    in_bins = np.array([after[group].sum() for group in members])
    before = None
    if original is not None:
        before = np.array([original.counts[group].sum() for group in members])
    if 0 < missing < k:
        # Too few to have a row: the last bin takes them.
        names[-1] += " or missing"
        in_bins[-1] += after[-2]
        after[-2] = 0.0
        if before is not None:
            before[-1] += missing
            missing = 0.0
    return _marginal(attribute, names, before, missing, in_bins, after[-2:], k)


def category_marginal(
    counted: pa.Table, attribute: Attribute, k: int, table: Original | None
) -> Marginal:
    """Compute the distribution of a category over groups with k records or more."""
    published = attribute.published
    if published is None:
        raise TypeError(f"{attribute.name}: not a quasi-identifier")
    columns, counts = counted.columns[:-1], counted[RECORDS].to_numpy().astype(np.float64)
    names, originals, missing = ([], None, 0.0) if table is None else table.values(attribute.name)
    regions, numbers = read_regions(columns, published, attribute.leaves)
    if published.is_code:
        axis = Axis.of_texts(published, names if table is not None else _finest(regions))
    else:
        axis = Axis.of_regions(published, regions, whole=True)
    by_region = np.bincount(numbers, counts, len(regions)).astype(np.float64)
    if originals is not None:
        namings = _namings(attribute, names)
        groups = plan_groups([(name,) for name in names], originals, k, namings, missing)
    else:
        texts = [axis.texts_of(region) for region in regions]
        sure = [index for index, text in enumerate(texts) if text and not regions[index].missing]
        namings = _namings(attribute, sorted(set().union(*texts)))
        groups = plan_groups([texts[index] for index in sure], by_region[sure], k, namings)
    group_axis = GroupAxis(groups, axis)
    after = by_region @ group_axis.parts(regions)
    before = None
    if originals is not None:
        before = originals @ group_axis.columns(pa.array(names, pa.string()))
        if groups.with_missing:
            before[-1] += missing
            missing = 0.0
    return _marginal(attribute, groups.names, before, missing, after[:-2], after[-2:], k)


def _marginal(
    attribute: Attribute,
    labels: Sequence[str],
    before: Figures | None,
    missing: float,
    after: Figures,
    special: Figures,
    k: int,
) -> Marginal:
    """Assemble a marginal, without rows for no people or too few."""
    names = [*labels, MISSING, ANY_VALUE]
    release = np.array([*after, *special])
    if 0 < special[1] < k:
        # Too few to have a row: the others take them in proportion.
        rest = release[:-1].sum()
        release[:-1] *= (rest + special[1]) / rest if rest else 1.0
        release[-1] = 0.0
    original = None if before is None else np.array([*before, missing, 0.0])
    shown = [
        index
        for index in range(len(names))
        if round(release[index], 9) > 0 or (original is not None and original[index] > 0)
    ]
    return Marginal(
        attribute.name,
        KIND_WORDS.get(attribute.kind, ""),
        tuple(names[index] for index in shown),
        None if original is None else tuple(int(original[index]) for index in shown),
        tuple(float(release[index]) for index in shown),
    )


def _finest(regions: Sequence[Region]) -> list[str]:
    """Return the masked codes of regions that are not the beginning of another one."""
    codes = {
        str(interval.low)[6:]
        for region in regions
        if isinstance(region, OrderedRegion)
        for interval in region.intervals or ()
    }
    different = sorted(codes)
    # The last code begins no other one. If everything is published as *, there are no codes.
    finest = [code for code, follower in pairwise(different) if not follower.startswith(code)]
    return finest + different[-1:]


def _namings(attribute: Attribute, values: Sequence[str]) -> list[Naming]:
    namings: list[Naming] = [str]
    if attribute.hierarchy is not None:
        namings += levels_of(attribute.hierarchy)
    return namings + beginnings(values)
