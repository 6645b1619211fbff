"""SMondrian and Su-Mondrian: median cuts, without and with the outlier rounds (Canbay 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anonspark.config.models import MondrianOptions
from anonspark.core.criteria import Criteria
from anonspark.kernels.mondrian import cut_into_groups
from anonspark.layers.partition.growing import CutRule
from anonspark.layers.partition.median_cut import MedianCut
from anonspark.models.blockwise import Block, BlockwiseModel, GroupFormer, Groups
from anonspark.models.model import Task


@dataclass(frozen=True)
class MondrianGroups(GroupFormer):
    """Finishes a block with the compiled kernel."""

    criteria: Criteria
    relaxed: bool
    balanced: bool
    cell: bool

    def form_groups(self, block: Block) -> Groups:
        """Return the groups. See :func:`anonspark.kernels.mondrian.cut_into_groups`."""
        order, starts, paths = cut_into_groups(
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
        return Groups(order, starts, paths)


class Mondrian(BlockwiseModel):
    """Median cuts on the cluster and in the tasks. docs/algorithms.md.

    Parameters
    ----------
    options : MondrianOptions
    task : Task
    """

    options_class = MondrianOptions

    def __init__(self, options: MondrianOptions, task: Task) -> None:
        self.options = options
        super().__init__(task, options)

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

    @property
    def group_former(self) -> GroupFormer:
        """The compiled median cut."""
        return MondrianGroups(
            self.task.criteria,
            relaxed=self.options.split == "relaxed",
            balanced=self.options.cut == "balanced",
            cell=self.options.span == "cell",
        )
