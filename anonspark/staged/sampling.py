"""A sample of a table that depends on nothing but its records and a key.

A record is drawn by a hash of its content and, among equal records, of a running number. So each is
as likely as any other, whatever the order of the rows and the number of tasks.
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
"""Column with the hash of a record. The blank keeps it apart from columns of a table."""

_PRIORITY = "priority"
_DRAWN = pa.schema([(HASH, pa.int64()), (_PRIORITY, pa.int64())])

_COUNTED = pa.schema([("value", pa.int64()), ("records", pa.int64())])

_BITS = np.int64(2**22 - 1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def record_hashes(records: pa.Table | pa.RecordBatch, seed: int) -> Integers:
    """Hash the content of each record, int64 (n,)."""
    return content_hash(records.columns, seed, rows=len(records))


def drawn_by_hash(table: Table, columns: Sequence[str], rows: int, most: int) -> Table:
    """Draw some columns of about ``most`` of the ``rows`` records of a staged table, lazily.

    The table has :data:`anonspark.core.columns.RECORD_HASH`. Draws at least half as many as
    ``most``, unless many records are equal: these are all drawn or none.
    """
    schema = pa.schema([table.schema.field(name) for name in columns])
    drawing = DrawByHash((RECORD_HASH,), tuple(columns), np.int64(draw_divisor(rows, most) - 1))
    return table.select([*columns, RECORD_HASH]).map_batches(drawing, schema)


def draw_divisor(rows: int, most: int) -> int:
    """Return the power of two of which hashes have to be multiples, so that about ``most`` are.

    >>> draw_divisor(1000, most=100), draw_divisor(100, most=100)
    (16, 1)
    """
    return 1 << max(0, (rows - 1) // most).bit_length()


def all_records(
    table: Table, columns: Sequence[str], seed: int, most: int | None = None
) -> pa.Table:
    """Collect the records of a small table, or the first ``most``, in the order of their hashes.

    One pass over the columns.
    """
    records = table.select(columns).collect(most)
    order = np.argsort(record_hashes(records, seed), kind="stable")
    return records.take(pa.array(order))


def sample_records(
    table: Table, columns: Sequence[str], rows: int, most: int, seed: int
) -> pa.Table:
    """Collect the columns of all records of a small table, or of a sample of a larger one.

    A sample takes a pass that counts hashes, with a shuffle of them, before :func:`draw_sample`.
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
    """Draw ``most`` of the ``rows`` records of a table, in the order of their hashes.

    ``counted`` has the columns ``value``, the hashes of :func:`record_hashes` with the same seed,
    and ``records``, how often each occurs. May return slightly fewer records. One pass over
    ``counted`` and one over the columns. Collects hashes and records of the sample.
    """
    # Four standard deviations more than needed, so that there are enough; the last are left out.
    share = min(1.0, (most + ceil(4 * sqrt(most))) / rows)
    lots = counted.map_batches(_Draw(share), _DRAWN).collect()
    hashes = lots[HASH].to_numpy()
    first = np.lexsort((hashes, lots[_PRIORITY].to_numpy()))[:most]
    drawn, copies = np.unique(hashes[first], return_counts=True)
    schema = pa.schema([*(table.schema.field(name) for name in columns), (HASH, pa.int64())])
    records = table.select(columns).map_batches(_Take(seed, drawn), schema).collect()
    # Several tasks may have taken equal records.
    _, first_rows = np.unique(records[HASH].to_numpy(), return_index=True)
    return records.select(columns).take(pa.array(np.repeat(first_rows, copies)))


def _priorities(hashes: Unsigned, numbers: Unsigned) -> Integers:
    """Mix hashes and numbers of records (SplitMix64, Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        mixed = hashes + (numbers + np.uint64(1)) * _GOLDEN
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    # 63 bits: engines have no unsigned integers.
    priorities: Integers = (mixed >> np.uint64(1)).astype(np.int64)
    return priorities


@dataclass(frozen=True)
class DrawByHash:
    """Takes the ``columns`` of records of which a hash is a multiple of a power of two.

    ``mask`` is the power of two, see :func:`draw_divisor`, less 1.
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
        """Return which hashes are drawn.

        >>> DrawByHash((), (), np.int64(3)).draws(np.array([4, 6, 8])).tolist()
        [True, False, True]
        """
        drawn: Flags = hashes & self.mask == 0
        return drawn


@dataclass(frozen=True)
class _CountRecords:
    """Counts the equal records of each batch by their hash."""

    seed: int

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            hashes, copies = np.unique(record_hashes(batch, self.seed), return_counts=True)
            yield pa.record_batch([pa.array(hashes), pa.array(copies)], schema=_COUNTED)


@dataclass(frozen=True)
class _Draw:
    """Draws a share of a task's records, and yields the hash and the priority of each."""

    share: float

    def __call__(self, batches: Batches) -> Batches:
        limit = min(int(self.share * 2**63), 2**63 - 1)
        for batch in batches:
            hashes = batch.column("value").to_numpy()
            copies = batch.column("records").cast(pa.int64()).to_numpy()
            hash_of_record = np.repeat(hashes, copies)
            first_of_hash = np.repeat(np.cumsum(copies) - copies, copies)
            numbers = (np.arange(len(hash_of_record)) - first_of_hash).astype(np.uint64)
            priorities = _priorities(hash_of_record.view(np.uint64), numbers)
            drawn = priorities <= limit
            columns = [pa.array(hash_of_record[drawn]), pa.array(priorities[drawn])]
            yield pa.record_batch(columns, schema=_DRAWN)


@dataclass(frozen=True)
class _Take:
    """Takes the drawn records of a task, and of equal ones in a batch one.

    ``drawn`` are the hashes, sorted.
    """

    seed: int
    drawn: Integers

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        # The lowest bits of a hash already rule out most records, without a search.
        may_be_drawn = np.zeros(_BITS + 1, bool)
        may_be_drawn[self.drawn & _BITS] = True
        for batch in batches:
            hashes = record_hashes(batch, self.seed)
            candidates = np.flatnonzero(may_be_drawn[hashes & _BITS])
            different, first = np.unique(hashes[candidates], return_index=True)
            # A hash above all drawn ones would be searched behind the last.
            at = np.searchsorted(self.drawn, different).clip(max=len(self.drawn) - 1)
            is_drawn = self.drawn[at] == different
            rows = pa.array(candidates[first[is_drawn]])
            columns = [plain(column.take(rows)) for column in batch.columns]
            columns.append(pa.array(different[is_drawn]))
            yield pa.RecordBatch.from_arrays(columns, [*batch.schema.names, HASH])
