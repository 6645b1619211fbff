"""Classes of one release that are unions of groups that no release divides (docs/recipients.md).

No configuration names this model: a plan creates it for the releases of its recipients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.columns import ATOM, code_column, quasi_identifier_column
from anonspark.core.criteria import Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.tasks import Batches
from anonspark.kernels.atom_merging import merge_atoms_of_leaves
from anonspark.kernels.criteria import Requirements
from anonspark.kernels.merging import name_groups_of_leaves
from anonspark.kernels.mondrian import cut_into_groups
from anonspark.kernels.paths import root_path
from anonspark.layers.outliers.separation import OutlierSeparation
from anonspark.layers.partition.distribution import (
    Addressed,
    partition_records,
    received_records,
    send_records,
    send_to_tasks,
)
from anonspark.layers.partition.growing import CutRule
from anonspark.layers.partition.median_cut import MedianCut
from anonspark.layers.partition.node import Leaf
from anonspark.models.blockwise import (
    Block,
    BlockwiseModel,
    FinishBlocks,
    FormGroups,
    GroupFormer,
    Groups,
)
from anonspark.models.model import RESULT, Anonymized, Round, Task
from anonspark.staged.keys import is_coded
from anonspark.staged.records import PACKED, PackRecords, Records


@dataclass(frozen=True)
class MidpointAxis(QuasiIdentifier):
    """A quasi-identifier that has positions alone: midpoints of atoms.

    ``of_values`` is the unit of the quasi-identifier itself, by which widths are compared.
    """

    of_values: float = 1.0

    @property
    def unit(self) -> float:
        """Difference of positions that counts as 1: that of the values."""
        return self.of_values

    @classmethod
    def of(cls, identifier: QuasiIdentifier) -> MidpointAxis:
        """Return the axis of the midpoints of a quasi-identifier."""
        last = identifier.missing_code if identifier.has_missing else identifier.highest
        ends = identifier.positions(np.array([identifier.lowest, last], np.int64))
        axis = cls(identifier.name, "float", pa.float64(), 0, 0, of_values=identifier.unit)
        low, high = axis.encode(pa.array(ends)).tolist()
        return cls(identifier.name, "float", pa.float64(), low, high, of_values=identifier.unit)


def value_code_column(index: int) -> str:
    """Return the column of the codes of a record's values, while midpoints replace these."""
    return f"own_{index}"


def at_midpoints(
    records: Records, quasi_identifiers: Sequence[QuasiIdentifier], tasks: int
) -> Records:
    """Replace the quasi-identifiers of records by the midpoints of their atoms' boxes. Lazy.

    The records have :data:`~anonspark.core.columns.ATOM`, and the result is of
    :class:`MidpointAxis`, for :func:`back_from_midpoints`. The atoms are divided among ``tasks``.
    One shuffle of the whole records.
    """
    d = len(quasi_identifiers)
    name_of = code_column if is_coded(records.schema) else quasi_identifier_column
    raw = {name_of(index) for index in range(d)}
    others = [field for field in records.schema if field.name not in raw]
    schema = pa.schema(
        [
            *((quasi_identifier_column(index), pa.float64()) for index in range(d)),
            *((value_code_column(index), pa.int64()) for index in range(d)),
            *others,
        ]
    )
    sent = send_records(records, _AtomTasks(tasks), tasks)
    return Records(sent.map_batches(_Move(tuple(quasi_identifiers), schema), PACKED), schema)


def back_from_midpoints(records: pa.Table, d: int) -> pa.Table:
    """Return received records with the codes of their values instead of midpoints."""
    others = records.drop_columns([code_column(index) for index in range(d)])
    names = {value_code_column(index): code_column(index) for index in range(d)}
    return others.rename_columns([names.get(name, name) for name in others.column_names])


