"""Count the records that share each value of a column, in one small job for many columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import flags
from anonspark.engine.tasks import Batches
from anonspark.engine.values.batches import HashedValues
from anonspark.staged.sampling import draw_divisor

EXACT_ROWS = 20_000_000
"""Rows of a table whose values are all counted. Of more rows, some values are drawn."""

# If fewer values are drawn than one for so many of these rows, all values are counted.
_FEW = 200

_SIZES = pa.schema([("column", pa.int32()), ("hash", pa.int64()), ("size", pa.int64())])


@dataclass(frozen=True)
class CountedColumn:
    """A column whose values are counted.

    ``missing`` names a column of booleans that says which values do not count. Without it, a
    missing value counts.
    """

    name: str
    missing: str | None = None


@dataclass(frozen=True)
class ValueSizes:
    """The numbers of a column's values by frequency.

    ``sizes`` holds, for each number of records, how many values have it, without values that do not
    count. If not ``is_exact``, the figures are estimates: one value in so many was counted, with
    all its records.

    >>> sizes = ValueSizes(10, {1: 4, 3: 2})
    >>> sizes.values, sizes.counted, sizes.records_below(3)
    (6, 10, 4)
    """

    records: int
    sizes: Mapping[int, int]
    is_exact: bool = True

    @property
    def values(self) -> int:
        """Number of different values."""
        return sum(self.sizes.values())

    @property
    def counted(self) -> int:
        """Number of records that have a value which counts."""
        return min(self.records, sum(size * values for size, values in self.sizes.items()))

    def records_below(self, size: int) -> int:
        """Count the records whose value fewer than ``size`` records have."""
        below = sum(records * values for records, values in self.sizes.items() if records < size)
        return min(self.records, below)

    def size_of_many(self, needed: int) -> int | None:
        """Return how many records ``needed`` values have at least, or None for fewer values.

        The figure is about no value alone.

        >>> ValueSizes(12, {1: 4, 3: 2, 2: 1}).size_of_many(3)
        2
        """
        values = 0
        for size in sorted(self.sizes, reverse=True):
            values += self.sizes[size]
            if values >= needed:
                return size
        return None


def count_value_sizes(
    table: Table,
    columns: Mapping[str, CountedColumn],
    records: int,
    *,
    exact_rows: int = EXACT_ROWS,
    drawn: Mapping[str, Mapping[int, int]] | None = None,
) -> dict[str, ValueSizes]:
    """Count how many values of some columns occur how often.

    ``records`` counts the rows of the table. If they are more than ``exact_rows``, only values
    whose hash is a multiple of a power of two are counted. Columns of which few values were drawn
    take another job, which counts all of theirs. ``drawn`` holds the result for the drawn values if
    they are counted already. One job: a shuffle of a row of 16 bytes for each value and task, and
    one of a row for each number of records. A row for each of these is collected.
    """
    if not columns or not records:
        return {name: ValueSizes(records, {}) for name in columns}
    divisor = draw_divisor(records, exact_rows)
    counts = dict(drawn or _sizes(table, columns, divisor))
    divisors = dict.fromkeys(columns, divisor)
    rarely_drawn = {
        name: column
        for name, column in columns.items()
        if divisor > 1 and sum(counts[name].values()) < exact_rows // _FEW
    }
    if rarely_drawn:
        divisors |= dict.fromkeys(rarely_drawn, 1)
        counts |= _sizes(table, rarely_drawn, 1)
    return {
        name: ValueSizes(
            records,
            {size: values * divisors[name] for size, values in sizes.items()},
            is_exact=divisors[name] == 1,
        )
        for name, sizes in counts.items()
    }


def _sizes(
    table: Table, columns: Mapping[str, CountedColumn], divisor: int
) -> dict[str, dict[int, int]]:
    """Count in one job how many of the drawn values occur how often."""
    # Columns are renamed, because an attribute may have the name of a flag.
    named = {_value(number): column.name for number, column in enumerate(columns.values())}
    missing = {
        _flag(number): column.missing
        for number, column in enumerate(columns.values())
        if column.missing is not None
    }
    counts: list[dict[int, int]] = [{} for _ in named]
    for row in (
        table.select({**named, **missing})
        .map_batches(_CountValues(len(named), divisor), _SIZES)
        .aggregate(["column", "hash"], sums=["size"])
        .aggregate(["column", "size"], count="values")
        .collect()
        .to_pylist()
    ):
        counts[row["column"]][row["size"]] = row["values"]
    return dict(zip(columns, counts, strict=True))


def _value(number: int) -> str:
    return f"value_{number}"


def _flag(number: int) -> str:
    return f"missing_{number}"


@dataclass(frozen=True)
class _CountValues:
    """Counts the different values of each column in each batch, by their hashes."""

    columns: int
    divisor: int

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            for number in range(self.columns):
                missing = None
                if _flag(number) in batch.schema.names:
                    missing = flags(batch.column(_flag(number)))
                sizes = HashedValues.of(batch.column(_value(number))).sizes(self.divisor, missing)
                columns = np.full(sizes.shape[1], number, np.int32)
                arrays = [pa.array(column) for column in (columns, *sizes)]
                yield pa.RecordBatch.from_arrays(arrays, schema=_SIZES)
