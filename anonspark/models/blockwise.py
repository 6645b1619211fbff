"""Models that cut a table into blocks on the cluster and finish each block in one task."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.config.models import CuttingOptions, RoundOptions
from anonspark.core.columns import (
    ATOM,
    CLASS_ID,
    PENALTY,
    RECORD_LOSS,
    Part,
)
from anonspark.core.criteria import Criteria, paired
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.kernels.canonical_order import sort_groups
from anonspark.kernels.criteria import Requirements
from anonspark.kernels.paths import root_path
from anonspark.layers.generalize.classes import ClassFigures, Generalizer
from anonspark.layers.generalize.figures import exact_sums, losses_of_records
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
    Suppressed,
    Task,
    WholeGroups,
    class_batch,
    finished_schema,
    result_batch,
    sums_of_classes,
)
from anonspark.staged.keys import coded_schema, key_matrix, normalized_positions, positions_of
from anonspark.staged.records import BATCH_BYTES, RECORDS, Packer, Records

# Fields of :class:`Groups` as they travel. No task holds 2^32 records.
_PARTS = {"order": np.uint32, "starts": np.int64, "paths": np.uint64}

_FORMED = pa.schema(
    [
        (RECORDS, pa.binary()),
        *((name, pa.binary()) for name in _PARTS),
        (PENALTY, pa.decimal128(38, 15)),
    ]
)
"""The packed records that a task was sent. One row more holds their groups, and the penalty of
these as classes. Before it is one of the refined groups, where there are such."""

# How many times as large as usual a block is that is worth a warning.
_LARGE = 4

Codes = npt.NDArray[np.int64]
Positions = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Contents:
    """The input of the kernels for the records of a task, or of one leaf of the distributed tree.

    ``codes`` (int64, shape (n, d)) are those of the quasi-identifiers, ``hashes`` (n,) the keyed
    hashes of the records, and ``values`` (n, s) the numbers of each record's sensitive values and,
    if people are counted, of its person. Groups must satisfy ``requirements``. ``atoms`` (n,) is
    the group of each record that no release divides, or None without such groups.
    """

    codes: Codes
    hashes: Codes
    values: Codes
    requirements: Requirements
    quasi_identifiers: Sequence[QuasiIdentifier]
    atoms: Codes | None = None

    @cached_property
    def positions(self) -> Positions:
        """Positions of the codes on the real line, of shape (n, d)."""
        return positions_of(self.codes, self.quasi_identifiers)

    @cached_property
    def normalized(self) -> Positions:
        """Positions, min-max normalized and weighted, for distances."""
        return normalized_positions(self.codes, self.quasi_identifiers)

    def take(self, rows: Codes) -> Contents:
        """Return the contents of some records."""
        return replace(
            self,
            codes=self.codes.take(rows, axis=0),
            hashes=self.hashes[rows],
            values=self.values[rows],
            atoms=None if self.atoms is None else self.atoms[rows],
        )

    def grouped(self, order: Codes, starts: Codes) -> GroupedRecords:
        """Return groups, which begin at ``starts``, and sort each in ``order`` canonically."""
        sort_groups(self.codes, self.hashes, order, starts)
        arrays = self.codes, self.normalized, self.values
        return GroupedRecords(*arrays, order, starts, self.requirements)


@dataclass(frozen=True, kw_only=True)
class Block(Contents):
    """The records of one leaf of the distributed tree.

    ``units`` (float64, shape (d,)) are the differences of positions that count as 1, and
    ``cell_low`` and ``cell_high`` the bounds of the leaf's cell. ``path`` is the leaf's name.
    """

    units: Positions
    cell_low: Positions
    cell_high: Positions
    path: int


@dataclass(frozen=True)
class Groups:
    """A block's records, group by group.

    ``order`` (int64, shape (n,)) holds the records, ``starts`` (groups + 1,) where each group
    begins in it, and ``paths`` (uint64, (groups,)) the names of the groups. ``refined`` are groups
    of the same records that lose as little or less if all are kept whole, or None.
    """

    order: Codes
    starts: Codes
    paths: npt.NDArray[np.uint64]
    refined: Groups | None = None

    @classmethod
    def together(cls, groups: Sequence[Groups]) -> Groups:
        """Join the groups of all blocks of a task. Records are numbered across its blocks.

        >>> first = Groups(np.array([1, 0]), np.array([0, 2]), np.array([7], np.uint64))
        >>> second = Groups(np.array([2, 3]), np.array([0, 1, 2]), np.array([8, 9], np.uint64))
        >>> Groups.together([first, second]).starts.tolist()
        [0, 2, 3, 4]
        """
        if len(groups) == 1:
            return groups[0]
        sizes = [np.diff(part.starts) for part in groups]
        refined = [part.refined for part in groups if part.refined is not None]
        return cls(
            np.concatenate([part.order for part in groups]),
            np.concatenate([[0], np.cumsum(np.concatenate(sizes))]),
            np.concatenate([part.paths for part in groups]),
            cls.together(refined) if refined else None,
        )

    def among(self, rows: Codes) -> Groups:
        """Renumber their records: record i becomes ``rows[i]``."""
        refined = None if self.refined is None else self.refined.among(rows)
        return replace(self, order=rows[self.order], refined=refined)

    def between(self, first: int, stop: int) -> Groups:
        """Return the groups from ``first`` to before ``stop``. Records keep their numbers.

        >>> groups = Groups(np.array([4, 2, 3]), np.array([0, 1, 3]), np.array([8, 9], np.uint64))
        >>> groups.between(1, 2).order.tolist()
        [2, 3]
        """
        start, end = self.starts[first], self.starts[stop]
        starts = self.starts[first : stop + 1] - start
        return Groups(self.order[start:end], starts, self.paths[first:stop])

    def packed(self) -> list[bytes]:
        """Return the bytes of the arrays, to send them with records."""
        return [getattr(self, name).astype(kind).tobytes() for name, kind in _PARTS.items()]

    @classmethod
    def sent(cls, batches: Sequence[pa.RecordBatch]) -> Groups | None:
        """Return the groups that were sent with the records of a task, or None if none were."""
        groups = None
        for batch in batches:
            if batch.schema == _FORMED:
                # Refined ones come first.
                for row in batch.select(list(_PARTS)).drop_null().to_pylist():
                    order, *others = (np.frombuffer(row[name], _PARTS[name]) for name in _PARTS)
                    starts, paths = (array.copy() for array in others)
                    groups = cls(order.astype(np.int64), starts, paths, groups)
        return groups


class GroupFormer:
    """Finishes a block in a task. It travels to the workers, so it holds plain values only."""

    @abstractmethod
    def form_groups(self, block: Block) -> Groups:
        """Return groups that satisfy the criteria, the same for any order of the records.

        The block as a whole satisfies them.
        """


class BlockwiseModel(Model):
    """Base of models whose layer 2 is a distributed tree and whose layers 3 and 5 are common.

    ``options`` define how outliers are separated from normal records, and how many records may be
    left out. None keeps all groups whole and leaves none out.
    """

    def __init__(self, task: Task, options: CuttingOptions | None = None) -> None:
        self.task = task
        self._round_options: RoundOptions | None = None
        if isinstance(options, RoundOptions) and options.handles_outliers:
            self._round_options = options
        self._suppression_limit = options.suppression_limit if options else 0.0
        self._formed: dict[int, tuple[Table, FormGroups]] = {}

    @property
    def rounds(self) -> int:
        """Largest number of rounds, 1 if outliers are not handled."""
        return self._round_options.most_rounds if self._round_options else 1

    @property
    def minimum_gain(self) -> float:
        """Relative gain below which a round is the last one, or 0 for never."""
        return self._round_options.minimum_gain if self._round_options else 0.0

    @property
    def undoes_rounds(self) -> bool:
        """Return whether a round that does not lower the loss is undone."""
        return self._round_options is not None and self._round_options.separation == "adaptive"

    @property
    def suppression_limit(self) -> float:
        """Share of the records that may be left out. See :attr:`Model.suppression_limit`."""
        return self._suppression_limit

    def suppress(self, records: Records) -> Suppressed | None:  # noqa: ARG002 - none is published
        """Return None: the records of classes that are left out are not published."""
        return None

    @property
    def largest_block(self) -> int:
        """Records of the largest node that is not cut on the cluster."""
        return self.task.task_rows

    @property
    @abstractmethod
    def cut_rule(self) -> CutRule:
        """Return the rule by which nodes too large for a task are cut on the cluster."""

    @property
    @abstractmethod
    def group_former(self) -> GroupFormer:
        """Return the function by which a task finishes a block."""

    def former_of_round(self, number: int) -> GroupFormer:  # noqa: ARG002
        """Return the function by which a task finishes a block of a round."""
        return self.group_former

    def left_over_schema(self, records: pa.Schema) -> pa.Schema:
        """Return the schema of the records that a round leaves over: with codes, not raw values."""
        return coded_schema(records, self.task.generalizer.quasi_identifiers)

    def anonymize(self, table: Round) -> Anonymized:
        """Anonymize one round's table. See :meth:`Model.anonymize`.

        Eager: the counting passes of :func:`partition_records` and, if rounds must pay off, one job
        in round 1 that forms the groups and sums what they lose. The groups of all rounds stay
        until :meth:`close`, because any round may be run again as the last one. Lazy: one shuffle
        of the records and one Python task a block.
        """
        blocks, forming = self._formed.get(table.number) or self._form(table)
        price = table.price
        if self.undoes_rounds and not table.last and table.number not in self._formed:
            blocks = blocks.map_batches(_MeasureGroups(forming), _FORMED).persist()
            self._formed[table.number] = blocks, forming
        if self.undoes_rounds and not table.last and table.number == 1:
            table.report("measuring whole groups")
            (penalty,) = blocks.aggregate([], sums=[PENALTY]).collect()[PENALTY].to_pylist()
            price = float(penalty / table.rows)
        separation = None if table.last else self.separation(price)
        finish = FinishBlocks(
            forming,
            separation,
            table.number,
            keeps_codes=self.suppression_limit > 0,
            trial=table.trial,
        )
        table.report("forming classes")
        return Anonymized(blocks.map_batches(finish, RESULT), price=price)

    def close(self) -> None:
        """Free the groups of all rounds."""
        for blocks, _ in self._formed.values():
            blocks.unpersist()
        self._formed.clear()

    def _form(self, table: Round) -> tuple[Table, FormGroups]:
        """Send the records of a round to tasks in blocks, and return what groups them there."""
        generalizer = self.task.generalizer
        quasi_identifiers = generalizer.quasi_identifiers
        path = int(root_path(self.task.seed % 2**64, table.number))
        table.report("counting")
        partition = partition_records(
            table.records,
            table.rows,
            tuple(identifier.of_round(table.number) for identifier in quasi_identifiers),
            self.task.criteria,
            self.cut_rule,
            path=path,
            largest_block=self.largest_block,
            task_rows=self.task.task_rows,
        )
        self.note_large_block(table, partition)
        forming = FormGroups(
            {leaf.number: leaf for leaf in partition.leaves},
            self.former_of_round(table.number),
            generalizer,
            self.task.criteria,
        )
        return send_to_tasks(table.records, partition, self.task.criteria), forming

    def note_large_block(self, table: Round, partition: Partition) -> None:
        """Report the records of the largest block, if one task takes far more than usual."""
        rows = max((leaf.rows for leaf in partition.leaves), default=0)
        if rows > _LARGE * self.largest_block:
            table.note_block(rows)

    def separation(self, price: float) -> OutlierSeparation | None:
        """Return how a round finds the records that its groups keep, or None if all are kept.

        ``price`` is what a record loses on average in the groups of round 1, kept whole.
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
class FormGroups:
    """The rest of layer 2 for all blocks of one task, in a Python worker."""

    leaves: Mapping[int, Leaf]
    group_former: GroupFormer
    generalizer: Generalizer
    criteria: Criteria
    widens: ClassVar[bool] = False
    """Whether published classes may be wider than their records need."""

    def contents(self, records: pa.Table) -> Contents:
        """Decode the input of the kernels from the records of a task."""
        quasi_identifiers = self.generalizer.quasi_identifiers
        d = len(quasi_identifiers)
        keys = key_matrix(records, quasi_identifiers, self.criteria)
        values, pairs = np.ascontiguousarray(keys[:, d + 2 :]), None
        if self.criteria.units is not None:
            values, pairs = paired(values)
        return Contents(
            np.ascontiguousarray(keys[:, :d]),
            np.ascontiguousarray(keys[:, d]),
            values,
            self.criteria.requirements_among(pairs),
            quasi_identifiers,
            records.column(ATOM).to_numpy().copy() if ATOM in records.column_names else None,
        )

    def groups(self, contents: Contents, blocks: npt.NDArray[np.integer]) -> Groups:
        """Return the groups of all blocks, their records in any order in each."""
        formed = []
        for number in np.unique(blocks):
            rows = np.flatnonzero(blocks == number)
            # The only block of a task is not copied.
            chosen = contents if len(rows) == len(blocks) else contents.take(rows)
            groups = self._groups_of(self.leaves[int(number)], chosen)
            formed.append(groups.among(rows))
        return Groups.together(formed)

    def published(
        self, contents: Contents, order: Codes, starts: Codes
    ) -> tuple[list[pa.Array], ClassFigures]:
        """Return the published columns of classes, and their figures.

        ``order`` (int64, shape (n,)) holds the records class by class, and ``starts`` where each
        begins.
        """
        return self.generalizer.generalize(contents.codes.take(order, axis=0), starts)

    def _groups_of(self, leaf: Leaf, contents: Contents) -> Groups:
        """Form the groups of a block, whose cell is that of the leaf or else of its records."""
        identifiers = contents.quasi_identifiers
        cell = [
            [
                extreme(codes) if end is None else end
                for codes, end in zip(contents.codes.T, ends, strict=True)
            ]
            for ends, extreme in ((leaf.cell_low, np.min), (leaf.cell_high, np.max))
        ]
        low, high = positions_of(np.array(cell, np.int64), identifiers)
        return self.group_former.form_groups(
            Block(
                *(getattr(contents, item.name) for item in fields(contents)),
                units=np.array([item.unit for item in identifiers]),
                cell_low=low,
                cell_high=high,
                path=leaf.path,
            )
        )


