"""A sample of a table that depends on nothing but its records and a key.

Whether a record is drawn is decided by the hash of its content, and, of records that are alike, by
that of their number: so each is drawn as if by lot, whatever the order of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.arrays import Flags, Integers
from anonspark.core.columns import RECORD_HASH
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.engine.values.hashing import content_hash
from anonspark.engine.values.value_texts import plain

Unsigned = npt.NDArray[np.uint64]

HASH = "sampled by"
"""Column with the hash of a record. No column of a table has a name like it by accident."""

_PRIORITY = "priority"
_DRAWN = pa.schema([(HASH, pa.int64()), (_PRIORITY, pa.int64())])

_COUNTED = pa.schema([("value", pa.int64()), ("records", pa.int64())])

_BITS = np.int64(2**22 - 1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def record_hashes(records: pa.Table | pa.RecordBatch, seed: int) -> Integers:
    """Return the hash of each record's content, by which it is drawn."""
    return content_hash(records.columns, seed, rows=len(records))


def drawn_by_hash(table: Table, columns: Sequence[str], rows: int, most: int) -> Table:
    """Return a part of a staged table that is drawn by the hashes of its records. Lazy.

    Parameters
    ----------
    table : Table
        With :data:`anonspark.core.columns.RECORD_HASH`.
    columns : sequence of str
    rows : int
        Of the table.
    most : int
        About so many records at most, and half as many at least, unless many records are equal: of
        equal ones all are drawn or none.
    """
    schema = pa.schema([table.schema.field(name) for name in columns])
    drawing = DrawByHash((RECORD_HASH,), tuple(columns), np.int64(draw_divisor(rows, most) - 1))
    return table.select([*columns, RECORD_HASH]).map_batches(drawing, schema)


