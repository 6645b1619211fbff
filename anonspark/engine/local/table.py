"""Implement the verbs of tables (:mod:`anonspark.engine.protocol`) by threads over batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from anonspark.engine.files import PublishedFile
from anonspark.engine.local import staged_files
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.local.joining import JoinRows
from anonspark.engine.local.materialized import Stage
from anonspark.engine.local.opening import Opened
from anonspark.engine.local.running import Runner, Source
from anonspark.engine.local.spill import Memory
from anonspark.engine.local.writing import publish_tasks
from anonspark.engine.protocol import TASK, Engine, OnBatches, Table
from anonspark.engine.table import BatchTable
from anonspark.engine.tasks import Batches, run_guarded, takes_dictionaries
from anonspark.engine.values.batches import Conform, conform
from anonspark.engine.values.grouping import aggregate, aggregates_of, merge, schema_of
from anonspark.engine.values.hashing import xxhash64

# One task merges up to so many figures of parts of groups. More are merged by so many tasks.
_ROWS_AT_ONCE = 2**20
_PARTS = 32

_COPIES = "copies"


@dataclass(frozen=True)
class Resources:
    """The shared resources of an engine's tables: threads, memory and the local disk."""

    runner: Runner
    memory: Memory
    files: LocalFiles


@dataclass(frozen=True)
class LocalTable(BatchTable):
    """Batches that are computed when they are read, as :class:`anonspark.engine.protocol.Table`.

    ``plan`` returns the tasks that yield the batches. It is called after the ``stages`` are made.
    """

    engine: Engine
    resources: Resources
    schema: pa.Schema
    plan: Callable[[], Sequence[Source]]
    stages: tuple[Stage, ...] = ()
    _persisted: Stage | None = None
    # The stage that stores the rows already.
    _stored: Stage | None = None
    # Files, of which chosen columns alone can be read.
    _opened: Opened | None = None

    @classmethod
    def of_files(cls, engine: Engine, resources: Resources, opened: Opened) -> LocalTable:
        """Return a table of files."""
        return cls(engine, resources, opened.schema, lambda: opened.tasks, _opened=opened)

    def sources(self, *, dictionaries: bool = False) -> Sequence[Source]:
        """Make the stages, and return the tasks that yield the batches.

        With ``dictionaries`` texts may be dictionaries.
        """
        for stage in self.stages:
            stage.make()
        conform = Conform(self.schema, dictionaries)
        return [partial(_opened, source, conform) for source in self.plan()]

    def _stage(self, stage: Stage, schema: pa.Schema) -> LocalTable:
        """Return the table of a stage's rows."""
        return LocalTable(
            self.engine, self.resources, schema, stage.sources, (stage,), _stored=stage
        )

    def _sent(
        self,
        owners: Callable[[pa.RecordBatch], Any] | None,
        tasks: int | None = None,
        together: int = 0,
    ) -> Stage:
        """Return a stage that sends each row to its owner. See :class:`Stage`."""
        runner, memory = self.resources.runner, self.resources.memory
        return Stage(runner, memory, self.sources, owners, tasks, together)

    def map_batches(self, function: OnBatches, schema: pa.Schema) -> LocalTable:
        """Apply a function to the batches of each task."""

        def plan() -> Sequence[Source]:
            conform = Conform(self.schema, takes_dictionaries(function))
            return [partial(_mapped, source, conform, function) for source in self.plan()]

        return LocalTable(self.engine, self.resources, schema, plan, self.stages)

    def repartition(self, function: OnBatches, schema: pa.Schema, tasks: int) -> LocalTable:
        """Apply a function that names a task for each row, and send each row to its task."""
        named = self.map_batches(function, schema)
        return self._stage(named._sent(lambda batch: batch.column(TASK).to_numpy(), tasks), schema)

    def group(self, by: Sequence[str], tasks: int) -> LocalTable:
        """Bring rows that are equal in some columns into one task."""
        return self._stage(
            self._sent(partial(_task_of_values, tuple(by), tasks), tasks), self.schema
        )

    def aggregate(
        self,
        by: Sequence[str],
        *,
        count: str | None = None,
        sums: Sequence[str] = (),
        least: Sequence[str] = (),
        most: Sequence[str] = (),
        hashes: str | None = None,
        lists: Sequence[str] = (),
    ) -> LocalTable:
        """Return one row for each group of rows that are equal in some columns."""
        figures = aggregates_of(
            self.schema,
            count=count,
            sums=sums,
            least=least,
            most=most,
            hashes=hashes,
            lists=lists,
        )
        schema = schema_of(self.schema, by, figures)
        if lists:
            # A list has a value for each row, so partial lists would save nothing.
            parts, last = self, partial(aggregate, by=by, figures=figures)
        else:
            first = partial(aggregate, by=by, figures=figures)
            parts = self.map_batches(_OnWhole(first, self.schema), schema)
            last = partial(merge, by=by, figures=figures)
        owners = partial(_task_of_values, tuple(by), _PARTS)
        # If a single task has all rows, its figures are those of whole groups.
        whole = 0 if lists else _ROWS_AT_ONCE
        stage = parts._sent(owners, _PARTS if by else 1, whole)

        def plan() -> Sequence[Source]:
            fits_one_task = sum(stage.rows) <= _ROWS_AT_ONCE
            tasks = [range(len(stage.rows))] if fits_one_task else None
            if whole and fits_one_task and stage.is_one:
                return stage.sources(tasks)
            return [
                partial(_mapped, source, Conform(parts.schema), _OnWhole(last, parts.schema))
                for source in stage.sources(tasks)
            ]

        return LocalTable(self.engine, self.resources, schema, plan, (stage,))

    def join(self, other: Table, on: Sequence[str], *, small: bool) -> LocalTable:  # noqa: ARG002
        """Add the columns of another table's row that is equal in some columns, or nulls."""
        new = [name for name in other.schema.names if name not in on]
        names = [*on, *(name for name in self.schema.names if name not in on)]
        schema = pa.schema(
            [
                *(self.schema.field(name) for name in names),
                *(other.schema.field(name).with_nullable(True) for name in new),
            ]
        )
        stage = _local(other)._sent(None)
        table = self.map_batches(JoinRows(stage, other.schema, list(on), names, new), schema)
        return LocalTable(self.engine, self.resources, schema, table.plan, (*self.stages, stage))

    def select(self, names: Sequence[str] | Mapping[str, str]) -> LocalTable:
        """Return some columns, also under new names. Of files the others are not read."""
        if self._opened is not None and names:
            olds = names.values() if isinstance(names, Mapping) else names
            chosen = self._opened.select(list(dict.fromkeys(olds)))
            return replace(
                self, schema=chosen.schema, plan=lambda: chosen.tasks, _opened=None
            ).select(names)
        return super().select(names)

    def union(self, other: Table) -> LocalTable:
        """Return the rows of both tables."""
        second = _local(other).select(self.schema.names)
        return LocalTable(
            self.engine,
            self.resources,
            self.schema,
            lambda: [*self.plan(), *second.plan()],
            (*self.stages, *second.stages),
        )

    def except_all(self, other: Table) -> LocalTable:
        """Leave out as many copies of each row as another table has."""
        names = self.schema.names
        sides = [
            table.map_batches(partial(_with_number, copies), self.schema.append(_COPIES_FIELD))
            for table, copies in ((self, 1), (_local(other).select(names), -1))
        ]
        left = sides[0].union(sides[1]).aggregate(names, sums=[_COPIES])
        return left.map_batches(_copied, self.schema)

    def persist(self) -> LocalTable:
        """Return the same table, which keeps its rows from the first job on."""
        if self._stored is not None:
            return replace(self, _persisted=self._stored)
        stage = self._sent(None)
        return replace(self._stage(stage, self.schema), _persisted=stage)

    def unpersist(self) -> None:
        """Free the rows of a table that :meth:`persist` returned."""
        if self._persisted is not None:
            self._persisted.clear()

    def count(self) -> int:
        """Return the number of rows."""
        return sum(
            self.resources.runner.run(
                self.sources(dictionaries=True), lambda _, batches: sum(map(len, batches))
            )
        )

    def collect(self, most: int | None = None) -> pa.Table:
        """Return all rows, or the first ``most``. Tasks stop once they have enough."""
        limit = math.inf if most is None else most

        def first(_: int, batches: Batches) -> list[pa.RecordBatch]:
            batches_read: list[pa.RecordBatch] = []
            rows = 0
            for batch in batches:
                batches_read.append(batch)
                rows += len(batch)
                if rows >= limit:
                    break
            return batches_read

        outputs = self.resources.runner.run(self.sources(), first)
        return pa.Table.from_batches(
            [batch for output in outputs for batch in output], self.schema
        ).slice(0, most)

    def stage(self, path: str) -> None:
        """Write the rows to a new directory."""
        staged_files.write(self, path)

    def stage_parts(
        self, path: str, part: str, parts: Sequence[str], sums: Sequence[str]
    ) -> Mapping[str, Mapping[str, Any]]:
        """Write the rows to a new directory, with a directory for each part."""
        return staged_files.write_parts(self, path, part, parts, sums)

    def publish(
        self, data_format: str, release: str, directory: str, aside: str
    ) -> list[PublishedFile]:
        """Write the rows as files that any program can read."""
        return publish_tasks(self, data_format, release, directory, aside)


