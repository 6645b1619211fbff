"""Microaggregation: small groups grown and improved for the least loss."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from anonspark.config.models import CanonOptions, MicroaggregationOptions
from anonspark.core.arrays import Figures, Integers
from anonspark.core.criteria import Criteria
from anonspark.kernels.canon import cut_by_distance
from anonspark.kernels.merging import merge_unsatisfied, name_groups, total_penalty
from anonspark.kernels.microaggregation import microaggregate, spread_for_queries
from anonspark.layers.generalize.classes import Generalizer
from anonspark.layers.partition.distance_cut import DistanceCut
from anonspark.layers.partition.growing import CutRule
from anonspark.layers.partition.median_cut import MedianCut
from anonspark.models.blockwise import Block, BlockwiseModel, GroupFormer, Groups
from anonspark.models.model import Task
from anonspark.models.mondrian import MondrianGroups


@dataclass(frozen=True)
class _CanonGroups(GroupFormer):
    """Finishes a block with the compiled kernel."""

    criteria: Criteria
    spread: bool

    def form_groups(self, block: Block) -> Groups:
        """Return the groups of :func:`anonspark.kernels.canon.cut_by_distance`."""
        order, starts, paths = cut_by_distance(
            block.codes,
            block.normalized,
            block.hashes,
            block.values,
            np.uint64(block.path),
            block.requirements,
            self.spread,
        )
        return Groups(order, starts, paths)


class Canon(BlockwiseModel):
    """Cuts by distance on the cluster and in the tasks. docs/algorithms.md, Canon."""

    options_class = CanonOptions

    def __init__(self, options: CanonOptions, task: Task) -> None:
        self.options = options
        super().__init__(task, options)

    @property
    def cut_rule(self) -> CutRule:
        """The cut at the median distance."""
        return DistanceCut(
            self.task.generalizer.quasi_identifiers,
            self.task.criteria,
            spread=self.options.vantage == "spread",
        )

    @property
    def group_former(self) -> GroupFormer:
        """The compiled cut at the median distance."""
        return _CanonGroups(self.task.criteria, spread=self.options.vantage == "spread")


@dataclass(frozen=True)
class _MicroaggregationGroups(GroupFormer):
    """Finishes a block with the compiled kernels."""

    criteria: Criteria
    generalizer: Generalizer
    passes: int
    weights: tuple[float, ...] | None
    """Weights of the attributes, where records are spread for queries."""

    def form_groups(self, block: Block) -> Groups:
        """Return the groups of :func:`anonspark.kernels.microaggregation.microaggregate`."""
        normalized = block.normalized
        if self.weights is not None:
            normalized = spread_for_queries(normalized, np.array(self.weights))
        rows = np.arange(len(block.codes))
        order, starts = self._grow(block, normalized, rows)
        if self.criteria.has_more_than_k:
            # Merging what was grown without a thought of the criteria can end in huge groups; so
            # it is also done inside the groups of a median cut, which keeps the criteria.
            within, bounds = self._grow_within_cuts(block, normalized)
            if total_penalty(normalized, within, bounds) < total_penalty(normalized, order, starts):
                order, starts = within, bounds
        return Groups(order, starts, name_groups(np.uint64(block.path), len(starts) - 1))

    def _grow(self, block: Block, normalized: Figures, rows: Integers) -> tuple[Integers, Integers]:
        """Form groups of some records of a block, which satisfy the criteria together."""
        by_people = self.criteria.units is not None
        # People of classes that are published alike count together, so these are merged late.
        bounds = Criteria(self.criteria.k).requirements if by_people else block.requirements
        values = block.values[rows]
        order, starts = microaggregate(
            block.codes[rows], normalized[rows], block.hashes[rows], values, bounds, self.passes
        )
        if by_people:
            values, bounds = block.values, block.requirements
            starts = merge_unsatisfied(normalized, values, rows[order], starts, bounds)
        return rows[order], starts

    def _grow_within_cuts(self, block: Block, normalized: Figures) -> tuple[Integers, Integers]:
        """Form groups inside those of a median cut, which keeps the criteria."""
        groups = MondrianGroups(
            self.generalizer, relaxed=False, balanced=True, cell=False
        ).form_groups(block)
        orders, bounds = [], [np.zeros(1, np.int64)]
        for start, stop in pairwise(groups.starts.tolist()):
            part, inner = groups.order[start:stop], np.array([0, stop - start])
            if stop - start >= 2 * self.criteria.k:
                part, inner = self._grow(block, normalized, part)
            orders.append(part)
            bounds.append(start + inner[1:])
        return np.concatenate(orders), np.concatenate(bounds)


class Microaggregation(BlockwiseModel):
    """Groups grown and improved inside blocks that median cuts define."""

    options_class = MicroaggregationOptions

    def __init__(self, options: MicroaggregationOptions, task: Task) -> None:
        self.options = options
        super().__init__(task, options)

    @property
    def largest_block(self) -> int:
        """Records of a block, which the configuration sets and not the size of the tasks."""
        return self.options.block_rows

    @property
    def cut_rule(self) -> CutRule:
        """The balanced median cut."""
        return MedianCut(
            self.task.generalizer.quasi_identifiers,
            self.task.criteria,
            relaxed=False,
            balanced=True,
            cell=False,
        )

    @property
    def group_former(self) -> GroupFormer:
        """Growing and improving."""
        weights = None
        if self.options.objective == "queries":
            weights = tuple(item.weight for item in self.task.generalizer.quasi_identifiers)
        return _MicroaggregationGroups(
            self.task.criteria, self.task.generalizer, self.options.passes, weights
        )
