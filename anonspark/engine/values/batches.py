"""Verbs of tables over batches: their form, hashes of their rows, and values as they are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading
from anonspark.engine.tasks import Batches
from anonspark.engine.values.hashing import Hashes, content_hash, xxhash64
from anonspark.engine.values.value_texts import blank_rows, hashed_as, read_values


def conform(
    batch: pa.RecordBatch, schema: pa.Schema, *, dictionaries: bool = False
) -> pa.RecordBatch:
    """Return a batch with the columns of a schema, in its order and types.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Its columns may be more, or dictionaries of the values.
    schema : pyarrow.Schema
    dictionaries : bool
        Whether they may stay dictionaries.
    """
    if batch.schema.equals(schema):
        return batch
    columns = []
    for field in schema:
        column = batch.column(field.name)
        data_type = column.type
        if dictionaries and pa.types.is_dictionary(data_type):
            data_type = data_type.value_type
        columns.append(column if data_type.equals(field.type) else column.cast(field.type))
    if not columns:
        return batch.select([])
    if dictionaries:
        return pa.RecordBatch.from_arrays(columns, schema.names)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass(frozen=True)
class Conform:
    """Gives batches the form of a schema."""

    schema: pa.Schema
    dictionaries: bool = False

    def __call__(self, batches: Batches) -> Batches:
        """Yield batches of the schema."""
        for batch in batches:
            yield conform(batch, self.schema, dictionaries=self.dictionaries)


def hash_rows(
    batch: pa.RecordBatch,
    names: Sequence[str],
    key: int | None = None,
    *,
    nulls: bool = True,
    like: pa.Schema | None = None,
) -> Hashes:
    """Return the hash of each row. See :meth:`anonspark.engine.protocol.Table.with_hashes`.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Texts may be dictionaries.
    names : sequence of str
        Of the columns that are hashed.
    key : int or None
    nulls : bool
    like : pyarrow.Schema or None

    Returns
    -------
    int64 ndarray of shape (rows,)
    """
    columns = [batch.column(name) for name in names]
    if like is not None:
        types = [like.field(name).type for name in names]
        # Hashes skip nulls: the first value makes one of nothing at all.
        parts = [part for pair in map(hashed_as, columns, types) for part in pair]
        return content_hash(parts, 0, rows=batch.num_rows)
    if nulls:
        return content_hash(columns, key, rows=batch.num_rows)
    return xxhash64(columns)


@dataclass(frozen=True)
class HashedValues:
    """The hashes of a column's values, of each different one once.

    Parameters
    ----------
    hashes : int64 ndarray of shape (values,)
    codes : int64 ndarray of shape (rows,)
        The value of each row.
    """

    hashes: Hashes
    codes: npt.NDArray[np.integer]

    @classmethod
    def of(cls, column: pa.Array) -> HashedValues:
        """Hash the values of a column. Missing is one more."""
        values, codes = column, np.arange(len(column))
        if not pa.types.is_nested(column.type):
            coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            values = pa.concat_arrays([coded.dictionary, pa.nulls(1, coded.dictionary.type)])
            codes = coded.indices.fill_null(len(values) - 1).to_numpy()
        batch = pa.RecordBatch.from_arrays([values], ["value"])
        return cls(hash_rows(batch, ["value"], like=batch.schema), codes)

    @property
    def of_rows(self) -> Hashes:
        """The hash of each row's value, int64 of shape (rows,)."""
        hashes: Hashes = self.hashes[self.codes]
        return hashes

    def sizes(self, divisor: int, missing: npt.NDArray[np.bool_] | None = None) -> Hashes:
        """Return the values whose hash is a multiple of a power of two, and the rows of each.

        Parameters
        ----------
        divisor : int
            The power of two.
        missing : bool ndarray of shape (rows,) or None
            Rows that do not count.

        Returns
        -------
        int64 ndarray of shape (2, values)
            Hashes and numbers of rows.
        """
        codes = self.codes if missing is None else self.codes[~missing]
        sizes = np.bincount(codes, minlength=len(self.hashes))
        drawn = np.flatnonzero((sizes > 0) & (self.hashes & (divisor - 1) == 0))
        return np.stack([self.hashes[drawn], sizes[drawn]])