@dataclass(frozen=True)
class _AtomTasks:
    """Sends all records of an atom to one task. Names of atoms are mixed, so that all get some."""

    tasks: int

    def __call__(self, records: pa.Table, first: int) -> Addressed:  # noqa: ARG002 - not by place
        atoms = records.column(ATOM).to_numpy().view(np.uint64)
        return Addressed(records, (atoms % np.uint64(self.tasks)).astype(np.int64))


@dataclass(frozen=True)
class _Move:
    """Packs a task's records with the midpoints of their atoms, and the codes of their values."""

    quasi_identifiers: tuple[QuasiIdentifier, ...]
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        return PackRecords()(self._moved(batches))

    def _moved(self, batches: Batches) -> Batches:
        """Yield the records of a task at the midpoints of their atoms' boxes."""
        records = received_records(batches)
        if records is None:
            return
        coded = is_coded(records.schema)
        _, of_records, sizes = np.unique(
            records.column(ATOM).to_numpy(), return_inverse=True, return_counts=True
        )
        order = np.argsort(of_records, kind="stable")
        starts = np.cumsum(sizes) - sizes
        middles, codes = [], []
        for index, identifier in enumerate(self.quasi_identifiers):
            name = code_column(index) if coded else quasi_identifier_column(index)
            column = records.column(name).combine_chunks()
            coded_values = (
                column.to_numpy().astype(np.int64) if coded else identifier.encode(column)
            )
            in_order = coded_values[order]
            low = identifier.positions(np.minimum.reduceat(in_order, starts))
            high = identifier.positions(np.maximum.reduceat(in_order, starts))
            codes.append(pa.array(coded_values))
            middles.append(pa.array((low + (high - low) / 2)[of_records]))
        others = [records.column(field.name) for field in list(self.schema)[2 * len(codes) :]]
        moved = pa.Table.from_arrays([*middles, *codes, *others], schema=self.schema)
        yield from moved.combine_chunks().to_batches()


LEAF_SIZES = 16
"""A leaf of the tree over atoms has so many times k records at least. With 4, 8, 32 and 64 a
release of Adult lost 8 and 3% more, 2 and 3% less. The work grows with it."""

Codes = npt.NDArray[np.int64]
Positions = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Boxes:
    """The boxes of atoms.

    ``names`` (int64, shape (a,), ascending) are those of the atoms, ``of_records`` (n,) the index
    of each record's atom in them, ``low`` and ``high`` (float64, (a, d)) the ends of the boxes, and
    ``sizes`` (a,) their records. ``middles`` (a, d) are the positions of atoms in a tree, or None
    for the middles of their boxes.
    """

    names: Codes
    of_records: Codes
    low: Positions
    high: Positions
    sizes: Codes
    middles: Positions | None = None

    @classmethod
    def of(cls, atoms: Codes, positions: Positions) -> Boxes:
        """Return the boxes of the atoms of some records.

        >>> boxes = Boxes.of(np.array([7, 5, 7]), np.array([[1.0], [4.0], [3.0]]))
        >>> boxes.names.tolist(), boxes.low.tolist(), boxes.high.tolist(), boxes.midpoints.tolist()
        ([5, 7], [[4.0], [1.0]], [[4.0], [3.0]], [[4.0], [2.0]])
        """
        names, of_records, sizes = np.unique(atoms, return_inverse=True, return_counts=True)
        order = np.argsort(of_records, kind="stable")
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        of_atoms = positions[order]
        low = np.minimum.reduceat(of_atoms, starts, axis=0)
        high = np.maximum.reduceat(of_atoms, starts, axis=0)
        return cls(names, of_records.astype(np.int64, copy=False), low, high, sizes)

    @property
    def midpoints(self) -> Positions:
        """The position of each atom in a tree: the middle of its box, unless others are set."""
        if self.middles is not None:
            return self.middles
        return self.low + (self.high - self.low) / 2


