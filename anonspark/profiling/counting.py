"""Counts of each column over all rows, and how sets of columns identify records of a sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Flags, Integers
from anonspark.core.association import joined_codes
from anonspark.core.recognition.disguised import DAY, NUMBER, OTHER_DAY, OTHER_NUMBER
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading, is_plain, is_text
from anonspark.engine.tasks import Batches
from anonspark.engine.values.hashing import xxhash64
from anonspark.engine.values.value_texts import blank_rows, coded_values, parse, read_values
from anonspark.staged.records import together

LARGEST_SET = 3
"""Columns of a set at most."""

_LEAST_SHARE = 0.1


@dataclass(frozen=True)
class ColumnSet:
    """How some columns together single out the records of a sample.

    Parameters
    ----------
    distinct : int
        Different combinations of values.
    distinction : float
        Their number divided by that of the records: 1 if all differ.
    separation : float
        Share of all pairs of records that differ in at least one of the columns.
    unique : int
        Records whose combination no other record has.
    few : int
        Records whose combination fewer than k records have, the unique ones among them.
    minimal_unique : int
        Records that are unique in these columns, but no longer if one is left out: minimal sample
        uniques in the words of SUDA (Elliot et al. 2002).
    """

    columns: tuple[str, ...]
    distinct: int
    distinction: float
    separation: float
    unique: int
    few: int
    minimal_unique: int

    def as_dict(self) -> dict[str, object]:
        """Return the fields for JSON."""
        return {**self.__dict__, "columns": list(self.columns)}


@dataclass(frozen=True)
class Uniqueness:
    """How all sets of up to three columns single out records.

    ``sets`` are single columns, then pairs, then triples. ``unique_by_size`` are the records that
    are unique in at least one set of at most 1, 2 and 3 columns.
    """

    sets: list[ColumnSet]
    unique_by_size: tuple[int, ...]

    def of_size(self, size: int) -> list[ColumnSet]:
        """Return the sets of some number of columns, those that separate most pairs first."""
        groups = [group for group in self.sets if len(group.columns) == size]
        return sorted(groups, key=lambda group: (-group.separation, -group.unique, group.columns))

    def causing(self, most: int) -> list[ColumnSet]:
        """Return the sets with the most minimal sample uniques, without those that have none."""
        groups = [group for group in self.sets if group.minimal_unique]
        return sorted(groups, key=lambda group: (-group.minimal_unique, group.columns))[:most]


def measure_sets(names: Sequence[str], codes: Sequence[Integers], k: int) -> Uniqueness:
    """Measure how many records each set of up to three columns singles out.

    Fewer than k records are few. ``codes`` has an int64 array (n,) for each column: equal numbers
    from 0 to below n stand for equal values, and missing is a value like others. Time grows with n
    and with the cube of the number of columns: 200,000 records of 12 columns, 298 sets, take a few
    seconds.

    >>> measured = measure_sets(["sex", "age"], [np.array([0, 0, 1]), np.array([0, 1, 1])], k=2)
    >>> [(group.columns, group.unique, group.minimal_unique) for group in measured.sets]
    [(('sex',), 1, 1), (('age',), 1, 1), (('sex', 'age'), 3, 1)]
    >>> measured.unique_by_size
    (2, 3)
    """
    records = len(codes[0]) if codes else 0
    unique: dict[tuple[int, ...], Flags] = {(): np.zeros(records, bool)}
    sets: list[ColumnSet] = []
    ever_unique = np.zeros(records, bool)
    by_size: list[int] = []
    joint: dict[tuple[int, ...], Integers] = {}
    for size in range(1, min(LARGEST_SET, len(names)) + 1):
        for indices in combinations(range(len(names)), size):
            if size == 1:
                groups = codes[indices[0]]
            else:
                groups = joined_codes(joint[indices[:-1]], codes[indices[-1]])
            sizes = np.bincount(groups)
            if size < LARGEST_SET:
                joint[indices] = groups
            size_of_record = sizes[groups]
            unique[indices] = size_of_record == 1
            without_one = np.logical_or.reduce(
                [unique[combination] for combination in combinations(indices, size - 1)]
            )
            sets.append(
                _measured(
                    tuple(names[index] for index in indices),
                    sizes,
                    int((unique[indices] & ~without_one).sum()),
                    k,
                )
            )
            ever_unique |= unique[indices]
            if size == LARGEST_SET:
                del unique[indices]
        by_size.append(int(ever_unique.sum()))
    return Uniqueness(sets, tuple(by_size))


def weigh_columns(measured: Uniqueness, names: Sequence[str], records: int) -> dict[str, float]:
    """Return a weight of each column: the smaller, the more records it makes unique.

    A column's share is the mean of what it adds to the unique records of sets of 0, 1 and 2 others.
    Its weight is the inverse square root of the share, to two digits, and the mean weight is 1.
    Columns that were not measured count as unique in every record, alone and with others.

    >>> measured = measure_sets(["sex", "age"], [np.array([0, 0, 1]), np.array([0, 1, 2])], k=2)
    >>> weigh_columns(measured, ["sex", "age"], 3)
    {'sex': 1.3, 'age': 0.66}
    """
    unique = {frozenset(group.columns): group.unique for group in measured.sets} | {frozenset(): 0}
    shares = []
    for name in names:
        others = [other for other in names if other != name]
        means = []
        for size in range(min(LARGEST_SET, len(names))):
            sets = [frozenset(columns) for columns in combinations(others, size)]
            added = [
                unique.get(columns | {name}, records) - unique.get(columns, records)
                for columns in sets
            ]
            means.append(sum(added) / len(added))
        shares.append(sum(means) / len(means))
    mean = sum(shares) / len(shares) or 1.0
    # Without the tenth, a column by which no record is unique would outweigh all others.
    inverse = [(share / mean + _LEAST_SHARE) ** -0.5 for share in shares]
    return {
        name: float(f"{weight * len(names) / sum(inverse):.2g}")
        for name, weight in zip(names, inverse, strict=True)
    }


def _measured(columns: tuple[str, ...], sizes: Integers, minimal: int, k: int) -> ColumnSet:
    """Return the figures of a set by how many records each combination has, int64."""
    records = int(sizes.sum())
    distinct = int((sizes > 0).sum())
    # Python's integers: the square of a large number of records exceeds 64 bits.
    equal = sum(int(size) * (int(size) - 1) * int(number) for size, number in _histogram(sizes))
    pairs = records * (records - 1)
    return ColumnSet(
        columns=columns,
        distinct=distinct,
        distinction=distinct / records if records else 0.0,
        separation=1 - equal / pairs if pairs else 0.0,
        unique=int((sizes == 1).sum()),
        few=int(sizes[sizes < k].sum()),
        minimal_unique=minimal,
    )


def _histogram(sizes: Integers) -> Iterator[tuple[int, int]]:
    values, numbers = np.unique(sizes, return_counts=True)
    return zip(values.tolist(), numbers.tolist(), strict=True)


PART_BYTES = 2**25
"""A task counts about so many bytes of its records at once."""

_WHOLE = r"^\s*[+-]?[0-9]+\s*$"
_PADDED = r"^\s*0[0-9]+\s*$"
_MOMENT = r"^\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}[ T][0-9]{1,2}:.*$"

# What is counted of a column apart from its values. The column `fact` has the index.
_FACTS = (
    *("missing", "numbers", "whole", "padded", "other_numbers"),
    *("days", "moments", "other_days", "infinite"),
)
_OF_VALUES = ("distinct", "unique", "few")

# The column `place` has the number of a column for its values, and this more for its facts.
_FACT = 1_000_000
_ROWS = -1

_COUNTS = pa.schema([("place", pa.int32()), ("value", pa.int64()), ("records", pa.int64())])
_TOTALS = pa.schema(
    [("place", pa.int32()), ("fact", pa.int64()), ("number", pa.int64()), ("largest", pa.int64())]
)


@dataclass(frozen=True)
class ColumnCounts:
    """Counts of a column over all rows.

    Parameters
    ----------
    distinct : int
        Different values, without missing.
    missing : int
        Rows without a value.
    unique : int
        Rows whose value no other row has.
    few : int
        Rows whose value fewer than k rows have, with the unique ones.
    largest : int
        Rows of the most frequent value.
    numbers, whole, padded : int
        Rows with a text that is a number, a whole one, one with a leading zero.
    other_numbers : int
        Rows with a text that is a number in another form, such as 1.234,5 or 45%.
    days, moments, other_days : int
        Rows with a text that is a day, a point in time, a day in another form than 2026-01-31.
    infinite : int
        Rows with an infinite number.
    markers : tuple of str
        The texts that mean missing and occur.
    """

    distinct: int = 0
    missing: int = 0
    unique: int = 0
    few: int = 0
    largest: int = 0
    numbers: int = 0
    whole: int = 0
    padded: int = 0
    other_numbers: int = 0
    days: int = 0
    moments: int = 0
    other_days: int = 0
    infinite: int = 0
    markers: tuple[str, ...] = ()


def readings_of(schema: pa.Schema, markers: Sequence[str]) -> list[Reading]:
    """Return how the columns are read whose values can be compared: all but nested ones.

    >>> schema = pa.schema({"age": pa.int64(), "visits": pa.list_(pa.date32())})
    >>> [reading.name for reading in readings_of(schema, [""])]
    ['age']
    """
    return [
        Reading(field.name, field.name, None, tuple(markers))
        for field in schema
        if is_plain(field.type)
    ]


def count_columns(
    table: Table, readings: Sequence[Reading], k: int
) -> tuple[int, list[ColumnCounts]]:
    """Count the rows of a table, and the values and facts of each column that is read.

    Values are told apart by hashes of 64 bits: among ten million different ones two have the same
    with a probability below one in 300,000. One pass over the table, with a shuffle of the
    different values of each task (their hashes and how often they occur), and a second shuffle of a
    few numbers of each task, which are collected.
    """
    totals = (
        table.select([reading.column for reading in readings])
        .map_batches(_Count(tuple(readings)), _COUNTS)
        .aggregate(["place", "value"], sums=["records"])
        .map_batches(_Totals(k), _TOTALS)
        .aggregate(["place", "fact"], sums=["number"], most=["largest"])
        .collect()
    )
    pairs: dict[tuple[int, int], tuple[int, int]] = {}
    for index, fact, number, largest in zip(
        *(totals[name].to_pylist() for name in _TOTALS.names), strict=True
    ):
        pairs[index, fact] = int(number), int(largest)
    rows = pairs.get((_ROWS, 0), (0, 0))[0]
    return rows, [_counts_of(pairs, index, reading) for index, reading in enumerate(readings)]


def _counts_of(
    pairs: Mapping[tuple[int, int], tuple[int, int]], index: int, reading: Reading
) -> ColumnCounts:
    """Return the counts of a column from the pairs of number and largest by column and fact."""
    of_values = {name: pairs.get((index, fact), (0, 0))[0] for fact, name in enumerate(_OF_VALUES)}
    facts = {name: pairs.get((index + _FACT, fact), (0, 0))[0] for fact, name in enumerate(_FACTS)}
    largest = pairs.get((index, 0), (0, 0))[1]
    present = tuple(
        marker
        for number, marker in enumerate(reading.markers, start=len(_FACTS))
        if (index + _FACT, number) in pairs
    )
    return ColumnCounts(**of_values, **facts, largest=largest, markers=present)


@dataclass(frozen=True)
class _Count:
    """Counts a task's records of each value and of each fact."""

    readings: tuple[Reading, ...]

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        names = [reading.column for reading in self.readings]
        markers = self.readings[0].markers if self.readings else ()
        for rows in together(batches, PART_BYTES):
            blank = blank_rows(rows, names, markers)
            records = rows.filter(pa.array(~blank)) if blank.any() else rows
            yield _rows(_COUNTS, [_ROWS], [0], [len(records)])
            for index, reading in enumerate(self.readings):
                yield from _count_column(index, reading, records.column(reading.column))


