"""Count on the cluster, and hand every leaf of the tree to one task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.criteria import Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.protocol import TASK, Table
from anonspark.engine.tasks import Batches
from anonspark.layers.partition.bracket_pass import (
    FOREST_COUNTS,
    CountedForest,
    CountForest,
    Outlook,
)
from anonspark.layers.partition.counting import Answer, Counter, Draw, Question
from anonspark.layers.partition.cut_tree import CutTree, Descent
from anonspark.layers.partition.forest import Forest
from anonspark.layers.partition.growing import CutRule, grow
from anonspark.layers.partition.node import Leaf, Node
from anonspark.layers.partition.packing import PACKED_KEYS, SAMPLE, PackedKeys, Sampling
from anonspark.layers.partition.predicting import FEWEST_SAMPLED
from anonspark.layers.partition.unit_criteria import (
    MatchedValues,
    PeopleSplit,
    count_sides,
    match_sides,
)
from anonspark.staged.dictionaries import put_together, worth_dividing
from anonspark.staged.keys import is_coded, key_matrix, with_codes
from anonspark.staged.records import (
    RECORDS,
    Records,
    pack_tables,
    unpack_batches,
    unpack_table,
)

BLOCK = "block"
"""Node number of a record's leaf."""

SENT = pa.schema([(TASK, pa.int32()), (RECORDS, pa.binary())])
"""Packed records and the task that they go to."""

# What a task collects before it sends; larger batches are fewer, but the task has to hold them.
_BYTES_AT_ONCE = 64 * 2**20

# Counts of a task for a forest, over all predicted nodes.
_RESULT_ROWS = 2**17

_COUNTS = pa.schema(
    [
        ("request", pa.int32()),
        *((name, pa.int64()) for name in ("bin", "count", "minimum", "maximum")),
        ("codes", pa.list_(pa.int64())),
    ]
)


@dataclass(frozen=True)
class Partition:
    """A table cut into blocks: the leaves of a tree, from left to right.

    ``tasks`` holds the node numbers of the leaves that each task gets.
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
        yield pa.RecordBatch.from_pydict(counts, schema=_COUNTS)


@dataclass(frozen=True)
class _BlockTasks:
    """Finds each record's block and the task that it goes to."""

    descent: Descent
    task_of_node: npt.NDArray[np.int32]
    criteria: Criteria

    def __call__(self, records: pa.Table, first: int) -> Addressed:
        quasi_identifiers = self.descent.quasi_identifiers
        keys = key_matrix(records, quasi_identifiers, self.criteria, first)
        blocks = self.descent.find_leaves(keys)
        # From here on a record has its codes: no later layer, and no later round, encodes it again.
        records = with_codes(records, keys, quasi_identifiers)
        return Addressed(records.append_column(BLOCK, pa.array(blocks)), self.task_of_node[blocks])


@dataclass(frozen=True)
class Addressed:
    """Records, and the task that each goes to."""

    records: pa.Table
    tasks: npt.NDArray[np.integer]


@dataclass(frozen=True)
class _SendRecords:
    """Packs the records of a task that go to the same one."""

    address: Callable[[pa.Table, int], Addressed]
    tasks: int

    def __call__(self, packed: Batches) -> Batches:
        addressed = (self.address(records, first) for first, records in unpack_batches(packed))
        return pack_by_task(addressed, self.tasks)


def pack_by_task(addressed: Iterable[Addressed], tasks: int) -> Batches:
    """Pack records, of one schema, that go to the same of so many tasks, as :data:`SENT`."""
    waiting: list[Addressed] = []
    size = 0
    for part in addressed:
        if not len(part.records):
            continue
        waiting.append(part)
        size += part.records.nbytes
        if size >= _BYTES_AT_ONCE:
            yield _packed(waiting, tasks)
            waiting, size = [], 0
    if waiting:
        yield _packed(waiting, tasks)


def _packed(addressed: Sequence[Addressed], tasks: int) -> pa.RecordBatch:
    records = put_together([part.records for part in addressed])
    numbers = np.concatenate([part.tasks for part in addressed])
    # NumPy sorts numbers of 16 bits many times faster.
    fits = tasks <= np.iinfo(np.uint16).max
    order = np.argsort(numbers.astype(np.uint16) if fits else numbers, kind="stable")
    present, starts = np.unique(numbers[order], return_index=True)
    records = worth_dividing(records.take(pa.array(order)), len(present))
    ends = np.append(starts[1:], len(order))
    packed = pack_tables(
        records.slice(start, end - start)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    )
    arrays = [pa.array(present.astype(np.int32)), packed]
    return pa.RecordBatch.from_arrays(arrays, schema=SENT)


def send_records(
    records: Records, address: Callable[[pa.Table, int], Addressed], tasks: int
) -> Table:
    """Shuffle records to the tasks that a function names, for :func:`received_records`. Lazy.

    ``address`` takes the records of a batch and the number of the first one. One shuffle of the
    whole records.
    """
    return records.packed.repartition(_SendRecords(address, tasks), SENT, tasks)


def received_records(batches: Batches) -> pa.Table | None:
    """Return the records that were sent to a task, each column in one chunk, or None without any.

    If :func:`send_to_tasks` sent them, their block is in column :data:`BLOCK`.
    """
    tables = list(received_tables(batches))
    return put_together(tables) if tables else None


