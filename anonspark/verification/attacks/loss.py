"""Compute the loss of the published labels, as an outsider does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_time, time_numbers
from anonspark.engine.tasks import Batches
from anonspark.labels.region_matching import LabelledTable, class_columns
from anonspark.labels.regions import Number, OrderedRegion, PublishedAttribute, read_regions
from anonspark.verification.proof.classes import PublishedClasses


@dataclass(frozen=True)
class Loss:
    """The loss of a release by its labels and class sizes (docs/algorithms.md, Metrics).

    Parameters
    ----------
    rows : int
        Original records.
    rows_left_out : int
        Of them, those that are not published. They count as lost in every figure.
    dm : int
        Discernibility metric: squared sizes of classes, and ``rows`` for each record left out.
    gcp_total : float or None
        Records times the weighted sum of what their labels cover of each quasi-identifier's range:
        what was declared, else that in the original. None unless all are numbers, dates or
        timestamps without a hierarchy.
    gcp : float or None
        The same per value, in [0, 1].
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
    """Measure a release beside the table that it was made of.

    Parameters
    ----------
    labels : LabelledTable
        Published records.
    published : PublishedClasses
        Their classes.
    original : Table
        With a column of each attribute's name.
    rows : int
        Its records, without those that were not to be published.
    drops_missing : bool
        Whether records with a missing value were not to be published.

    Returns
    -------
    Loss

    Raises
    ------
    DataError
        If labels cannot be read, or the original cannot be compared with them.

    Notes
    -----
    One pass over the original where all attributes are measured, and the classes of the labels.
    """
    attributes = labels.attributes
    measured = not any(
        one.is_category or one.rule is not None or one.name in labels.leaves for one in attributes
    )
    left_out = max(rows - published.rows, 0)
    squares = sum(size**2 * classes for size, classes in published.sizes.items())
    discernibility = squares + rows * left_out
    if not measured:
        return Loss(rows, left_out, discernibility, None, None)
    records = labels.prepare(original, "the original", drops_missing=drops_missing).records
    ends = _extremes(records, len(attributes))
    ranges = [
        tuple(map(attribute.strip, attribute.ends or known))
        for attribute, known in zip(attributes, ends, strict=True)
    ]
    classes = labels.data.engine.table(labels.classes)
    table = labels.grouped if labels.has_sample else classes
    covered = table.map_batches(_SumCovered(attributes, ranges), _COVERED).collect()
    total = 0.0
    for index, attribute in enumerate(attributes):
        # Whatever the order of the classes, the sum is the same.
        parts = covered.filter(pc.field("attribute") == index)["records"].to_pylist()
        total += attribute.weight * (math.fsum(parts) + left_out)
    weights = sum(one.weight for one in attributes)
    return Loss(rows, left_out, discernibility, total, total / (weights * max(rows, 1)))


_COVERED = pa.schema([("attribute", pa.int64()), ("records", pa.float64())])


@dataclass(frozen=True)
class _SumCovered:
    """Adds up, of each attribute, the records of classes times the shares that their labels cover.

    Yields several numbers that are the exact sum together, however the classes are dealt out.
    """

    attributes: Sequence[PublishedAttribute]
    ranges: Sequence[tuple[tuple[Number, Number], ...]]

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            records = batch.column("records").to_numpy()
            for index, ((low, _), (_, high)) in enumerate(self.ranges):
                columns = class_columns(batch, self.attributes, index)
                regions, numbers = read_regions(columns, self.attributes[index])
                shares = np.array(
                    [_share(cast("OrderedRegion", one), low, high) for one in regions]
                )
                parts: list[float] = []
                covered = (shares[numbers] * records).tolist()
                while rest := math.fsum([*covered, *(-part for part in parts)]):
                    parts.append(rest)
                columns = [pa.array([index] * len(parts)), pa.array(parts)]
                yield pa.RecordBatch.from_arrays(columns, schema=_COVERED)


def _extremes(records: Table, attributes: int) -> list[tuple[Fraction, Fraction]]:
    """Return where the ends of each attribute lie, 0 without records.

    Places are as regions say them: in days, in microseconds, or as numbers.
    """
    names = [f"value_{index}" for index in range(attributes)]
    lows, highs = ({f"{end}_{name}": name for name in names} for end in ("low", "high"))
    both = records.select({**lows, **highs})
    found = both.aggregate([], least=list(lows), most=list(highs)).collect()
    ends = [(found[low][0], found[high][0]) for low, high in zip(lows, highs, strict=True)]
    return [(_place(low), _place(high)) for low, high in ends]


def _place(value: pa.Scalar) -> Fraction:
    if is_time(value.type):
        value = time_numbers(value)
    return Fraction(value.as_py() or 0)


def _share(region: OrderedRegion, lowest: Number, highest: Number) -> float:
    """Return the share of a range that a region covers, in [0, 1].

    Ends are subtracted as they are: as floats those of large numbers would be equal.
    """
    if region.intervals is None:
        return 1.0
    if not region.intervals:
        # Known to be missing.
        return 0.0
    if region.missing:
        # A class with values and missing ones tells nothing for sure.
        return 1.0
    low = min(cast("Number", interval.low) for interval in region.intervals)
    high = max(cast("Number", interval.high) for interval in region.intervals)
    # Open ends are those of the range. No other label covers more than all.
    low, high = lowest if low == -math.inf else low, highest if high == math.inf else high
    width = Fraction(highest) - Fraction(lowest)
    return min(float((Fraction(high) - Fraction(low)) / width), 1.0) if width > 0 else 0.0
