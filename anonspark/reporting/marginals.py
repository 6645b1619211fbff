"""How the values of each quasi-identifier are distributed, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from anonspark.core.arrays import Figures
from anonspark.core.kinds import KIND_WORDS
from anonspark.release.axes import Axis
from anonspark.release.regions import OrderedRegion, Region, read_regions
from anonspark.reporting.attributes import Attribute
from anonspark.reporting.axes import (
    GroupAxis,
    OrderedAxis,
    numbers_axis,
    spread_present,
)
from anonspark.reporting.bins import Bins, merge_bins, plan_bins
from anonspark.reporting.counts import RECORDS
from anonspark.reporting.groups import Naming, beginnings, levels_of, plan_groups
from anonspark.reporting.original import BinCounts, Original

MISSING = "missing"
ANY_VALUE = "any value (*)"


@dataclass(frozen=True)
class Marginal:
    """How the values of one quasi-identifier are distributed.

    Parameters
    ----------
    attribute : str
    kind : str
        In words.
    labels : tuple of str
        Of bins or groups, in order.
    before : tuple of int or None
        Records of the original. Each k or more, or 0. None without an original.
    after : tuple of float
        Records of the release, each spread evenly over what its published value covers.
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
    """Return what is published of an ordered attribute, of its different labels."""
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
    """Return the distribution of an ordered attribute."""
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
        # Too few to be told of by themselves.
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
    """Return the distribution of a category."""
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
    """Put a marginal together. Rows without people, and those of too few, are left out."""
    names = [*labels, MISSING, ANY_VALUE]
    release = np.array([*after, *special])
    if 0 < special[1] < k:
        # Too few to be told of: as the others.
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
    # Of the last one nothing is the beginning; where everything is published as * there is none.
    finest = [code for code, follower in pairwise(different) if not follower.startswith(code)]
    return finest + different[-1:]


def _namings(attribute: Attribute, values: Sequence[str]) -> list[Naming]:
    namings: list[Naming] = [str]
    if attribute.hierarchy is not None:
        namings += levels_of(attribute.hierarchy)
    return namings + beginnings(values)
