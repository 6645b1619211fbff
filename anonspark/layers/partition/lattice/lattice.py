"""The lattice of full-domain recodings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
import numpy.typing as npt

from anonspark.core.arrays import Flags
from anonspark.layers.partition.lattice.domain import Levels

Nodes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Lattice:
    """All nodes between two: one level for each quasi-identifier (Samarati 2001).

    No level of ``lowest`` is above that of ``highest``.

    >>> lattice = Lattice((0, 0), (1, 2))
    >>> lattice.size, lattice.nodes[:3].tolist(), lattice.successors((1, 0))
    (6, [[0, 0], [0, 1], [1, 0]], [(1, 1)])
    """

    lowest: Levels
    highest: Levels

    @property
    def size(self) -> int:
        """Number of nodes."""
        return prod(b - a + 1 for a, b in zip(self.lowest, self.highest, strict=True))

    @cached_property
    def nodes(self) -> Nodes:
        """All nodes (int64, shape (size, d)) by height, those of one height by their levels."""
        ranges = [range(a, b + 1) for a, b in zip(self.lowest, self.highest, strict=True)]
        nodes = np.array(list(product(*ranges)), np.int64).reshape(self.size, -1)
        return nodes[np.argsort(nodes.sum(axis=1), kind="stable")]

    def above(self, node: Levels) -> Flags:
        """Return which nodes generalize a node, itself among them."""
        flags: Flags = np.all(self.nodes >= np.array(node), axis=1)
        return flags

    def below(self, node: Levels) -> Flags:
        """Return which nodes a node generalizes, itself among them."""
        flags: Flags = np.all(self.nodes <= np.array(node), axis=1)
        return flags

    def successors(self, node: Levels) -> list[Levels]:
        """Return the nodes one step above."""
        return [
            (*node[:index], level + 1, *node[index + 1 :])
            for index, level in enumerate(node)
            if level < self.highest[index]
        ]
