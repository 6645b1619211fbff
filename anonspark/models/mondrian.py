"""SMondrian and Su-Mondrian: median cuts, without and with the outlier rounds (Canbay 2019)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from anonspark.config.models import MondrianOptions
from anonspark.core.arrays import Figures, Integers
from anonspark.kernels.canonical_order import sort_groups
from anonspark.kernels.merging import name_groups_of_leaves
from anonspark.kernels.mondrian import CELL_RECORDS, cut_into_cells
from anonspark.kernels.refinement import refine_in_cells
from anonspark.layers.generalize.classes import Generalizer
from anonspark.layers.partition.growing import CutRule
from anonspark.layers.partition.median_cut import MedianCut
from anonspark.models.blockwise import Block, BlockwiseModel, GroupFormer, Groups
from anonspark.models.model import Task


@dataclass(frozen=True)
class MondrianGroups(GroupFormer):
    """Finishes a block with the compiled kernels."""

    generalizer: Generalizer
    relaxed: bool
    balanced: bool
    cell: bool
    passes: int = 0
    """How often the groups are refined."""

    def form_groups(self, block: Block) -> Groups:
        """Cut a block into groups, and refine the groups inside each cell if there are passes.

        The cuts are those of :func:`anonspark.kernels.mondrian.cut_into_cells`, whose parameters
        have this order. It also returns at which group each cell begins: records change groups
        inside of a cell alone, as no cell is cut on the cluster (docs/algorithms.md, Mondrian).
        """
        order, starts, paths, cells = cut_into_cells(
            block.codes,
            block.positions,
            block.units,
            block.hashes,
            block.values,
            block.cell_low,
            block.cell_high,
            np.uint64(block.path),
            block.requirements,
            self.relaxed,
            self.balanced,
            self.cell,
        )
        groups = Groups(order, starts, paths)
        return replace(groups, refined=self._refined(block, groups, cells) if self.passes else None)

    def _refined(self, block: Block, groups: Groups, cells: Integers) -> Groups:
        """Refine the groups of each cell, if this loses less.

        Refining shortens the edges of boxes. Levels and missing values may lose more.
        """
        canonical = groups.order.copy()
        sort_groups(block.codes, block.hashes, canonical, groups.starts[cells])
        order, starts, first = refine_in_cells(
            block.normalized,
            block.values,
            canonical,
            groups.order,
            groups.starts,
            cells,
            block.requirements,
            self.passes,
        )
        names = name_groups_of_leaves(groups.paths[cells[:-1]], np.diff(first))
        refined = Groups(order, starts, names)
        is_worse = self._losses(block, refined, first) > self._losses(block, groups, cells)
        chosen = [
            better.between(bounds[cell], bounds[cell + 1])
            for cell, worse in enumerate(is_worse)
            for better, bounds in [(groups, cells) if worse else (refined, first)]
        ]
        return Groups.together(chosen) if is_worse.any() else refined

    def _losses(self, block: Block, groups: Groups, cells: Integers) -> Figures:
        """Return what the groups of each cell lose as classes."""
        penalties = self.generalizer.penalty(block.codes.take(groups.order, axis=0), groups.starts)
        return np.add.reduceat(penalties, cells[:-1])


class Mondrian(BlockwiseModel):
    """Median cuts on the cluster and in the tasks. docs/algorithms.md."""

    options_class = MondrianOptions

    def __init__(self, options: MondrianOptions, task: Task) -> None:
        self.options = options
        super().__init__(task, options)

    @property
    def largest_block(self) -> int:
        """Records of a block: no cell in which groups are refined is cut on the cluster."""
        return max(super().largest_block, CELL_RECORDS if self.options.passes else 0)

    @property
    def tries_first_round(self) -> bool:
        """Return whether refined groups, which mostly lose less than rounds, may undo these."""
        return self.undoes_rounds and self.options.passes > 0

    @property
    def cut_rule(self) -> CutRule:
        """The median cut."""
        return MedianCut(
            self.task.generalizer.quasi_identifiers,
            self.task.criteria,
            relaxed=self.options.split == "relaxed",
            balanced=self.options.cut == "balanced",
            cell=self.options.span == "cell",
        )

    def former_of_round(self, number: int) -> GroupFormer:
        """Return the compiled median cut. If rounds can be undone, only the first one refines."""
        passes = 0 if number > 1 and self.undoes_rounds else self.options.passes
        return replace(self.group_former, passes=passes)

    @property
    def group_former(self) -> MondrianGroups:
        """The compiled median cut."""
        return MondrianGroups(
            self.task.generalizer,
            relaxed=self.options.split == "relaxed",
            balanced=self.options.cut == "balanced",
            cell=self.options.span == "cell",
            passes=self.options.passes,
        )