def _count_column(
    index: int, reading: Reading, column: pa.ChunkedArray
) -> Iterator[pa.RecordBatch]:
    """Yield rows of :data:`_COUNTS` for a column: its facts, its markers, and its values."""
    coded = coded_values(column)
    values, missing = read_values(reading, coded.dictionary)
    # The dictionary has each value once, and one NaN.
    codes = pc.fill_null(coded.indices, len(values)).to_numpy(zero_copy_only=False)
    records = np.bincount(codes, minlength=len(values) + 1)
    of_values, of_nulls = records[:-1].astype(np.int64), int(records[-1])
    absent = np.asarray(missing)
    present = ~absent & (of_values > 0)
    facts = [int(of_values[absent].sum()) + of_nulls]
    facts += [int(of_values[flags & ~absent].sum()) for flags in _facts_of(values)]
    yield _rows(_COUNTS, [index + _FACT] * len(facts), range(len(facts)), facts)
    if is_text(coded.dictionary.type) and absent.any():
        markers = pa.array(reading.markers, pa.string())
        numbers = pc.index_in(pc.ascii_trim(coded.dictionary, " "), markers)
        counts = np.bincount(
            pc.fill_null(numbers, len(markers)).to_numpy(zero_copy_only=False),
            weights=of_values,
            minlength=len(markers),
        )[: len(markers)]
        indices = np.flatnonzero(counts)
        marked = counts[indices].astype(np.int64)
        yield _rows(_COUNTS, np.full(len(indices), index + _FACT), indices + len(_FACTS), marked)
    hashes = xxhash64([values.filter(pa.array(present))])
    yield _rows(_COUNTS, np.full(len(hashes), index), hashes, of_values[present])


