"""Compute the loss of the published labels, as an outsider does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np
import pyarrow as pa

from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_time, time_numbers
from anonspark.labels.region_matching import LabelledTable, class_columns
from anonspark.labels.regions import Number, OrderedRegion, read_regions
from anonspark.verification.proof.classes import PublishedClasses


@dataclass(frozen=True)
class Loss:
    """The loss of a release by its labels and class sizes (docs/algorithms.md, Metrics).

    ``rows`` are the original records. ``rows_left_out`` of them are not published and count as lost
    in every figure. ``dm`` is the discernibility metric: squared sizes of classes, and ``rows`` for
    each record left out. ``gcp_total`` adds up what the labels of records cover of the range of
    each quasi-identifier, weighted: the declared range, else that in the original. ``gcp`` is the
    same per value, in [0, 1]. Both are None unless all attributes are numbers, dates or timestamps
    without a hierarchy.
    """

    rows: int
    rows_left_out: int
    dm: int
    gcp_total: float | None
    gcp: float | None


def measure_loss(
    labels: LabelledTable,
    published: PublishedClasses,
    original: Table,
    rows: int,
    *,
    drops_missing: bool = False,
) -> Loss:
    """Measure the loss of a release against the ranges of the table that it was made of.

    ``rows`` are the records of the original without those that were not to be published. If all
    attributes are ranges, one pass over the original, and the classes of the labels, or above
    1,000,000 the different labels of each attribute. Raises DataError if labels cannot be read, or
    the original cannot be compared with them.
    """
    attributes = labels.attributes
    has_ranges = [not (item.is_category or item.rule) for item in attributes]
    measured = all(has_ranges) and not {item.name for item in attributes} & labels.leaves.keys()
    left_out = max(rows - published.rows, 0)
    squares = sum(size**2 * classes for size, classes in published.sizes.items())
    discernibility = squares + rows * left_out
    if not measured:
        return Loss(rows, left_out, discernibility, None, None)
    records = labels.prepare(original, "the original", drops_missing=drops_missing).records
    ends = _extremes(records, len(attributes))
    total = 0.0
    for index, attribute in enumerate(attributes):
        (low, _), (_, high) = map(attribute.strip, attribute.ends or ends[index])
        classes = labels.classes_alike(index)
        regions, numbers = read_regions(class_columns(classes, attributes, index), attribute)
        shares = np.array([_share(cast("OrderedRegion", region), low, high) for region in regions])
        records, times = (classes[name].to_numpy() for name in ("records", "classes"))
        # `fsum` gives the same sum for any order of the classes.
        covered = math.fsum(np.repeat(shares[numbers] * records, times).tolist())
        total += attribute.weight * (covered + left_out)
    weights = sum(attribute.weight for attribute in attributes)
    return Loss(rows, left_out, discernibility, total, total / (weights * max(rows, 1)))


def _extremes(records: Table, attributes: int) -> list[tuple[Fraction, Fraction]]:
    """Return the ends of each attribute, 0 without records: days, microseconds, or numbers."""
    names = [f"value_{index}" for index in range(attributes)]
    lows, highs = ({f"{end}_{name}": name for name in names} for end in ("low", "high"))
    ends_of_values = records.select({**lows, **highs})
    extremes = ends_of_values.aggregate([], least=list(lows), most=list(highs)).collect()
    ends = [(extremes[low][0], extremes[high][0]) for low, high in zip(lows, highs, strict=True)]
    return [(_exact(low), _exact(high)) for low, high in ends]


def _exact(value: pa.Scalar) -> Fraction:
    """Return a value as an exact number: days, microseconds, or a number, and 0 for null.

    >>> _exact(pa.scalar(1.5))
    Fraction(3, 2)
    """
    if is_time(value.type):
        value = time_numbers(value)
    return Fraction(value.as_py() or 0)


def _share(region: OrderedRegion, lowest: Number, highest: Number) -> float:
    """Return the share of a range that a region covers, in [0, 1].

    Ends are subtracted exactly, because large numbers may be equal as floats.

    >>> from anonspark.labels.regions import Interval
    >>> _share(OrderedRegion((Interval(20, 30),), missing=False), 0, 100)
    0.1
    """
    if region.intervals is None:
        return 1.0
    if not region.intervals:
        # The value is known to be missing, so nothing is lost.
        return 0.0
    if region.missing:
        # A class that mixes values and missing ones excludes no value.
        return 1.0
    low = min(cast("Number", interval.low) for interval in region.intervals)
    high = max(cast("Number", interval.high) for interval in region.intervals)
    # Open ends are those of the range.
    low, high = lowest if low == -math.inf else low, highest if high == math.inf else high
    width = Fraction(highest) - Fraction(lowest)
    return min(float((Fraction(high) - Fraction(low)) / width), 1.0) if width > 0 else 0.0
