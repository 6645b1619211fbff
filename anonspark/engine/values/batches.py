"""Functions over batches for the verbs of tables: they cast, hash, read and filter rows."""

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
    """Select the columns of a schema from a batch, in its order and with its types.

    With ``dictionaries``, columns may stay dictionaries of such values.

    >>> batch = pa.record_batch({"sex": ["male"], "age": pa.array([39], pa.int32())})
    >>> conform(batch, pa.schema({"age": pa.int64()})).schema.types
    [DataType(int64)]
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
    """Casts batches to a schema. See :func:`conform`."""

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
    """Hash some columns of each row, int64 (rows,). Texts may be dictionaries.

    See :meth:`anonspark.engine.protocol.Table.with_hashes` for key, nulls and like.
    """
    columns = [batch.column(name) for name in names]
    if like is not None:
        types = [like.field(name).type for name in names]
        # The function skips nulls, so hash for each column also whether the cast lost a value.
        parts = [part for pair in map(hashed_as, columns, types) for part in pair]
        return content_hash(parts, 0, rows=batch.num_rows)
    if nulls:
        return content_hash(columns, key, rows=batch.num_rows)
    return xxhash64(columns)


@dataclass(frozen=True)
class HashedValues:
    """The hash of each different value of a column, int64 (values,), and each row's value.

    ``codes`` has the index of each row's hash, int64 (rows,).
    """

    hashes: Hashes
    codes: npt.NDArray[np.integer]

    @classmethod
    def of(cls, column: pa.Array) -> HashedValues:
        """Hash the different values of a column, and missing as one more."""
        values, codes = column, np.arange(len(column))
        if not pa.types.is_nested(column.type):
            coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            values = pa.concat_arrays([coded.dictionary, pa.nulls(1, coded.dictionary.type)])
            codes = coded.indices.fill_null(len(values) - 1).to_numpy()
        batch = pa.RecordBatch.from_arrays([values], ["value"])
        return cls(hash_rows(batch, ["value"], like=batch.schema), codes)

    @property
    def of_rows(self) -> Hashes:
        """Return the hash of each row's value, int64 (rows,)."""
        hashes: Hashes = self.hashes[self.codes]
        return hashes

    def sizes(self, divisor: int, missing: npt.NDArray[np.bool_] | None = None) -> Hashes:
        """Return the hashes that are multiples of a power of two and their rows, int64 (2, m).

        Rows that are ``missing``, bool (rows,), do not count.
        """
        codes = self.codes if missing is None else self.codes[~missing]
        sizes = np.bincount(codes, minlength=len(self.hashes))
        drawn = np.flatnonzero((sizes > 0) & (self.hashes & (divisor - 1) == 0))
        return np.stack([self.hashes[drawn], sizes[drawn]])


@dataclass(frozen=True)
class ReadColumns:
    """Reads raw columns. See :meth:`anonspark.engine.protocol.Table.read`."""

    readings: tuple[Reading, ...]
    carried: tuple[str, ...]
    takes_dictionaries: ClassVar[bool] = True

    def schema(self, source: pa.Schema) -> pa.Schema:
        """Return the schema of the batches that are made from those of a table's schema."""
        fields = []
        for reading in self.readings:
            fields.append(pa.field(reading.name, reading.type or source.field(reading.column).type))
            fields.append(pa.field(reading.missing, pa.bool_()))
        return pa.schema([*fields, *map(source.field, self.carried)])

    def __call__(self, batches: Batches) -> Batches:
        """Yield values, booleans that say which are missing, and the carried columns."""
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
    """Adds hashes, which replace columns of their names. See ``Table.with_hashes``."""

    hashes: Mapping[str, Sequence[str]]
    key: int | None = None
    nulls: bool = True
    like: pa.Schema | None = None
    takes_dictionaries: ClassVar[bool] = True

    def schema(self, source: pa.Schema) -> pa.Schema:
        """Return the schema of the batches that are made from those of a table's schema."""
        new = [pa.field(name, pa.int64(), nullable=False) for name in self.hashes]
        return pa.schema([*(field for field in source if field.name not in self.hashes), *new])

    def __call__(self, batches: Batches) -> Batches:
        """Yield the columns and the hashes."""
        for batch in batches:
            new = {
                name: pa.array(hash_rows(batch, names, self.key, nulls=self.nulls, like=self.like))
                for name, names in self.hashes.items()
            }
            # By position: columns that nobody asked for may have equal names.
            columns = [
                column
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
                if name not in new
            ]
            schema = self.schema(batch.schema)
            yield pa.RecordBatch.from_arrays([*columns, *new.values()], schema=schema)


@dataclass(frozen=True)
class SplitBlankRows:
    """Filters the rows that have a value in one of some columns, or the blank ones."""

    names: tuple[str, ...]
    markers: tuple[str, ...]
    blank: bool = False

    def __call__(self, batches: Batches) -> Batches:
        """Yield the rows that are records, or blank."""
        for batch in batches:
            yield batch.filter(pa.array(blank_rows(batch, self.names, self.markers) == self.blank))


def records_of(table: Table, names: Iterable[str], markers: Iterable[str]) -> Table:
    """Return a table without its blank rows, which have no value in any of some columns.

    Names that the table lacks are passed over, and ``markers`` are texts that mean missing. Takes a
    narrow pass, and returns the table itself if no row is blank.
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
    """Drops rows that one of some columns of booleans marks, or where one is null."""

    flags: tuple[str, ...]
    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        """Yield the other rows.

        >>> batch = pa.record_batch({"age": [39, 41], "missing_age": [False, True]})
        >>> [rows["age"].to_pylist() for rows in DropFlagged(("missing_age",))(iter([batch]))]
        [[39]]
        """
        for batch in batches:
            rows = batch
            for name in self.flags:
                rows = rows.filter(pc.invert(pc.fill_null(rows.column(name), True)))
            yield rows
