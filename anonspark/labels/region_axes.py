"""Codes that raw values and published regions share: where a value lies among the regions' ends."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Integers
from anonspark.core.hierarchies.files import BLANKS
from anonspark.core.uniform_mass import joined_runs
from anonspark.labels.raw_records import DECIMAL_DIGITS, ComparedAs
from anonspark.labels.regions import CategoryRegion, Interval, Leaves, Number, OrderedRegion

Codes = npt.NDArray[np.int32]

_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class OrderedAxis:
    """Codes of an ordered attribute: positions of values among the ends of all regions.

    ``ends`` are the ends in order, each once: int64, float64, text, or 16 bytes for decimals.
    ``compared_as`` is that of :class:`PreparedTable`.

    >>> axis = OrderedAxis(np.array([17, 25]), "integer")
    >>> axis.encode(pa.array([16, 17, 20, 25, 26])).tolist(), axis.missing
    ([0, 1, 2, 3, 4], 5)
    """

    ends: npt.NDArray[Any]
    compared_as: ComparedAs

    @property
    def missing(self) -> int:
        """Code of missing values: after 0 to 2n, where odd codes are ends and even ones between."""
        return 2 * len(self.ends) + 1

    def encode(self, column: pa.Array) -> Integers:
        """Return the code of each value, int64 of shape (n,). Codes of nulls mean nothing.

        Values become what NumPy can search for in the same order. Codes sort by length, then text.
        """
        if self.compared_as == "float":
            values = column.fill_null(0.0).to_numpy(zero_copy_only=False)
        elif self.compared_as in ("code", "beginning"):
            lengths: Any = "000000"
            if self.compared_as == "code":
                lengths = pc.utf8_lpad(pc.cast(pc.utf8_length(column), pa.string()), 6, "0")
            keys = pc.binary_join_element_wise(lengths, column, "").fill_null("")
            values = keys.to_numpy(zero_copy_only=False).astype(np.str_)
        elif isinstance(self.compared_as, int):
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
    """Codes of a category: from 1 on those of the values that a region names, 0 for all others.

    >>> CategoryAxis(("a", "b")).encode(pa.array(["b", "z"])).tolist()
    [2, 0]
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
        """Return the code of each value, int64 of shape (n,). Codes of nulls mean nothing."""
        codes = pc.index_in(column.cast(pa.string()), value_set=self._value_set)
        return pc.add(codes, 1).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


Runs = tuple[tuple[int, int], ...]


def sets_of_codes(
    regions: Sequence[OrderedRegion] | Sequence[CategoryRegion],
    compared_as: ComparedAs | None,
    leaves: Leaves | None,
    axis: OrderedAxis | CategoryAxis | None = None,
) -> tuple[OrderedAxis | CategoryAxis, list[Runs]]:
    """Return the axis of an attribute, and each region as runs of codes on it.

    The ends of intervals have the odd codes, and the values between two ends the even code between
    theirs. Categories are numbered from 1. The last code is that of missing values. On the ``axis``
    of other regions, an end that it lacks gets an even code, and another category the code 0.
    ``compared_as`` is None for categories: all regions are then of categories, else all ordered.

    >>> region = OrderedRegion((Interval(17, 25),), missing=True)
    >>> sets_of_codes([region], "integer", None)[1]
    [((1, 3), (5, 5))]
    """
    if compared_as is None:
        named = [region for region in regions if isinstance(region, CategoryRegion)]
        return _category_sets(named, leaves, axis)
    ordered = [region for region in regions if isinstance(region, OrderedRegion)]
    return _ordered_sets(ordered, compared_as, axis)


def _category_sets(
    regions: Sequence[CategoryRegion], leaves: Leaves | None, axis: Any
) -> tuple[CategoryAxis, list[Runs]]:
    """Return an axis of values in the order of the hierarchy, whose labels are then single runs."""
    trimmed = [
        None if region.values is None else {value.strip(BLANKS) for value in region.values}
        for region in regions
    ]
    named = set().union(*(values for values in trimmed if values is not None))
    order: dict[str, None] = {}
    for group in sorted((leaves or {}).values(), key=len, reverse=True)[:1]:
        order.update(dict.fromkeys(value.strip(BLANKS) for value in group))
    values = [value for value in order if value in named]
    values += sorted(named.difference(order))
    axis = axis or CategoryAxis(tuple(values))
    codes = defaultdict(int, {value: code for code, value in enumerate(axis.values, start=1)})
    sets = []
    for region, present in zip(regions, trimmed, strict=True):
        ends = None if present is None else [(value, value) for value in present]
        sets.append(_codes_of(region, ends, codes, axis.missing))
    return axis, sets