def _rows(schema: pa.Schema, *columns: object) -> pa.RecordBatch:
    """Build a batch of a schema from arrays of any kind."""
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def _facts_of(values: pa.Array) -> list[Flags]:
    """Return for each fact but "missing" which values it holds for, bool (n,)."""
    none = np.zeros(len(values), bool)
    if is_text(values.type):
        whole = _matching(values, _WHOLE)
        numbers = _matching(values, NUMBER)
        padded = _matching(values, _PADDED)
        days = _matching(values, DAY)
        if days.any():
            days &= _flags(parse(values, pa.date32()).is_valid())
        return [numbers, whole, padded, _matching(values, OTHER_NUMBER), days,
                _matching(values, _MOMENT), _matching(values, OTHER_DAY), none]  # fmt: skip
    infinite = _flags(pc.is_inf(values)) if pa.types.is_floating(values.type) else none
    return [none] * (len(_FACTS) - 2) + [infinite]


def _matching(values: pa.Array, pattern: str) -> Flags:
    """Return which texts match a pattern, and false for null."""
    return _flags(pc.match_substring_regex(values, pattern))


def _flags(booleans: pa.Array) -> Flags:
    """Convert booleans of Arrow to NumPy, with false for null.

    >>> _flags(pa.array([True, None])).tolist()
    [True, False]
    """
    flags: Flags = pc.fill_null(booleans, False).to_numpy(zero_copy_only=False)
    return flags.astype(bool)


@dataclass(frozen=True)
class _Totals:
    """Counts a task's values of each column, and passes on what is no value."""

    k: int

    def __call__(self, batches: Batches) -> Batches:
        """Reduce the values of each column to three numbers and the largest count."""
        for batch in batches:
            indices = batch.column("place").to_numpy()
            records = batch.column("records").cast(pa.int64()).to_numpy()
            is_value = (indices >= 0) & (indices < _FACT)
            is_fact = (indices == _ROWS) | (indices >= _FACT)
            yield _rows(
                _TOTALS,
                indices[is_fact],
                batch.column("value").to_numpy()[is_fact],
                records[is_fact],
                records[is_fact],
            )
            for index in np.unique(indices[is_value]):
                rows = records[indices == index]
                numbers = [len(rows), int((rows == 1).sum()), int(rows[rows < self.k].sum())]
                size = len(numbers)
                yield _rows(_TOTALS, [index] * size, range(size), numbers, [int(rows.max())] * size)