@dataclass(frozen=True)
class AtomGroups(GroupFormer):
    """Finishes a block of whole atoms: a tree over their midpoints, then clusters in each leaf.

    Both sides of a cut of the tree satisfy ``leaf_criteria``.
    """

    leaf_criteria: Criteria

    def form_groups(self, block: Block) -> Groups:
        """Return classes that are unions of atoms."""
        if block.atoms is None:
            raise ValueError("records without atoms")
        boxes = self.boxes(block)
        order, starts, paths = self._leaves(block, boxes)
        of_records = np.repeat(np.arange(len(paths)), np.diff(starts))
        leaves = np.empty(len(boxes.names), np.int64)
        leaves[boxes.of_records[order]] = of_records
        atoms, sizes, clusters = _clusters(block, boxes, order, leaves)
        names = name_groups_of_leaves(paths, np.bincount(clusters, minlength=len(paths)))
        return Groups(atoms, np.concatenate([[0], np.cumsum(sizes)]), names)

    def _of_leaves(self, requirements: Requirements) -> Requirements:
        """Return the requirements of the tree's leaves from those of classes."""
        k, units = self.leaf_criteria.k, self.leaf_criteria.units
        requirements = requirements._replace(k=k)
        if units is None:
            return requirements
        # The last one is that about people.
        bounds, certain = requirements.bounds.copy(), requirements.certain.copy()
        bounds[-1, 0], certain[-1] = k, units.of_fewer_than_k
        return requirements._replace(bounds=bounds, certain=certain)

    def boxes(self, block: Block) -> Boxes:
        """Return the boxes of the atoms of a block."""
        if block.atoms is None:
            raise ValueError("records without atoms")
        return Boxes.of(block.atoms, block.positions)

    def _leaves(self, block: Block, boxes: Boxes) -> tuple[Codes, Codes, npt.NDArray[np.uint64]]:
        """Cut the atoms of a block by their midpoints into leaves: order, starts and names."""
        of_boxes = boxes.midpoints
        ranks = np.empty((len(boxes.of_records), of_boxes.shape[1]), np.int64)
        for j in range(of_boxes.shape[1]):
            # Every atom has records, so that the ranks of atoms are those of records.
            ranks[:, j] = np.unique(of_boxes[:, j], return_inverse=True)[1][boxes.of_records]
        midpoints = of_boxes[boxes.of_records]
        requirements = self._of_leaves(block.requirements)
        groups: tuple[Codes, Codes, npt.NDArray[np.uint64]] = cut_into_groups(
            ranks,
            np.ascontiguousarray(midpoints),
            block.units,
            block.atoms,
            block.values,
            block.cell_low,
            block.cell_high,
            np.uint64(block.path),
            requirements,
            False,  # relaxed
            True,  # balanced
            False,  # cell
        )
        return groups


def _clusters(
    block: Block, boxes: Boxes, order: Codes, leaves: Codes
) -> tuple[Codes, Codes, Codes]:
    """Return the records of a block class by class, the sizes of the classes, and their leaves.

    ``order`` (int64, shape (n,)) holds the records leaf by leaf, and ``leaves`` (a,) the leaf of
    each atom.
    """
    d = boxes.low.shape[1]
    bounds = [ends[:, j] for ends in (boxes.high, boxes.low) for j in reversed(range(d))]
    atoms = np.lexsort([boxes.names, boxes.sizes, *bounds, leaves])
    position = np.empty(len(atoms), np.int64)
    position[atoms] = np.arange(len(atoms))
    order = order[np.argsort(position[boxes.of_records[order]], kind="stable")]
    sizes, of_atoms = boxes.sizes[atoms], leaves[atoms]
    clusters = merge_atoms_of_leaves(
        np.ascontiguousarray(boxes.low[atoms]),
        np.ascontiguousarray(boxes.high[atoms]),
        block.units,
        order,
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.searchsorted(of_atoms, np.arange(leaves.max() + 2)).astype(np.int64),
        block.values,
        block.requirements,
    )
    of_records = np.repeat(clusters, sizes)
    numbers, sizes_of_classes = np.unique(of_records, return_counts=True)
    return order[np.argsort(of_records, kind="stable")], sizes_of_classes, of_atoms[numbers]


