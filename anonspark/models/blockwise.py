"""Models that cut a table into blocks on the cluster and finish each block in one task."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.config.models import RoundOptions
from anonspark.core.columns import (
    ATOM,
    CLASS_ID,
    PENALTY,
    Part,
)
from anonspark.core.criteria import Criteria
from anonspark.core.units import paired
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.kernels.canonical_order import sort_groups
from anonspark.kernels.criteria import Requirements
from anonspark.kernels.paths import root_path
from anonspark.layers.generalize.classes import ClassFigures, Generalizer
from anonspark.layers.generalize.figures import exact_sums
from anonspark.layers.outliers.separation import (
    GroupedRecords,
    OutlierSeparation,
    PayingSeparation,
    PublishedSeparation,
)
from anonspark.layers.partition.distribution import (
    BLOCK,
    Partition,
    partition_records,
    received_records,
    send_to_tasks,
)
from anonspark.layers.partition.growing import CutRule
from anonspark.layers.partition.node import Leaf
from anonspark.models.model import (
    RESULT,
    Anonymized,
    Model,
    Round,
    Task,
    WholeGroups,
    class_batch,
    finished_schema,
    result_batch,
)
from anonspark.staged.keys import coded_schema, key_matrix
from anonspark.staged.records import BATCH_BYTES, Packer

_MEASURED = pa.schema([(PENALTY, pa.decimal128(38, 15))])

# How many times as large as usual a block is that is worth a warning.
_LARGE = 4

Codes = npt.NDArray[np.int64]
Positions = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Block:
    """The records of one leaf of the distributed tree.

    Parameters
    ----------
    codes : int64 ndarray of shape (n, d)
        Codes of the quasi-identifiers.
    positions : float64 ndarray of shape (n, d)
        Their positions on the real line.
    normalized : float64 ndarray of shape (n, d)
        The same, min-max normalized and weighted, for distances.
    units : float64 ndarray of shape (d,)
        Difference of positions that counts as 1.
    hashes : int64 ndarray of shape (n,)
        Keyed hash of each record.
    values : int64 ndarray of shape (n, s)
        Number of each record's sensitive values, and of whom it is about where people are counted.
    requirements : Requirements
        What groups have to satisfy, for these values.
    cell_low, cell_high : float64 ndarray of shape (d,)
        Bounds of the leaf's cell.
    path : int
        The leaf's name.
    atoms : int64 ndarray of shape (n,) or None
        The group of each record that no release divides, where there are such.
    """

    codes: Codes
    positions: Positions
    normalized: Positions
    units: Positions
    hashes: Codes
    values: Codes
    requirements: Requirements
    cell_low: Positions
    cell_high: Positions
    path: int
    atoms: Codes | None = None


@dataclass(frozen=True)
class Groups:
    """A block's records, group by group.

    Parameters
    ----------
    order : int64 ndarray of shape (n,)
        Records of the block.
    starts : int64 ndarray of shape (groups + 1,)
        Where each group begins in ``order``.
    paths : uint64 ndarray of shape (groups,)
        Name of each group.
    """

    order: Codes
    starts: Codes
    paths: npt.NDArray[np.uint64]


class GroupFormer:
    """Finishes a block in a task; travels to the workers, so it holds plain values only."""

    @abstractmethod
    def form_groups(self, block: Block) -> Groups:
        """Return groups that satisfy the criteria, the same for any order of the records.

        The block as a whole satisfies them.
        """


class BlockwiseModel(Model):
    """Base of models whose layer 2 is a distributed tree and whose layers 3 and 5 are common.

    Parameters
    ----------
    task : Task
        What every model is told.
    options : RoundOptions or None
        How outliers are told from normal records; None keeps all groups whole.
    """

    def __init__(self, task: Task, options: RoundOptions | None = None) -> None:
        self.task = task
        self._round_options = options if options and options.handles_outliers else None

    @property
    def rounds(self) -> int:
        """Rounds at most; 1 where outliers are not handled."""
        return self._round_options.rho if self._round_options else 1

    @property
    def minimum_gain(self) -> float:
        """Relative gain below which a round is the last one; 0 for never."""
        return self._round_options.minimum_gain if self._round_options else 0.0

    @property
    def undoes_rounds(self) -> bool:
        """Whether a round that does not lower the loss is undone."""
        return self._round_options is not None and self._round_options.separation == "paying"

    @property
    def largest_block(self) -> int:
        """Records of the largest node that is not cut on the cluster."""
        return self.task.task_rows

    @property
    @abstractmethod
    def cut_rule(self) -> CutRule:
        """How nodes too large for a task are cut on the cluster."""

    @property
    @abstractmethod
    def group_former(self) -> GroupFormer:
        """How a task finishes a block."""

    def left_over_schema(self, records: pa.Schema) -> pa.Schema:
        """Return the schema of the records that a round leaves over: with codes, not raw values."""
        return coded_schema(records, self.task.generalizer.quasi_identifiers)

    def anonymize(self, table: Round) -> Anonymized:
        """Anonymize one round's table; see :meth:`Model.anonymize`.

        Notes
        -----
        Eager: the counting passes of :func:`partition_records`, and where rounds have to pay, one
        job in round 1 that forms the groups and adds up what they lose. Lazy: one shuffle of the
        records and one Python task a block.
        """
        generalizer = self.task.generalizer
        quasi_identifiers = generalizer.quasi_identifiers
        path = int(root_path(self.task.seed % 2**64, table.number))
        table.tell("counting")
        partition = partition_records(
            table.records,
            table.rows,
            tuple(one.of_round(table.number) for one in quasi_identifiers),
            self.task.criteria,
            self.cut_rule,
            path=path,
            largest_block=self.largest_block,
            task_rows=self.task.task_rows,
        )
        self.note_large_block(table, partition)
        forming = FormGroups(
            {leaf.number: leaf for leaf in partition.leaves},
            self.group_former,
            generalizer,
            self.task.criteria,
        )
        blocks = send_to_tasks(table.records, partition, self.task.criteria)
        if self._needs_price(table):
            blocks = blocks.persist()
        try:
            price = self._price(table, blocks, forming)
        except BaseException:
            blocks.unpersist()
            raise
        separation = None if table.last else self.separation(price)
        finish = FinishBlocks(forming, separation, table.number)
        table.tell("forming classes")
        return Anonymized(blocks.map_batches(finish, RESULT), release=blocks.unpersist)

    def note_large_block(self, table: Round, partition: Partition) -> None:
        """Say how many records the largest block has, if one task takes far more than usual."""
        rows = max((leaf.rows for leaf in partition.leaves), default=0)
        if rows > _LARGE * self.largest_block:
            table.note_block(rows)

    def _needs_price(self, table: Round) -> bool:
        """Return whether groups are formed twice, of records that are kept meanwhile."""
        return self.undoes_rounds and not table.last and table.mean_penalty is None

    def _price(self, table: Round, blocks: Table, forming: FormGroups) -> float:
        """Return what a record loses on average in the groups of round 1; 0 where nobody asks."""
        if not self._needs_price(table):
            return float(table.mean_penalty or 0)
        table.tell("measuring whole groups")
        measured = blocks.map_batches(_MeasureGroups(forming), _MEASURED)
        (penalty,) = measured.aggregate([], sums=[PENALTY]).collect()[PENALTY].to_pylist()
        return float(penalty / table.rows)

    def separation(self, price: float) -> OutlierSeparation | None:
        """Return how a round tells the records that its groups keep; None where all are kept.

        Parameters
        ----------
        price : float
            What a record loses on average in the groups of round 1, kept whole.
        """
        options = self._round_options
        if options is None:
            return None
        neighbors = options.lof_neighbors or max(self.task.criteria.k - 1, 1)
        by_density = options.reference == "density"
        if options.separation == "always":
            return PublishedSeparation(neighbors, by_density)
        quasi_identifiers = self.task.generalizer.quasi_identifiers
        return PayingSeparation(neighbors, by_density, quasi_identifiers, price)


@dataclass(frozen=True)
class Contents:
    """What the kernels need of all records of one task; see :class:`Block`."""

    codes: Codes
    positions: Positions
    normalized: Positions
    hashes: Codes
    values: Codes
    requirements: Requirements
    atoms: Codes | None = None

    def take(self, rows: Codes) -> Contents:
        """Return those of some records."""
        return Contents(
            self.codes[rows],
            self.positions[rows],
            self.normalized[rows],
            self.hashes[rows],
            self.values[rows],
            self.requirements,
            None if self.atoms is None else self.atoms[rows],
        )

    def grouped(self, order: Codes, starts: Codes) -> GroupedRecords:
        """Return groups, which begin at ``starts``, and sort each in ``order`` canonically."""
        sort_groups(self.codes, self.hashes, order, starts)
        own = self.codes, self.normalized, self.values
        return GroupedRecords(*own, order, starts, self.requirements)


@dataclass(frozen=True)
class FormGroups:
    """The rest of layer 2 for all blocks of one task, in a Python worker."""

    leaves: Mapping[int, Leaf]
    group_former: GroupFormer
    generalizer: Generalizer
    criteria: Criteria
    widens: ClassVar[bool] = False
    """Whether classes are published as more than what their records need."""

    def contents(self, records: pa.Table) -> Contents:
        """Decode what the kernels need of the records of a task."""
        quasi_identifiers = self.generalizer.quasi_identifiers
        d = len(quasi_identifiers)
        keys = key_matrix(records, quasi_identifiers, self.criteria)
        values, pairs = np.ascontiguousarray(keys[:, d + 2 :]), None
        if self.criteria.units is not None:
            values, pairs = paired(values)
        contents = Contents(
            codes=np.ascontiguousarray(keys[:, :d]),
            positions=np.empty((len(keys), d), np.float64),
            normalized=np.empty((len(keys), d), np.float64),
            hashes=np.ascontiguousarray(keys[:, d]),
            values=values,
            requirements=self.criteria.requirements_among(pairs),
            atoms=records.column(ATOM).to_numpy().copy() if ATOM in records.column_names else None,
        )
        for j, quasi_identifier in enumerate(quasi_identifiers):
            positions = quasi_identifier.positions(keys[:, j])
            contents.positions[:, j] = positions
            contents.normalized[:, j] = quasi_identifier.normalized(positions)
        return contents

    def groups(
        self, contents: Contents, blocks: npt.NDArray[np.integer]
    ) -> Iterator[tuple[Codes, Groups]]:
        """Yield, block by block, the groups, and their records in any order in each."""
        for number in np.unique(blocks):
            rows = np.flatnonzero(blocks == number)
            # Of a task's only block nothing is copied.
            own = contents if len(rows) == len(blocks) else contents.take(rows)
            groups = self._groups_of(self.leaves[int(number)], own)
            yield rows[groups.order], groups

    def published(
        self, contents: Contents, order: Codes, starts: Codes
    ) -> tuple[list[pa.Array], ClassFigures]:
        """Return what is published of classes, and their figures.

        Parameters
        ----------
        contents : Contents
        order : int64 ndarray of shape (n,)
            Records, class by class.
        starts : int64 ndarray of shape (classes + 1,)
        """
        return self.generalizer.generalize(contents.codes[order], starts)

    def _groups_of(self, leaf: Leaf, contents: Contents) -> Groups:
        quasi_identifiers = self.generalizer.quasi_identifiers
        low, high = contents.positions.min(axis=0), contents.positions.max(axis=0)
        for j, quasi_identifier in enumerate(quasi_identifiers):
            for bounds, bound in ((low, leaf.cell_low[j]), (high, leaf.cell_high[j])):
                if bound is not None:
                    bounds[j] = quasi_identifier.positions(np.array([bound], np.int64))[0]
        return self.group_former.form_groups(
            Block(
                codes=contents.codes,
                positions=contents.positions,
                normalized=contents.normalized,
                units=np.array([quasi_identifier.unit for quasi_identifier in quasi_identifiers]),
                hashes=contents.hashes,
                values=contents.values,
                requirements=contents.requirements,
                cell_low=low,
                cell_high=high,
                path=leaf.path,
                atoms=contents.atoms,
            )
        )


@dataclass(frozen=True)
class _MeasureGroups:
    """Sums up what the groups of one task would lose as classes, in a Python worker."""

    forming: FormGroups

    def __call__(self, batches: Batches) -> Batches:
        records = received_records(batches)
        if records is None:
            return
        contents = self.forming.contents(records)
        blocks = records.column(BLOCK).to_numpy()
        penalties = [
            self.forming.generalizer.penalty(contents.codes[order], groups.starts)
            for order, groups in self.forming.groups(contents, blocks)
        ]
        sums = pa.array(exact_sums(np.concatenate(penalties)), pa.decimal128(38, 15))
        yield pa.RecordBatch.from_arrays([sums], schema=_MEASURED)


@dataclass(frozen=True)
class FinishBlocks:
    """Layers 2 (the rest of the tree), 3 and 5 for all blocks of one task, in a Python worker.

    Parameters
    ----------
    forming : FormGroups
    separation : OutlierSeparation or None
        None keeps all groups whole.
    number : int
        The round.
    restore : callable or None
        Gives received records their own values back, where others brought them here.
    """

    forming: FormGroups
    separation: OutlierSeparation | None
    number: int
    restore: Callable[[pa.Table], pa.Table] | None = None

    def __call__(self, batches: Batches) -> Batches:
        """Yield the batches of a round's result."""
        records = received_records(batches)
        if records is None:
            return
        if self.restore is not None:
            records = self.restore(records)
        contents = self.forming.contents(records)
        generalizer = self.forming.generalizer
        blocks = records.column(BLOCK).to_numpy()
        are_whole = self.separation is None and not self.forming.widens
        kept, classes, groups_of, penalties, left_over = [], [], [], [], []
        for order, groups in self.forming.groups(contents, blocks):
            if self.separation is None:
                normal = np.ones(len(order), bool)
            else:
                normal = self.separation.normal_records(contents.grouped(order, groups.starts))
            kept.append(order[normal])
            classes.append(np.add.reduceat(normal, groups.starts[:-1], dtype=np.int64))
            groups_of.append(groups)
            if not are_whole:
                penalties.append(generalizer.penalty(contents.codes[order], groups.starts))
            left_over.append(order[~normal])

        records = records.drop_columns(BLOCK)
        packer = Packer()
        order, sizes = np.concatenate(kept), np.concatenate(classes)
        # A group of which nothing stays is no class.
        stays = sizes > 0
        sizes = sizes[stays]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        paths = np.concatenate([groups.paths for groups in groups_of])[stays]
        if not len(order):
            yield from self._packed(packer, Part.LEFT_OVER, records, np.concatenate(left_over))
            return
        published, figures = self.forming.published(contents, order, starts)
        own = [name for name in finished_schema(records.schema).names if name != CLASS_ID]
        names = np.repeat(paths.view(np.int64), sizes)
        yield from self._packed(packer, Part.FINISHED, records.select(own), order, names)
        whole = None
        if not are_whole:
            group_sizes = np.concatenate([np.diff(groups.starts) for groups in groups_of])
            whole = WholeGroups(group_sizes[stays], np.concatenate(penalties)[stays])
        weights = [one.weight for one in generalizer.quasi_identifiers]
        identifiers = pa.array(paths.view(np.int64))
        yield class_batch(packer, self.number, identifiers, figures, published, weights, whole)
        yield from self._packed(packer, Part.LEFT_OVER, records, np.concatenate(left_over))

    def _packed(
        self,
        packer: Packer,
        part: Part,
        records: pa.Table,
        order: Codes,
        names: Codes | None = None,
    ) -> Batches:
        """Yield batches of some records, with the names of their classes if they have any."""
        # Not of all at once: of them is a copy.
        step = max(BATCH_BYTES * len(records) // max(records.nbytes, 1), 1)
        for start in range(0, len(order), step):
            taken = records.take(pa.array(order[start : start + step]))
            if names is not None:
                taken = taken.add_column(0, CLASS_ID, pa.array(names[start : start + step]))
            yield result_batch(part, packer.pack(taken))
