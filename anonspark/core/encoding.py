"""Quasi-identifiers as numbers: order-preserving 64-bit codes and positions on the real line.

Medians are taken on *codes*: integers in the order of the values, exact for every type. Widths and
distances are measured on *positions*: float64 numbers whose differences are the differences of the
values. There is no Spark here, because this runs on the driver and inside every task alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Figures, Flags
from anonspark.core.grids import Grid, gap, grid_text
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.core.labels import Kind

Codes = npt.NDArray[np.int64]
Positions = npt.NDArray[np.float64]


_EXACT_IN_FLOAT64 = 2**53


def _order_preserving_bits(values: Figures) -> Codes:
    """Map float64 to int64 so that the order is kept. -0.0 and 0.0 are one value.

    >>> bits = _order_preserving_bits(np.array([-1.5, -0.0, 0.0, 2.0]))
    >>> bits.argsort(kind="stable").tolist(), bool(bits[1] == bits[2])
    ([0, 1, 2, 3], True)
    """
    bits = (values + 0.0).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits - 1, bits)


def _float_of_bits(codes: Codes) -> Figures:
    bits = np.where(codes < 0, np.int64(-(2**63)) - codes - 1, codes)
    return np.ascontiguousarray(bits).view(np.float64)


@dataclass(frozen=True)
class QuasiIdentifier:
    """One quasi-identifier: its column, its type, and its range over the whole input.

    Parameters
    ----------
    name : str
        Column name, as configured and as published.
    kind : Kind
        What the values are.
    arrow_type : pyarrow.DataType
        Type of the staged column.
    lowest, highest : int
        Smallest and largest code of the values that are present (not missing). Crossed if none is.
    scale : int
        Decimal places that the values need (kind ``decimal``).
    categories : tuple of str
        All values in order (kind ``category``).
    has_missing : bool
        Whether missing values are a category: they get the code after ``highest``.
    weight : float
        Factor of widths, distances and penalties. Greater than 0.
    hierarchy : Hierarchy or None
        Groups of the categories, by which classes are generalized. Its leaves are the categories.
    range_declared : bool
        Whether ``lowest`` and ``highest`` are declared bounds, which no record need have.
    grid : Grid or None
        Grid of the ends of published ranges. The code of a value is then that of its line, and so
        are ``lowest`` and ``highest``.
    bottom, top : Fraction or None
        All values from here on, downwards and upwards, are one value. Days are numbers.
    folded : tuple of (str, int)
        Values that are not among the categories, with their codes (kind ``category``).
    """

    name: str
    kind: Kind
    arrow_type: pa.DataType
    lowest: int
    highest: int
    scale: int = 0
    categories: tuple[str, ...] = ()
    has_missing: bool = False
    weight: float = 1.0
    hierarchy: Hierarchy | None = None
    range_declared: bool = False
    grid: Grid | None = None
    bottom: Fraction | None = None
    top: Fraction | None = None
    folded: tuple[tuple[str, int], ...] = ()

    @property
    def unit(self) -> float:
        """Difference of positions that counts as 1 in widths: the range over the weight."""
        # A range of denormal numbers may be too small to be divided.
        return self.range / self.weight or self.range

    @cached_property
    def missing_code(self) -> int:
        """Code of missing values, the one after that of the largest end."""
        return int(self.last(np.array([self.highest]))[0]) + 1

    @property
    def code_type(self) -> pa.DataType:
        """Smallest type that holds all codes."""
        ends = {self.lowest, self.missing_code}
        types = ((8, pa.int8()), (16, pa.int16()), (32, pa.int32()))
        fits = (
            data_type
            for bits, data_type in types
            if all(-(2 ** (bits - 1)) <= end < 2 ** (bits - 1) for end in ends)
        )
        return next(fits, pa.int64())

    @property
    def root_cell(self) -> tuple[int | None, int | None]:
        """Ends of the cell of a whole table: as declared, or None if they are its own extremes."""
        if not self.range_declared:
            return None, None
        return self.lowest, self.missing_code if self.has_missing else self.highest

    @property
    def height(self) -> int:
        """Levels above the values: those of the hierarchy, or 1 without one."""
        return self.hierarchy.height if self.hierarchy is not None else 1

    @property
    def domain_size(self) -> int:
        """Number of values of the domain. A missing category is a value."""
        if self.hierarchy is not None:
            return len(self.categories) + int(self.has_missing)
        return self.highest - self.lowest + 1 + int(self.has_missing)

    @property
    def is_category(self) -> bool:
        """Return whether classes are published as sets of values, not as intervals."""
        return self.kind in ("category", "boolean")

    @cached_property
    def _offset(self) -> int:
        # Beyond 2^53, float64 rounds neighbouring integers to one: measure from the minimum.
        if self.kind == "float" or max(abs(self.lowest), abs(self.highest)) <= _EXACT_IN_FLOAT64:
            return 0
        return self.lowest

    @cached_property
    def _shrink(self) -> float:
        # Keeps the range finite where the difference of the extremes would overflow.
        if self.kind == "float" and self.lowest <= self.highest:
            low, high = _float_of_bits(np.array([self.lowest, self.highest], np.int64))
            with np.errstate(over="ignore"):
                if not np.isfinite((high - low) * 4):
                    return 0.125
        return 1.0

    @cached_property
    def range(self) -> float:
        """Largest minus smallest position over the whole input, or 1 if they are equal."""
        if self.lowest > self.highest:
            return 1.0
        ends = np.array([self.lowest, self.highest], np.int64)
        if self.has_missing and self.is_category:
            ends[1] = self.missing_code
        low, high = self._present_positions(np.array([self.first(ends)[0], self.last(ends)[1]]))
        return float(high - low) or 1.0

    @cached_property
    def origin(self) -> float:
        """Position of the smallest value."""
        if self.lowest > self.highest:
            return 0.0
        lowest = np.array([self.lowest], np.int64)
        return float(self._present_positions(self.first(lowest))[0])

    @cached_property
    def step(self) -> float:
        """Distance of neighbouring values of the domain, 0 for a continuous one."""
        return 0.0 if self.kind in ("float", "timestamp") else 1.0

    def of_round(self, number: int) -> QuasiIdentifier:
        """Return it for a round. Declared bounds are ends of the whole table, that of round 1."""
        return self if number == 1 else replace(self, range_declared=False)

    def encode(self, column: pa.Array) -> Codes:
        """Return the code of each value, int64. Nulls and NaN are missing.

        Texts may come as a dictionary. Raises ValueError for missing values without a code, or
        unknown categories, because the data changed after they were checked.

        >>> age = QuasiIdentifier("age", "integer", pa.int64(), 17, 90, has_missing=True)
        >>> age.encode(pa.array([17, None, 42])).tolist()
        [17, 91, 42]
        """
        missing = np.asarray(pc.is_null(column, nan_is_null=True))
        any_missing = bool(missing.any())
        if any_missing and not self.has_missing:
            raise ValueError("a quasi-identifier is missing in the staged records")
        codes = self.coarsened(self._encode_present(column, any_missing))
        if any_missing:
            codes = np.where(missing, np.int64(self.missing_code), codes)
        return codes

    def _encode_present(self, column: pa.Array, any_missing: bool) -> Codes:
        """Encode values as codes in their order. The codes of missing values are arbitrary."""
        match self.kind:
            case "category":
                all_categories = pa.array([*self.categories, *dict(self.folded)], self.arrow_type)
                if pa.types.is_dictionary(column.type):
                    indices = pc.index_in(column.dictionary, value_set=all_categories)
                    index = indices.take(column.indices)
                else:
                    index = pc.index_in(column, value_set=all_categories)
                if index.null_count > column.null_count:
                    raise ValueError("a category is unknown in the staged records")
                codes: Codes = _numpy(index, any_missing).astype(np.int64)
                if not self.folded:
                    return codes
                folded = [code for _, code in self.folded]
                return np.array([*range(len(self.categories)), *folded], np.int64)[codes]
            case "boolean":
                return _numpy(column.cast(pa.int8()), any_missing).astype(np.int64)
            case "float":
                values = _numpy(column, any_missing).astype(np.float64)
                return _order_preserving_bits(values)
            case "decimal":
                exact = column.cast(pa.decimal128(38, self.scale))
                if any_missing:
                    exact = exact.fill_null(pa.scalar(0, pa.decimal128(38, 0)).cast(exact.type))
                words = np.frombuffer(exact.buffers()[1], np.int64).reshape(-1, 2)
                return words[exact.offset : exact.offset + len(exact), 0].copy()
            case "date":
                return _numpy(column.cast(pa.int32()), any_missing).astype(np.int64)
            case "timestamp":
                micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
                return _numpy(micros, any_missing).astype(np.int64)
            case "integer":
                return _numpy(column, any_missing).astype(np.int64)

    def code_of(self, value: Fraction) -> int:
        """Return the code that a number has before it is coarsened."""
        if self.kind == "float":
            return int(_order_preserving_bits(np.array([float(value)]))[0])
        return int(value * 10**self.scale)

    def value_of(self, code: int) -> Fraction:
        """Return the number that a code stands for. Days and microseconds are numbers."""
        if self.kind == "float":
            return Fraction(float(_float_of_bits(np.array([code], np.int64))[0]))
        return Fraction(code, 10**self.scale)

    @property
    def holds_ends(self) -> bool:
        """Return whether the type of the column holds all ends of ranges."""
        codes = np.array([self.lowest, self.highest], np.int64)
        low, high = int(self.first(codes)[0]), int(self.last(codes)[1])
        kind = self.arrow_type
        if self.kind == "decimal":
            digits = len(str(max(abs(low), abs(high)))) - self.scale
            return bool(self.scale <= kind.scale and digits <= kind.precision - kind.scale)
        if pa.types.is_integer(kind):
            bits = kind.bit_width - 1
            return bool(-(2**bits) <= low and high < 2**bits)
        return True

    @cached_property
    def bottom_code(self) -> int | None:
        """Code of ``bottom``, and of the values beyond."""
        return None if self.bottom is None else self.code_of(self.bottom)

    @cached_property
    def top_code(self) -> int | None:
        """Code of ``top``, and of the values beyond."""
        return None if self.top is None else self.code_of(self.top)

    @property
    def zero_is_strip(self) -> bool:
        """Return whether 0 is a strip by itself: of numbers, but not of days and moments."""
        return self.grid is not None and not isinstance(self.grid.step, str)

    def coarsened(self, codes: Codes) -> Codes:
        """Replace the codes of values by those of grid lines, and join values beyond the ends.

        >>> grid = Grid(Fraction(5), "integer")
        >>> age = QuasiIdentifier("age", "integer", pa.int64(), 10, 90, grid=grid)
        >>> age.coarsened(np.array([0, 3, 17, 42])).tolist()
        [0, 1, 15, 40]
        """
        lines = codes if self.grid is None else self._on_grid(self.grid.floor, codes)
        if self.zero_is_strip:
            # Few records of many columns of amounts have another value than 0. Its code is 0, and
            # that of the strip behind it 1.
            lines = np.where((lines == 0) & (codes > 0), 1, lines)
        if self.bottom_code is not None:
            # A strip around it begins behind it.
            lines = np.maximum(lines, self.bottom_code + 1)
            lines = np.where(codes <= self.bottom_code, self.bottom_code, lines)
        if self.top_code is not None:
            lines = np.where(codes < self.top_code, lines, self.top_code)
        return lines

    def first(self, codes: Codes) -> Codes:
        """Return the lower ends of the values that codes of records stand for."""
        if self.grid is None or gap(self.kind):
            return codes
        if self.zero_is_strip:
            codes = np.where(codes == 1, 0, codes)
        if self.bottom_code is not None:
            codes = np.where(codes == self.bottom_code + 1, self.bottom_code, codes)
        return codes

    def last(self, codes: Codes) -> Codes:
        """Return the largest of the values that the code of a record stands for.

        >>> grid = Grid(Fraction(5), "integer")
        >>> age = QuasiIdentifier("age", "integer", pa.int64(), 10, 90, grid=grid)
        >>> age.last(np.array([15, 40])).tolist()
        [19, 44]
        """
        if self.grid is None:
            return codes
        ends = self._on_grid(self.grid.last, self._on_grid(self.grid.floor, codes))
        if self.zero_is_strip:
            ends = np.where(codes == 0, 0, ends)
        if self.bottom_code is not None:
            ends = np.where(codes <= self.bottom_code, codes, ends)
        if self.top_code is not None:
            below = np.minimum(ends, self.top_code - gap(self.kind))
            ends = np.where(codes < self.top_code, below, codes)
        return ends

    def may_end(self, values: pa.Array, marked: Flags | None, *, upper: bool) -> Flags:
        """Return which values, days and microseconds as numbers, may be the ends of ranges.

        ``marked`` are the ends that stand for all values beyond them, or None if ends have no mark.
        """
        is_time = self.kind in ("date", "timestamp")
        codes = _numpy(values, False) if is_time else self._encode_present(values, False)
        lines = self.coarsened(codes)
        if upper and gap(self.kind):
            lines = self.last(lines)
        is_end: Flags = lines == codes
        if marked is not None:
            is_outermost = codes == (self.top_code if upper else self.bottom_code)
            # A strip may end at the value from which on all are one.
            is_end &= (marked == is_outermost) | (is_outermost & (gap(self.kind) == 0))
        return is_end

    def _on_grid(self, move: Callable[..., Any], codes: Codes) -> Codes:
        if self.kind == "float":
            return _order_preserving_bits(move(_float_of_bits(codes)))
        moved: Codes = move(codes, self.scale)
        return moved

    def decode(self, codes: Codes) -> pa.Array:
        """Return the values of codes of :meth:`encode` as ``arrow_type``, nulls for missing ones.

        >>> age = QuasiIdentifier("age", "integer", pa.int64(), 17, 90, has_missing=True)
        >>> age.decode(np.array([17, 91])).to_pylist()
        [17, None]
        """
        missing = codes == self.missing_code if self.has_missing else None
        if missing is not None and missing.any():
            codes = np.where(missing, self.lowest if self.lowest <= self.highest else 0, codes)
        else:
            missing = None
        match self.kind:
            case "category":
                if not self.categories:
                    return pa.nulls(len(codes), self.arrow_type)
                values = pa.array(self.categories, self.arrow_type).take(pa.array(codes))
            case "boolean":
                values = pa.array(codes.astype(bool))
            case "float":
                numbers = _float_of_bits(codes)
                values = pa.array(numbers.astype(self.arrow_type.to_pandas_dtype()))
            case "decimal":
                words = np.stack([codes, codes >> 63], axis=1)
                buffer = pa.py_buffer(np.ascontiguousarray(words).tobytes())
                exact = pa.Array.from_buffers(
                    pa.decimal128(38, self.scale), len(codes), [None, buffer]
                )
                values = exact.cast(self.arrow_type)
            case "date":
                values = pa.array(codes.astype(np.int32)).cast(self.arrow_type)
            case "timestamp":
                micros = pa.timestamp("us", self.arrow_type.tz)
                values = pa.array(codes).cast(micros).cast(self.arrow_type)
            case "integer":
                values = pa.array(codes).cast(self.arrow_type)
        if missing is None:
            return values
        return pc.if_else(pa.array(missing), pa.scalar(None, self.arrow_type), values)

    def positions(self, codes: Codes) -> Positions:
        """Return where codes lie on the real line, float64.

        A missing category comes last. A missing number lies one whole range beyond the largest
        number. It is near nothing, so trees cut missing from present values first.

        >>> age = QuasiIdentifier("age", "integer", pa.int64(), 20, 90, has_missing=True)
        >>> age.positions(np.array([20, 91])).tolist()
        [20.0, 160.0]
        """
        positions = self._present_positions(codes)
        if self.has_missing and not self.is_category:
            missing = codes == self.missing_code
            if missing.any():
                beyond = self.origin + self.range * (1.0 if self.lowest > self.highest else 2.0)
                positions = np.where(missing, beyond, positions)
        return positions

    def _present_positions(self, codes: Codes) -> Positions:
        if self.kind == "float":
            return _float_of_bits(codes) * self._shrink
        if self._offset:
            # Unsigned: the difference of two 64-bit integers may not fit a signed one.
            shifted = codes.view(np.uint64) - np.uint64(self._offset % 2**64)
            return shifted.astype(np.float64)
        return codes.astype(np.float64)

    def normalized(self, positions: Positions) -> Positions:
        """Return positions on the scale where the whole input spans 0 to the weight."""
        return (positions - self.origin) / self.unit

    def describe(self) -> dict[str, Any]:
        """Return the description for a manifest. It holds no value of the attribute."""
        description: dict[str, Any] = {"name": self.name, "kind": self.kind}
        description["type"] = str(self.arrow_type)
        if self.grid is not None:
            description["grid"] = grid_text(self.grid)
        if self.hierarchy is None:
            return description
        height, leaves = self.hierarchy.height, len(self.hierarchy.leaves)
        return {**description, "hierarchy": {"height": height, "leaves": leaves}}


def _numpy(column: pa.Array, any_missing: bool) -> npt.NDArray[Any]:
    """Return values as an array, with anything for a missing one: the caller replaces its code."""
    if any_missing:
        column = column.fill_null(pa.scalar(0, pa.int64()).cast(column.type))
    values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values
