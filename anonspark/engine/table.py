"""Implement those verbs of tables (:mod:`anonspark.engine.protocol`) that map batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import pyarrow as pa

from anonspark.engine.protocol import OnBatches
from anonspark.engine.raw_columns import Reading
from anonspark.engine.struct_fields import struct_fields, with_struct_fields
from anonspark.engine.tasks import Batches
from anonspark.engine.values.batches import AddHashes, DropFlagged, ReadColumns


class BatchTable(ABC):
    """A table of an engine that implements :meth:`map_batches`, from which other verbs follow."""

    if TYPE_CHECKING:

        @property
        def schema(self) -> pa.Schema:
            """Names and types of the columns."""

    @abstractmethod
    def map_batches(self, function: OnBatches, schema: pa.Schema) -> Self:
        """Apply a function to the batches of each task."""

    def select(self, names: Sequence[str] | Mapping[str, str]) -> Self:
        """Return some columns, also under new names: a mapping has the old name of each."""
        columns = dict(names) if isinstance(names, Mapping) else {name: name for name in names}
        schema = pa.schema(self.schema.field(old).with_name(new) for new, old in columns.items())
        return self.map_batches(SelectColumns(columns), schema)

    def with_fields(self) -> Self:
        """Return the table with the fields of its structs as columns."""
        if not struct_fields(self.schema):
            return self
        return self.map_batches(_AddFields(self.schema), with_struct_fields(self.schema))

    def read(self, readings: Sequence[Reading], carried: Sequence[str] = ()) -> Self:
        """Return the values of raw columns as readings declare them, and which are missing."""
        read = ReadColumns(tuple(readings), tuple(carried))
        columns = dict.fromkeys([*(reading.column for reading in readings), *carried])
        return self.select(list(columns)).map_batches(read, read.schema(self.schema))

    def without(self, flags: Sequence[str]) -> Self:
        """Leave out rows in which one of some columns of booleans is true."""
        return self.map_batches(DropFlagged(tuple(flags)), self.schema)

    def with_hashes(
        self,
        hashes: Mapping[str, Sequence[str]],
        key: int | None = None,
        *,
        nulls: bool = True,
        like: pa.Schema | None = None,
    ) -> Self:
        """Add columns of 64-bit hashes of other columns."""
        add = AddHashes(hashes, key, nulls, like)
        return self.map_batches(add, add.schema(self.schema))


@dataclass(frozen=True)
class SelectColumns:
    """Yields some columns of batches, by their new names."""

    columns: Mapping[str, str]
    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        """Yield batches whose texts may be dictionaries.

        >>> batch = pa.record_batch({"age": [39], "sex": ["male"]})
        >>> [part.to_pydict() for part in SelectColumns({"years": "age"})(iter([batch]))]
        [{'years': [39]}]
        """
        for batch in batches:
            chosen = [batch.column(old) for old in self.columns.values()]
            if chosen:
                yield pa.RecordBatch.from_arrays(chosen, list(self.columns))
            else:
                yield batch.select([])


@dataclass(frozen=True)
class _AddFields:
    """Adds the fields of structs behind their columns."""

    source: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        inner, schema = struct_fields(self.source), with_struct_fields(self.source)
        for batch in batches:
            outer = iter(batch.columns)
            columns = [
                inner[name].values(batch.column(inner[name].column))
                if name in inner
                else next(outer)
                for name in schema.names
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
