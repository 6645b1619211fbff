"""Counting on the cluster, and handing every leaf of the tree to one task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from anonspark.core.criteria import Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.spark.tasks import Batches, map_batches
from anonspark.layers.partition.counting import Answer, Counter, Question
from anonspark.layers.partition.cut_tree import CutTree, Descent
from anonspark.layers.partition.growing import CutRule, Leaf, Node, grow
from anonspark.layers.partition.packing import PACKED_SCHEMA, PackedKeys
from anonspark.staged.keys import key_matrix
from anonspark.staged.records import (
    RECORDS,
    Records,
    open_parcels,
    pack_table,
    together,
    unpack_table,
)

__all__ = [
    "BLOCK",
    "Partition",
    "partition_records",
    "received_records",
    "send_records",
    "send_to_tasks",
]

BLOCK = "block"
"""Node number of a record's leaf."""

_TASK = "task"
_TASK_KEY = "task_key"
_SENT = [_TASK_KEY, RECORDS]
_SENT_SCHEMA = f"{_TASK_KEY} int, {RECORDS} binary"

# What a task collects before it sends; larger parcels are fewer, but the task has to hold them.
_BYTES_AT_ONCE = 64 * 2**20

_COUNT_SCHEMA = "request int, bin long, count long, minimum long, maximum long, codes array<long>"
_COUNT_TYPES = pa.schema(
    [
        ("request", pa.int32()),
        *((name, pa.int64()) for name in ("bin", "count", "minimum", "maximum")),
        ("codes", pa.list_(pa.int64())),
    ]
)


@dataclass(frozen=True)
class Partition:
    """A table cut into blocks.

    Parameters
    ----------
    tree : CutTree
        The cuts made on the cluster.
    leaves : tuple of Node
        The blocks, from left to right.
    tasks : tuple of tuple of int
        Node numbers of the leaves that each task gets.
    """

    tree: CutTree
    leaves: tuple[Leaf, ...]
    tasks: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class _CountRecords:
    """Counts one partition's packed records in a Python worker."""

    counter: Counter
    keys: PackedKeys

    def __call__(self, batches: Batches) -> Batches:
        counts = self.counter.count(self.keys.unpack(batches))
        yield pa.RecordBatch.from_pydict(counts, schema=_COUNT_TYPES)


@dataclass(frozen=True)
class _SendBlocks:
    """Finds each record's leaf, and packs the records of a task that go to the same one."""

    descent: Descent
    task_of_node: npt.NDArray[np.int32]
    task_keys: npt.NDArray[np.int32]
    criteria: Criteria

    def __call__(self, parcels: Batches) -> Batches:
        return map(self._packed, together(self._in_blocks(parcels), _BYTES_AT_ONCE))

    def _in_blocks(self, parcels: Batches) -> Batches:
        for first, records in open_parcels(parcels):
            keys = key_matrix(records, self.descent.quasi_identifiers, self.criteria, first)
            blocks = pa.array(self.descent.find_leaves(keys))
            yield from records.append_column(BLOCK, blocks).to_batches()

    def _packed(self, records: pa.Table) -> pa.RecordBatch:
        tasks = self.task_of_node[records.column(BLOCK).to_numpy()]
        return _packed_for_tasks(records, tasks, self.task_keys)


