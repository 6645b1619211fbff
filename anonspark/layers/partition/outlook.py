"""Look ahead, from a sample of the records and one pass over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from anonspark.core.arrays import Integers
from anonspark.layers.partition.counting import Draw
from anonspark.layers.partition.cut_tree import CutTree
from anonspark.layers.partition.forest import Forest
from anonspark.layers.partition.node import Node
from anonspark.layers.partition.one_pass import CountedForest


class CountsForest(Protocol):
    """Counts the records of a forest and draws on the way. One call is one job on the cluster."""

    def __call__(self, tree: CutTree, forest: Forest, draws: Sequence[Draw] = ()) -> CountedForest:
        """Count and draw."""


@dataclass(frozen=True)
class Outlook:
    """The start of looking ahead.

    Parameters
    ----------
    columns : int64 ndarray of shape (width, n)
        Transposed keys of a sample.
    sampled : int64 ndarray of shape (n,)
        1 for each of its records, 0 for those with outermost values.
    largest_leaf : int
        Records of the largest node that is not cut.
    most_nodes : int
        Nodes of a forest at most.
    count : CountsForest
    """

    columns: Integers
    sampled: Integers
    largest_leaf: int
    most_nodes: int
    count: CountsForest

    def in_leaves(self, tree: CutTree, nodes: Sequence[Node]) -> list[Integers]:
        """Return which records of the sample are in each of some leaves of a tree."""
        leaves = tree.descent().find_leaves(np.ascontiguousarray(self.columns.T))
        order = np.argsort(leaves, kind="stable")
        starts = np.searchsorted(leaves[order], np.arange(len(tree) + 1))
        return [order[starts[node.number] : starts[node.number + 1]] for node in nodes]
