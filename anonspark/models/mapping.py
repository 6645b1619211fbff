"""The mapping of an earlier release, applied to the records of a new table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.config.models import MappingOptions
from anonspark.core.arrays import Flags
from anonspark.core.columns import ATOM, code_column, quasi_identifier_column
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.tasks import Batches
from anonspark.errors import GuaranteeError
from anonspark.kernels.criteria import group_satisfies
from anonspark.kernels.merging import name_groups
from anonspark.layers.generalize.classes import ClassFigures
from anonspark.layers.outliers.separation import GroupedRecords, OutlierSeparation
from anonspark.layers.partition.node import Leaf
from anonspark.models.atoms import AtomGroups, Boxes, MergedAtoms, value_code_column
from anonspark.models.blockwise import (
    Block,
    Contents,
    FormGroups,
    GroupFormer,
    Groups,
)
from anonspark.models.mapped_regions import MappedRegions
from anonspark.models.model import Anonymized, Round, Suppressed, Task
from anonspark.staged.keys import is_coded
from anonspark.staged.records import PACKED, PackRecords, Records

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _MappedForming(FormGroups):
    """Forms classes whose labels are those of their regions."""

    regions: MappedRegions
    widens: ClassVar[bool] = True

    def published(
        self, contents: Contents, order: Codes, starts: Codes
    ) -> tuple[list[pa.Array], ClassFigures]:
        """Generalize classes to their regions, and to those records that lie outside of them."""
        if contents.atoms is None:
            raise ValueError("records without regions")
        owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        # A class and one of its regions are one number.
        pairs = np.unique(owners * self.regions.number + contents.atoms[order])
        classes, regions = np.divmod(pairs, self.regions.number)
        codes, owners_of_codes = self.regions.covered(regions)
        all_codes = np.concatenate([contents.codes[order], codes])
        of_classes = np.concatenate([owners, classes[owners_of_codes]])
        sorted_rows = np.argsort(of_classes, kind="stable")
        _, beginnings = np.unique(of_classes[sorted_rows], return_index=True)
        bounds = np.append(beginnings, len(sorted_rows))
        columns, figures = self.generalizer.generalize(all_codes[sorted_rows], bounds)
        return columns, replace(figures, sizes=np.diff(starts))


@dataclass(frozen=True)
class _RegionGroups(AtomGroups):
    """Merges the records of regions until all classes satisfy the criteria."""

    regions: MappedRegions

    def boxes(self, block: Block) -> Boxes:
        """Return the boxes of regions, and of the records that came to them from outside."""
        boxes = super().boxes(block)
        low, high = (ends[boxes.names] for ends in self.regions.positions)
        return replace(
            boxes,
            low=np.minimum(boxes.low, low),
            high=np.maximum(boxes.high, high),
            # The tree was grown by these on the cluster, where the records of a region are unknown.
            middles=low + (high - low) / 2,
        )


@dataclass(frozen=True)
class _WholeRegions(GroupFormer):
    """Forms a group of the records of each region."""

    def form_groups(self, block: Block) -> Groups:
        """Return the records region by region, whether they satisfy the criteria or not."""
        if block.atoms is None:
            raise ValueError("records without regions")
        order = np.argsort(block.atoms, kind="stable")
        _, starts = np.unique(block.atoms[order], return_index=True)
        bounds = np.append(starts, len(order)).astype(np.int64)
        return Groups(order, bounds, name_groups(np.uint64(block.path), len(starts)))


@dataclass(frozen=True)
class _Fit(OutlierSeparation):
    """Keeps the records of classes that satisfy the criteria."""

    neighbors: int = 1
    by_density: bool = False

    def normal_records(self, records: GroupedRecords) -> Flags:
        """Return which records stay. See :class:`OutlierSeparation`."""
        _, _, values, order, starts, requirements = records
        counts = np.zeros(requirements.shares.shape[0], np.int64)
        present = np.empty(requirements.shares.shape[0], np.int64)
        normal = np.zeros(len(order), bool)
        for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            normal[start:stop] = group_satisfies(
                requirements, values, order, start, stop, counts, present
            )
        return normal


class MappedRelease(MergedAtoms):
    """Assigns each record to the region of an earlier release that holds it or grows least."""

    options_class = MappingOptions

    def __init__(self, options: MappingOptions, regions: MappedRegions, task: Task) -> None:
        self.options = options
        self.regions = regions
        super().__init__(task)

    @property
    def leaves_residual(self) -> bool:
        """Return whether records of classes that violate the criteria are left out."""
        return self.options.unfit not in (None, "merge")

    def suppress(self, records: Records) -> Suppressed | None:  # noqa: ARG002 - none is published
        """Leave the records of unfit classes out, or raise GuaranteeError if that is configured."""
        if self.options.unfit == "refuse":
            raise GuaranteeError(
                "model.unfit: some regions of model.release have new records that are fewer than "
                "k, or violate a criterion. Nothing was published. Set it to merge or suppress"
            )
        return None

    def anonymize(self, table: Round) -> Anonymized:
        """Assign records to regions. See :meth:`anonspark.models.model.Model.anonymize`.

        The regions travel to every task. Eager, of tables above ``task_rows``: the counting passes
        over records that are kept at the midpoints of their regions. Lazy: one shuffle of the
        records and one Python task a block.
        """
        table.report("finding regions")
        identifiers = self.task.generalizer.quasi_identifiers
        return self.finish_moved(table, _at_regions(table.records, identifiers, self.regions))

    def forming(self, leaves: Mapping[int, Leaf]) -> FormGroups:
        """Return what forms classes whose labels are those of regions."""
        former = (
            _WholeRegions()
            if self.leaves_residual
            else _RegionGroups(self.leaf_criteria, self.regions)
        )
        generalizer, criteria = self.task.generalizer, self.task.criteria
        return _MappedForming(leaves, former, generalizer, criteria, self.regions)

    @property
    def fit(self) -> OutlierSeparation | None:
        """Return the rule that leaves out unfit classes, or None if these are merged."""
        return _Fit() if self.leaves_residual else None


def _at_regions(
    records: Records, quasi_identifiers: Sequence[QuasiIdentifier], regions: MappedRegions
) -> Records:
    """Move records to the midpoints of their regions, their new atoms. Lazy, no shuffle."""
    d = len(quasi_identifiers)
    name_of = code_column if is_coded(records.schema) else quasi_identifier_column
    raw = {name_of(index) for index in range(d)}
    schema = pa.schema(
        [
            *((quasi_identifier_column(index), pa.float64()) for index in range(d)),
            *((value_code_column(index), pa.int64()) for index in range(d)),
            *(field for field in records.schema if field.name not in raw),
            (ATOM, pa.int64()),
        ]
    )
    find = _FindRegions(tuple(quasi_identifiers), regions, schema)
    return Records(records.map_batches(find, PACKED), schema)


@dataclass(frozen=True)
class _FindRegions:
    """Finds the regions of the records of a task, and packs them."""

    quasi_identifiers: tuple[QuasiIdentifier, ...]
    regions: MappedRegions
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        return PackRecords()(self._records(batches))

    def _records(self, batches: Batches) -> Batches:
        """Yield the records of each batch at the midpoints of their regions, with their atoms."""
        d = len(self.quasi_identifiers)
        lower_ends, upper_ends = self.regions.positions
        middles = lower_ends + (upper_ends - lower_ends) / 2
        for batch in batches:
            coded = is_coded(batch.schema)
            codes = np.empty((len(batch), d), np.int64)
            for index, identifier in enumerate(self.quasi_identifiers):
                name = code_column(index) if coded else quasi_identifier_column(index)
                column = batch.column(name)
                codes[:, index] = column.to_numpy() if coded else identifier.encode(column)
            regions = self.regions.assign(codes)
            arrays = [pa.array(middles[regions, index]) for index in range(d)]
            arrays += [pa.array(np.ascontiguousarray(codes[:, index])) for index in range(d)]
            arrays += [batch.column(field.name) for field in list(self.schema)[2 * d : -1]]
            arrays.append(pa.array(regions))
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
