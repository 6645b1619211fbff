"""Validate the values of the input batch by batch, and count findings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.raw_columns import Reading, flags, is_text
from anonspark.engine.values.column_plans import PlannedColumn
from anonspark.engine.values.distinct import Distinct
from anonspark.engine.values.hashing import xxhash64
from anonspark.engine.values.value_texts import convert, parse, plain, read_values

MOST_DISTINCT = 2**20
"""Different texts that are counted exactly. More are an error, so an estimate is enough."""


@dataclass(frozen=True)
class Validated:
    """The values of one quasi-identifier in a batch of n records, null if missing or invalid.

    The flags, bool (n,), say whether a value is missing, is not of its declared type, is an
    infinite number, or is a text without a declared type that reads as a number.
    """

    values: pa.Array
    missing: np.ndarray
    invalid: np.ndarray
    infinite: np.ndarray
    numeric: np.ndarray


def validate(plan: PlannedColumn, column: pa.Array, markers: Sequence[str]) -> Validated:
    """Read the values of a quasi-identifier, and flag the errors in them.

    Each value of a dictionary is validated once, and texts are then returned as a dictionary.
    """
    if isinstance(column, pa.DictionaryArray) and len(column.dictionary) < len(column):
        return _validate_codes(plan, column, markers)
    raw = plain(column)
    name = plan.column.name
    reading = Reading(name, name, plan.read_as, tuple(markers))
    values, is_missing = read_values(reading, raw)
    if pa.types.is_timestamp(raw.type) and pa.types.is_date(values.type):
        # A timestamp is a day only at midnight.
        midnights = pc.equal(values.cast(raw.type), raw)
        values = pc.if_else(midnights, values, pa.scalar(None, values.type))
    missing = flags(is_missing)
    none = np.zeros(len(raw), bool)
    invalid = ~missing & flags(pc.is_null(values)) if plan.read_as is not None else none
    infinite = none
    if pa.types.is_floating(values.type):
        infinite = flags(pc.fill_null(pc.is_inf(values), False))
    numeric = none
    if plan.column.undeclared_text and is_text(raw.type):
        numeric = ~missing & flags(pc.is_valid(parse(raw, pa.float64())))
    if plan.in_text is not None:
        values = convert(values, pa.string(), plan.in_text)
    return Validated(values, missing, invalid, infinite, numeric)


def _validate_codes(
    plan: PlannedColumn, column: pa.DictionaryArray, markers: Sequence[str]
) -> Validated:
    """Validate the values of a dictionary and a null, and copy the results to the rows."""
    values = column.dictionary
    by_code = validate(plan, pa.concat_arrays([values, pa.nulls(1, values.type)]), markers)
    codes = pc.fill_null(column.indices, len(values))
    value_of_row = codes.to_numpy()
    if is_text(by_code.values.type):
        # Several values may be read as the same text, or as null.
        read = by_code.values.dictionary_encode()
        of_rows = pa.DictionaryArray.from_arrays(read.indices.take(codes), read.dictionary)
    else:
        of_rows = by_code.values.take(codes)
    flags = (by_code.missing, by_code.invalid, by_code.infinite, by_code.numeric)
    return Validated(of_rows, *(flag[value_of_row] for flag in flags))


@dataclass
class Findings:
    """The findings in the records of one task, or of all.

    Parameters
    ----------
    rows, staying : int
        Records, and those that stay under the policy for missing values.
    counts : dict of str to int
        Counts by name. See :meth:`anonspark.engine.protocol.Input.inspect`.
    texts : dict of int to Distinct
        Different values of the quasi-identifiers that are texts, by their indices.
    lowest, highest : dict of int to int, float or Decimal
        Extremes of the other quasi-identifiers.
    hash_sum, hash_xor : int
        Sum and exclusive or of the records' hashes, if they are hashed.
    most_distinct : int
        Different texts of a quasi-identifier that are counted exactly. More are estimated.
    """

    rows: int = 0
    staying: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    texts: dict[int, Distinct] = field(default_factory=dict)
    lowest: dict[int, Any] = field(default_factory=dict)
    highest: dict[int, Any] = field(default_factory=dict)
    hash_sum: int = 0
    hash_xor: int = 0
    most_distinct: int = MOST_DISTINCT

    def add(
        self, plans: Sequence[PlannedColumn], validated: Sequence[Validated], keep: np.ndarray
    ) -> None:
        """Count the records of a batch. ``keep``, bool (n,), are those that stay."""
        self.rows += len(keep)
        self.staying += int(keep.sum())
        mask = None if keep.all() else pa.array(keep)
        for index, (plan, column) in enumerate(zip(plans, validated, strict=True)):
            for name in ("missing", "invalid", "infinite"):
                self.count(f"{name}_{index}", int(getattr(column, name).sum()))
            values = column.values if mask is None else column.values.filter(mask)
            if plan.column.kind == "category":
                self.count(f"numeric_{index}", int((column.numeric & keep).sum()))
                self._distinct(index).add(_hashes(values))
                continue
            numbers = _plain_numbers(values)
            self._extremes(index, numbers)
            if plan.column.kind == "decimal":
                name = f"places_{index}"
                if numbers.null_count < len(numbers):
                    self.counts[name] = _places(numbers, self.counts.get(name, 0))

    def _distinct(self, index: int) -> Distinct:
        """Return the counter of a quasi-identifier's different texts."""
        return self.texts.setdefault(index, Distinct(self.most_distinct))

    def count(self, name: str, number: int) -> None:
        """Add to a count."""
        self.counts[name] = self.counts.get(name, 0) + number

    def _extremes(self, index: int, numbers: pa.Array) -> None:
        """Widen the extremes of a quasi-identifier by numbers."""
        ends = pc.min_max(numbers).as_py()
        if ends["min"] is not None:
            self._widen({index: ends["min"]}, {index: ends["max"]})

    def _widen(self, lowest: Mapping[int, Any], highest: Mapping[int, Any]) -> None:
        """Widen extremes by others."""
        for values, more, better in ((self.lowest, lowest, min), (self.highest, highest, max)):
            for index, value in more.items():
                values[index] = better(values.get(index, value), value)

    def add_hashes(self, hashes: np.ndarray) -> None:
        """Add hashes of records, int64 (n,), to their sum.

        Halves, whose sums fit 64 bits, are added.
        """
        high, low = hashes >> 32, hashes & 0xFFFFFFFF
        self.hash_sum += (int(high.sum()) << 32) + int(low.sum())
        self.hash_xor ^= int(np.bitwise_xor.reduce(hashes)) if len(hashes) else 0

    def merge(self, other: Findings) -> None:
        """Add the findings in other records."""
        self.rows += other.rows
        self.staying += other.staying
        self.hash_sum += other.hash_sum
        self.hash_xor ^= other.hash_xor
        for name, number in other.counts.items():
            if name.startswith("places_"):
                self.counts[name] = max(self.counts.get(name, 0), number)
            else:
                self.count(name, number)
        for index, seen in other.texts.items():
            self._distinct(index).add(seen.smallest())
        self._widen(other.lowest, other.highest)

    def to_text(self) -> str:
        """Write the findings as a text, for :meth:`of_text`."""
        return json.dumps(
            {
                **vars(self),
                "texts": {
                    index: text.smallest().astype("<u8").tobytes().hex()
                    for index, text in self.texts.items()
                },
                "lowest": {index: _written(value) for index, value in self.lowest.items()},
                "highest": {index: _written(value) for index, value in self.highest.items()},
            }
        )

    @classmethod
    def of_text(cls, text: str) -> Findings:
        """Read findings that :meth:`to_text` wrote.

        >>> Findings.of_text(Findings(rows=3, lowest={0: Decimal("1.5")}).to_text()).lowest
        {0: Decimal('1.5')}
        """
        fields = json.loads(text)
        fields["texts"] = {
            int(index): Distinct(
                fields["most_distinct"], np.frombuffer(bytes.fromhex(hashes), "<u8")
            )
            for index, hashes in fields["texts"].items()
        }
        for ends in ("lowest", "highest"):
            values = fields[ends].items()
            fields[ends] = {int(index): _KINDS[kind](value) for index, (kind, value) in values}
        return cls(**fields)

    def as_dict(self, plans: Sequence[PlannedColumn]) -> dict[str, object]:
        """Return the counts of :meth:`anonspark.engine.protocol.Input.inspect`, as ``missing_0``.

        The number behind a name is that of a column among ``plans``.
        """
        figures: dict[str, object] = {"rows": self.rows, "kept": self.staying}
        figures["blank_rows"] = self.counts.get("blank_rows", 0)
        for index, plan in enumerate(plans):
            for name in ("missing", "invalid", "infinite"):
                figures[f"{name}_{index}"] = self.counts.get(f"{name}_{index}", 0)
            if plan.column.kind == "category":
                figures[f"numeric_{index}"] = self.counts.get(f"numeric_{index}", 0)
                figures[f"distinct_{index}"] = self._distinct(index).count()
                continue
            exact = plan.column.kind == "decimal"
            if exact:
                figures[f"places_{index}"] = self.counts.get(f"places_{index}")
            for name, extremes in (("lowest", self.lowest), ("highest", self.highest)):
                value = extremes.get(index)
                figures[f"{name}_{index}"] = (
                    format(value, "f") if exact and value is not None else value
                )
        return figures


