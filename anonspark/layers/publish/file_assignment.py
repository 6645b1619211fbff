"""Choose the file of the release for each record, and its position there, by keyed hashes only.

A record's position must not reveal what is not published: the round that finished its class, the
task, the file of the input. So the names of the classes, which are random without the seed, are
divided among the files, and in a file classes stand in the order of their names. Inside a class the
order is that of the keyed hash of what is published of a record as it came. A class too large to
leave files of about equal size is shared out among all files by that hash.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.arrays import Integers
from anonspark.core.columns import CLASS_ID, PAYLOAD_HASH, SIZE
from anonspark.engine.tasks import Batches
from anonspark.staged.records import FIRST_NUMBER, ROWS, Records, unpack_batches

Codes = npt.NDArray[np.int64]

# About the bytes of a file's records before they are encoded, and their number: a task holds a
# whole file. Not execution.task_rows, because the files must not reveal the tasks of a run.
_FILE_BYTES = 64 * 2**20
_FILE_ROWS = 250_000

# In a release of more than so many files each file has up to this many times as much. A task
# then takes 2 GiB, and a store lists a quarter of the files.
_MANY_FILES = 1_000
_LARGER = 4

# A class that has more than this part of the records of a file is shared out.
_LARGE_CLASS = 8


@dataclass(frozen=True)
class EqualRecords:
    """Some of a class's records that are equal in everything published, in one batch.

    There are ``total`` of them in all batches together, ``before`` of them in earlier batches.
    """

    name: int
    payload_hash: int
    total: int
    before: int


@dataclass(frozen=True)
class Division:
    """The files, and the rule that finds the file of a record.

    ``most`` records of a class stay together in one file, and so many records of a larger class
    that are equal in everything published. ``large`` names the classes with more. ``equal`` holds,
    by the number of a batch's first record, equal records that are too many to stay together.
    """

    files: int
    most: int
    large: tuple[int, ...]
    equal: Mapping[int, list[EqualRecords]]

    def files_of(self, names: Codes, hashes: Codes, first: int) -> Integers:
        """Assign each record of a batch to one of the :attr:`files` files, from 0.

        ``names`` are those of the classes, and ``hashes`` those of the records' unchanged columns
        (int64). ``first`` is the number of the batch's first record.

        >>> names = np.array([-(2**63), 0, 2**62])
        >>> Division(4, 100, (), {}).files_of(names, np.zeros(3, np.int64), 0).tolist()
        [0, 2, 3]
        """
        keys = _in_order(names)
        if self.large:
            shared_out = np.isin(names, np.array(self.large, np.int64))
            keys = np.where(shared_out, (names ^ hashes).view(np.uint64), keys)
        files = self._file_of(keys)
        for equal in self.equal.get(first, []):
            rows = np.flatnonzero((names == equal.name) & (hashes == equal.payload_hash))
            # Equal, so it does not matter which of them go where, only how many.
            pieces = min(self.files, -(-equal.total // self.most))
            ranks = equal.before + np.arange(len(rows))
            files[rows] = (files[rows] + ranks * pieces // equal.total) % self.files
        return files

    def files_with(self, names: Codes) -> tuple[Integers, Integers]:
        """Return the files in which records of classes may be: pairs of class index and file."""
        shared_out = np.isin(names, np.array(self.large, np.int64))
        whole, large = np.flatnonzero(~shared_out), np.flatnonzero(shared_out)
        return (
            np.concatenate([whole, np.repeat(large, self.files)]),
            np.concatenate(
                [self._file_of(_in_order(names[whole])), np.tile(np.arange(self.files), len(large))]
            ),
        )

    def _file_of(self, keys: npt.NDArray[np.uint64]) -> Integers:
        high = (keys >> np.uint64(32)).astype(np.int64)
        files: Integers = high * self.files >> 32
        return files


def _in_order(names: Codes) -> npt.NDArray[np.uint64]:
    """Return the names of classes as unsigned numbers, in the order of the signed ones."""
    return names.view(np.uint64) ^ np.uint64(2**63)


def divide(
    finished: Records,
    classes: Records,
    rows: int,
    size: int,
    largest: int,
    suppressed: list[int],
    file_rows: int | None = None,
) -> Division:
    """Decide how the records of a release are divided into files.

    ``rows`` counts its records, ``size`` is about their bytes before compression, and ``largest``
    the records of the largest class, which may be that of suppressed records. ``suppressed`` holds
    the name of that class, if there is one: it is not among the classes. ``file_rows`` is about how
    many records a file gets, or None to derive that from rows and size. The result does not depend
    on how batches and tasks held the records.

    Mostly no job. If a class is divided, a job over the classes and one over two columns of the
    records, with a shuffle of their different records. One more if too many are equal.
    """
    files, most = files_for(rows, size, file_rows)
    if files == 1 or largest <= most:
        return Division(files, most, (), {})
    large = pa.schema([(CLASS_ID, pa.int64())])
    large_classes = classes.map_batches(_LargeClasses(most), large, [CLASS_ID, SIZE]).collect()
    names = tuple(sorted(large_classes[CLASS_ID].to_pylist() + suppressed))
    return Division(files, most, names, _equal_records(finished, names, most))


def files_for(rows: int, size: int, file_rows: int | None = None) -> tuple[int, int]:
    """Return the number of files, and how many records of a class stay together in one.

    See :func:`divide`.

    >>> files_for(1_000_000, 40 * 2**20), files_for(1_000_000, 40 * 2**20, file_rows=100_000)
    ((4, 31250), (10, 12500))
    """
    if file_rows is None:
        usual = max(-(-rows // _FILE_ROWS), -(-size // _FILE_BYTES), 1)
        files = min(usual, max(_MANY_FILES, -(-usual // _LARGER)))
    else:
        files = max(-(-rows // file_rows), 1)
    return files, max(rows // files // _LARGE_CLASS, 1)


@dataclass(frozen=True)
class _LargeClasses:
    """Finds the names of large classes."""

    most: int

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            sizes = batch.column(SIZE).to_numpy()
            class_ids = batch.column(CLASS_ID).filter(pa.array(sizes > self.most))
            yield pa.RecordBatch.from_arrays([class_ids], [CLASS_ID])


@dataclass(frozen=True)
class _CountEqual:
    """Counts the equal records of some classes, batch by batch."""

    names: tuple[int, ...]
    only: frozenset[tuple[int, int]] | None = None

    SCHEMA = pa.schema(
        [(name, pa.int64()) for name in (FIRST_NUMBER, CLASS_ID, PAYLOAD_HASH, ROWS)]
    )

    def __call__(self, packed: Batches) -> Batches:
        """Count the equal records of large classes in each batch."""
        for first, records in unpack_batches(packed, [CLASS_ID, PAYLOAD_HASH]):
            class_ids = records.column(CLASS_ID).to_numpy()
            hashes = records.column(PAYLOAD_HASH).to_numpy()
            large = np.isin(class_ids, np.array(self.names, np.int64))
            order = np.lexsort((hashes[large], class_ids[large]))
            class_ids, hashes = class_ids[large][order], hashes[large][order]
            begins = (class_ids[1:] != class_ids[:-1]) | (hashes[1:] != hashes[:-1])
            starts = np.concatenate([[0], np.flatnonzero(begins) + 1, [len(class_ids)]]).tolist()
            runs = [
                (int(class_ids[start]), int(hashes[start]), stop - start)
                for start, stop in pairwise(starts)
                if stop > start
                and (self.only is None or (int(class_ids[start]), int(hashes[start])) in self.only)
            ]
            columns = zip(*runs, strict=True) if runs else ([], [], [])
            arrays = [pa.array(column, pa.int64()) for column in columns]
            firsts = pa.repeat(pa.scalar(first, pa.int64()), len(runs))
            yield pa.RecordBatch.from_arrays([firsts, *arrays], schema=self.SCHEMA)


def _equal_records(
    finished: Records, names: tuple[int, ...], most: int
) -> dict[int, list[EqualRecords]]:
    """Return, by batch, equal records that are too many to stay together."""
    by = [CLASS_ID, PAYLOAD_HASH]
    counts = finished.packed.map_batches(_CountEqual(names), _CountEqual.SCHEMA)
    summed = counts.aggregate(by, sums=[ROWS])
    frequent = summed.map_batches(MoreThan(ROWS, most), summed.schema).collect()
    totals = {(row[CLASS_ID], row[PAYLOAD_HASH]): row[ROWS] for row in frequent.to_pylist()}
    if not totals:
        return {}
    count = _CountEqual(names, frozenset(totals))
    counted = finished.packed.map_batches(count, _CountEqual.SCHEMA).collect()
    return _by_batch(totals, zip(*(column.to_pylist() for column in counted.columns), strict=True))


def _by_batch(
    totals: Mapping[tuple[int, int], int], counted: Iterable[tuple[int, int, int, int]]
) -> dict[int, list[EqualRecords]]:
    """Return the positions of equal records, numbered from batch to batch."""
    before: dict[tuple[int, int], int] = defaultdict(int)
    by_batch: dict[int, list[EqualRecords]] = defaultdict(list)
    for first, name, payload_hash, rows in sorted(counted):
        pair = name, payload_hash
        by_batch[first].append(EqualRecords(*pair, totals[pair], before[pair]))
        before[pair] += rows
    return dict(by_batch)


@dataclass(frozen=True)
class MoreThan:
    """Keeps the rows whose count in ``column`` is larger than ``most``."""

    column: str
    most: int

    def __call__(self, batches: Batches) -> Batches:
        """Yield the rows whose count is larger than `most`."""
        for batch in batches:
            yield batch.filter(pa.array(batch.column(self.column).to_numpy() > self.most))
