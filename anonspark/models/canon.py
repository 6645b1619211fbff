"""Canon and u-Canon: vantage-point trees, without and with the outlier rounds (Canbay 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anonspark.config.models import CanonOptions
from anonspark.core.criteria import Criteria
from anonspark.kernels.canon import cut_by_distance
from anonspark.layers.partition.distance_cut import DistanceCut
from anonspark.layers.partition.growing import CutRule
from anonspark.models.blockwise import Block, BlockwiseModel, GroupFormer, Groups
from anonspark.models.model import Task


@dataclass(frozen=True)
class _CanonGroups(GroupFormer):
    """Finishes a block with the compiled kernel."""

    criteria: Criteria
    spread: bool

    def form_groups(self, block: Block) -> Groups:
        """Return the groups; see :func:`anonspark.kernels.canon.cut_by_distance`."""
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
    """Cuts by distance on the cluster and in the tasks; docs/algorithms.md, Canon.

    Parameters
    ----------
    options : CanonOptions
    task : Task
    """

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
