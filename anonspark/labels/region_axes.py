"""Codes that raw values and published regions share: where a value lies among the regions' ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Integers
from anonspark.core.hierarchies.files import BLANKS
from anonspark.core.uniform_mass import joined_runs
from anonspark.labels.raw_records import DECIMAL_DIGITS, Places
from anonspark.labels.regions import CategoryRegion, Interval, Leaves, Number, OrderedRegion

Codes = npt.NDArray[np.int32]

_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class OrderedAxis:
    """Codes of an ordered attribute: its place among the ends of all regions.

    Parameters
    ----------
    ends : ndarray of shape (n,)
        The ends in order, each once: int64, float64, text, or 16 bytes for decimals.
    places : int, "integer", "float", "code" or "beginning"
        See :class:`PreparedTable`.
    """

    ends: npt.NDArray[Any]
    places: Places

    @property
    def missing(self) -> int:
        """Code of missing values: after 0 to 2n, where odd codes are ends and even ones between."""
        return 2 * len(self.ends) + 1

    def encode(self, column: pa.Array) -> Integers:
        """Return the code of each value, anything for nulls."""
        if self.places == "float":
            values = column.fill_null(0.0).to_numpy(zero_copy_only=False)
        elif self.places in ("code", "beginning"):
            lengths: Any = "000000"
            if self.places == "code":
                lengths = pc.utf8_lpad(pc.cast(pc.utf8_length(column), pa.string()), 6, "0")
            keys = pc.binary_join_element_wise(lengths, column, "").fill_null("")
            values = keys.to_numpy(zero_copy_only=False).astype(np.str_)
        elif isinstance(self.places, int):
            values = _sortable_decimals(column)
        else:
            if pa.types.is_date(column.type):
                column = column.cast(pa.int32())
            values = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return self.codes_of(values)

    def codes_of(self, values: npt.NDArray[Any]) -> Integers:
        """Return the code of each value, which is of the type of the ends."""
        codes: Integers = np.searchsorted(self.ends, values, "left")
        codes += np.searchsorted(self.ends, values, "right")
        return codes


@dataclass(frozen=True)
class CategoryAxis:
    """Codes of a category: 1 for the first of the published values, 0 for values of no region.

    Parameters
    ----------
    values : tuple of str
        All values that a region names.
    """

    values: tuple[str, ...]

    @property
    def missing(self) -> int:
        """Code of missing values."""
        return len(self.values) + 1

    @cached_property
    def _value_set(self) -> pa.Array:
        return pa.array(self.values, pa.string())

    def __getstate__(self) -> dict[str, object]:
        return {"values": self.values}

    def encode(self, column: pa.Array) -> Integers:
        """Return the code of each value, anything for nulls."""
        places = pc.index_in(column.cast(pa.string()), value_set=self._value_set)
        return pc.add(places, 1).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


Runs = tuple[tuple[int, int], ...]


def sets_of_codes(
    regions: Sequence[OrderedRegion] | Sequence[CategoryRegion],
    places: Places | None,
    leaves: Leaves | None,
) -> tuple[OrderedAxis | CategoryAxis, list[Runs]]:
    """Return the axis of an attribute, and each region as runs of its codes."""
    if places is None:
        named = [region for region in regions if isinstance(region, CategoryRegion)]
        return _category_sets(named, leaves)
    ordered = [region for region in regions if isinstance(region, OrderedRegion)]
    return _ordered_sets(ordered, places)


def boxes_of_codes(regions: Sequence[Any], axis: OrderedAxis | CategoryAxis) -> Codes:
    """Return codes (regions, 2) between which all values of a region lie, of the axis of others.

    An axis knows its own ends and categories. Other ends lie between two of them, and other
    categories have the code 0, so that a box may be larger than the region, and never smaller.
    """
    listed: list[list[Any] | None]
    if isinstance(axis, CategoryAxis):
        known = {value: code for code, value in enumerate(axis.values, start=1)}
        listed = [None if region.is_everything else [*region.values] for region in regions]
        codes = iter(
            known.get(value.strip(BLANKS), 0) for values in listed for value in values or ()
        )
    else:
        closed = _closed_intervals(regions, axis.places)
        listed = [None if spans is None else [*chain(*spans)] for spans in closed]
        ends = [end for values in listed for end in values or ()]
        codes = iter(axis.codes_of(_sortable(ends, axis.places)).tolist())
    boxes = np.zeros((len(listed), 2), np.int32)
    for box, region, values in zip(boxes, regions, listed, strict=True):
        inside = [0, axis.missing - 1] if values is None else [*islice(codes, len(values))]
        inside += [axis.missing] if region.missing else []
        box[:] = min(inside, default=0), max(inside, default=0)
    return boxes


def _category_sets(
    regions: Sequence[CategoryRegion], leaves: Leaves | None
) -> tuple[CategoryAxis, list[Runs]]:
    trimmed = [
        None if region.values is None else {value.strip(BLANKS) for value in region.values}
        for region in regions
    ]
    named = set().union(*(values for values in trimmed if values is not None))
    # In the order of the hierarchy, so that its labels are single runs.
    order: dict[str, None] = {}
    for own in sorted((leaves or {}).values(), key=len, reverse=True)[:1]:
        order.update(dict.fromkeys(value.strip(BLANKS) for value in own))
    values = [value for value in order if value in named]
    values += sorted(named.difference(order))
    axis = CategoryAxis(tuple(values))
    codes = {value: code for code, value in enumerate(values, start=1)}
    sets = []
    for region, own_values in zip(regions, trimmed, strict=True):
        if own_values is None:
            own_runs = [(0, axis.missing - 1)]
        else:
            own_runs = [(codes[value], codes[value]) for value in own_values]
        if region.missing:
            own_runs.append((axis.missing, axis.missing))
        sets.append(joined_runs(own_runs, whole=True))
    return axis, sets


def _ordered_sets(
    regions: Sequence[OrderedRegion], places: Places
) -> tuple[OrderedAxis, list[Runs]]:
    closed = _closed_intervals(regions, places)
    ends = sorted({end for own in closed for interval in own or () for end in interval})
    codes = {end: 2 * place + 1 for place, end in enumerate(ends)}
    axis = OrderedAxis(_sortable(ends, places), places)
    sets = []
    for region, own in zip(regions, closed, strict=True):
        if own is None:
            own_runs = [(0, axis.missing - 1)]
        else:
            own_runs = [(codes[low], codes[high]) for low, high in own]
        if region.missing:
            own_runs.append((axis.missing, axis.missing))
        sets.append(joined_runs(own_runs, whole=True))
    return axis, sets


def _closed_intervals(regions: Sequence[Any], places: Places) -> list[list[tuple[Any, Any]] | None]:
    """Return first and last value that a column of a type can hold in each interval, or None."""
    closed: list[list[tuple[Any, Any]] | None] = []
    for region in regions:
        if region.intervals is None:
            closed.append(None)
            continue
        ends_of_intervals = (_closed(interval, places) for interval in region.intervals)
        closed.append([(low, high) for low, high in ends_of_intervals if low <= high])
    return closed


def _closed(interval: Interval, places: Places) -> tuple[Any, Any]:
    """Return the first and last value of an interval among the values of a type."""
    if isinstance(interval.low, str) or isinstance(interval.high, str):
        return interval.low, interval.high
    if places == "float":
        return (
            _next_float(interval.low, interval.low_included, math.inf),
            _next_float(interval.high, interval.high_included, -math.inf),
        )
    exponent = places if isinstance(places, int) else 0
    low, high = _scaled(interval.low, exponent), _scaled(interval.high, exponent)
    first, last = math.ceil(low), math.floor(high)
    first += int(not interval.low_included and first == low)
    last -= int(not interval.high_included and last == high)
    # Ends beyond what the column's type holds bound nothing.
    smallest, largest = (-(2**127), 2**127 - 1)
    if places == "integer":
        smallest, largest = _INT64.min, _INT64.max
    return max(first, smallest), min(last, largest)


def _scaled(value: Number, places: int) -> Any:
    """Return an exact number times a power of ten, exact. Infinity is beyond all types."""
    if isinstance(value, float) and math.isinf(value):
        return 2**127 if value > 0 else -(2**127)
    if isinstance(value, int):
        return value * 10**places
    return Fraction(value) * 10**places


def _next_float(value: Number, included: bool, direction: float) -> float:
    """Return the float64 nearest to a number that is not before it, seen in a direction."""
    nearest = float(value)
    before = nearest < value if direction > 0 else nearest > value
    if before or (not included and nearest == value):
        nearest = math.nextafter(nearest, direction)
    return nearest + 0.0


def _sortable(ends: Sequence[Any], places: Places) -> npt.NDArray[Any]:
    if places == "float":
        return np.array(ends, np.float64)
    if places in ("code", "beginning"):
        return np.array(ends, np.str_)
    if places == "integer":
        return np.array(ends, np.int64)
    words = [(end + 2**127).to_bytes(16, "big") for end in ends]
    return np.frombuffer(b"".join(words), "S16")


def _sortable_decimals(column: pa.Array) -> npt.NDArray[Any]:
    """Return 128-bit integers as 16 bytes whose order is theirs."""
    zero = pa.scalar(0, pa.decimal128(DECIMAL_DIGITS, 0)).cast(column.type)
    column = column.fill_null(zero)
    words = np.frombuffer(column.buffers()[1], np.uint64).reshape(-1, 2)
    words = words[column.offset : column.offset + len(column)]
    swapped = np.empty((len(column), 2), ">u8")
    swapped[:, 0] = words[:, 1] ^ np.uint64(2**63)
    swapped[:, 1] = words[:, 0]
    return swapped.reshape(-1).view("S16")
