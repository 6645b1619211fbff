"""SMondrian and Su-Mondrian: median cuts, without and with the outlier rounds (Canbay 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from anonspark.kernels.mondrian import cut_into_groups
from anonspark.models.blockwise import Block, BlockwiseModel, GroupFormer, Groups
from anonspark.models.model import Task
from anonspark.models.options import RoundOptions
from anonspark.partition.growing import CutRule
from anonspark.partition.median_cut import MedianCut
from anonspark.privacy.criteria import Criteria

__all__ = ["Mondrian", "MondrianGroups", "MondrianOptions"]


class MondrianOptions(RoundOptions):
    """Options of Mondrian, without rounds (``smondrian``) and with them (``su-mondrian``).

    Attributes
    ----------
    name : str
        ``mondrian`` and ``u-mondrian`` are the same computations as ``smondrian`` and
        ``su-mondrian``.
    split : str
        What happens to records that are equal to the median.
    cut : str
        Which boundaries of the chosen attribute are looked at.
    span : str
        Which width chooses the attribute to cut.
    """

    name: Literal["smondrian", "su-mondrian", "mondrian", "u-mondrian"] = Field(
        default="su-mondrian",
        description=(
            "Which model makes the classes: smondrian (also: mondrian) cuts once and keeps whole "
            "groups; su-mondrian (also: u-mondrian) sends the outliers of every group through "
            "further rounds."
        ),
    )
    split: Literal["strict", "relaxed"] = Field(
        default="strict",
        description=(
            "Records equal to the median: strict keeps them on one side of the cut; relaxed "
            "shares them out so that both halves have equal size."
        ),
    )
    cut: Literal["balanced", "published"] = Field(
        default="balanced",
        description=(
            "Where an attribute is cut: balanced takes the better of the boundaries below and "
            "above the median, and with criteria beyond k looks further out before it leaves a "
            "group whole; published takes the one above the median, as the published algorithm "
            "does. It matters to the strict split only."
        ),
    )
    span: Literal["data", "cell"] = Field(
        default="data",
        description=(
            "Which width chooses the attribute to cut: data takes the width of the group's own "
            "records; cell takes the width of its cell of the tree, as the published algorithm "
            "does."
        ),
    )

    @property
    def handles_outliers(self) -> bool:
        """Whether outliers go through further rounds."""
        return self.name in ("su-mondrian", "u-mondrian")


@dataclass(frozen=True)
class MondrianGroups(GroupFormer):
    """Finishes a block with the compiled kernel."""

    criteria: Criteria
    relaxed: bool
    balanced: bool
    cell: bool

    def form_groups(self, block: Block) -> Groups:
        """Return the groups; see :func:`anonspark.kernels.mondrian.cut_into_groups`."""
        order, starts, paths = cut_into_groups(
            block.codes,
            block.positions,
            block.units,
            block.hashes,
            block.values,
            block.cell_low,
            block.cell_high,
            np.uint64(block.path),
            self.criteria.requirements,
            self.relaxed,
            self.balanced,
            self.cell,
        )
        return Groups(order, starts, paths)


class Mondrian(BlockwiseModel):
    """Median cuts on the cluster and in the tasks; DESIGN 4.1 and 4.2.

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
