"""The input of a run: the one pass that validates, hashes, counts and stages, on every engine."""

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
    """A table of people as an :class:`anonspark.engine.protocol.Input`.

    Attributes
    ----------
    most_distinct : int
        Different texts of a column that a task counts exactly. Beyond, the count is off by 2% or
        so.
    """

    most_distinct: ClassVar[int] = 4096

    if TYPE_CHECKING:

        @property
        def plans(self) -> tuple[PlannedColumn, ...]:
            """The plans of the quasi-identifiers."""

        @property
        def configuration(self) -> Configuration:
            """Lists the attributes."""

        @property
        def given(self) -> pa.Schema:
            """Return the schema of the records."""

    @property
    @abstractmethod
    def engine(self) -> Engine:
        """That opened the table."""

    @abstractmethod
    def rows(self, names: Sequence[str]) -> Table:
        """Return some columns of the records. Lazy."""

    @contextmanager
    def open_records(self, names: Sequence[str], *, whole: bool) -> Iterator[Table]:
        """Return columns of the records that stay, for the jobs inside of the ``with`` block."""
        reader = self.reader(identifiers=True).of_columns(names, whole=whole)
        with self.one_pass(reader.columns) as rows:
            records = rows.map_batches(KeptRecords(reader), reader.schema(self.given))
            yield records.select(names)

    def one_pass(self, names: Sequence[str]) -> AbstractContextManager[Table]:
        """Return some columns of the records, for the jobs inside of the ``with`` block."""
        return nullcontext(self.rows(names))

    def reader(self, *, identifiers: bool = False, seed: int | None = None) -> ReadRecords:
        """Return what reads the records, with their hashes where a seed is said."""
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
        return rows.map_batches(KeptRecords(reader), reader.schema(self.given))

    def inspect(self) -> Mapping[str, Any]:
        """Count what can be wrong with the values."""
        inspect = InspectRecords(self.reader(), self.most_distinct)
        with self.one_pass(inspect.reader.columns) as rows:
            reports = rows.map_batches(inspect, inspect.schema).collect()
        return self._total_of(reports).as_dict(self.plans)

    def stage(self, path: str, pack: OnBatches, schema: pa.Schema, seed: int) -> Staged:
        """Write the records that are kept, with their hashes, and count.

        Notes
        -----
        One job, and a small one for what the tasks found.
        """
        prepare = PrepareRecords(self.reader(seed=seed), self.most_distinct, pack, schema)
        with self.one_pass(prepare.reader.columns) as rows:
            rows.map_batches(prepare, prepare.schema).stage_parts(path, PART, (BATCHES, FOUND), ())
        of_found = pa.schema([(FOUND_TEXT, pa.string())])
        reports = self.engine.staged([f"{path}/{PART}={FOUND}"], of_found)
        # Of each text column a task reports 64 kB, which the driver need not hold of thousands.
        total = self._total_of(
            reports.map_batches(MergeFindings(self.most_distinct), of_found).collect()
        )
        return Staged(
            f"{path}/{PART}={BATCHES}",
            prepare.reader.schema(self.given),
            total.as_dict(self.plans),
            table_fingerprint(total.kept, total.hash_sum, total.hash_xor),
        )

    def _total_of(self, reports: pa.Table) -> Findings:
        """Return what was found in all records, from the texts of the tasks. Nulls say nothing."""
        return MergeFindings(self.most_distinct).total(reports.to_batches())
