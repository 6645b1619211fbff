"""Define what a task does with the records of an input: keep, inspect or prepare them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from anonspark.engine.protocol import OnBatches
from anonspark.engine.tasks import Batches
from anonspark.engine.values.reading import ReadRecords
from anonspark.engine.values.value_validation import Findings

PART = "part"
BATCHES, FOUND = "batches", "found"
"""The part of a row: the packed batches, or the findings in their records."""

FOUND_TEXT = "found_text"
"""Column with the findings of a task, as a text of :class:`Findings`."""


@dataclass(frozen=True)
class KeptRecords:
    """Reads the records of a task, and yields those that stay."""

    reader: ReadRecords
    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, rows: Batches) -> Batches:
        """Yield the records of a task that stay."""
        yield from self.reader.records(rows)


@dataclass(frozen=True)
class InspectRecords:
    """Reads the records of a task, and yields their findings as a text.

    Counts ``most_distinct`` different texts of a column exactly.
    """

    reader: ReadRecords
    most_distinct: int
    schema: ClassVar[pa.Schema] = pa.schema([(FOUND_TEXT, pa.string())])
    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, rows: Batches) -> Batches:
        """Yield one row for a task."""
        findings = Findings(most_distinct=self.most_distinct)
        for _ in self.reader.records(rows, findings):
            pass
        yield pa.RecordBatch.from_arrays([pa.array([findings.to_text()])], schema=self.schema)


@dataclass(frozen=True)
class PrepareRecords:
    """Reads and packs the records of a task, and reports their findings.

    The same attempt of a task writes batches and findings, so that these are counted once, however
    often tasks run. ``pack`` takes a task's records and yields batches of the schema ``packed``.
    """

    reader: ReadRecords
    most_distinct: int
    pack: OnBatches
    packed: pa.Schema
    takes_dictionaries: ClassVar[bool] = True

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the rows: that of the batches, a part, and a text of findings."""
        return pa.schema([*self.packed, (FOUND_TEXT, pa.string()), (PART, pa.string())])

    def __call__(self, rows: Batches) -> Batches:
        """Yield the rows of a task, the last of which has the findings."""
        findings = Findings(most_distinct=self.most_distinct)
        for batch in self.pack(self.reader.records(rows, findings)):
            added = [pa.nulls(len(batch), pa.string()), pa.repeat(BATCHES, len(batch))]
            yield pa.RecordBatch.from_arrays([*batch.columns, *added], schema=self.schema)
        nothing = [pa.nulls(1, field.type) for field in self.packed]
        added = [pa.array([findings.to_text()]), pa.array([FOUND])]
        yield pa.RecordBatch.from_arrays([*nothing, *added], schema=self.schema)


@dataclass(frozen=True)
class MergeFindings:
    """Adds up the findings of tasks, which are texts."""

    most_distinct: int

    def __call__(self, batches: Batches) -> Batches:
        """Yield the text of the sum."""
        yield pa.RecordBatch.from_pydict({FOUND_TEXT: [self.total(batches).to_text()]})

    def total(self, batches: Iterable[pa.RecordBatch]) -> Findings:
        """Return the sum of findings. Skips nulls."""
        total = Findings(most_distinct=self.most_distinct)
        for batch in batches:
            for text in batch.column(FOUND_TEXT).drop_null():
                total.merge(Findings.of_text(text.as_py()))
        return total
