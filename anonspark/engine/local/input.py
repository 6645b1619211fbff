"""The input as this process reads it: the one pass that judges, hashes, counts and stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from anonspark.config import Configuration
from anonspark.core.fingerprints import table_fingerprint
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.files import Files
from anonspark.engine.local.identifiers import with_texts_of_identifiers
from anonspark.engine.protocol import InputColumn, OnBatches, Staged, Table
from anonspark.engine.raw_columns import require_distinct
from anonspark.engine.struct_fields import whole_columns
from anonspark.engine.tasks import Batches
from anonspark.engine.unread import require_read
from anonspark.engine.values.column_plans import (
    PlannedColumn,
    plan_columns,
    require_columns,
    require_types,
)
from anonspark.engine.values.orders import with_orders
from anonspark.engine.values.reading import ReadRecords
from anonspark.engine.values.value_validation import Found


@dataclass(frozen=True)
class LocalInput:
    """A table as an :class:`anonspark.engine.protocol.Input`.

    Parameters
    ----------
    table : Table
        As it was opened.
    plans : tuple of PlannedColumn
        Of the quasi-identifiers.
    configuration : Configuration
    """

    table: Table
    plans: tuple[PlannedColumn, ...]
    configuration: Configuration

    @classmethod
    def of(
        cls,
        table: Table,
        configuration: Configuration,
        hierarchies: Mapping[str, Hierarchy],
        files: Files | None = None,
    ) -> LocalInput:
        """Find each attribute's column in a table, whose files may bring orders.

        Raises
        ------
        DataError
            If columns are missing or there twice, or hold what cannot be published.
        """
        require_distinct(table.schema.names, configuration.attributes, "input")
        require_columns(table.schema, configuration)
        require_read(table.schema, configuration.attributes, "attributes.")
        table = with_texts_of_identifiers(table, configuration.identifiers)
        require_types(table.schema, configuration)
        plans = plan_columns(
            with_orders(table.schema, files, configuration), configuration, hierarchies
        )
        return cls(table, tuple(plans), configuration)

    @property
    def columns(self) -> Sequence[InputColumn]:
        """The quasi-identifiers, in configuration order."""
        return [plan.column for plan in self.plans]

    @property
    def names(self) -> Sequence[str]:
        """The columns of the table."""
        return whole_columns(self.table.schema)

    def _read(self, reading: _Collecting) -> Table:
        reader = reading.reader
        table = self.table.select(reader.columns)
        return table.map_batches(reading, reader.schema(self.table.schema))

    def _reading(self, *, identifiers: bool = False, seed: int | None = None) -> _Collecting:
        reader = ReadRecords.of(self.plans, self.configuration, identifiers=identifiers, seed=seed)
        return _Collecting(reader, [])

    @property
    def kept(self) -> Table:
        """The records that stay, as they are staged; lazy."""
        return self._read(self._reading())

    @property
    def identified(self) -> Table:
        """The same with their identifiers, which are not staged; lazy."""
        return self._read(self._reading(identifiers=True))

    def inspect(self) -> Mapping[str, Any]:
        """Count what can be wrong with the values."""
        reading = self._reading()
        self._read(reading).count()
        return reading.total().as_dict(self.plans)

    def stage(self, path: str, pack: OnBatches, schema: pa.Schema, seed: int) -> Staged:
        """Write the records that are kept, with their hashes, and count."""
        reading = self._reading(seed=seed)
        self._read(reading).map_batches(pack, schema).stage(path)
        total = reading.total()
        return Staged(
            path,
            reading.reader.schema(self.table.schema),
            total.as_dict(self.plans),
            table_fingerprint(total.kept, total.hash_sum, total.hash_xor),
        )


@dataclass(frozen=True)
class _Collecting:
    """Reads the records of each task, and keeps what was found in them."""

    reader: ReadRecords
    found: list[Found]

    def __call__(self, batches: Batches) -> Batches:
        found = Found()
        yield from self.reader.records(batches, found)
        self.found.append(found)

    def total(self) -> Found:
        """Return what was found in all records."""
        total = Found()
        for one in self.found:
            total.merge(one)
        return total