@dataclass(frozen=True)
class ReadColumns:
    """Reads raw columns. See :meth:`anonspark.engine.protocol.Table.read`.

    Parameters
    ----------
    readings : tuple of Reading
    carried : tuple of str
    """

    readings: tuple[Reading, ...]
    carried: tuple[str, ...]
    takes_dictionaries: ClassVar[bool] = True

    def schema(self, source: pa.Schema) -> pa.Schema:
        """Return the schema of the batches that it yields, of those of a table."""
        fields = []
        for reading in self.readings:
            fields.append(pa.field(reading.name, reading.type or source.field(reading.column).type))
            fields.append(pa.field(reading.missing, pa.bool_()))
        return pa.schema([*fields, *map(source.field, self.carried)])

    def __call__(self, batches: Batches) -> Batches:
        """Yield values, which of them are missing, and the columns that are carried."""
        for batch in batches:
            columns: dict[str, pa.Array] = {}
            for reading in self.readings:
                columns[reading.name], columns[reading.missing] = read_values(
                    reading, batch.column(reading.column)
                )
            columns |= {name: batch.column(name) for name in self.carried}
            yield pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True)
class AddHashes:
    """Adds hashes, in the place of columns of their names. See ``Table.with_hashes``.

    Parameters
    ----------
    hashes : mapping of str to sequence of str
    key : int or None
    nulls : bool
    like : pyarrow.Schema or None
    """

    hashes: Mapping[str, Sequence[str]]
    key: int | None = None
    nulls: bool = True
    like: pa.Schema | None = None
    takes_dictionaries: ClassVar[bool] = True

    def schema(self, source: pa.Schema) -> pa.Schema:
        """Return the schema of the batches that it yields, of those of a table."""
        new = [pa.field(name, pa.int64(), nullable=False) for name in self.hashes]
        return pa.schema([*(field for field in source if field.name not in self.hashes), *new])

    def __call__(self, batches: Batches) -> Batches:
        """Yield the columns and the hashes."""
        for batch in batches:
            new = {
                name: pa.array(hash_rows(batch, names, self.key, nulls=self.nulls, like=self.like))
                for name, names in self.hashes.items()
            }
            # By place, because columns that nobody asks for may have one name.
            others = [
                column
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
                if name not in new
            ]
            schema = self.schema(batch.schema)
            yield pa.RecordBatch.from_arrays([*others, *new.values()], schema=schema)


@dataclass(frozen=True)
class SplitBlankRows:
    """Keeps the rows that are records, or those that are none.

    Parameters
    ----------
    names : tuple of str
        The columns of which a record has a value in one at least.
    markers : tuple of str
    blank : bool
        Whether the others are kept.
    """

    names: tuple[str, ...]
    markers: tuple[str, ...]
    blank: bool = False

    def __call__(self, batches: Batches) -> Batches:
        """Yield the rows that are kept."""
        for batch in batches:
            yield batch.filter(pa.array(blank_rows(batch, self.names, self.markers) == self.blank))


def records_of(table: Table, names: Iterable[str], markers: Iterable[str]) -> Table:
    """Return a table without its blank rows. One narrow pass, and the table itself without any.

    Parameters
    ----------
    table : Table
    names : iterable of str
        Columns of which a record has a value in one at least. Those that are not there are passed
        over.
    markers : iterable of str
        Texts of values that mean missing.
    """
    present = tuple(name for name in dict.fromkeys(names) if name in table.schema.names)
    if not present:
        return table
    split = SplitBlankRows(present, tuple(markers))
    listed = table.select(present)
    blank = listed.map_batches(replace(split, blank=True), listed.schema)
    return table.map_batches(split, table.schema) if blank.collect(1).num_rows else table


@dataclass(frozen=True)
class DropFlagged:
    """Drops rows. See :meth:`anonspark.engine.protocol.Table.without`.

    Parameters
    ----------
    flags : tuple of str
    """

    flags: tuple[str, ...]
    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        """Yield the rows in which none of the flags is true."""
        for batch in batches:
            rows = batch
            for name in self.flags:
                rows = rows.filter(pc.invert(pc.fill_null(rows.column(name), True)))
            yield rows