@dataclass(frozen=True)
class _MeasureGroups:
    """Forms the groups of one task, and sums what they would lose, in a Python worker."""

    forming: FormGroups

    def __call__(self, batches: Batches) -> Batches:
        """Yield the records of a task unchanged, then its groups and the sum of their penalties.

        The groups travel with their records, because the job that uses them comes after the one
        that sums penalties. Formed again, they would cost the same time again.
        """
        sent = list(batches)
        records = received_records(iter(sent))
        if records is None:
            return
        contents = self.forming.contents(records)
        groups = self.forming.groups(contents, records.column(BLOCK).to_numpy())
        penalties = self.forming.generalizer.penalty(
            contents.codes.take(groups.order, axis=0), groups.starts
        )
        for batch in sent:
            others = [pa.nulls(len(batch), field.type) for field in list(_FORMED)[1:]]
            yield pa.RecordBatch.from_arrays([batch.column(RECORDS), *others], schema=_FORMED)
        rows = [[None, *groups.packed(), *exact_sums(penalties)]]
        # `Groups.sent` reads refined groups first. They have no penalty: the sum counts each once.
        if groups.refined is not None:
            rows.insert(0, [None, *groups.refined.packed(), None])
        named = [dict(zip(_FORMED.names, row, strict=True)) for row in rows]
        yield pa.RecordBatch.from_pylist(named, schema=_FORMED)


