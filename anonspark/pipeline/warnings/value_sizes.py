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

# Where fewer are drawn than one in so many of these rows, values are few enough to be all counted.
_FEW = 200

_SIZES = pa.schema([("column", pa.int32()), ("hash", pa.int64()), ("size", pa.int64())])


@dataclass(frozen=True)
class CountedColumn:
    """A column whose values are counted.

    Parameters
    ----------
    name : str
        Of the table's column.
    missing : str or None
        Column of booleans that says which values do not count. Without, missing is a value.
    """

    name: str
    missing: str | None = None


@dataclass(frozen=True)
class ValueSizes:
    """The numbers of a column's values by frequency.

    Parameters
    ----------
    records : int
        Records of the table.
    sizes : mapping of int to int
        Values of each number of records. Values that do not count are not among them.
    is_exact : bool
        Whether all values were counted. If not, the figures are estimates: one value in so many was
        counted, with all its records.
    """

    records: int
    sizes: Mapping[int, int]
    is_exact: bool = True

    @property
    def values(self) -> int:
        """Different values."""
        return sum(self.sizes.values())

    @property
    def counted(self) -> int:
        """Records that have a value which counts."""
        return min(self.records, sum(size * values for size, values in self.sizes.items()))

    def records_below(self, size: int) -> int:
        """Return the records whose value fewer than some records have, themselves included."""
        below = sum(records * values for records, values in self.sizes.items() if records < size)
        return min(self.records, below)

    def size_of_many(self, many: int) -> int | None:
        """Return the records that each of some values has at least. None if there are not so many.

        Parameters
        ----------
        many : int
            How many values: the figure is about none of them alone.
        """
        values = 0
        for size in sorted(self.sizes, reverse=True):
            values += self.sizes[size]
            if values >= many:
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

    Parameters
    ----------
    table : Table
    columns : mapping of str to CountedColumn
    records : int
        Rows of the table.
    exact_rows : int
        Of a table with more, not all values are counted.
    drawn : mapping or None
        Of each column, how many of the values that are counted then occur how often, where they are
        counted already.

    Returns
    -------
    dict of str to ValueSizes

    Notes
    -----
    One job, none of values that are counted already: a shuffle of a row of 16 bytes a value and
    task, and one of a row a number of records.
    In a table of more than ``exact_rows`` rows only values whose hash is a multiple of a power of
    two are counted. Columns of which few values were drawn take a job of their own, which counts
    all of theirs. What is collected is a row a column and number of records.
    """
    if not columns or not records:
        return {name: ValueSizes(records, {}) for name in columns}
    divisor = draw_divisor(records, exact_rows)
    counts = dict(drawn or _sizes(table, columns, divisor))
    divisors = dict.fromkeys(columns, divisor)
    few = {
        name: column
        for name, column in columns.items()
        if divisor > 1 and sum(counts[name].values()) < exact_rows // _FEW
    }
    if few:
        divisors |= dict.fromkeys(few, 1)
        counts |= _sizes(table, few, 1)
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
    """Return how many of the values that are drawn occur how often, in one job."""
    # By other names: an attribute may be called as a flag is.
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
