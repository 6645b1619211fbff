"""An engine of lists: what a table of batches is, as simply as it can be said.

A table is a list of tasks, a task a list of batches, and every verb is done at once, in this
process. It shows what layers and models need of an engine, and runs them without Java.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.protocol import TASK, OnBatches
from anonspark.engine.tasks import enter_task


@dataclass(frozen=True)
class ToyEngine:
    """Keeps what is staged in a dictionary."""

    places: dict[str, ToyTable] = field(default_factory=dict)

    def staged(self, paths: Sequence[str], schema: pa.Schema) -> ToyTable:
        tasks = [task for path in paths for task in self.places[path].select(schema.names).tasks]
        return ToyTable(self, schema, tasks)

    def table(self, rows: pa.Table) -> ToyTable:
        return ToyTable(self, rows.schema, [rows.to_batches()])

    def spread(self, rows: pa.Table, tasks: int) -> ToyTable:
        """Return a table whose rows are dealt out to tasks like cards."""
        dealt = [rows.take(np.arange(own, len(rows), tasks)).to_batches() for own in range(tasks)]
        return ToyTable(self, rows.schema, dealt)


@dataclass(frozen=True)
class ToyTable:
    """A list of batches for each task."""

    engine: ToyEngine
    schema: pa.Schema
    tasks: list[list[pa.RecordBatch]]

    def map_batches(self, function: OnBatches, schema: pa.Schema) -> ToyTable:
        made = []
        for number, task in enumerate(self.tasks):
            enter_task(number)
            made.append([batch.select(schema.names).cast(schema) for batch in function(iter(task))])
        enter_task(0)
        return ToyTable(self.engine, schema, made)

    def send(self, function: OnBatches, schema: pa.Schema, tasks: int) -> ToyTable:
        rows = self.map_batches(function, schema).gather()
        return self._dealt(rows, rows[TASK].to_numpy(), tasks)

    def group(self, by: Sequence[str], tasks: int) -> ToyTable:
        rows = self.gather()
        groups = rows.select(by).to_pylist()
        numbers = {key: at for at, key in enumerate(dict.fromkeys(map(str, groups)))}
        return self._dealt(rows, np.array([numbers[str(key)] % tasks for key in groups]), tasks)

    def _dealt(self, rows: pa.Table, owners: np.ndarray, tasks: int) -> ToyTable:
        own = [rows.filter(pa.array(owners == number)).to_batches() for number in range(tasks)]
        return ToyTable(self.engine, rows.schema, own)

    def add_up(
        self,
        by: Sequence[str],
        *,
        sums: Sequence[str] = (),
        least: Sequence[str] = (),
        most: Sequence[str] = (),
    ) -> ToyTable:
        rows = self.gather()
        wanted = [(name, pc.sum) for name in sums]
        wanted += [(name, _least) for name in least] + [(name, pc.max) for name in most]
        keys = list(zip(*(rows[name].to_pylist() for name in by), strict=True)) or [()] * len(rows)
        members: dict[tuple[Any, ...], list[int]] = {} if by else {(): []}
        for row, key in enumerate(keys):
            members.setdefault(key, []).append(row)
        columns: dict[str, list[Any]] = {name: [] for name in [*by, *(name for name, _ in wanted)]}
        for key, own in members.items():
            taken = rows.take(pa.array(own, pa.int64()))
            for name, value in zip(by, key, strict=True):
                columns[name].append(value)
            for name, figure in wanted:
                columns[name].append(figure(taken[name]).as_py())
        schema = pa.schema([self.schema.field(name) for name in columns])
        return self.engine.table(pa.Table.from_pydict(columns, schema))

    def select(self, names: Sequence[str]) -> ToyTable:
        schema = pa.schema([self.schema.field(name) for name in names])
        return ToyTable(
            self.engine, schema, [[b.select(names) for b in task] for task in self.tasks]
        )

    def keep(self) -> ToyTable:
        return self

    def release(self) -> None:
        """Nothing is kept."""

    def count(self) -> int:
        return self.gather().num_rows

    def gather(self, most: int | None = None) -> pa.Table:
        rows = pa.Table.from_batches([b for task in self.tasks for b in task], self.schema)
        return rows.slice(0, most)

    def stage(self, path: str) -> None:
        assert path not in self.engine.places
        self.engine.places[path] = self

    def stage_parts(
        self, path: str, part: str, parts: Sequence[str], sums: Sequence[str]
    ) -> Mapping[str, Mapping[str, Any]]:
        found = {}
        for one in parts:
            own = self.map_batches(partial(_of_part, part, one), self.schema)
            own.select([name for name in self.schema.names if name != part]).stage(
                f"{path}/{part}={one}"
            )
            (found[one],) = own.add_up([], sums=sums).gather().to_pylist()
        return found


def _of_part(column: str, part: str, batches: Any) -> Any:
    for batch in batches:
        yield batch.filter(pc.equal(batch.column(column), part))


def _least(values: pa.ChunkedArray) -> pa.Scalar:
    if pa.types.is_list(values.type):
        lists = [one for one in values.to_pylist() if one is not None]
        return pa.scalar(min(lists, default=None), values.type)
    return pc.min(values)
