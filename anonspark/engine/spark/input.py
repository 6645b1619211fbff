"""Open the input of a run, which Spark's tasks read."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from anonspark.config import Configuration
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.files import Files
from anonspark.engine.protocol import Engine, OnBatches, Staged
from anonspark.engine.spark.arrow import arrow_schema
from anonspark.engine.spark.fields import with_fields
from anonspark.engine.spark.file_contents import SourceFiles
from anonspark.engine.spark.python_stage import PythonStage
from anonspark.engine.spark.reading import select_attributes
from anonspark.engine.spark.settings import (
    batches_of_rows,
    one_row_at_a_time,
    warn_of_little_memory,
)
from anonspark.engine.spark.table import SparkTable
from anonspark.engine.struct_fields import whole_columns
from anonspark.engine.values.column_plans import PlannedColumn, plan_columns, require_types
from anonspark.engine.values.dictionary_orders import with_orders
from anonspark.engine.values.record_input import RecordInput


@dataclass(frozen=True)
class SparkInput(RecordInput):
    """The attributes of an opened table as an :class:`anonspark.engine.protocol.Input`.

    ``names`` are all columns of the opened table.
    """

    table: SparkTable
    input_schema: pa.Schema
    plans: tuple[PlannedColumn, ...]
    configuration: Configuration
    names: list[str]

    @classmethod
    def of(
        cls,
        table: SparkTable,
        configuration: Configuration,
        hierarchies: Mapping[str, Hierarchy],
        files: Files | None = None,
    ) -> SparkInput:
        """Select the columns of attributes from a table, and plan how each is read.

        Raises DataError if columns are missing or ambiguous, or have types that cannot be
        published.
        """
        selected = select_attributes(table.frame, configuration)
        schema = arrow_schema(plain_schema(selected.schema))
        require_types(schema, configuration)
        if isinstance(table.content, PythonStage):
            # Spark's schema lost the orders that columns bring.
            columns = table.content.schema
            schema = pa.schema([f.with_metadata(columns.field(f.name).metadata) for f in schema])
        plans = tuple(
            plan_columns(with_orders(schema, files, configuration), configuration, hierarchies)
        )
        names = whole_columns(arrow_schema(plain_schema(with_fields(table.frame).schema)))
        if isinstance(table.content, PythonStage):
            rows = table.select(selected.columns)
        else:
            source = replace(table.source or SourceFiles(), level=logging.INFO)
            rows = SparkTable(selected, table.engine, source)
        return cls(rows, schema, plans, configuration, names)

    @property
    def engine(self) -> Engine:
        """Return the engine that opened the table."""
        return self.table.engine

    def rows(self, names: Sequence[str]) -> SparkTable:
        """Return some raw columns. Lazy."""
        # Row by row: only :meth:`open_rows` sets the batches that whole files need.
        return replace(self.table, source=None).select(names)

    def stage(self, path: str, pack: OnBatches, schema: pa.Schema, seed: int) -> Staged:
        """Write the records that stay, and warn if the driver has too little memory for them."""
        staged = super().stage(path, pack, schema, seed)
        content = self.table.content
        frame = content.source if isinstance(content, PythonStage) else content
        warn_of_little_memory(frame.sparkSession, staged.counts["kept"])
        return staged

    @contextmanager
    def open_rows(self, names: Sequence[str]) -> Iterator[SparkTable]:
        """Return some raw columns for the jobs in the ``with`` block, which read them once."""
        rows = self.table.select(names)
        if isinstance(self.table.content, PythonStage):
            yield rows
            return
        settings = one_row_at_a_time if isinstance(rows.content, PythonStage) else batches_of_rows
        with settings(self.table.content.sparkSession):
            yield rows


def plain_schema(schema: StructType) -> StructType:
    """Remove the metadata of fields from a schema: a release's files would hold them.

    They may list values, as those of Spark ML do.
    """
    return StructType.fromJson(_without_metadata(schema.jsonValue()))


def _without_metadata(described: Any) -> Any:
    """Remove metadata from a schema in Spark's JSON, at any depth.

    >>> _without_metadata([{"name": "age", "metadata": {"vals": ["39"]}}])
    [{'name': 'age', 'metadata': {}, 'nullable': True}]
    """
    if isinstance(described, list):
        return [_without_metadata(part) for part in described]
    if not isinstance(described, dict):
        return described
    inner = {key: _without_metadata(value) for key, value in described.items()}
    return inner | ({"metadata": {}, "nullable": True} if "name" in described else {})
