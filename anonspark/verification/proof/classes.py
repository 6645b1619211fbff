"""The classes of published files, as an attacker forms them: by published tuple."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import xor
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.columns import published_column
from anonspark.core.fingerprints import table_fingerprint
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.engine.values.batches import HashedValues, hash_rows
from anonspark.engine.values.hashing import Hashes
from anonspark.verification.proof.class_table import ClassLabels, LabelSums, ReadLabels


@dataclass(frozen=True)
class PublishedClasses:
    """Classes by published tuple, as an attacker forms them.

    ``smallest`` and ``largest`` are records of a class, 0 if nothing was published. ``sizes`` has
    the classes of each size, ``hash_sum`` and ``hash_xor`` are over the hashes of the records.
    ``homogeneous`` counts, for attributes that were asked for, the records of classes with only one
    value. ``values`` says, for such columns, how many values occur how often, and ``missing`` how
    many records have none. ``labels`` is None if labels were not read.
    """

    rows: int
    classes: int
    smallest: int
    largest: int
    sizes: Mapping[int, int]
    hash_sum: int
    hash_xor: int
    homogeneous: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    labels: ReadLabels | None = None

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the records, equal for the same records in any order and files."""
        return table_fingerprint(self.rows, self.hash_sum, self.hash_xor)


def count_published_classes(
    data: Table,
    quasi_identifiers: Sequence[str],
    attributes: Sequence[str] = (),
    labels: ClassLabels | None = None,
    *,
    counted: Sequence[str] = (),
    divisor: int = 1,
) -> PublishedClasses:
    """Count the classes of published records, by the columns of quasi-identifiers.

    Also counts classes with only one value of each of ``attributes``, where missing is a value.
    Values are compared by 64-bit hashes, of which a class only needs the smallest and the largest.
    ``labels`` reads the labels of these columns, each different one of a batch of classes once. For
    the columns ``counted`` it also counts how many values occur how often, among those whose hash
    is a multiple of ``divisor``, a power of two.

    One job. One shuffle of one row a class and task, and a value and task, and one of a row a size
    and task. Nothing but the files is trusted.
    """
    # Numbered, so that no published name clashes with ours.
    names = data.schema.names
    numbered = {published_column(index): name for index, name in enumerate(names)}

    def number(columns: Sequence[str]) -> tuple[str, ...]:
        return tuple(published_column(names.index(name)) for name in columns)

    by, (least, most) = number(quasi_identifiers), _ends(attributes)
    numbers = ("column", "hash", "size", "content", *least, *most)
    labelled = [data.schema.field(numbered[name]).with_name(name) for name in by]
    schema = pa.schema([*labelled, *((name, pa.int64()) for name in numbers)])
    rows = _Rows(schema, tuple(numbered), by, number(attributes), number(counted), divisor)
    classes = (
        data.select(numbered)
        .map_batches(rows, schema)
        .aggregate([*by, "column", "hash"], sums=["size"], least=least, most=most, hashes="content")
    )
    sums = None if labels is None else LabelSums(labels, number(labels.columns))
    return _collect_sizes(classes, attributes, counted, sums)


def _collect_sizes(
    classes: Table, attributes: Sequence[str], counted: Sequence[str], labels: LabelSums | None
) -> PublishedClasses:
    """Add up classes and values by column and size, and collect the sums."""
    homogeneous = [f"homogeneous_{index}" for index in range(len(attributes))]
    counts = [*homogeneous, *(labels.names if labels else ())]
    sizes_schema = map(classes.schema.field, _OF_SIZES)
    schema = pa.schema([*sizes_schema, *((name, pa.int64()) for name in counts)])
    sums = ["content_sum", *counts]
    by_size = (
        classes.map_batches(_DescribeClasses(schema, attributes, labels), schema)
        .aggregate(["column", "size"], count="classes", sums=sums, hashes="content_xor")
        .collect()
    )
    by_column: dict[int, dict[int, int]] = {index: {} for index in range(len(counted))}
    columns = (by_size[name].to_pylist() for name in ("column", "size", "classes"))
    for column, size, groups in zip(*columns, strict=True):
        by_column.setdefault(column, {})[size] = groups
    sizes = by_column.pop(_CLASS, {})
    missing = {name: sum(by_column.pop(_missing(index), {})) for index, name in enumerate(counted)}
    totals = {name: sum(by_size[name].to_pylist()) for name in counts}
    return PublishedClasses(
        rows=sum(size * classes_of_size for size, classes_of_size in sizes.items()),
        classes=sum(sizes.values()),
        smallest=min(sizes, default=0),
        largest=max(sizes, default=0),
        sizes=sizes,
        hash_sum=sum(map(int, by_size["content_sum"].to_pylist())),
        hash_xor=reduce(xor, by_size["content_xor_xor"].to_pylist(), 0),
        homogeneous={name: totals[key] for name, key in zip(attributes, homogeneous, strict=True)},
        values={name: by_column[index] for index, name in enumerate(counted)},
        missing=missing,
        labels=None if labels is None else labels.read(totals),
    )


