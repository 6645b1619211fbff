"""Typed columns next to a release's labels: ends, middle, sets, and whether values are missing.

:mod:`anonspark.release.sidecar_files.views` makes the same columns in SQL.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.reading.attributes import ReadAttribute
from anonspark.reading.shares import Regions, regions_of
from anonspark.release.regions import CategoryRegion, Interval, OrderedRegion, PublishedAttribute
from anonspark.release.typed_names import typed_names


def with_typed_columns(
    table: pa.Table, attributes: Mapping[str, ReadAttribute], *, may_miss: bool
) -> pa.Table:
    """Return published records with typed columns behind the labels of each quasi-identifier.

    Parameters
    ----------
    table : pyarrow.Table
        All published columns.
    attributes : mapping of str to ReadAttribute
    may_miss : bool
        Whether quasi-identifiers may be missing.

    Returns
    -------
    pyarrow.Table
        ``<name>_min``, ``<name>_max`` and ``<name>_mid`` of numbers, dates and times, with
        ``<name>_max_included`` where intervals are half-open, ``<name>_set`` of categories and
        ``<name>_missing``. Those that are published already are not made again. Null where
        nothing is known, as of suppressed records.
    """
    added: dict[str, list[tuple[str, pa.Array]]] = {}
    for attribute in attributes.values():
        if attribute.published is not None:
            columns = [table.column(name).combine_chunks() for name in attribute.columns]
            typed = _typed(
                attribute, attribute.published, columns, table.column_names, may_miss=may_miss
            )
            added[attribute.columns[-1]] = list(typed.items())
    names: list[str] = []
    arrays: list[Any] = []
    for name in table.column_names:
        names.append(name)
        arrays.append(table.column(name))
        for new, column in added.get(name, ()):
            names.append(new)
            arrays.append(column)
    return pa.table(arrays, names=names)


def _typed(
    attribute: ReadAttribute,
    published: PublishedAttribute,
    columns: Sequence[pa.Array],
    taken: Collection[str],
    *,
    may_miss: bool,
) -> dict[str, pa.Array]:
    names = typed_names(published, taken, is_opaque=attribute.is_opaque, may_miss=may_miss)
    if not names:
        return {}
    typed: dict[str, pa.Array] = {}
    if attribute.hides_regions:
        return {names["mid"]: columns[0]}
    if "mid" in names and "min" not in names:
        low, high = columns[0], columns[1]
        return {names["mid"]: _middle(low, high)}
    regions = regions_of(attribute, columns)
    if "set" in names:
        return {names["set"]: _sets(regions)}
    raw = attribute.raw_type
    ends = [_ends(region) for region in regions.regions]
    numbers = pa.array(regions.numbers)
    low = _as(raw, [end[0] for end in ends])
    high = _as(raw, [end[1] for end in ends])
    typed[names["min"]], typed[names["max"]] = low.take(numbers), high.take(numbers)
    if "max_included" in names:
        included = pa.array([end[2] for end in ends], pa.bool_())
        typed[names["max_included"]] = included.take(numbers)
    typed[names["mid"]] = _middle(low, high).take(numbers)
    if "missing" in names:
        missing = pa.array([region.missing for region in regions.regions], pa.bool_())
        typed[names["missing"]] = missing.take(numbers)
    return typed


def _ends(region: object) -> tuple[Any, Any, bool | None]:
    """Return smallest and largest value, and whether the largest is one of its values."""
    if not isinstance(region, OrderedRegion) or not region.intervals:
        return None, None, None
    last: Interval = max(region.intervals, key=lambda end: (end.high, end.high_included))
    low: Any = min(interval.low for interval in region.intervals)
    low = None if low == -math.inf else low
    # The end of 90+ is not known.
    return (low, None, None) if last.high == math.inf else (low, last.high, last.high_included)


def _as(arrow_type: pa.DataType | None, values: Sequence[Any]) -> pa.Array:
    """Return values as an array: days and microseconds as dates and times."""
    if arrow_type is None:
        raise TypeError("a category has no ends")
    if pa.types.is_date(arrow_type):
        return pa.array(values, pa.int32()).cast(pa.date32()).cast(arrow_type)
    if pa.types.is_timestamp(arrow_type):
        return pa.array(values, pa.int64()).cast(arrow_type)
    if pa.types.is_decimal(arrow_type):
        return pa.array([None if value is None else Decimal(value) for value in values], arrow_type)
    if pa.types.is_floating(arrow_type):
        return pa.array([None if value is None else float(value) for value in values], arrow_type)
    return pa.array(values, arrow_type)


def _middle(low: pa.Array, high: pa.Array) -> pa.Array:
    """Return the middle: of dates and times rounded down, of numbers a float64."""
    if pa.types.is_date(low.type) or pa.types.is_timestamp(low.type):
        number = pa.int32() if pa.types.is_date32(low.type) else pa.int64()
        first, last = (end.cast(number).cast(pa.int64()) for end in (low, high))
        pairs = zip(first.to_pylist(), last.to_pylist(), strict=True)
        middle = [
            None if start is None or end is None else (start + end) // 2 for start, end in pairs
        ]
        return pa.array(middle, pa.int64()).cast(number).cast(low.type)
    # Whole numbers beyond 2^53 are rounded, as databases round them.
    first, last = (
        end.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) for end in (low, high)
    )
    middle = pa.array(first / 2 + last / 2, pa.float64())
    unknown = pc.or_(pc.is_null(low), pc.is_null(high))
    return pc.if_else(unknown, pa.scalar(None, pa.float64()), middle)


def _sets(regions: Regions) -> pa.Array:
    """Return sets as lists of texts, with null for missing. Null for all values."""
    members: list[list[str | None] | None] = []
    for region in regions.regions:
        if not isinstance(region, CategoryRegion) or region.values is None:
            members.append(None)
        else:
            members.append([*region.values, *([None] if region.missing else [])])
    return pa.array(members, pa.list_(pa.string())).take(pa.array(regions.numbers))
