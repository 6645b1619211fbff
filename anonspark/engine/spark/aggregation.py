"""Aggregate the batches of our functions in Python's tasks, before they are handed to Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.engine.protocol import OnBatches
from anonspark.engine.raw_columns import is_plain, is_publishable
from anonspark.engine.spark.python_stage import Chain, PythonStage, is_whole_type, stage_of
from anonspark.engine.spark.shuffle_batches import PARCELS, Unpack, divide, shuffled, together
from anonspark.engine.spark.tasks import map_batches
from anonspark.engine.tasks import Batches
from anonspark.engine.values.batches import conform
from anonspark.engine.values.grouping import Aggregate, aggregate, schema_of
from anonspark.engine.values.hashing import content_hash

# Rows to aggregate at a time: most batches alone, as several have different dictionaries.
_ROWS_AT_ONCE = 1 << 16

_BATCH_ROWS = 1 << 18

# Groups that wait in a task until they are merged.
_WAITING_GROUPS = 1 << 20


def can_aggregate_in_tasks(
    schema: pa.Schema, by: Sequence[str], figures: Sequence[Aggregate]
) -> bool:
    """Return whether tasks compute the same figures of rows as Spark, to the last bit."""
    keys = map(schema.field, by)
    return all(is_whole_type(key) and is_plain(key.type) for key in keys) and all(
        _is_exact(schema, figure) for figure in figures
    )


def _is_exact(schema: pa.Schema, figure: Aggregate) -> bool:
    """Return whether an aggregate is the same for any order of rows, any NaN and any collation."""
    if figure.kind == "count":
        return True
    field = schema.field(figure.column)
    if not is_whole_type(field):
        return False
    if figure.kind in ("sum", "min", "max"):
        # Sums of floats depend on the order of rows, and their extremes on how NaN is ordered.
        return bool(
            pa.types.is_integer(field.type)
            or pa.types.is_decimal(field.type)
            or (
                figure.kind != "sum"
                and (is_plain(field.type) or pa.types.is_binary(field.type))
                and not pa.types.is_floating(field.type)
            )
        )
    return figure.kind == "xor" or is_publishable(field.type)


def aggregate_in_tasks(
    rows: PythonStage,
    by: Sequence[str],
    figures: Sequence[Aggregate],
    task_keys: npt.NDArray[np.int32],
) -> PythonStage:
    """Aggregate rows in tasks of ours, with the result that Spark would return.

    :func:`can_aggregate_in_tasks` has to hold. ``task_keys``, int32 (parts,), are the keys that
    Spark sends to each part of the groups. Each task first aggregates its rows, so that the shuffle
    has one row per group and task, or all rows if lists are asked for. A task holds its groups.
    """
    schema = schema_of(rows.schema, by, figures)
    first, last = in_two_steps(by, figures, task_keys, schema)
    parcels = map_batches(rows.source, Chain(rows.function, first), PARCELS)
    return stage_of(shuffled(parcels), last, schema)


def aggregate_each_task(rows: PythonStage, figures: Sequence[Aggregate]) -> PythonStage:
    """Return a row for all rows of each task that has some.

    :func:`can_aggregate_in_tasks` has to hold.
    """
    schema = schema_of(rows.schema, (), figures)
    return rows.map_batches(_AggregateTask(tuple(figures), schema), schema)


def in_two_steps(
    by: Sequence[str],
    figures: Sequence[Aggregate],
    task_keys: npt.NDArray[np.int32],
    schema: pa.Schema,
) -> tuple[OnBatches, OnBatches]:
    """Return the functions that make parcels of rows, and figures of the parcels of a part.

    ``schema`` is that of the figures. See :func:`aggregate_in_tasks` for the others.
    """
    names, divided = tuple(by), _Divide(tuple(by), task_keys)
    if any(figure.kind == "list" for figure in figures):
        return divided, _Aggregate(names, tuple(figures), schema, once=True)
    merged = tuple(figure.merged for figure in figures)
    return _AggregateAndDivide(names, tuple(figures), divided), _Aggregate(names, merged, schema)


@dataclass(frozen=True)
class _Divide:
    """Divides rows among the parts."""

    by: tuple[str, ...]
    task_keys: npt.NDArray[np.int32]

    def __call__(self, batches: Batches) -> Batches:
        for waiting in together(batches):
            yield from self.divided(pa.Table.from_batches(waiting))

    def divided(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield parcels of rows, by the hash of their groups."""
        columns = [
            column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
            for column in rows.columns
        ]
        rows = pa.table(columns, rows.column_names)
        hashes = content_hash([rows.column(name) for name in self.by])
        parts = hashes.view(np.uint64) % np.uint64(len(self.task_keys))
        yield from divide(rows, parts.astype(np.int64), self.task_keys)


@dataclass(frozen=True)
class _AggregateAndDivide:
    """Aggregates the rows of a task, and divides the groups among the parts."""

    by: tuple[str, ...]
    figures: tuple[Aggregate, ...]
    divide: _Divide

    def __call__(self, batches: Batches) -> Batches:
        for groups in _aggregated(batches, self.by, self.figures, most=_WAITING_GROUPS):
            yield from self.divide.divided(groups)


@dataclass(frozen=True)
class _Aggregate:
    """Merges the figures of the groups of a part, or aggregates all rows at once."""

    by: tuple[str, ...]
    figures: tuple[Aggregate, ...]
    schema: pa.Schema
    # Whether all rows are aggregated at once, as for lists.
    once: bool = False

    def __call__(self, batches: Batches) -> Batches:
        unpacked = Unpack()(batches)
        if self.once:
            received = [batch for batch in unpacked if batch.num_rows]
            tables = [pa.Table.from_batches(received)] if received else []
            tables = [aggregate(table, self.by, self.figures) for table in tables]
        else:
            tables = list(_aggregated(unpacked, self.by, self.figures, at_once=_WAITING_GROUPS))
        for table in tables:
            yield from _conformed(table, self.schema)


@dataclass(frozen=True)
class _AggregateTask:
    """Aggregates all rows of a task to one."""

    figures: tuple[Aggregate, ...]
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for table in _aggregated(batches, (), self.figures):
            yield from _conformed(table, self.schema)


def _conformed(table: pa.Table, schema: pa.Schema) -> Batches:
    """Yield a table as batches of a schema."""
    for batch in table.combine_chunks().to_batches(_BATCH_ROWS):
        yield conform(batch, schema)


def _aggregated(
    batches: Batches,
    by: Sequence[str],
    figures: Sequence[Aggregate],
    *,
    at_once: int = _ROWS_AT_ONCE,
    most: int | None = None,
) -> Iterator[pa.Table]:
    """Aggregate batches to tables of groups. A group may still be divided among tables.

    With ``most``, a table is yielded as soon as more than half as many groups wait.
    """
    merged = [figure.merged for figure in figures]
    waiting: list[pa.Table] = []
    # Doubled as groups are added: else each batch would merge all groups again.
    limit = _WAITING_GROUPS

    def merge_waiting() -> pa.Table:
        whole = pa.concat_tables(waiting)
        return whole if len(waiting) == 1 else aggregate(whole, by, merged)

    for rows in together(batches, at_once):
        waiting.append(aggregate(pa.Table.from_batches(rows), by, figures))
        if sum(map(len, waiting)) < limit:
            continue
        waiting = [merge_waiting()]
        if most is not None and len(waiting[0]) > most // 2:
            yield waiting.pop()
        else:
            limit = max(_WAITING_GROUPS, 2 * sum(map(len, waiting)))
    if waiting:
        yield merge_waiting()