class MergedAtoms(BlockwiseModel):
    """Merges atoms until all classes satisfy the criteria of one release.

    Every criterion is closed under union, so the records as a whole satisfy them.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)

    def anonymize(self, table: Round) -> Anonymized:
        """Merge the atoms of a table. See :meth:`anonspark.models.model.Model.anonymize`.

        Eager, of tables above ``task_rows``: :func:`at_midpoints`, whose records are kept, and the
        counting passes over them. Lazy: one shuffle of the records and one Python task a block.
        """
        if table.rows <= self.largest_block:
            return super().anonymize(table)
        identifiers = self.task.generalizer.quasi_identifiers
        table.report("boxes of atoms")
        tasks = -(-table.rows // self.task.task_rows)
        return self.finish_moved(table, at_midpoints(table.records, identifiers, tasks))

    def finish_moved(self, table: Round, moved: Records) -> Anonymized:
        """Partition records by a tree over their midpoints, and form classes in its leaves.

        ``moved`` are the records of the table, of :class:`MidpointAxis`, which are persisted until
        the round is finished.
        """
        identifiers, criteria = self.task.generalizer.quasi_identifiers, self.task.criteria
        axes = tuple(map(MidpointAxis.of, identifiers))
        moved = replace(moved, packed=moved.packed.persist())
        try:
            table.report("counting")
            partition = partition_records(
                moved,
                table.rows,
                axes,
                self.leaf_criteria,
                self.cut_rule_of(axes),
                path=int(root_path(self.task.seed % 2**64, table.number)),
                largest_block=self.largest_block,
                task_rows=self.task.task_rows,
            )
        except BaseException:
            moved.packed.unpersist()
            raise
        self.note_large_block(table, partition)
        nothing = (None,) * len(identifiers)
        leaves = {
            # The cells are those of midpoints, and nothing is asked of them.
            leaf.number: replace(leaf, cell_low=nothing, cell_high=nothing)
            for leaf in partition.leaves
        }
        restore = partial(back_from_midpoints, d=len(identifiers))
        blocks = send_to_tasks(moved, partition, criteria)
        finish = FinishBlocks(self.forming(leaves), self.fit, table.number, restore)
        table.report("forming classes")
        return Anonymized(blocks.map_batches(finish, RESULT), release=moved.packed.unpersist)

    def forming(self, leaves: Mapping[int, Leaf]) -> FormGroups:
        """Return what forms classes in the leaves of the tree."""
        return FormGroups(leaves, self.group_former, self.task.generalizer, self.task.criteria)

    @property
    def fit(self) -> OutlierSeparation | None:
        """Return the rule for the records of classes that stay, or None to keep all."""
        return None

    @property
    def leaf_criteria(self) -> Criteria:
        """Return the requirements of both sides of a cut of the tree."""
        criteria = self.task.criteria
        k, units = LEAF_SIZES * criteria.k, criteria.units
        if units is not None:
            units = replace(units, of_fewer_than_k=(k - 1) * units.most_records)
        return replace(criteria, k=k, units=units)

    @property
    def cut_rule(self) -> CutRule:
        """Strict and balanced median cuts, of the widths of the data."""
        return self.cut_rule_of(self.task.generalizer.quasi_identifiers)

    def cut_rule_of(self, axes: Sequence[QuasiIdentifier]) -> CutRule:
        """Return the cut rule over other axes."""
        return MedianCut(axes, self.leaf_criteria, relaxed=False, balanced=True, cell=False)

    @property
    def group_former(self) -> GroupFormer:
        """The tree over midpoints, and clusters in its leaves."""
        return AtomGroups(self.leaf_criteria)
