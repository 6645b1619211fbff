"""Canon and u-Canon: vantage-point trees, without and with the outlier rounds (Canbay 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from anonspark.kernels.canon import cut_by_distance
from anonspark.models.blockwise import Block, BlockwiseModel, GroupFormer, Groups
from anonspark.models.model import Task
from anonspark.models.options import RoundOptions
from anonspark.partition.distance_cut import DistanceCut
from anonspark.partition.growing import CutRule
from anonspark.privacy.criteria import Criteria

__all__ = ["Canon", "CanonOptions"]


class CanonOptions(RoundOptions):
    """Options of Canon, without rounds (``canon``) and with them (``u-canon``).

    Attributes
    ----------
    name : str
    vantage : str
        How the vantage point of a node is chosen.
    """

    name: Literal["canon", "u-canon"] = Field(
        description=(
            "Which model makes the classes: canon cuts into halves by the distance to a vantage "
            "point, and keeps whole groups; u-canon sends the outliers of every group through "
            "further rounds."
        ),
    )
    vantage: Literal["spread", "random"] = Field(
        default="spread",
        description=(
            "How a vantage point is chosen: spread takes, of thirty records drawn by content, the "
            "one whose distances vary most; random takes the first one drawn, as published."
        ),
    )

    @property
    def handles_outliers(self) -> bool:
        """Whether outliers go through further rounds."""
        return self.name == "u-canon"


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
            self.criteria.requirements,
            self.spread,
        )
        return Groups(order, starts, paths)


class Canon(BlockwiseModel):
    """Cuts by distance on the cluster and in the tasks; DESIGN 4.3.

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