_KINDS: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "Decimal": Decimal}


def _written(value: Any) -> tuple[str, str]:
    """Return the name of a number's type, and its text."""
    return type(value).__name__, str(value)


def _hashes(texts: pa.Array) -> np.ndarray:
    """Return the hashes of different texts, uint64 (m,)."""
    return xxhash64([texts.unique().drop_null()]).view(np.uint64)


def _plain_numbers(values: pa.Array) -> pa.Array:
    """Return values as 64-bit numbers, days and microseconds since 1970. Decimals stay."""
    data_type = values.type
    if pa.types.is_decimal(data_type):
        return values
    if pa.types.is_floating(data_type):
        return values.cast(pa.float64())
    if pa.types.is_date(data_type):
        return values.cast(pa.date32()).view(pa.int32()).cast(pa.int64())
    if pa.types.is_timestamp(data_type):
        return values.cast(pa.timestamp("us", data_type.tz)).view(pa.int64())
    return values.cast(pa.int64())


def _places(numbers: pa.Array, least: int) -> int:
    """Return how many decimal places some decimals need, at least ``least``.

    >>> _places(pa.array([Decimal("1.50")], pa.decimal128(5, 2)), 0)
    1
    """
    # Rounding needs room for another digit before the point.
    wide = numbers.cast(pa.decimal256(76, numbers.type.scale))
    for places in range(least, numbers.type.scale):
        if pc.all(pc.equal(pc.round(wide, places, "towards_zero"), wide)).as_py():
            return places
    return max(least, int(numbers.type.scale))