def _ordered_sets(
    regions: Sequence[OrderedRegion], compared_as: ComparedAs, axis: Any
) -> tuple[OrderedAxis, list[Runs]]:
    """Return the axis of the ends of all regions, and each region as runs."""
    # The first and last value of this type in each interval of a region.
    closed: list[list[tuple[Any, Any]] | None] = []
    for region in regions:
        if region.intervals is None:
            closed.append(None)
            continue
        ends_of_intervals = (_closed(interval, compared_as) for interval in region.intervals)
        closed.append([(low, high) for low, high in ends_of_intervals if low <= high])
    ends = sorted({end for intervals in closed for interval in intervals or () for end in interval})
    axis = axis or OrderedAxis(_sortable(ends, compared_as), compared_as)
    codes = dict(zip(ends, axis.codes_of(_sortable(ends, compared_as)).tolist(), strict=True))
    pairs = zip(regions, closed, strict=True)
    return axis, [_codes_of(region, between, codes, axis.missing) for region, between in pairs]


def _codes_of(
    region: OrderedRegion | CategoryRegion,
    ends: Sequence[tuple[Any, Any]] | None,
    codes: Mapping[Any, int],
    missing: int,
) -> Runs:
    """Return the codes of a region: of the values between ends, or of all of them (None)."""
    runs = [(0, missing - 1)] if ends is None else [(codes[low], codes[high]) for low, high in ends]
    return joined_runs([*runs, *[(missing, missing)] * region.missing], whole=True)


def _closed(interval: Interval, compared_as: ComparedAs) -> tuple[Any, Any]:
    """Return the first and last value of an interval among the values of a type.

    >>> _closed(Interval(17, 25, high_included=False), "integer")
    (17, 24)
    """
    if isinstance(interval.low, str) or isinstance(interval.high, str):
        return interval.low, interval.high
    if compared_as == "float":
        return (
            _next_float(interval.low, interval.low_included, math.inf),
            _next_float(interval.high, interval.high_included, -math.inf),
        )
    exponent = compared_as if isinstance(compared_as, int) else 0
    low, high = _scaled(interval.low, exponent), _scaled(interval.high, exponent)
    first, last = math.ceil(low), math.floor(high)
    first += int(not interval.low_included and first == low)
    last -= int(not interval.high_included and last == high)
    # An end beyond the column's type bounds nothing.
    least, greatest = (-(2**127), 2**127 - 1)
    if compared_as == "integer":
        least, greatest = _INT64.min, _INT64.max
    return max(first, least), min(last, greatest)


def _scaled(value: Number, exponent: int) -> Any:
    """Return a number times a power of ten, exactly. Infinity becomes a number beyond all types.

    >>> _scaled(1.5, 2)
    Fraction(150, 1)
    """
    if isinstance(value, float) and math.isinf(value):
        return 2**127 if value > 0 else -(2**127)
    if isinstance(value, int):
        return value * 10**exponent
    return Fraction(value) * 10**exponent


def _next_float(value: Number, included: bool, direction: float) -> float:
    """Return the float64 nearest to a number that is not before it, seen in a direction.

    >>> _next_float(0.5, False, math.inf)
    0.5000000000000001
    """
    nearest = float(value)
    before = nearest < value if direction > 0 else nearest > value
    if before or (not included and nearest == value):
        nearest = math.nextafter(nearest, direction)
    return nearest + 0.0


def _sortable(ends: Sequence[Any], compared_as: ComparedAs) -> npt.NDArray[Any]:
    """Return ends as an array that can be searched."""
    if compared_as == "float":
        return np.array(ends, np.float64)
    if compared_as in ("code", "beginning"):
        return np.array(ends, np.str_)
    if compared_as == "integer":
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
