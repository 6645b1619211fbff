"""Models that cut a table into blocks on the cluster and finish each block in one task."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.types import StructField

from anonspark.arrow import arrow_schema, spark_type
from anonspark.columns import (
    CLASS_ID,
    CLASS_SUMMARY,
    Part,
    published_column,
    quasi_identifier_column,
)
from anonspark.generalize.classes import Generalizer
from anonspark.kernels.canonical_order import sort_groups
from anonspark.kernels.paths import root_path
from anonspark.models.model import (
    Anonymized,
    Model,
    Round,
    Task,
    result_batch,
    result_schema,
    summaries,
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
from anonspark.tasks import map_batches

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
        published = [
            StructField(column.name, spark_type(column.arrow_type))
            for column in generalizer.columns()
        ]
        schema = result_schema(table.records.schema, published, len(quasi_identifiers))
        finish = _FinishBlocks(
            {leaf.number: leaf for leaf in partition.leaves},
            self.group_former,
            None if table.last else self._separation(),
            generalizer,
            self.task.criteria,
            arrow_schema(schema),
        )
        blocks = send_to_tasks(table.records, partition, self.task.criteria)
        table.tell("forming classes")
        return Anonymized(map_batches(blocks, finish, schema))


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
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
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
        yield from self._finished(
            records,
            contents,
            np.concatenate(kept),
            np.concatenate(classes),
            np.concatenate(paths),
            np.concatenate(penalties),
        )
        yield from self._batches(records, np.concatenate(left_over), Part.LEFT_OVER, {})

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
        records: pa.Table,
        contents: _Contents,
        order: Codes,
        sizes: Codes,
        paths: npt.NDArray[np.uint64],
        penalties: Positions,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records of finished classes, generalized, and the classes."""
        starts = np.concatenate([[0], np.cumsum(sizes)])
        published, figures = self.generalizer.generalize(contents.codes[order], starts)
        owners = np.repeat(np.arange(len(sizes)), sizes)
        # From here on no order of raw values is left: a file that ends inside a class must not
        # divide it by them.
        order = order[np.lexsort((contents.hashes[order], owners))]
        owner = pa.array(owners)
        identifiers = pa.array(paths.view(np.int64))
        columns = {CLASS_ID: identifiers.take(owner)}
        for index, column in enumerate(published):
            columns[published_column(index)] = column.take(owner)
        yield from self._batches(records, order, Part.FINISHED, columns)
        class_summaries = summaries(figures, penalties, self.schema.field(CLASS_SUMMARY).type)
        columns = {CLASS_ID: identifiers, CLASS_SUMMARY: class_summaries}
        yield result_batch(self.schema, len(sizes), Part.CLASSES, columns)

    def _batches(
        self, records: pa.Table, order: Codes, part: Part, columns: dict[str, pa.Array]
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches of records: given columns, and staged ones."""
        raw = {
            quasi_identifier_column(index)
            for index in range(len(self.generalizer.quasi_identifiers))
        }
        hidden = raw if part == Part.FINISHED else set()
        staged = records.select(
            [
                field.name
                for field in self.schema
                if field.name in records.schema.names and field.name not in hidden
            ]
        )
        rows_per_batch = 65_536
        for start in range(0, len(order), rows_per_batch):
            rows = pa.array(order[start : start + rows_per_batch])
            taken = staged.take(rows).combine_chunks()
            own = {name: column.slice(start, len(rows)) for name, column in columns.items()}
            for name in staged.schema.names:
                chunks = taken.column(name).chunks
                own[name] = pa.concat_arrays(chunks) if chunks else pa.nulls(0)
            yield result_batch(self.schema, len(rows), part, own)