def _packed_for_tasks(
    records: pa.Table, tasks: npt.NDArray[np.integer], task_keys: npt.NDArray[np.int32]
) -> pa.RecordBatch:
    """Pack records that go to the same task together."""
    # NumPy sorts numbers of 16 bits many times faster.
    fits = len(task_keys) <= np.iinfo(np.uint16).max
    order = np.argsort(tasks.astype(np.uint16) if fits else tasks, kind="stable")
    records = records.combine_chunks().take(pa.array(order))
    own, starts = np.unique(tasks[order], return_index=True)
    ends = np.append(starts[1:], len(order))
    packed = [
        pack_table(records.slice(start, end - start))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    keys = pa.array(task_keys[own])
    return pa.RecordBatch.from_arrays([keys, pa.array(packed, pa.binary())], _SENT)


@dataclass(frozen=True)
class _SendRecords:
    """Asks for the task of each record, and packs the records of a task that go to the same one."""

    tasks_of: Callable[[pa.Table, int], npt.NDArray[np.int64]]
    task_keys: npt.NDArray[np.int32]

    def __call__(self, parcels: Batches) -> Batches:
        for records in together(self._with_task(parcels), _BYTES_AT_ONCE):
            tasks = records.column(_TASK).to_numpy()
            yield _packed_for_tasks(records.drop_columns(_TASK), tasks, self.task_keys)

    def _with_task(self, parcels: Batches) -> Batches:
        for first, records in open_parcels(parcels):
            tasks = pa.array(self.tasks_of(records, first))
            yield from records.append_column(_TASK, tasks).to_batches()


def send_records(
    parcels: DataFrame, tasks_of: Callable[[pa.Table, int], npt.NDArray[np.int64]], tasks: int
) -> DataFrame:
    """Shuffle records to tasks that a function names.

    Parameters
    ----------
    parcels : DataFrame
        Of :data:`anonspark.staged.records.PARCELS`.
    tasks_of : callable
        Takes the records of a parcel and the number of the first one; returns the task of each.
    tasks : int
        Their number.

    Returns
    -------
    DataFrame
        For :func:`received_records`; one partition a task.

    Notes
    -----
    Lazy; one shuffle of the whole records.
    """
    send = _SendRecords(tasks_of, keys_for_partitions(tasks))
    return map_batches(parcels, send, _SENT_SCHEMA).repartition(tasks, _TASK_KEY)


def received_records(batches: Batches) -> pa.Table | None:
    """Return the records that were sent to a task, None where there are none.

    Parameters
    ----------
    batches : iterator of pyarrow.RecordBatch
        What the task is given.

    Returns
    -------
    pyarrow.Table or None
        The records; if :func:`send_to_tasks` sent them, with their block in column :data:`BLOCK`.
    """
    tables = [unpack_table(packed) for batch in batches for packed in batch.column(RECORDS)]
    return pa.concat_tables(tables) if tables else None


def partition_records(
    records: Records,
    rows: int,
    quasi_identifiers: tuple[QuasiIdentifier, ...],
    criteria: Criteria,
    rule: CutRule,
    *,
    path: int,
    largest_block: int,
    task_rows: int,
) -> Partition:
    """Cut a table into blocks that fit one task each.

    Parameters
    ----------
    records : Records
        Read once: only quasi-identifiers, hash and the sensitive attributes of criteria.
    rows : int
        Their number.
    quasi_identifiers : tuple of QuasiIdentifier
    criteria : Criteria
    rule : callable
        The model's cut rule.
    path : int
        Name of the root.
    largest_block : int
        Records of the largest node that is not cut. A node that cannot be cut stays one block,
        however large.
    task_rows : int
        Records of the blocks that share a task.

    Returns
    -------
    Partition

    Notes
    -----
    No job at all where ``rows <= largest_block``. Otherwise one job per counting pass, each with
    one shuffle of some 100,000 counts, which are collected; with criteria beyond k, one count more
    for each sensitive value of each waiting node. Of the data, at most the codes of some hundred
    records a node are collected, for models that choose among vantage points. Until the passes are
    done the executors keep 1 to 8 bytes for each key of each record, in memory or on disk; the
    hashes are among them only where cuts look at them.
    """
    d = len(quasi_identifiers)
    keys = PackedKeys(quasi_identifiers, criteria, rule.breaks_ties)
    packed = map_batches(records.parcels, keys.pack, PACKED_SCHEMA)

    def count(tree: CutTree, questions: Sequence[Question]) -> list[Answer]:
        counter = Counter(tree, questions)
        counts = (
            map_batches(packed, _CountRecords(counter, keys), _COUNT_SCHEMA)
            .groupBy("request", "bin")
            .agg(
                sf.sum("count").alias("count"),
                sf.min("minimum").alias("minimum"),
                sf.max("maximum").alias("maximum"),
                sf.min("codes").alias("codes"),
            )
            .toPandas()
        )
        return counter.answers({str(name): counts[name].to_numpy() for name in counts})

    tree = CutTree(quasi_identifiers)
    root = Node(
        number=0,
        path=path,
        rows=rows,
        lowest=tuple(quasi_identifier.lowest for quasi_identifier in quasi_identifiers),
        highest=tuple(
            quasi_identifier.missing_code
            if quasi_identifier.has_missing
            else quasi_identifier.highest
            for quasi_identifier in quasi_identifiers
        ),
        cell_low=(None,) * d,
        cell_high=(None,) * d,
    )
    if rows > largest_block:
        packed.persist(StorageLevel.MEMORY_AND_DISK_DESER)
    try:
        leaves = grow(tree, root, rule, largest_leaf=largest_block, count=count)
    finally:
        packed.unpersist()
    return Partition(tree, tuple(leaves), _pack(leaves, task_rows))


def _pack(leaves: Sequence[Leaf], task_rows: int) -> tuple[tuple[int, ...], ...]:
    """Put neighbouring leaves into one task as long as they fit."""
    tasks: list[list[int]] = []
    room = 0
    for leaf in leaves:
        if leaf.rows > room:
            tasks.append([])
            room = max(task_rows, leaf.rows)
        tasks[-1].append(leaf.number)
        room -= leaf.rows
    return tuple(tuple(task) for task in tasks)


def send_to_tasks(records: Records, partition: Partition, criteria: Criteria) -> DataFrame:
    """Shuffle records so that every task holds its blocks whole, and nothing else.

    Returns
    -------
    DataFrame
        For :func:`received_records`; one partition a task.

    Notes
    -----
    Lazy; one shuffle of the whole records.
    """
    task_of_node = np.zeros(len(partition.tree), np.int32)
    for task, numbers in enumerate(partition.tasks):
        task_of_node[list(numbers)] = task
    keys = keys_for_partitions(len(partition.tasks))
    send = _SendBlocks(partition.tree.descent(), task_of_node, keys, criteria)
    sent = map_batches(records.parcels, send, _SENT_SCHEMA)
    return sent.repartition(len(partition.tasks), _TASK_KEY)


def keys_for_partitions(partitions: int) -> npt.NDArray[np.int32]:
    """Return, for each partition, an integer that Spark's hash partitioning sends there.

    ``repartition(n, column)`` puts a row into partition ``pmod(hash(column), n)``; with plain block
    numbers some tasks would get several blocks and others none.

    Parameters
    ----------
    partitions : int
        At least 1.

    Returns
    -------
    int32 ndarray of shape (partitions,)
    """
    keys = np.full(partitions, -1, np.int32)
    start, step = 0, max(1024, 8 * partitions)
    while (keys < 0).any():
        candidates = np.arange(start, start + step, dtype=np.int32)
        targets = _murmur3(candidates).astype(np.int64) % partitions
        # The first candidate of each partition, whatever the order of assignment.
        found, first = np.unique(targets, return_index=True)
        new = keys[found] < 0
        keys[found[new]] = candidates[first[new]]
        start += step
    return keys


def _murmur3(values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return Spark's ``hash`` of integers: Murmur3 x86 32 bit with seed 42."""
    unsigned = np.uint32
    with np.errstate(over="ignore"):
        mixed = values.astype(unsigned) * unsigned(0xCC9E2D51)
        mixed = (mixed << unsigned(15)) | (mixed >> unsigned(17))
        state = unsigned(42) ^ (mixed * unsigned(0x1B873593))
        state = (state << unsigned(13)) | (state >> unsigned(19))
        state = state * unsigned(5) + unsigned(0xE6546B64)
        state ^= unsigned(4)
        state ^= state >> unsigned(16)
        state *= unsigned(0x85EBCA6B)
        state ^= state >> unsigned(13)
        state *= unsigned(0xC2B2AE35)
        state ^= state >> unsigned(16)
    return state.view(np.int32)
