"""Models that cut a table into blocks on the cluster and finish each block in one task."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.columns import (
    CLASS_ID,
    PAYLOAD_HASH,
    Part,
    is_payload,
    published_column,
)
from anonspark.generalize.classes import Generalizer
from anonspark.kernels.canonical_order import sort_groups
from anonspark.kernels.paths import root_path
from anonspark.models.model import (
    RESULT,
    Anonymized,
    Model,
    Round,
    Task,
    class_batch,
    result_batch,
)
from anonspark.models.options import RoundOptions
from anonspark.outliers import OutlierSeparation
from anonspark.partition.distribution import (
    BLOCK,
    partition_records,
    received_records,
    send_to_tasks,
)
from anonspark.partition.growing import CutRule, Leaf
from anonspark.privacy.criteria import Criteria
from anonspark.record_keys import key_matrix
from anonspark.records import PARCEL_BYTES, Packer
from anonspark.tasks import Batches, map_batches

__all__ = ["Block", "BlockwiseModel", "GroupFormer", "Groups"]

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
        Number of each record's sensitive values.
    cell_low, cell_high : float64 ndarray of shape (d,)
        Bounds of the leaf's cell.
    path : int
        The leaf's name.
    """

    codes: Codes
    positions: Positions
    normalized: Positions
    units: Positions
    hashes: Codes
    values: Codes
    cell_low: Positions
    cell_high: Positions
    path: int


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
    def largest_block(self) -> int:
        """Records of the largest node that is not cut on the cluster."""
        return self.task.task_rows

    def _separation(self) -> OutlierSeparation | None:
        if self._round_options is None:
            return None
        criteria = self.task.criteria
        return OutlierSeparation(
            criteria,
            self._round_options.lof_neighbors or max(criteria.k - 1, 1),
            by_density=self._round_options.reference == "density",
        )

    @property
    @abstractmethod
    def cut_rule(self) -> CutRule:
        """How nodes too large for a task are cut on the cluster."""

    @property
    @abstractmethod
    def group_former(self) -> GroupFormer:
        """How a task finishes a block."""

    def anonymize(self, table: Round) -> Anonymized:
        """Anonymize one round's table; see :meth:`Model.anonymize`.

        Notes
        -----
        Eager: the counting passes of :func:`partition_records`. Lazy: one shuffle of the records
        and one Python task a block.
        """
        generalizer = self.task.generalizer
        quasi_identifiers = generalizer.quasi_identifiers
        path = int(root_path(self.task.seed % 2**64, table.number))
        table.tell("counting")
        partition = partition_records(
            table.records,
            table.rows,
            quasi_identifiers,
            self.task.criteria,
            self.cut_rule,
            path=path,
            largest_block=self.largest_block,
            task_rows=self.task.task_rows,
        )
        finish = _FinishBlocks(
            {leaf.number: leaf for leaf in partition.leaves},
            self.group_former,
            None if table.last else self._separation(),
            generalizer,
            self.task.criteria,
            table.number,
        )
        blocks = send_to_tasks(table.records, partition, self.task.criteria)
        table.tell("forming classes")
        return Anonymized(map_batches(blocks, finish, RESULT))


@dataclass(frozen=True)
class _Contents:
    """What the kernels need of all records of one task; see :class:`Block`."""

    codes: Codes
    positions: Positions
    normalized: Positions
    hashes: Codes
    values: Codes