# Stands in place of the column's number in rows that are records.
_CLASS = -1


def _missing(index: int) -> int:
    """Return the number that stands for the missing values of a column.

    >>> _missing(0), _missing(1)
    (-2, -3)
    """
    return _CLASS - 1 - index


def _ends(attributes: Sequence[str]) -> list[list[str]]:
    """Return the columns of the smallest and of the largest hash of each attribute.

    >>> _ends(["pay", "sex"])
    [['least_0', 'least_1'], ['most_0', 'most_1']]
    """
    return [[f"{end}_{index}" for index in range(len(attributes))] for end in ("least", "most")]


_OF_SIZES = ("column", "size", "content_sum", "content_xor")


@dataclass(frozen=True)
class _Rows:
    """Yields a row for each record, and one for each value of the columns that are counted.

    ``names`` are all columns, ``labels`` form classes, and of ``attributes`` records get a hash.
    ``divisor`` is that of :meth:`anonspark.engine.values.batches.HashedValues.sizes`.
    """

    schema: pa.Schema
    names: tuple[str, ...]
    labels: tuple[str, ...]
    attributes: tuple[str, ...]
    counted: tuple[str, ...]
    divisor: int

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        """Yield a row for each record and for each counted value, with the hashes of its class."""
        for batch in batches:
            hashed = {
                name: HashedValues.of(batch.column(name))
                for name in {*self.attributes, *self.counted}
            }
            values = self._values(batch, hashed)
            rows, zeros = len(batch), np.zeros(values.shape[1], np.int64)
            of_class = (_CLASS, 0, 1)
            numbers = [
                np.append(np.full(rows, default), column)
                for default, column in zip(of_class, values, strict=True)
            ]
            numbers.append(np.append(hash_rows(batch, self.names), zeros))
            numbers += 2 * [np.append(hashed[name].of_rows, zeros) for name in self.attributes]
            # `take` with nulls keeps dictionaries.
            numbers_of_rows = np.arange(rows + len(zeros))
            label_rows = pa.array(numbers_of_rows, mask=numbers_of_rows >= rows)
            labels = [batch.column(name).take(label_rows) for name in self.labels]
            yield pa.RecordBatch.from_arrays([*labels, *map(pa.array, numbers)], self.schema.names)

    def _values(self, batch: pa.RecordBatch, hashed: Mapping[str, HashedValues]) -> Hashes:
        """Return the column of each value, its hash, and how many records have it."""
        parts = [np.zeros((3, 0), np.int64)]
        for index, name in enumerate(self.counted):
            sizes = hashed[name].sizes(self.divisor)
            parts.append(np.concatenate([np.full((1, sizes.shape[1]), index), sizes]))
            if missing := batch.column(name).null_count:
                parts.append(np.array([[_missing(index)], [0], [missing]]))
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class _DescribeClasses:
    """Yields sizes and hashes of classes, and further counts of their records.

    Of each attribute those of the classes whose smallest value is the largest one, and those by the
    content of labels.
    """

    schema: pa.Schema
    attributes: Sequence[str]
    labels: LabelSums | None

    def __call__(self, batches: Batches) -> Batches:
        """Yield the figures of each batch of classes."""
        for batch in batches:
            columns = [batch.column(name) for name in _OF_SIZES]
            of_classes = pc.if_else(pc.equal(batch.column("column"), _CLASS), columns[1], 0)
            for ends in zip(*_ends(self.attributes), strict=True):
                columns.append(pc.if_else(pc.equal(*map(batch.column, ends)), of_classes, 0))
            if self.labels is not None:
                columns += self.labels.of_classes(batch, of_classes.to_numpy())
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
