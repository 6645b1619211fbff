"""How many records share each value of a column: one small job for many columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

EXACT_ROWS = 20_000_000
"""Different values of a column that are all counted; of more, some are drawn by their hashes."""


# Fewer drawn values say little, and are few enough to be counted all.
_FEWEST_DRAWN = 200


@dataclass(frozen=True)
class ValueSizes:
    """How many values of a column occur how often.

    Parameters
    ----------
    records : int
        Records of the table.
    sizes : mapping of int to int
        Values of each number of records; values that do not count are not among them.
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
        below = sum(own * values for own, values in self.sizes.items() if own < size)
        return min(self.records, below)

    def size_of_many(self, many: int) -> int | None:
        """Return the records that each of some values has at least; None if there are not so many.

        Parameters
        ----------
        many : int
            How many values: the figure is about none of them alone.
        """
        found = 0
        for size in sorted(self.sizes, reverse=True):
            found += self.sizes[size]
            if found >= many:
                return size
        return None


def count_value_sizes(
    table: DataFrame,
    hashes: Mapping[str, Column],
    records: int,
    *,
    exact_rows: int = EXACT_ROWS,
    all_different: bool = False,
) -> dict[str, ValueSizes]:
    """Count how many values of some columns occur how often.

    Parameters
    ----------
    table : DataFrame
    hashes : mapping of str to Column
        Name to a 64-bit hash of the value; null where it does not count.
    records : int
        Rows of the table.
    exact_rows : int
        Different values of a column that are counted at most.
    all_different : bool
        Whether most values will be different, as those of identifiers are: then no pass is spent
        on finding out how many there are.

    Returns
    -------
    dict of str to ValueSizes

    Notes
    -----
    One job: a shuffle of a row of 16 bytes a value and task, and one of a row a number of records.
    A table of more than ``exact_rows`` rows takes a pass without a shuffle before, which estimates
    the different values of each column: where there are more, only values whose hash is a multiple
    of a power of two are counted. With ``all_different`` columns in which hardly any value was
    drawn take a job of their own instead. What is collected is a row a column and number of
    records.
    """
    if not hashes or not records:
        return {name: ValueSizes(records, {}) for name in hashes}
    divisors = dict.fromkeys(hashes, 1)
    if records > exact_rows and all_different:
        divisors = dict.fromkeys(hashes, _divisor(records, exact_rows))
    elif records > exact_rows:
        divisors = _divisors(table, hashes, exact_rows)
    found = _sizes(table, hashes, divisors)
    few = {
        name: value
        for name, value in hashes.items()
        if divisors[name] > 1 and sum(found[name].values()) < _FEWEST_DRAWN
    }
    if few:
        divisors |= dict.fromkeys(few, 1)
        found |= _sizes(table, few, divisors)
    return {
        name: ValueSizes(
            records,
            {size: values * divisors[name] for size, values in sizes.items()},
            is_exact=divisors[name] == 1,
        )
        for name, sizes in found.items()
    }


def _sizes(
    table: DataFrame, hashes: Mapping[str, Column], divisors: Mapping[str, int]
) -> dict[str, dict[int, int]]:
    """Return how many of the values that are drawn occur how often, in one job."""
    own = [
        sf.struct(
            sf.lit(number).alias("column"),
            _of_drawn(value, divisors[name]).alias("hash"),
        )
        for number, (name, value) in enumerate(hashes.items())
    ]
    rows = (
        table.select(sf.explode(sf.array(*own)).alias("own"))
        .filter(sf.col("own.hash").isNotNull())
        .groupBy(sf.col("own.column").alias("column"), sf.col("own.hash").alias("hash"))
        .agg(sf.count(sf.lit(1)).alias("size"))
        .groupBy("column", "size")
        .agg(sf.count(sf.lit(1)).alias("values"))
        .collect()
    )
    found: list[dict[int, int]] = [{} for _ in hashes]
    for row in rows:
        found[row["column"]][row["size"]] = row["values"]
    return dict(zip(hashes, found, strict=True))


def _divisors(table: DataFrame, hashes: Mapping[str, Column], exact_rows: int) -> dict[str, int]:
    """Return one in how many values of each column is counted: a power of two."""
    columns = [
        sf.approx_count_distinct(value).alias(str(number))
        for number, value in enumerate(hashes.values())
    ]
    row = table.agg(*columns).first()
    estimates = [0] * len(columns) if row is None else list(row)
    return {
        name: _divisor(int(estimate), exact_rows)
        for name, estimate in zip(hashes, estimates, strict=True)
    }


def _divisor(values: int, exact_rows: int) -> int:
    return 1 << max(0, (values - 1) // exact_rows).bit_length()


def _of_drawn(value: Column, divisor: int) -> Column:
    """Return the hashes of the values that are counted."""
    if divisor == 1:
        return value
    return sf.when(value.bitwiseAND(sf.lit(divisor - 1)) == sf.lit(0), value)
