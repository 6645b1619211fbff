"""The toy model: neighbours in one attribute."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from anonspark.config.models import ModelOptions
from anonspark.core.criteria import Criteria
from anonspark.kernels.merging import merge_unsatisfied, name_groups
from anonspark.layers.partition.growing import CutRule
from anonspark.layers.partition.median_cut import MedianCut
from anonspark.models.blockwise import Block, BlockwiseModel, GroupFormer, Groups
from anonspark.models.model import Task


class SortedOptions(ModelOptions):
    """Options of the toy: groups of neighbours in one attribute."""

    name: Literal["sorted"] = Field(description="Which model makes the classes: a toy.")
    attribute: int = Field(default=0, ge=0, description="Number of the attribute to sort by.")


@dataclass(frozen=True)
class SortedGroups(GroupFormer):
    """Finishes a block; it travels to the tasks, so it holds plain values only."""

    criteria: Criteria
    attribute: int

    def form_groups(self, block: Block) -> Groups:
        """Return groups of k or a little more neighbours."""
        keys = (block.hashes, *block.codes.T, block.codes[:, self.attribute])
        order = np.lexsort(keys)  # the last key counts most
        groups = max(len(order) // self.criteria.k, 1)
        starts = np.arange(groups + 1) * len(order) // groups
        if self.criteria.has_more_than_k:  # merge what violates them
            starts = merge_unsatisfied(
                block.normalized, block.values, order, starts, block.requirements
            )
        return Groups(order, starts, name_groups(np.uint64(block.path), len(starts) - 1))


class Sorted(BlockwiseModel):
    """Neighbours in one attribute, inside blocks that median cuts define."""

    options_class = SortedOptions

    def __init__(self, options: SortedOptions, task: Task) -> None:
        self.options = options
        super().__init__(task)

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
        """Sorting."""
        return SortedGroups(self.task.criteria, self.options.attribute)
