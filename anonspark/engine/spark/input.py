"""The input as Spark's tasks read it."""

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
    """A table as an :class:`anonspark.engine.protocol.Input`.

    Parameters
    ----------
    table : SparkTable
        The columns of the attributes.
    input_schema : pyarrow.Schema
        Of the table.
    plans : tuple of PlannedColumn
        Of the quasi-identifiers.
    configuration : Configuration
    names : list of str
        The columns of what was opened, asked for or not.
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
        """Find each attribute's column in a table, whose files may bring orders.

        Raises
        ------
        DataError
            If columns are missing or there twice, or hold what cannot be published.
        """
        selected = select_attributes(table.frame, configuration)
        schema = arrow_schema(plain_schema(selected.schema))
        require_types(schema, configuration)
        if isinstance(table.content, PythonStage):
            # Spark's columns bring no order.
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
        """That opened the table."""
        return self.table.engine

    def rows(self, names: Sequence[str]) -> SparkTable:
        """Return some columns of the records. Lazy."""
        # Row by row: who works with them may take them in batches of many files.
        return replace(self.table, source=None).select(names)

    def stage(self, path: str, pack: OnBatches, schema: pa.Schema, seed: int) -> Staged:
        """Write the records that are kept, and warn of a driver that is too small for them."""
        staged = super().stage(path, pack, schema, seed)
        content = self.table.content
        frame = content.source if isinstance(content, PythonStage) else content
        warn_of_little_memory(frame.sparkSession, staged.counts["kept"])
        return staged

    @contextmanager
    def open_rows(self, names: Sequence[str]) -> Iterator[SparkTable]:
        """Return some columns of the records, for the jobs inside of the ``with`` block."""
        rows = self.table.select(names)
        if isinstance(self.table.content, PythonStage):
            yield rows
            return
        settings = one_row_at_a_time if isinstance(rows.content, PythonStage) else batches_of_rows
        with settings(self.table.content.sparkSession):
            yield rows


def plain_schema(schema: StructType) -> StructType:
    """Return a schema without the metadata of its fields, which the release's files would hold.

    They may list values, as those that Spark ML gives its columns do.
    """
    return StructType.fromJson(_without_metadata(schema.jsonValue()))


def _without_metadata(described: Any) -> Any:
    if isinstance(described, list):
        return [_without_metadata(each) for each in described]
    if not isinstance(described, dict):
        return described
    inner = {key: _without_metadata(value) for key, value in described.items()}
    return inner | ({"metadata": {}, "nullable": True} if "name" in described else {})