@dataclass(frozen=True)
class _FinishBlocks:
    """Layers 2 (the rest of the tree), 3 and 5 for all blocks of one task, in a Python worker."""

    leaves: Mapping[int, Leaf]
    group_former: GroupFormer
    separation: OutlierSeparation | None
    generalizer: Generalizer
    criteria: Criteria
    number: int

    def __call__(self, batches: Batches) -> Batches:
        records = received_records(batches)
        if records is None:
            return
        quasi_identifiers = self.generalizer.quasi_identifiers
        d = len(quasi_identifiers)
        keys = key_matrix(records, quasi_identifiers, self.criteria)
        contents = _Contents(
            codes=np.ascontiguousarray(keys[:, :d]),
            positions=np.empty((len(keys), d), np.float64),
            normalized=np.empty((len(keys), d), np.float64),
            hashes=np.ascontiguousarray(keys[:, d]),
            values=np.ascontiguousarray(keys[:, d + 2 :]),
        )
        for j, quasi_identifier in enumerate(quasi_identifiers):
            positions = quasi_identifier.positions(keys[:, j])
            contents.positions[:, j] = positions
            contents.normalized[:, j] = quasi_identifier.normalized(positions)
        del keys

        blocks = records.column(BLOCK).to_numpy()
        kept, classes, paths, penalties, left_over = [], [], [], [], []
        for number in np.unique(blocks):
            rows = np.flatnonzero(blocks == number)
            groups = self._form_groups(self.leaves[int(number)], rows, contents)
            order = rows[groups.order]
            sort_groups(contents.codes, contents.hashes, order, groups.starts)
            if self.separation is None:
                normal = np.ones(len(order), bool)
            else:
                normal = self.separation.normal_records(
                    contents.codes, contents.normalized, contents.values, order, groups.starts
                )
            kept.append(order[normal])
            classes.append(np.add.reduceat(normal, groups.starts[:-1], dtype=np.int64))
            paths.append(groups.paths)
            penalties.append(self.generalizer.penalty(contents.codes[order], groups.starts))
            left_over.append(order[~normal])

        records = records.drop_columns(BLOCK)
        packer = Packer()
        yield from self._finished(
            packer,
            records,
            contents,
            np.concatenate(kept),
            np.concatenate(classes),
            np.concatenate(paths),
            np.concatenate(penalties),
        )
        yield from self._parcels(packer, Part.LEFT_OVER, records, np.concatenate(left_over))

    def _form_groups(self, leaf: Leaf, rows: Codes, contents: _Contents) -> Groups:
        quasi_identifiers = self.generalizer.quasi_identifiers
        own = contents.positions[rows]
        low, high = own.min(axis=0), own.max(axis=0)
        for j, quasi_identifier in enumerate(quasi_identifiers):
            for bounds, bound in ((low, leaf.cell_low[j]), (high, leaf.cell_high[j])):
                if bound is not None:
                    bounds[j] = quasi_identifier.positions(np.array([bound], np.int64))[0]
        return self.group_former.form_groups(
            Block(
                codes=contents.codes[rows],
                positions=own,
                normalized=contents.normalized[rows],
                units=np.array([quasi_identifier.unit for quasi_identifier in quasi_identifiers]),
                hashes=contents.hashes[rows],
                values=contents.values[rows],
                cell_low=low,
                cell_high=high,
                path=leaf.path,
            )
        )

    def _finished(
        self,
        packer: Packer,
        records: pa.Table,
        contents: _Contents,
        order: Codes,
        sizes: Codes,
        paths: npt.NDArray[np.uint64],
        penalties: Positions,
    ) -> Batches:
        """Yield the records of finished classes, generalized, and the classes."""
        starts = np.concatenate([[0], np.cumsum(sizes)])
        published, figures = self.generalizer.generalize(contents.codes[order], starts)
        identifiers = pa.array(paths.view(np.int64))
        owners = pa.array(np.repeat(np.arange(len(sizes)), sizes))
        columns = {CLASS_ID: identifiers.take(owners)} | {
            published_column(place): one.take(owners) for place, one in enumerate(published)
        }
        kept = [PAYLOAD_HASH, *(name for name in records.column_names if is_payload(name))]
        yield from self._parcels(packer, Part.FINISHED, records.select(kept), order, columns)
        weights = [one.weight for one in self.generalizer.quasi_identifiers]
        yield class_batch(packer, self.number, identifiers, figures, weights, penalties)

    def _parcels(
        self,
        packer: Packer,
        part: Part,
        records: pa.Table,
        order: Codes,
        columns: Mapping[str, pa.Array] = MappingProxyType({}),
    ) -> Batches:
        """Yield parcels of some records: given columns, and those of a table."""
        # Not of all at once: of them is a copy.
        step = max(PARCEL_BYTES * len(records) // max(records.nbytes, 1), 1)
        for start in range(0, len(order), step):
            taken = records.take(pa.array(order[start : start + step]))
            own = [column.slice(start, step) for column in columns.values()]
            parcel = pa.table([*own, *taken.columns], [*columns, *taken.column_names])
            yield result_batch(part, packer.pack(parcel))
