"""Adding up in tasks what functions of ours make, before anything of it is handed over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.engine.protocol import OnBatches
from anonspark.engine.raw_columns import is_plain, is_publishable
from anonspark.engine.spark.python_stage import PythonStage, Then, is_whole_type, stage_of
from anonspark.engine.spark.shuffle_batches import PARCELS, Unpack, divide, shuffled, together
from anonspark.engine.spark.tasks import map_batches
from anonspark.engine.tasks import Batches
from anonspark.engine.values.batches import conform
from anonspark.engine.values.grouping import Aggregate, aggregate, schema_of
from anonspark.engine.values.hashing import content_hash

# Rows that are added up at a time: those of most batches by themselves, for the dictionaries of
# several would have to be made one.
_ROWS_AT_ONCE = 1 << 16

_BATCH_ROWS = 1 << 18

# Groups that wait in a task until they are added up again.
_WAITING_GROUPS = 1 << 20


def can_aggregate_in_tasks(
    schema: pa.Schema, by: Sequence[str], figures: Sequence[Aggregate]
) -> bool:
    """Return whether figures are the same here as in Spark, to the last bit.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the rows.
    by : sequence of str
    figures : sequence of Aggregate
    """
    keys = map(schema.field, by)
    return all(is_whole_type(key) and is_plain(key.type) for key in keys) and all(
        _is_exact(schema, figure) for figure in figures
    )


def _is_exact(schema: pa.Schema, figure: Aggregate) -> bool:
    if figure.kind == "count":
        return True
    field = schema.field(figure.column)
    if not is_whole_type(field):
        return False
    if figure.kind in ("sum", "min", "max"):
        # Floats depend on the order, or on what NaN is worth.
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
    """Return one row for all rows that are equal in some columns.

    Parameters
    ----------
    rows : PythonStage
    by : sequence of str
    figures : sequence of Aggregate
        For which :func:`can_aggregate_in_tasks` holds.
    task_keys : int32 ndarray of shape (parts,)
        What Spark sends to each part of the groups.

    Notes
    -----
    Each task adds its rows up, so that one shuffle has a row a group and task. With lists it has
    all rows. A task holds the groups of its part.
    """
    schema = schema_of(rows.schema, by, figures)
    first, last = in_two_steps(by, figures, task_keys, schema)
    parcels = map_batches(rows.source, Then(rows.function, first), PARCELS)
    return stage_of(shuffled(parcels), last, schema)


def aggregate_each_task(rows: PythonStage, figures: Sequence[Aggregate]) -> PythonStage:
    """Return a row for all rows of each task that has some.

    Parameters
    ----------
    rows : PythonStage
    figures : sequence of Aggregate
        For which :func:`can_aggregate_in_tasks` holds.
    """
    schema = schema_of(rows.schema, (), figures)
    return rows.map_batches(_AggregateTask(tuple(figures), schema), schema)


def in_two_steps(
    by: Sequence[str],
    figures: Sequence[Aggregate],
    task_keys: npt.NDArray[np.int32],
    schema: pa.Schema,
) -> tuple[OnBatches, OnBatches]:
    """Return what makes parcels of rows, and what makes figures of the parcels of a part.

    Parameters
    ----------
    by : sequence of str
    figures : sequence of Aggregate
    task_keys : int32 ndarray of shape (parts,)
    schema : pyarrow.Schema
        Of the figures.
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
    """Adds up what a task has, and divides the groups among the parts."""

    by: tuple[str, ...]
    figures: tuple[Aggregate, ...]
    divide: _Divide

    def __call__(self, batches: Batches) -> Batches:
        for groups in _aggregated(batches, self.by, self.figures, most=_WAITING_GROUPS):
            yield from self.divide.divided(groups)


@dataclass(frozen=True)
class _Aggregate:
    """Adds up the parts of the groups."""

    by: tuple[str, ...]
    figures: tuple[Aggregate, ...]
    schema: pa.Schema
    # Whether all rows have to be there first.
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
    """Adds up what a task has, as it comes."""

    figures: tuple[Aggregate, ...]
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for table in _aggregated(batches, (), self.figures):
            yield from _conformed(table, self.schema)


def _conformed(table: pa.Table, schema: pa.Schema) -> Batches:
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
    """Add up batches. Hand over what there is where more groups than some would wait."""
    merged = [figure.merged for figure in figures]
    waiting: list[pa.Table] = []
    # Doubled as groups are added, so that all of them are not looked at again and again.
    limit = _WAITING_GROUPS

    def together_again() -> pa.Table:
        whole = pa.concat_tables(waiting)
        return whole if len(waiting) == 1 else aggregate(whole, by, merged)

    for rows in together(batches, at_once):
        waiting.append(aggregate(pa.Table.from_batches(rows), by, figures))
        if sum(map(len, waiting)) < limit:
            continue
        waiting = [together_again()]
        if most is not None and len(waiting[0]) > most // 2:
            yield waiting.pop()
        else:
            limit = max(_WAITING_GROUPS, 2 * sum(map(len, waiting)))
    if waiting:
        yield together_again()