_COPIES_FIELD = pa.field(_COPIES, pa.int64())


def _local(table: Table) -> LocalTable:
    """Return a table as one of this engine. Raises TypeError if it is another engine's."""
    if not isinstance(table, LocalTable):
        raise TypeError(f"expected a table of this process, found {type(table).__name__}")
    return table


def _opened(source: Source, conform: Conform) -> Batches:
    """Yield the batches of a source in the types of a schema."""
    return conform(source())


def _mapped(source: Source, conform: Conform, function: OnBatches) -> Batches:
    """Apply a function to the batches of a source."""
    return run_guarded(function, conform(source()))


@dataclass(frozen=True)
class _OnWhole:
    """Applies a function to all rows of a task."""

    function: Callable[[pa.Table], pa.Table]
    schema: pa.Schema
    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        whole = list(batches)
        have_one_schema = whole and all(batch.schema.equals(whole[0].schema) for batch in whole)
        if not have_one_schema:
            whole = [conform(batch, self.schema) for batch in whole]
        rows = pa.Table.from_batches(whole, None if have_one_schema else self.schema)
        yield from self.function(rows).to_batches()


def _task_of_values(by: Sequence[str], tasks: int, batch: pa.RecordBatch) -> Any:
    """Return the task of each row by the hash of some columns."""
    if not by or tasks == 1:
        return np.zeros(len(batch), np.int64)
    return xxhash64([batch.column(name) for name in by]) % tasks


def _with_number(number: int, batches: Batches) -> Batches:
    """Add a column with a number of copies to each row."""
    for batch in batches:
        copies = pa.repeat(pa.scalar(number, pa.int64()), len(batch))
        yield pa.RecordBatch.from_arrays([*batch.columns, copies], [*batch.schema.names, _COPIES])


def _copied(batches: Batches) -> Batches:
    """Yield as many copies of each row as its number says."""
    for batch in batches:
        copies = np.maximum(batch.column(_COPIES).to_numpy(), 0)
        names = [name for name in batch.schema.names if name != _COPIES]
        yield batch.select(names).take(pa.array(np.repeat(np.arange(len(batch)), copies)))
