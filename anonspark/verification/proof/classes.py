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

    Parameters
    ----------
    rows : int
        Published records.
    classes : int
        Different tuples of quasi-identifiers.
    smallest, largest : int
        Records of the smallest and largest class. 0 where nothing was published.
    sizes : mapping of int to int
        Classes of each size.
    hash_sum, hash_xor : int
        Sum and exclusive or of the hashes of the records.
    homogeneous : mapping of str to int
        Records of the classes with only one value of an attribute. Of those that were asked for.
    values : mapping of str to mapping of int to int
        How many values of a column occur how often. Of the columns that were asked for.
    missing : mapping of str to int
        Records without a value in each of these columns.
    labels : ReadLabels or None
        What labels say. None where they were not read.
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
        """Equal for two releases that hold the same records, in any order and files."""
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
    """Count the classes of published records.

    Parameters
    ----------
    data : Table
        Published records, read from their files.
    quasi_identifiers : sequence of str
        Published columns of quasi-identifiers.
    attributes : sequence of str
        Published columns of which classes with only one value are counted, too. Missing is one
        more value. Values are compared by 64-bit hashes, of which a class needs the smallest and
        the largest alone, however many values it has.
    labels : ClassLabels or None
        How the labels of these columns are read, each different one of a batch of classes once.
    counted : sequence of str
        Published columns of which is counted how many values occur how often. Missing is one more.
    divisor : int
        Of these values those are counted whose hash is a multiple of this power of two.

    Returns
    -------
    PublishedClasses

    Notes
    -----
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
    of_classes = (
        data.select(numbered)
        .map_batches(rows, schema)
        .aggregate([*by, "column", "hash"], sums=["size"], least=least, most=most, hashes="content")
    )
    read = None if labels is None else LabelSums(labels, number(labels.columns))
    alike = [f"homogeneous_{place}" for place in range(len(attributes))]
    counts = [*alike, *(read.names if read else ())]
    describe = _DescribeClasses(
        pa.schema(
            [*map(of_classes.schema.field, _OF_SIZES), *((one, pa.int64()) for one in counts)]
        ),
        attributes,
        read,
    )
    found = (
        of_classes.map_batches(describe, describe.schema)
        .aggregate(
            ["column", "size"], count="classes", sums=["content_sum", *counts], hashes="content_xor"
        )
        .collect()
    )
    by_column: dict[int, dict[int, int]] = {place: {} for place in range(len(counted))}
    for column, size, groups in zip(
        *(found[name].to_pylist() for name in ("column", "size", "classes")), strict=True
    ):
        by_column.setdefault(column, {})[size] = groups
    sizes = by_column.pop(_CLASS, {})
    records = sum(size * classes for size, classes in sizes.items())
    sums = {name: sum(found[name].to_pylist()) for name in counts}
    missing = {name: sum(by_column.pop(_missing(place), {})) for place, name in enumerate(counted)}
    return PublishedClasses(
        rows=records,
        classes=sum(sizes.values()),
        smallest=min(sizes, default=0),
        largest=max(sizes, default=0),
        sizes=sizes,
        hash_sum=sum(map(int, found["content_sum"].to_pylist())),
        hash_xor=reduce(xor, found["content_xor_xor"].to_pylist(), 0),
        homogeneous={name: sums[own] for name, own in zip(attributes, alike, strict=True)},
        values={name: by_column[place] for place, name in enumerate(counted)},
        missing=missing,
        labels=None if read is None else read.read(sums),
    )


# In place of the number of a column, of rows that are records.
_CLASS = -1


def _missing(place: int) -> int:
    """Return what stands in place of the number of a column for its missing values."""
    return _CLASS - 1 - place


def _ends(attributes: Sequence[str]) -> list[list[str]]:
    """Return the columns of the smallest and of the largest hash of each attribute."""
    return [[f"{end}_{place}" for place in range(len(attributes))] for end in ("least", "most")]


_OF_SIZES = ("column", "size", "content_sum", "content_xor")


@dataclass(frozen=True)
class _Rows:
    """Yields a row for each record, and of the columns that are counted one for each value.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the rows.
    names : tuple of str
        All columns.
    labels : tuple of str
        Columns that form classes.
    attributes : tuple of str
        Columns of which records get a hash.
    counted : tuple of str
    divisor : int
        See :meth:`anonspark.engine.values.batches.HashedValues.sizes`.
    """

    schema: pa.Schema
    names: tuple[str, ...]
    labels: tuple[str, ...]
    attributes: tuple[str, ...]
    counted: tuple[str, ...]
    divisor: int

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            hashed = {
                name: HashedValues.of(batch.column(name))
                for name in {*self.attributes, *self.counted}
            }
            values = self._values(batch, hashed)
            rows, others = len(batch), np.zeros(values.shape[1], np.int64)
            of_class = (_CLASS, 0, 1)
            numbers = [
                np.append(np.full(rows, own), column)
                for own, column in zip(of_class, values, strict=True)
            ]
            numbers.append(np.append(hash_rows(batch, self.names), others))
            numbers += 2 * [np.append(hashed[name].of_rows, others) for name in self.attributes]
            # So dictionaries stay as they are.
            places = np.arange(rows + len(others))
            taken = pa.array(places, mask=places >= rows)
            labels = [batch.column(name).take(taken) for name in self.labels]
            yield pa.RecordBatch.from_arrays([*labels, *map(pa.array, numbers)], self.schema.names)

    def _values(self, batch: pa.RecordBatch, hashed: Mapping[str, HashedValues]) -> Hashes:
        """Return the column of each value, its hash, and how many records have it."""
        found = [np.zeros((3, 0), np.int64)]
        for place, name in enumerate(self.counted):
            own = hashed[name].sizes(self.divisor)
            found.append(np.concatenate([np.full((1, own.shape[1]), place), own]))
            if missing := batch.column(name).null_count:
                found.append(np.array([[_missing(place)], [0], [missing]]))
        return np.concatenate(found, axis=1)


@dataclass(frozen=True)
class _DescribeClasses:
    """Yields sizes and hashes of classes, and the records that are counted otherwise.

    Of each attribute those of the classes whose smallest value is the largest one, and what labels
    say.
    """

    schema: pa.Schema
    attributes: Sequence[str]
    labels: LabelSums | None

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            columns = [batch.column(name) for name in _OF_SIZES]
            of_classes = pc.if_else(pc.equal(batch.column("column"), _CLASS), columns[1], 0)
            for ends in zip(*_ends(self.attributes), strict=True):
                columns.append(pc.if_else(pc.equal(*map(batch.column, ends)), of_classes, 0))
            if self.labels is not None:
                columns += self.labels.of_classes(batch, of_classes.to_numpy())
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
