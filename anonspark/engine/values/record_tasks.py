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
"""Column of what a task found, as a text of :class:`Findings`."""


@dataclass(frozen=True)
class KeptRecords:
    """Reads records, and yields those that are kept.

    Parameters
    ----------
    reader : ReadRecords
    """

    reader: ReadRecords
    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, rows: Batches) -> Batches:
        """Yield the kept records of a task."""
        yield from self.reader.records(rows)


@dataclass(frozen=True)
class InspectRecords:
    """Reads records, and yields a text that says what was found in those of a task.

    Parameters
    ----------
    reader : ReadRecords
    most_distinct : int
        Different texts of a column that are counted exactly.
    """

    reader: ReadRecords
    most_distinct: int
    schema: ClassVar[pa.Schema] = pa.schema([(FOUND_TEXT, pa.string())])
    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, rows: Batches) -> Batches:
        """Yield one row."""
        findings = Findings(most_distinct=self.most_distinct)
        for _ in self.reader.records(rows, findings):
            pass
        yield pa.RecordBatch.from_arrays([pa.array([findings.to_text()])], schema=self.schema)


@dataclass(frozen=True)
class PrepareRecords:
    """Reads records, packs them, and reports the findings in them.

    What was found is written beside what was packed, by the same attempt of a task, so that it is
    counted once however often tasks run.

    Parameters
    ----------
    reader : ReadRecords
    most_distinct : int
        As of :class:`InspectRecords`.
    pack : callable
        Takes a task's records, yields batches.
    packed : pyarrow.Schema
        Of these batches.
    """

    reader: ReadRecords
    most_distinct: int
    pack: OnBatches
    packed: pa.Schema
    takes_dictionaries: ClassVar[bool] = True

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows: that of the batches, with a part and a text for the findings."""
        return pa.schema([*self.packed, (FOUND_TEXT, pa.string()), (PART, pa.string())])

    def __call__(self, rows: Batches) -> Batches:
        """Yield the rows of a task, the last of which has the findings.

        Parameters
        ----------
        rows : iterator of pyarrow.RecordBatch
            Of the input. See :attr:`ReadRecords.columns`.
        """
        findings = Findings(most_distinct=self.most_distinct)
        for batch in self.pack(self.reader.records(rows, findings)):
            added = [pa.nulls(len(batch), pa.string()), pa.repeat(BATCHES, len(batch))]
            yield pa.RecordBatch.from_arrays([*batch.columns, *added], schema=self.schema)
        nothing = [pa.nulls(1, field.type) for field in self.packed]
        added = [pa.array([findings.to_text()]), pa.array([FOUND])]
        yield pa.RecordBatch.from_arrays([*nothing, *added], schema=self.schema)


@dataclass(frozen=True)
class MergeFindings:
    """Adds up what tasks have found, given as texts.

    Parameters
    ----------
    most_distinct : int
        As of :class:`Findings`.
    """

    most_distinct: int

    def __call__(self, batches: Batches) -> Batches:
        """Yield the text of the sum."""
        yield pa.RecordBatch.from_pydict({FOUND_TEXT: [self.total(batches).to_text()]})

    def total(self, batches: Iterable[pa.RecordBatch]) -> Findings:
        """Return the sum. Nulls say nothing."""
        total = Findings(most_distinct=self.most_distinct)
        for batch in batches:
            for text in batch.column(FOUND_TEXT).drop_null():
                total.merge(Findings.of_text(text.as_py()))
        return total
