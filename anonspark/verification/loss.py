"""What the published labels lose of the original, as an outsider computes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from anonspark.core.columns import published_column
from anonspark.engine.spark.arrow import collect_arrow
from anonspark.engine.spark.instants import microseconds
from anonspark.release.published import value_of
from anonspark.release.region_matching import prepare_table
from anonspark.release.regions import (
    Leaves,
    OrderedRegion,
    PublishedAttribute,
    read_regions,
)
from anonspark.verification.classes import PublishedClasses


@dataclass(frozen=True)
class Loss:
    """What a release loses, by its labels and sizes of classes alone (docs/algorithms.md, Metrics).

    Parameters
    ----------
    rows : int
        Original records.
    rows_left_out : int
        Of them, those that are not published. They count as lost in every figure.
    dm : int
        Discernibility metric: squared sizes of classes, and ``rows`` for each record left out.
    gcp_total : float or None
        Records times the weighted sum of what their labels cover of each quasi-identifier's range
        in the original. None unless all are numbers, dates or timestamps without a hierarchy.
    gcp : float or None
        The same per value, in [0, 1].
    """

    rows: int
    rows_left_out: int
    dm: int
    gcp_total: float | None
    gcp: float | None


def measure_loss(
    release: DataFrame,
    published: PublishedClasses,
    attributes: Sequence[PublishedAttribute],
    original: DataFrame,
    hierarchies: Mapping[str, Leaves],
    *,
    missing_markers: Iterable[str],
) -> Loss:
    """Measure a release beside the table that it was made of.

    Parameters
    ----------
    release : DataFrame
        Published records.
    published : PublishedClasses
        Their classes.
    attributes : sequence of PublishedAttribute
    original : DataFrame
        The records that were to be published, with a column of each attribute's name.
    hierarchies : mapping of str to (mapping of str to collection of str)
        Of attributes generalized by the hierarchy of a file.
    missing_markers : iterable of str
        Texts that mean missing.

    Returns
    -------
    Loss

    Raises
    ------
    DataError
        If labels cannot be read, or the original cannot be compared with them.

    Notes
    -----
    One pass over the original, and one over the release for each attribute, with a shuffle of a row
    a label and task; the different labels of each are collected.
    """
    prepared = prepare_table(
        original, attributes, hierarchies, missing_markers=missing_markers, subject="the original"
    ).records
    measured = not any(
        one.is_category or one.rule is not None or one.name in hierarchies for one in attributes
    )
    extremes: list[Column] = []
    if measured:
        types = {field.name: field.dataType for field in prepared.schema}
        for index in range(len(attributes)):
            place = _place(f"value_{index}", types[f"value_{index}"])
            extremes += [sf.min(place), sf.max(place)]
    rows, *ends = prepared.agg(sf.count(sf.lit(1)), *extremes).collect()[0]
    left_out = max(rows - published.rows, 0)
    squares = sum(size**2 * classes for size, classes in published.sizes.items())
    discernibility = squares + rows * left_out
    if not measured:
        return Loss(rows, left_out, discernibility, None, None)
    total = 0.0
    for index, attribute in enumerate(attributes):
        low, high = ends[2 * index : 2 * index + 2]
        width = 0.0 if low is None else high - low
        penalty = _penalty_of_labels(release, attribute, width) + left_out
        total += attribute.weight * penalty
    weights = sum(one.weight for one in attributes)
    return Loss(rows, left_out, discernibility, total, total / (weights * max(rows, 1)))


def _place(name: str, data_type: st.DataType) -> Column:
    """Return where values lie, as regions say it: in days, in microseconds, or as numbers."""
    match data_type:
        case st.DateType():
            return sf.unix_date(name).cast("double")
        case st.TimestampType() | st.TimestampNTZType():
            return microseconds(sf.col(name), data_type).cast("double")
        case _:
            return sf.col(name).cast("double")


def _penalty_of_labels(release: DataFrame, attribute: PublishedAttribute, width: float) -> float:
    names = [published_column(place) for place in range(len(attribute.columns))]
    labels = release.select(
        *(
            value_of(own, release.schema[own].dataType).alias(name)
            for own, name in zip(attribute.columns, names, strict=True)
        )
    )
    counted = collect_arrow(labels.groupBy(*names).agg(sf.count(sf.lit(1)).alias("records")))
    regions, numbers = read_regions([counted.column(name) for name in names], attribute)
    shares = np.array([_share(cast("OrderedRegion", region), width) for region in regions])
    return float(shares[numbers] @ counted.column("records").to_numpy())


def _share(region: OrderedRegion, width: float) -> float:
    """Return the share of the range that a region covers, in [0, 1]."""
    if region.intervals is None:
        return 1.0
    if not region.intervals:
        # Known to be missing.
        return 0.0
    if region.missing:
        # A class with values and missing ones tells nothing for sure.
        return 1.0
    low = min(float(interval.low) for interval in region.intervals)
    high = max(float(interval.high) for interval in region.intervals)
    return min((high - low) / width, 1.0) if width > 0 else 0.0