@dataclass(frozen=True)
class FinishBlocks:
    """Layers 2 (the rest of the tree), 3 and 5 for all blocks of one task, in a Python worker.

    ``separation`` is None to keep all groups whole. ``restore`` gives received records their codes
    back, if midpoints brought them here. With ``keeps_codes``, finished records are staged with
    their codes and losses. In a ``trial``, groups that give records up are not finished, see
    :attr:`Round.trial`.
    """

    forming: FormGroups
    separation: OutlierSeparation | None
    number: int
    restore: Callable[[pa.Table], pa.Table] | None = None
    keeps_codes: bool = False
    trial: bool = False

    def __call__(self, batches: Batches) -> Batches:
        """Separate the records of a task, and yield finished ones, classes and those left over."""
        sent = list(batches)
        records = received_records(iter(sent))
        if records is None:
            return
        if self.restore is not None:
            records = self.restore(records)
        contents = self.forming.contents(records)
        groups = Groups.sent(sent)
        if groups is None:
            groups = self.forming.groups(contents, records.column(BLOCK).to_numpy())
        del sent
        classes, left_over, whole = self._separate(contents, groups)
        records = records.drop_columns(BLOCK)
        packer = Packer()
        if len(classes.order) and self.trial and whole is not None:
            sums = sums_of_classes(self._penalties(contents, classes), whole)
            yield result_batch(Part.CLASSES, packer.pack(records.slice(0, 0)), sums)
        elif len(classes.order):
            yield from self._finished(packer, records, contents, classes, whole)
        yield from self._packed(packer, Part.LEFT_OVER, records, left_over)

    def _separate(
        self, contents: Contents, groups: Groups
    ) -> tuple[Groups, Codes, WholeGroups | None]:
        """Return the classes of groups, the records left over, and the groups kept whole.

        The last are None if the classes are whole groups, and no wider than their records need.
        """
        refined = groups.refined or groups
        groups = refined if self.separation is None else groups
        whole = None
        if self.separation is not None or self.forming.widens:
            whole = WholeGroups(np.diff(groups.starts), self._penalties(contents, refined))
        if self.separation is None or whole is None:
            return groups, groups.order[:0], whole
        order, starts = groups.order, groups.starts
        normal = self.separation.normal_records(contents.grouped(order, starts))
        sizes = np.add.reduceat(normal, starts[:-1], dtype=np.int64)
        # A group of which nothing stays is no class.
        stays = sizes > 0
        if groups is refined:
            whole = WholeGroups(whole.sizes[stays], whole.penalties[stays])
        starts = np.concatenate([[0], np.cumsum(sizes[stays])])
        return Groups(order[normal], starts, groups.paths[stays]), order[~normal], whole

    def _penalties(self, contents: Contents, groups: Groups) -> Positions:
        """Return what each group loses as a class."""
        codes = contents.codes.take(groups.order, axis=0)
        return self.forming.generalizer.penalty(codes, groups.starts)

    def _finished(
        self,
        packer: Packer,
        records: pa.Table,
        contents: Contents,
        classes: Groups,
        whole: WholeGroups | None,
    ) -> Batches:
        """Yield batches of the records of classes, and one of the classes."""
        order, starts, names = classes.order, classes.starts, classes.paths.view(np.int64)
        published, figures = self.forming.published(contents, order, starts)
        weights = [item.weight for item in contents.quasi_identifiers]
        columns = [name for name in finished_schema(records.schema).names if name != CLASS_ID]
        finished = records.select(columns)
        sizes = np.diff(starts)
        if self.keeps_codes:
            losses = np.empty(len(records))
            losses[order] = np.repeat(losses_of_records(list(figures.penalties.T), weights), sizes)
            finished = records.append_column(RECORD_LOSS, pa.array(losses))
        yield from self._packed(packer, Part.FINISHED, finished, order, np.repeat(names, sizes))
        yield class_batch(packer, self.number, pa.array(names), figures, published, weights, whole)

    def _packed(
        self,
        packer: Packer,
        part: Part,
        records: pa.Table,
        order: Codes,
        names: Codes | None = None,
    ) -> Batches:
        """Yield batches of some records, with the names of their classes if they have any."""
        # Not all at once, because each batch is a copy.
        step = max(BATCH_BYTES * len(records) // max(records.nbytes, 1), 1)
        for start in range(0, len(order), step):
            taken = records.take(pa.array(order[start : start + step]))
            if names is not None:
                taken = taken.add_column(0, CLASS_ID, pa.array(names[start : start + step]))
            yield result_batch(part, packer.pack(taken))
