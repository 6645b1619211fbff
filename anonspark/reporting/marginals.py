"""How the values of each quasi-identifier are distributed, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.engine.protocol import Table
from anonspark.release.regions import CodeOrder, PublishedAttribute
from anonspark.reporting.attributes import Attribute
from anonspark.reporting.axes import (
    CodeRuns,
    GroupAxis,
    Intervals,
    OrderedAxis,
    ValueSets,
    read_codes,
    read_intervals,
    read_sets,
)
from anonspark.reporting.bins import Bins, merge_bins, plan_bins
from anonspark.reporting.groups import Naming, beginnings, levels_of, plan_groups
from anonspark.reporting.original import BinCounts, Original

Numbers = npt.NDArray[np.float64]

MISSING = "missing"
UNTOLD = "any value (*)"


@dataclass(frozen=True)
class Marginal:
    """How the values of one quasi-identifier are distributed.

    Parameters
    ----------
    attribute : str
    kind : str
        As in the manifest.
    labels : tuple of str
        Of bins or groups, in order.
    before : tuple of int or None
        Records of the original; each k or more, or 0. None without an original.
    after : tuple of float
        Records of the release, each spread evenly over what its published value covers.
    """

    attribute: str
    kind: str
    labels: tuple[str, ...]
    before: tuple[int, ...] | None
    after: tuple[float, ...]


def _labels(data: Table, published: PublishedAttribute) -> tuple[list[pa.ChunkedArray], Numbers]:
    """Collect the different published values of an attribute, and how many records have each."""
    names = {f"label_{place}": column for place, column in enumerate(published.columns)}
    found = data.select(names).aggregate(list(names), count="records").collect()
    counts = found["records"].to_numpy().astype(np.float64)
    return [found[name] for name in names], counts


class OrderedLabels(NamedTuple):
    """The different published regions of an ordered attribute."""

    regions: Intervals
    records: Numbers
    bins: Bins


def ordered_labels(data: Table, attribute: Attribute, k: int) -> OrderedLabels:
    """Collect what is published of an ordered attribute; one job with a shuffle."""
    published, scale = attribute.published, attribute.scale
    if published is None or scale is None:
        raise TypeError(f"{attribute.name}: not an ordered quasi-identifier")
    columns, counts = _labels(data, published)
    regions, numbers = read_intervals(columns, published)
    records = np.bincount(numbers, counts, len(regions.middle)).astype(np.float64)
    known = ~np.isnan(regions.middle)
    bins = plan_bins(scale, regions.middle[known], records[known], k)
    return OrderedLabels(regions, records, bins)


def ordered_marginal(
    attribute: Attribute, labels: OrderedLabels, found: BinCounts | None, k: int
) -> Marginal:
    """Return the distribution of an ordered attribute, and give the attribute its axis."""
    regions = labels.regions
    low, high = (
        (float(regions.low.min()), float(regions.high.max())) if len(regions.low) else (0.0, 0.0)
    )
    missing = 0.0
    after = OrderedAxis(labels.bins, low, high).totals(regions, labels.records)
    tables = [after[:-2]]
    if found is not None:
        low, high, missing = min(low, found.low), max(high, found.high), found.missing
        tables.append(found.counts)
    bins, members = merge_bins(labels.bins, tables, k)
    attribute.axis = OrderedAxis(bins, low, high)
    names = bins.labels
    in_bins = np.array([after[group].sum() for group in members])
    own = None
    if found is not None:
        own = np.array([found.counts[group].sum() for group in members])
    if 0 < missing < k:
        # Too few to be told of by themselves.
        names[-1] += " or missing"
        in_bins[-1] += after[-2]
        after[-2] = 0.0
        if own is not None:
            own[-1] += missing
            missing = 0.0
    return _marginal(attribute, names, own, missing, in_bins, after[-2:], k)


def category_marginal(
    data: Table, attribute: Attribute, k: int, table: Original | None
) -> Marginal:
    """Return the distribution of a category, and give the attribute its axis.

    One job with a shuffle, and another one over the original.
    """
    published = attribute.published
    if published is None:
        raise TypeError(f"{attribute.name}: not a quasi-identifier")
    columns, counts = _labels(data, published)
    names, own, missing = ([], None, 0.0) if table is None else table.values(attribute.name)
    codes: CodeOrder | None = None
    regions: ValueSets | CodeRuns
    if published.rule == "prefix":
        if table is None:
            masks, _ = read_sets(columns, published)
            names = _finest([code for region in masks.values for code in region])
        codes = CodeOrder(names)
        regions, numbers = read_codes(columns, published, codes)
    else:
        regions, numbers = read_sets(columns, published, attribute.leaves)
    by_region = np.bincount(numbers, counts, len(regions.missing)).astype(np.float64)
    if own is not None:
        namings = _namings(attribute, names)
        groups = plan_groups([(name,) for name in names], own, k, namings, missing)
    else:
        values = regions.values
        sure = [place for place, one in enumerate(values) if one and not regions.missing[place]]
        namings = _namings(attribute, sorted(set().union(*values)))
        groups = plan_groups([values[place] for place in sure], by_region[sure], k, namings)
    attribute.axis = GroupAxis(groups, codes)
    after = by_region @ attribute.axis.parts(regions)
    before = None
    if own is not None:
        before = own @ groups.spread([(name,) for name in names])
        if groups.with_missing:
            before[-1] += missing
            missing = 0.0
    return _marginal(attribute, groups.names, before, missing, after[:-2], after[-2:], k)


def _marginal(
    attribute: Attribute,
    labels: Sequence[str],
    before: Numbers | None,
    missing: float,
    after: Numbers,
    special: Numbers,
    k: int,
) -> Marginal:
    """Put a marginal together; rows of nobody, and those of too few, are left out."""
    names = [*labels, MISSING, UNTOLD]
    ours = np.array([*after, *special])
    if 0 < special[1] < k:
        # Too few to be told of: as the others.
        others = ours[:-1].sum()
        ours[:-1] *= (others + special[1]) / others if others else 1.0
        ours[-1] = 0.0
    theirs = None if before is None else np.array([*before, missing, 0.0])
    kept = [
        place
        for place in range(len(names))
        if round(ours[place], 9) > 0 or (theirs is not None and theirs[place] > 0)
    ]
    return Marginal(
        attribute.name,
        attribute.kind,
        tuple(names[place] for place in kept),
        None if theirs is None else tuple(int(theirs[place]) for place in kept),
        tuple(float(ours[place]) for place in kept),
    )


def _finest(codes: Sequence[str]) -> list[str]:
    """Return the codes that are not the beginning of another one."""
    different = sorted(set(codes))
    # Of the last one nothing is the beginning; where everything is published as * there is none.
    finest = [code for code, follower in pairwise(different) if not follower.startswith(code)]
    return finest + different[-1:]


def _namings(attribute: Attribute, values: Sequence[str]) -> list[Naming]:
    namings: list[Naming] = [str]
    if attribute.hierarchy is not None:
        namings += levels_of(attribute.hierarchy)
    return namings + beginnings(values)
