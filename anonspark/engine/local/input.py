"""The input as this process reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from anonspark.config import Configuration
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.files import Files
from anonspark.engine.local.identifiers import with_texts_of_identifiers
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.raw_columns import require_distinct
from anonspark.engine.struct_fields import whole_columns
from anonspark.engine.unread import require_read
from anonspark.engine.values.column_plans import (
    PlannedColumn,
    plan_columns,
    require_columns,
    require_types,
)
from anonspark.engine.values.orders import with_orders
from anonspark.engine.values.record_input import RecordInput
from anonspark.engine.values.value_validation import MOST_DISTINCT


@dataclass(frozen=True)
class LocalInput(RecordInput):
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

    most_distinct: ClassVar[int] = MOST_DISTINCT

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
    def engine(self) -> Engine:
        """That opened the table."""
        return self.table.engine

    @property
    def given(self) -> pa.Schema:
        """Return the schema of the records."""
        return self.table.schema

    @property
    def names(self) -> Sequence[str]:
        """The columns of the table."""
        return whole_columns(self.table.schema)

    def rows(self, names: Sequence[str]) -> Table:
        """Return some columns of the records. Lazy."""
        return self.table.select(names)
