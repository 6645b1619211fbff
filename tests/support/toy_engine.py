"""An engine of lists: what a table of batches is, as simply as it can be said.

A table is a list of tasks, a task a list of batches, and every verb is done at once, in this
process. It shows what layers and models need of an engine, and runs them without Java.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import partial, reduce
from hashlib import blake2b
from operator import xor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.protocol import TASK, OnBatches
from anonspark.engine.raw_columns import Reading, is_number
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

    def repartition(self, function: OnBatches, schema: pa.Schema, tasks: int) -> ToyTable:
        rows = self.map_batches(function, schema).collect()
        return self._dealt(rows, rows[TASK].to_numpy(), tasks)

    def group(self, by: Sequence[str], tasks: int) -> ToyTable:
        rows = self.collect()
        groups = rows.select(by).to_pylist()
        numbers = {key: at for at, key in enumerate(dict.fromkeys(map(str, groups)))}
        return self._dealt(rows, np.array([numbers[str(key)] % tasks for key in groups]), tasks)

    def _dealt(self, rows: pa.Table, owners: np.ndarray, tasks: int) -> ToyTable:
        own = [rows.filter(pa.array(owners == number)).to_batches() for number in range(tasks)]
        return ToyTable(self.engine, rows.schema, own)

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
        together: Sequence[str] = (),  # noqa: ARG002 - all rows are in one place
    ) -> ToyTable:
        rows, of = self.collect(), {field.name: field.type for field in self.schema}
        wanted = [(name, name, of[name], lambda own: pc.sum(own).as_py()) for name in sums]
        wanted += [(name, name, of[name], _least) for name in least]
        wanted += [(name, name, of[name], lambda own: pc.max(own).as_py()) for name in most]
        wanted += [(name, name, pa.list_(of[name]), pa.ChunkedArray.to_pylist) for name in lists]
        if count is not None:
            wanted.insert(0, (count, rows.schema.names[0], pa.int64(), len))
        if hashes is not None:
            wanted.append((f"{hashes}_sum", hashes, pa.decimal128(38, 0), _exact_sum))
            wanted.append(
                (f"{hashes}_xor", hashes, pa.int64(), lambda own: reduce(xor, own.to_pylist()))
            )
        keys = list(zip(*(rows[name].to_pylist() for name in by), strict=True)) or [()] * len(rows)
        members: dict[str, list[int]] = {} if by else {"()": []}
        for row, key in enumerate(keys):
            members.setdefault(str(key), []).append(row)
        groups = [rows.take(pa.array(own, pa.int64())) for own in members.values()]
        columns = {
            name: pa.array([own[name][0].as_py() for own in groups], of[name]) for name in by
        }
        for name, source, kind, figure in wanted:
            columns[name] = pa.array([figure(own[source]) for own in groups], kind)
        return self.engine.table(pa.table(columns))

    def _each(self, function: Callable[[pa.RecordBatch], pa.Table]) -> ToyTable:
        """Return a table whose batches are made one by one."""
        tasks = [[function(batch) for batch in task] for task in self.tasks]
        schema = function(pa.RecordBatch.from_pylist([], self.schema)).schema
        made = [[batch for table in task for batch in table.to_batches()] for task in tasks]
        return ToyTable(self.engine, schema, made)

    def select(self, names: Sequence[str] | Mapping[str, str]) -> ToyTable:
        olds = list(names.values()) if isinstance(names, Mapping) else list(names)
        return self._each(lambda batch: pa.table([batch.column(old) for old in olds], list(names)))

    def read(self, readings: Sequence[Reading], carried: Sequence[str] = ()) -> ToyTable:
        def read(batch: pa.RecordBatch) -> pa.Table:
            columns = {}
            for one in readings:
                found = [_read(one, value) for value in batch.column(one.column).to_pylist()]
                columns[one.name] = pa.array([value for value, _ in found], one.type)
                columns[one.missing] = pa.array([missing for _, missing in found], pa.bool_())
            return pa.table(columns | {name: batch.column(name) for name in carried})

        return self._each(read)

    def without(self, flags: Sequence[str]) -> ToyTable:
        def kept(batch: pa.RecordBatch) -> pa.Table:
            flagged = [np.asarray(batch.column(name)) for name in flags]
            return pa.Table.from_batches([batch.filter(pa.array(~np.any(flagged, axis=0)))])

        return self._each(kept) if flags else self

    def with_hashes(
        self,
        hashes: Mapping[str, Sequence[str]],
        key: int | None = None,
        *,
        nulls: bool = True,
        like: pa.Schema | None = None,
    ) -> ToyTable:
        """Hash as nobody else does: figures that depend on the hashes' values differ."""

        def hashed(batch: pa.RecordBatch) -> pa.Table:
            table = pa.Table.from_batches([batch])
            for name, columns in hashes.items():
                types = pa.schema([(like or batch.schema).field(column) for column in columns])
                rows = table.select(columns).cast(types).to_pylist()
                texts = (repr((key, nulls, list(row.values()))).encode() for row in rows)
                digests = (blake2b(one, digest_size=8).digest() for one in texts)
                numbers = [int.from_bytes(one, "big", signed=True) for one in digests]
                table = table.append_column(name, pa.array(numbers, pa.int64()))
            return table

        return self._each(hashed)

    def union(self, other: ToyTable) -> ToyTable:
        named = other.select(self.schema.names)
        return ToyTable(self.engine, self.schema, [*self.tasks, *named.tasks])

    def persist(self) -> ToyTable:
        return self

    def unpersist(self) -> None:
        """Nothing is kept."""

    def count(self) -> int:
        return self.collect().num_rows

    def collect(self, most: int | None = None) -> pa.Table:
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
            (found[one],) = own.aggregate([], sums=sums).collect().to_pylist()
        return found


def _of_part(column: str, part: str, batches: Any) -> Any:
    for batch in batches:
        yield batch.filter(pc.equal(batch.column(column), part))


def _least(values: pa.ChunkedArray) -> Any:
    if pa.types.is_list(values.type):
        return min((one for one in values.to_pylist() if one is not None), default=None)
    return pc.min(values).as_py()


def _exact_sum(values: pa.ChunkedArray) -> Decimal:
    return Decimal(sum(values.to_pylist()))


def _read(reading: Reading, value: Any) -> tuple[Any, bool]:
    """Return a value as it is read, and whether it is missing."""
    if value is None or value != value or value in reading.markers:
        return None, True
    if pa.types.is_string(reading.type):
        return str(value).strip(reading.blanks or None), False
    try:
        return pa.scalar(Decimal(str(value)) if is_number(reading.type) else value).cast(
            reading.type
        ).as_py(), False
    except (ValueError, InvalidOperation):
        return None, False
