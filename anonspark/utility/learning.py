"""Define a target and its classes, and read it in tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Flags, Integers
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading, is_text, type_name
from anonspark.engine.tasks import Batches
from anonspark.engine.values.value_texts import coded_values, read_values
from anonspark.errors import ConfigurationError, DataError
from anonspark.labels.raw_values import comparable, reading_of

MOST_CLASSES = 100
"""Of a target."""

LABEL = "label"
"""The column with what is to be learned."""


@dataclass(frozen=True)
class Target:
    """The target of learning: a column that is published as it is.

    ``classes`` are its different values as texts, the most frequent in the original first.
    """

    name: str
    classes: tuple[str, ...]
    missing_markers: tuple[str, ...]

    def reading(self, table: Table) -> Reading:
        """Return how the texts of a table are read into column `LABEL`."""
        return _reading_of(table, self.name, self.missing_markers)

    def numbers(self, texts: pa.Array) -> pa.Array:
        """Return the number of each record's class, from 0, as float64.

        It is null for a missing value and for one that is no class. Numbers stay as they are.

        >>> income = Target("income", ("low", "high"), ())
        >>> income.numbers(pa.array(["high", "low", "?"])).to_pylist()
        [1.0, 0.0, None]
        """
        if not is_text(texts.type):
            return texts
        classes = pa.array(self.classes, texts.type)
        return pc.index_in(texts, value_set=classes, skip_nulls=True).cast(pa.float64())

    def count_others(self, table: Table) -> int:
        """Count the records whose value is no class. One job."""
        texts = table.read([self.reading(table)]).select([LABEL])
        counted = texts.map_batches(_CountOthers(self), _OTHERS).aggregate([], sums=["records"])
        return sum(value or 0 for value in counted.collect().column("records").to_pylist())


def describe_target(
    original: Table, name: str, missing_markers: Sequence[str], key: str = "--target"
) -> Target:
    """Find the classes of a target, a column of the original. One job.

    The different values are collected. ``key`` names the option in messages. Raises
    ConfigurationError if the column is no category of 2 to 100 values.
    """
    count = _CountLabels(_reading_of(original, name, missing_markers, key))
    counted = original.select([name]).map_batches(count, _LABELS)
    # One more than are allowed.
    rows = counted.aggregate([LABEL], sums=["records"]).collect(MOST_CLASSES + 1)
    if not 2 <= rows.num_rows <= MOST_CLASSES:
        number = f"more than {MOST_CLASSES}" if rows.num_rows > MOST_CLASSES else rows.num_rows
        raise ConfigurationError(
            f"{key}: column {name!r} has {number} different values. Expected a category of 2 to "
            f"{MOST_CLASSES}. Choose another column"
        )
    in_order = rows.sort_by([("records", "descending"), (LABEL, "ascending")])
    return Target(name, tuple(in_order.column(LABEL).to_pylist()), tuple(missing_markers))


_LABELS = pa.schema([(LABEL, pa.string()), ("records", pa.int64())])


@dataclass(frozen=True)
class _CountLabels:
    """Counts a task's records of each class. It does so in the task: no row is handed over."""

    reading: Reading

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            coded = coded_values(batch.column(self.reading.column))
            codes = coded.indices.drop_null().to_numpy()
            counts = pa.array(np.bincount(codes, minlength=len(coded.dictionary)))
            texts, _ = read_values(self.reading, coded.dictionary)
            counted = pc.and_(texts.is_valid(), pc.greater(counts, 0))
            columns = [texts.cast(pa.string()).filter(counted), counts.filter(counted)]
            yield pa.RecordBatch.from_arrays(columns, schema=_LABELS)


def _reading_of(
    table: Table, name: str, missing_markers: Sequence[str], key: str = "--target"
) -> Reading:
    types = {field.name: field.type for field in table.schema}
    if name not in types:
        raise DataError(
            f"{key}: column {name!r} is not among those of the table: {', '.join(map(repr, types))}"
        )
    reading = reading_of(name, LABEL, types[name], "text", None, missing_markers)
    if reading is None:
        raise ConfigurationError(
            f"{key}: column {name!r} has type {type_name(types[name])}. Expected a category"
        )
    return reading


_OTHERS = pa.schema([("records", pa.int64())])


@dataclass(frozen=True)
class _CountOthers:
    """Counts a task's records whose value is no class."""

    target: Target

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            texts = batch.column(LABEL)
            unlisted = self.target.numbers(texts).null_count - texts.null_count
            yield pa.record_batch([pa.array([unlisted], pa.int64())], schema=_OTHERS)


_DENSE = 2**22

