"""Define what is to be learned from a table: a target and its classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading, is_text, type_name
from anonspark.engine.tasks import Batches
from anonspark.engine.values.values import coded_values, read_values
from anonspark.errors import ConfigurationError, DataError
from anonspark.release.raw_values import reading_of

MOST_CLASSES = 100
"""Of a target."""

LABEL = "label"
"""The column with what is to be learned."""


@dataclass(frozen=True)
class Target:
    """The target of learning.

    Parameters
    ----------
    name : str
        A column that is published as it is.
    classes : tuple of str
        Its different values as texts, the most frequent in the original first.
    missing_markers : tuple of str
        Texts that mean missing.
    """

    name: str
    classes: tuple[str, ...]
    missing_markers: tuple[str, ...]

    def reading(self, table: Table) -> Reading:
        """Return how the texts of a table are read into column `LABEL`."""
        return _reading_of(table, self.name, self.missing_markers)

    def numbers(self, texts: pa.Array) -> pa.Array:
        """Return the number of each record's class, from 0, as float64.

        It is null for what is missing or none of the classes. Numbers are returned as they are.
        """
        if not is_text(texts.type):
            return texts
        classes = pa.array(self.classes, texts.type)
        return pc.index_in(texts, value_set=classes, skip_nulls=True).cast(pa.float64())

    def count_others(self, table: Table) -> int:
        """Return how many records have a value that is none of the classes. One job."""
        texts = table.read([self.reading(table)]).select([LABEL])
        counted = texts.map_batches(_CountOthers(self), _OTHERS).aggregate([], sums=["records"])
        return sum(one or 0 for one in counted.collect().column("records").to_pylist())


def describe_target(
    original: Table, name: str, missing_markers: Sequence[str], key: str = "--target"
) -> Target:
    """Find the classes of a target in the original.

    Parameters
    ----------
    original : Table
    name : str
        One of its columns.
    missing_markers : sequence of str
    key : str
        What named it, for messages.

    Raises
    ------
    ConfigurationError
        If it is no category of 2 to 100 values.

    Notes
    -----
    One job. The different values are collected.
    """
    count = _CountLabels(_reading_of(original, name, missing_markers, key))
    counted = original.select([name]).map_batches(count, _LABELS)
    # One more than are allowed.
    found = counted.aggregate([LABEL], sums=["records"]).collect(MOST_CLASSES + 1)
    if not 2 <= found.num_rows <= MOST_CLASSES:
        many = f"more than {MOST_CLASSES}" if found.num_rows > MOST_CLASSES else found.num_rows
        raise ConfigurationError(
            f"{key}: column {name!r} has {many} different values. Expected a category of 2 to "
            f"{MOST_CLASSES}. Choose another column"
        )
    in_order = found.sort_by([("records", "descending"), (LABEL, "ascending")])
    return Target(name, tuple(in_order.column(LABEL).to_pylist()), tuple(missing_markers))


_LABELS = pa.schema([(LABEL, pa.string()), ("records", pa.int64())])


@dataclass(frozen=True)
class _CountLabels:
    """Counts a task's records of each class. In the task, so that no row is handed over."""

    reading: Reading

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            coded = coded_values(batch.column(self.reading.column))
            codes = coded.indices.drop_null().to_numpy()
            counts = pa.array(np.bincount(codes, minlength=len(coded.dictionary)))
            texts, _ = read_values(self.reading, coded.dictionary)
            some = pc.and_(texts.is_valid(), pc.greater(counts, 0))
            columns = [texts.cast(pa.string()).filter(some), counts.filter(some)]
            yield pa.RecordBatch.from_arrays(columns, schema=_LABELS)


def _reading_of(
    table: Table, name: str, missing_markers: Sequence[str], key: str = "--target"
) -> Reading:
    found = {field.name: field.type for field in table.schema}
    if name not in found:
        raise DataError(
            f"{key}: column {name!r} is not among those of the table: {', '.join(map(repr, found))}"
        )
    reading = reading_of(name, LABEL, found[name], "text", None, missing_markers)
    if reading is None:
        raise ConfigurationError(
            f"{key}: column {name!r} has type {type_name(found[name])}. Expected a category"
        )
    return reading


_OTHERS = pa.schema([("records", pa.int64())])


@dataclass(frozen=True)
class _CountOthers:
    """Counts a task's records whose value is none of the classes."""

    target: Target

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            texts = batch.column(LABEL)
            others = self.target.numbers(texts).null_count - texts.null_count
            yield pa.record_batch([pa.array([others], pa.int64())], schema=_OTHERS)
