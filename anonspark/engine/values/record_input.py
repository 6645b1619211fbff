"""Open the input of a run, and validate, hash, count and stage it in one pass, on every engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from anonspark.config import Configuration
from anonspark.core.fingerprints import table_fingerprint
from anonspark.engine.protocol import Engine, InputColumn, OnBatches, Staged, Table
from anonspark.engine.values.column_plans import PlannedColumn
from anonspark.engine.values.reading import ReadRecords
from anonspark.engine.values.record_tasks import (
    BATCHES,
    FOUND,
    FOUND_TEXT,
    PART,
    InspectRecords,
    KeptRecords,
    MergeFindings,
    PrepareRecords,
)
from anonspark.engine.values.value_validation import Findings


class RecordInput(ABC):
    """A table of people as an :class:`anonspark.engine.protocol.Input`, for every engine."""

    most_distinct: ClassVar[int] = 4096
    """Different texts of a column that a task counts exactly. Beyond, counts are off by 2%."""

    if TYPE_CHECKING:

        @property
        def plans(self) -> tuple[PlannedColumn, ...]:
            """The plans of the quasi-identifiers."""

        @property
        def configuration(self) -> Configuration:
            """The configuration, which lists the attributes."""

        @property
        def input_schema(self) -> pa.Schema:
            """The schema of the raw table."""

    @property
    @abstractmethod
    def engine(self) -> Engine:
        """The engine that opened the table."""

    @abstractmethod
    def rows(self, names: Sequence[str]) -> Table:
        """Return some raw columns of the table. Lazy."""

    @contextmanager
    def open_records(self, names: Sequence[str], *, whole: bool) -> Iterator[Table]:
        """Return columns of the records that stay, for the jobs inside of the ``with`` block."""
        reader = self.reader(identifiers=True).of_columns(names, whole=whole)
        with self.open_rows(reader.columns) as rows:
            records = rows.map_batches(KeptRecords(reader), reader.schema(self.input_schema))
            yield records.select(names)

    def open_rows(self, names: Sequence[str]) -> AbstractContextManager[Table]:
        """Return some raw columns for the jobs in the ``with`` block, which read them once."""
        return nullcontext(self.rows(names))

    def reader(self, *, identifiers: bool = False, seed: int | None = None) -> ReadRecords:
        """Return the reader of the records, which hashes them if a seed is given."""
        return ReadRecords.of(self.plans, self.configuration, identifiers=identifiers, seed=seed)

    @property
    def columns(self) -> Sequence[InputColumn]:
        """The quasi-identifiers, in configuration order."""
        return [plan.column for plan in self.plans]

    @property
    def records(self) -> Table:
        """The records that stay, as they are staged. Lazy."""
        reader = self.reader()
        rows = self.rows(reader.columns)
        return rows.map_batches(KeptRecords(reader), reader.schema(self.input_schema))

    def inspect(self) -> Mapping[str, Any]:
        """Count what can be wrong with the values. One job."""
        inspect = InspectRecords(self.reader(), self.most_distinct)
        with self.open_rows(inspect.reader.columns) as rows:
            reports = rows.map_batches(inspect, inspect.schema).collect()
        return self._total_of(reports).as_dict(self.plans)

    def stage(self, path: str, pack: OnBatches, schema: pa.Schema, seed: int) -> Staged:
        """Write the records that stay, with their hashes, and count the findings.

        One job, and one for the findings.
        """
        prepare = PrepareRecords(self.reader(seed=seed), self.most_distinct, pack, schema)
        with self.open_rows(prepare.reader.columns) as rows:
            rows.map_batches(prepare, prepare.schema).stage_parts(path, PART, (BATCHES, FOUND), ())
        text_schema = pa.schema([(FOUND_TEXT, pa.string())])
        reports = self.engine.staged([f"{path}/{PART}={FOUND}"], text_schema)
        # A task reports 64 kB for each text column: of thousands of tasks the driver holds few.
        total = self._total_of(
            reports.map_batches(MergeFindings(self.most_distinct), text_schema).collect()
        )
        return Staged(
            f"{path}/{PART}={BATCHES}",
            prepare.reader.schema(self.input_schema),
            total.as_dict(self.plans),
            table_fingerprint(total.staying, total.hash_sum, total.hash_xor),
        )

    def _total_of(self, reports: pa.Table) -> Findings:
        """Return the findings in all records, from the texts of the tasks."""
        return MergeFindings(self.most_distinct).total(reports.to_batches())