PART_BYTES = 2**25
"""Bytes of records of a task that are counted together."""


def read_column(reading: Reading, column: pa.ChunkedArray) -> tuple[pa.Array, Flags]:
    """Return the values of a column as numbers or texts that compare, and which are missing.

    Texts of a dictionary stay numbers of its different texts, of which several may be equal, and
    one null. No number is null.
    """
    if not pa.types.is_dictionary(column.type):
        values, missing = read_values(reading, column)
        return comparable(values), np.asarray(missing)
    texts, missing, codes = read_coded(reading, column)
    values = comparable(texts)
    coded = pa.DictionaryArray.from_arrays(pa.array(codes), values)
    return coded if is_text(values.type) else values.take(coded.indices), missing[codes]


def read_coded(
    reading: Reading, column: pa.ChunkedArray
) -> tuple[pa.Array, Flags, npt.NDArray[np.signedinteger]]:
    """Return different values, which of them are missing, and the index of each record's value."""
    coded = coded_values(column)
    values, missing = read_values(reading, coded.dictionary)
    codes = pc.fill_null(coded.indices, len(values)).to_numpy(zero_copy_only=False)
    values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    return values, np.append(np.asarray(missing), True), codes


def class_numbers(target: Target, reading: Reading, records: pa.Table) -> Integers:
    """Return the class of each record, int64. Records without one have the next number."""
    texts, _, codes = read_coded(reading, records.column(reading.column))
    numbers = pc.fill_null(target.numbers(texts), float(len(target.classes)))
    classes: Integers = numbers.to_numpy(zero_copy_only=False).astype(np.int64)[codes]
    return classes


def count_values(
    encoded: pa.DictionaryArray, labels: Integers, classes: int
) -> tuple[pa.Array, Integers, Integers]:
    """Count the records of each pair of a value and a class. Returns values, classes and counts.

    >>> values = pa.array(["a", "b", "a"]).dictionary_encode()
    >>> texts, classes, records = count_values(values, np.array([0, 1, 0]), 2)
    >>> texts.to_pylist(), classes.tolist(), records.tolist()
    (['a', 'b'], [0, 1], [2, 1])
    """
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    values = len(encoded.dictionary)
    if values * classes <= _DENSE:
        counts = count_pairs(codes, labels, values, classes).reshape(-1)
        pairs = np.flatnonzero(counts)
        records = counts[pairs]
    else:
        pairs, records = np.unique(codes * np.int64(classes) + labels, return_counts=True)
    return encoded.dictionary.take(pa.array(pairs // classes)), pairs % classes, records


def count_pairs(
    first: npt.NDArray[np.signedinteger], second: Integers, firsts: int, seconds: int
) -> Integers:
    """Count the records with each pair of numbers, int64 of shape (firsts, seconds).

    >>> count_pairs(np.array([0, 1, 1]), np.array([2, 0, 0]), 2, 3).tolist()
    [[0, 0, 1], [2, 0, 0]]
    """
    cells = first * np.int64(seconds)
    cells += second
    return np.bincount(cells, minlength=firsts * seconds).reshape(firsts, seconds)


@dataclass(frozen=True)
class ReadRecords:
    """Reads the values and classes of records in tasks: no engine hands them over twice.

    ``readings`` are those of the attributes, by their index, and ``label`` that of the target. With
    ``drops_missing``, records with a missing value are left out.
    """

    readings: Mapping[int, Reading]
    target: Target
    label: Reading
    drops_missing: bool

    @property
    def columns(self) -> list[str]:
        """Columns that are read."""
        return list(
            dict.fromkeys(
                [*(reading.column for reading in self.readings.values()), self.label.column]
            )
        )

    def of(self, indices: Collection[int]) -> ReadRecords:
        """Return a reader of some attributes, unless others may leave out records, too."""
        if self.drops_missing:
            return self
        chosen = {index: reading for index, reading in self.readings.items() if index in indices}
        return replace(self, readings=chosen)

    def __call__(self, records: pa.Table) -> tuple[dict[int, pa.Array], Integers]:
        """Return the values by attribute, see :func:`read_column`, and the classes."""
        classes = class_numbers(self.target, self.label, records)
        values: dict[int, pa.Array] = {}
        lacking = np.zeros(len(records), bool)
        for index, reading in self.readings.items():
            values[index], missing = read_column(reading, records.column(reading.column))
            if self.drops_missing:
                lacking |= missing
        if lacking.any():
            mask = pa.array(~lacking)
            values = {index: value.filter(mask) for index, value in values.items()}
            classes = classes[~lacking]
        return values, classes