def draw_divisor(rows: int, most: int) -> int:
    """Return the power of two by which hashes are divided that draw so many rows at most."""
    return 1 << max(0, (rows - 1) // most).bit_length()


def all_records(
    table: Table, columns: Sequence[str], seed: int, most: int | None = None
) -> pa.Table:
    """Return all records of a small table, or so many at most, in the order of their hashes.

    Notes
    -----
    One pass over the columns, which are collected.
    """
    records = table.select(columns).collect(most)
    order = np.argsort(record_hashes(records, seed), kind="stable")
    return records.take(pa.array(order))


def sample_records(
    table: Table, columns: Sequence[str], rows: int, most: int, seed: int
) -> pa.Table:
    """Return the columns of all records of a small table, or of a sample of a larger one.

    Notes
    -----
    :func:`all_records`, or a pass over the columns that counts the hashes of records, with a
    shuffle of them, and :func:`draw_sample`.
    """
    if rows <= most:
        return all_records(table, columns, seed)
    counted = (
        table.select(columns)
        .map_batches(_CountRecords(seed), _COUNTED)
        .aggregate(["value"], sums=["records"])
    )
    return draw_sample(table, columns, counted, rows, most, seed)


def draw_sample(
    table: Table, columns: Sequence[str], counted: Table, rows: int, most: int, seed: int
) -> pa.Table:
    """Draw records of a table.

    Parameters
    ----------
    table : Table
    columns : sequence of str
        That are drawn.
    counted : Table
        Columns ``value``, the hash of a record by :func:`record_hashes`, and ``records``, how many
        records have it.
    rows : int
        Of the table.
    most : int
        Records at most.
    seed : int
        Key of the hashes.

    Returns
    -------
    pyarrow.Table
        The columns of ``most`` records, or very few less, in the order of their hashes.

    Notes
    -----
    One pass over ``counted`` and one over the columns. Hashes and records of the sample are
    collected.
    """
    # A few more than are wanted, so that there are enough; the last are left out.
    share = min(1.0, (most + ceil(4 * sqrt(most))) / rows)
    lots = counted.map_batches(_Draw(share), _DRAWN).collect()
    hashes = lots[HASH].to_numpy()
    first = np.lexsort((hashes, lots[_PRIORITY].to_numpy()))[:most]
    drawn, copies = np.unique(hashes[first], return_counts=True)
    schema = pa.schema([*(table.schema.field(name) for name in columns), (HASH, pa.int64())])
    records = table.select(columns).map_batches(_Take(seed, drawn), schema).collect()
    # Equal records were found by several tasks.
    _, places = np.unique(records[HASH].to_numpy(), return_index=True)
    return records.select(columns).take(pa.array(np.repeat(places, copies)))


def _priorities(hashes: Unsigned, numbers: Unsigned) -> Integers:
    """Mix hashes and numbers of records (SplitMix64, Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        mixed = hashes + (numbers + np.uint64(1)) * _GOLDEN
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    # 63 bits, for engines have no numbers without sign.
    priorities: Integers = (mixed >> np.uint64(1)).astype(np.int64)
    return priorities


@dataclass(frozen=True)
class DrawByHash:
    """Takes the records of which a hash is a multiple of a power of two.

    Parameters
    ----------
    hashes, columns : tuple of str
        Columns with hashes, and those that are taken.
    mask : int64
        The power of two, less 1: see :func:`draw_divisor`.
    """

    hashes: tuple[str, ...]
    columns: tuple[str, ...]
    mask: np.int64

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        """Yield the columns of the records that any hash draws."""
        for batch in batches:
            drawn = np.zeros(len(batch), bool)
            for name in self.hashes:
                drawn |= self.draws(batch.column(name).to_numpy())
            yield batch.select(self.columns).filter(pa.array(drawn))

    def draws(self, hashes: Integers) -> Flags:
        """Return which hashes are drawn."""
        drawn: Flags = hashes & self.mask == 0
        return drawn


@dataclass(frozen=True)
class _CountRecords:
    """Counts the records of each batch that are alike."""

    seed: int

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            hashes, copies = np.unique(record_hashes(batch, self.seed), return_counts=True)
            yield pa.record_batch([pa.array(hashes), pa.array(copies)], schema=_COUNTED)


@dataclass(frozen=True)
class _Draw:
    """Draws a task's records, and returns hashes and how many records have each."""

    share: float

    def __call__(self, batches: Batches) -> Batches:
        limit = min(int(self.share * 2**63), 2**63 - 1)
        for batch in batches:
            hashes = batch.column("value").to_numpy()
            copies = batch.column("records").cast(pa.int64()).to_numpy()
            each = np.repeat(hashes, copies)
            starts = np.repeat(np.cumsum(copies) - copies, copies)
            numbers = (np.arange(len(each)) - starts).astype(np.uint64)
            priorities = _priorities(each.view(np.uint64), numbers)
            drawn = priorities <= limit
            columns = [pa.array(each[drawn]), pa.array(priorities[drawn])]
            yield pa.record_batch(columns, schema=_DRAWN)


@dataclass(frozen=True)
class _Take:
    """Takes the records of a task that are wanted, of equal ones in a batch but one."""

    seed: int
    drawn: Integers

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        # Most records are told by some bits of their hashes that they are not wanted.
        some = np.zeros(_BITS + 1, bool)
        some[self.drawn & _BITS] = True
        for batch in batches:
            hashes = record_hashes(batch, self.seed)
            places = np.flatnonzero(some[hashes & _BITS])
            present, first = np.unique(hashes[places], return_index=True)
            # The wanted ones are sorted; the last place is one behind them.
            at = np.searchsorted(self.drawn, present).clip(max=len(self.drawn) - 1)
            is_drawn = self.drawn[at] == present
            rows = pa.array(places[first[is_drawn]])
            columns = [plain(column.take(rows)) for column in batch.columns]
            columns.append(pa.array(present[is_drawn]))
            yield pa.RecordBatch.from_arrays(columns, [*batch.schema.names, HASH])
