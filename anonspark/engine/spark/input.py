"""The input as Spark's tasks read it: the one pass that judges, hashes, counts and stages."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from anonspark.config import Configuration
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.files import Files
from anonspark.engine.protocol import InputColumn, OnBatches, Staged
from anonspark.engine.spark.arrow import arrow_schema
from anonspark.engine.spark.fields import with_fields
from anonspark.engine.spark.file_contents import SourceFiles
from anonspark.engine.spark.python_stage import PythonStage
from anonspark.engine.spark.reading import select_attributes
from anonspark.engine.spark.settings import batches_of_rows, one_row_at_a_time
from anonspark.engine.spark.table import SparkTable
from anonspark.engine.struct_fields import whole_columns
from anonspark.engine.values.column_plans import PlannedColumn, plan_columns, require_types
from anonspark.engine.values.orders import with_orders
from anonspark.engine.values.reading import ReadRecords
from anonspark.engine.values.record_tasks import (
    BATCHES,
    FOUND,
    FOUND_TEXT,
    PART,
    InspectRecords,
    KeptRecords,
    PrepareRecords,
    staged_records,
    total_of,
)


@dataclass(frozen=True)
class SparkInput:
    """A table as an :class:`anonspark.engine.protocol.Input`.

    Parameters
    ----------
    table : SparkTable
        The columns of the attributes.
    schema : pyarrow.Schema
        Of the table.
    plans : tuple of PlannedColumn
        Of the quasi-identifiers.
    configuration : Configuration
    names : list of str
        The columns of what was opened, asked for or not.
    """

    table: SparkTable
    schema: pa.Schema
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
    def columns(self) -> list[InputColumn]:
        """The quasi-identifiers, in configuration order."""
        return [plan.column for plan in self.plans]

    def _reader(self, *, identifiers: bool = False, seed: int | None = None) -> ReadRecords:
        return ReadRecords.of(self.plans, self.configuration, identifiers=identifiers, seed=seed)

    def _kept(self, reader: ReadRecords) -> SparkTable:
        # Row by row: who works with them may take them in batches of many files.
        rows = replace(self.table, source=None).select(reader.columns)
        return rows.map_batches(KeptRecords(reader), reader.schema(self.schema))

    @property
    def kept(self) -> SparkTable:
        """The records that stay, as they are staged; lazy."""
        return self._kept(self._reader())

    @property
    def identified(self) -> SparkTable:
        """The same with their identifiers, which are not staged; lazy."""
        return self._kept(self._reader(identifiers=True))

    def inspect(self) -> Mapping[str, Any]:
        """Count what can be wrong with the values."""
        inspect = InspectRecords(self._reader())
        rows = self.table.select(inspect.reader.columns)
        with self._handed_over(rows):
            told = rows.map_batches(inspect, inspect.schema).collect()
        return total_of(told.column(FOUND_TEXT).to_pylist()).as_dict(self.plans)

    def stage(self, path: str, pack: OnBatches, schema: pa.Schema, seed: int) -> Staged:
        """Write the records that are kept, with their hashes, and count."""
        prepare = PrepareRecords(self._reader(seed=seed), pack, schema)
        rows = self.table.select(prepare.reader.columns)
        with self._handed_over(rows):
            rows.map_batches(prepare, prepare.schema).stage_parts(path, PART, (BATCHES, FOUND), ())
        return staged_records(self.table.engine, path, prepare.reader, self.schema)

    def _handed_over(self, rows: SparkTable) -> AbstractContextManager[None]:
        if isinstance(self.table.content, PythonStage):
            return nullcontext()
        settings = one_row_at_a_time if isinstance(rows.content, PythonStage) else batches_of_rows
        return settings(self.table.content.sparkSession)


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