def received_tables(batches: Batches) -> Iterator[pa.Table]:
    """Unpack what was sent to a task, as :func:`pack_by_task` packed it."""
    for batch in batches:
        yield from map(unpack_table, batch.column(RECORDS).drop_null())


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

    ``records`` are read once: only quasi-identifiers, hash and the sensitive attributes of
    criteria. ``path`` is the name of the root. Nodes of at most ``largest_block`` records are not
    cut, and a node that cannot be cut stays one block, however large. Blocks of up to ``task_rows``
    records together share a task.

    No job at all if ``rows <= largest_block``. Otherwise one job per counting pass, each with one
    shuffle of some 100,000 counts, which are collected. With criteria beyond k, one count more for
    each sensitive value of each waiting node. The driver also collects the keys (codes, sensitive
    values, and hashes if cuts compare them) of a sample, see :class:`.Sampling`, and in each pass
    for predicted cuts those of at most about ``MOST_HANDED_BACK`` records. Models that choose among
    vantage points also collect those of some thousand records a node. Until the passes are done the
    executors keep 1 to 8 bytes for each key of each record, in memory or on disk.
    """
    is_cut = rows > largest_block
    sampling = _sampling(rows, path) if is_cut else None
    keys = PackedKeys(
        quasi_identifiers, criteria, rule.breaks_ties, is_coded(records.schema), sampling
    )
    packed = records.packed.map_batches(keys.pack, PACKED_KEYS)
    tree = CutTree(quasi_identifiers)
    root = _root(quasi_identifiers, rows, path)
    if is_cut:
        packed = packed.persist()
    counting = _Counting(packed, keys)
    try:
        foresight = None
        if sampling is not None:
            foresight = rule.foresight(counting.outlook(largest_block))
        leaves = grow(
            tree,
            root,
            rule,
            largest_leaf=largest_block,
            count=counting.count,
            foresight=foresight,
        )
    finally:
        packed.unpersist()
    return Partition(tree, tuple(leaves), _pack(leaves, task_rows))


def _sampling(rows: int, salt: int) -> Sampling | None:
    """Return how to draw a sample, or None if it would be too small."""
    sampling = Sampling(rows, salt)
    return sampling if sampling.expected >= FEWEST_SAMPLED else None


def _root(quasi_identifiers: tuple[QuasiIdentifier, ...], rows: int, path: int) -> Node:
    """Return the node of all records, with the bounds of every quasi-identifier."""
    cells = [identifier.root_cell for identifier in quasi_identifiers]
    return Node(
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
        cell_low=tuple(low for low, _ in cells),
        cell_high=tuple(high for _, high in cells),
    )


@dataclass(frozen=True)
class _Counting:
    """The jobs that count records packed by ``keys``."""

    packed: Table
    keys: PackedKeys

    def count(self, tree: CutTree, questions: Sequence[Question]) -> list[Answer]:
        """Answer questions: by one pass over all records, and one for each kind about people."""
        splits = [question for question in questions if isinstance(question, PeopleSplit)]
        matches = [question for question in questions if isinstance(question, MatchedValues)]
        others = [item for item in questions if not isinstance(item, PeopleSplit | MatchedValues)]
        where = self.packed, self.keys, tree.descent()
        of_kind: dict[type, Iterator[Answer]] = {
            PeopleSplit: iter(count_sides(*where, splits)),
            MatchedValues: iter(match_sides(*where, matches)),
        }
        counted = iter(self._count(tree, others) if others else [])
        return [next(of_kind.get(type(question), counted)) for question in questions]

    def _count(self, tree: CutTree, questions: Sequence[Question]) -> list[Answer]:
        counter = Counter(tree, questions)
        counts = (
            self.packed.map_batches(_CountRecords(counter, self.keys), _COUNTS)
            .aggregate(
                ["request", "bin"], sums=["count"], least=["minimum", "codes"], most=["maximum"]
            )
            .collect()
        )
        return counter.answers({name: counts[name].to_numpy() for name in counts.column_names})

    def count_forest(
        self, tree: CutTree, forest: Forest, draws: Sequence[Draw] = ()
    ) -> CountedForest:
        """Count the records of a forest by one pass over all records, and draw on the way."""
        values = int(self.keys.criteria.first_value[-1])
        arrays = forest.arrays(len(tree), len(self.keys.quasi_identifiers))
        task = CountForest(tree.descent(), arrays, self.keys, values, draws)
        counts = (
            self.packed.map_batches(task, FOREST_COUNTS)
            .aggregate(
                ["node", "item"], sums=["count"], least=["minimum", "records"], most=["maximum"]
            )
            .collect()
        )
        return CountedForest(forest, self.keys, values, counts, len(draws))

    def outlook(self, largest_leaf: int) -> Outlook:
        """Fetch the sample, by the job that packs the keys."""
        packed = self.packed.select([SAMPLE]).collect()[SAMPLE].drop_null().to_pylist()
        columns, sampled = self.keys.unpack_records(packed)
        d, values = len(self.keys.quasi_identifiers), int(self.keys.criteria.first_value[-1])
        most_nodes = _RESULT_ROWS // (2 + d + values)
        return Outlook(columns, sampled, largest_leaf, most_nodes, self.count_forest)


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


def send_to_tasks(records: Records, partition: Partition, criteria: Criteria) -> Table:
    """Shuffle records so that every task holds its blocks whole, and nothing else. Lazy.

    For :func:`received_records`. One shuffle of the whole records.
    """
    task_of_node = np.zeros(len(partition.tree), np.int32)
    for task, numbers in enumerate(partition.tasks):
        task_of_node[list(numbers)] = task
    address = _BlockTasks(partition.tree.descent(), task_of_node, criteria)
    return send_records(records, address, len(partition.tasks))
