"""Predicted trees under some leaves of the tree, and the arrays that travel to the tasks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from anonspark.core.arrays import Figures, Flags, Integers
from anonspark.layers.partition.brackets import Bracket


@dataclass
class Forest:
    """Trees whose inner nodes hold brackets instead of boundaries. Children come after parents.

    ``roots`` holds the predicted node of each leaf of the tree that has one. Leaves of the forest
    have no bracket, and children -1.

    >>> forest = Forest()
    >>> root = forest.plant(4)
    >>> forest.cut(root, Bracket((0,), (17,), (42,))), len(forest), forest.roots
    ((1, 2), 3, {4: 0})
    """

    roots: dict[int, int] = field(default_factory=dict)
    brackets: list[Bracket | None] = field(default_factory=list)
    children: list[tuple[int, int]] = field(default_factory=list)

    def plant(self, leaf: int) -> int:
        """Add a predicted node that stands for a leaf of the tree, and return its number."""
        self.roots[leaf] = len(self)
        return self._add()

    def cut(self, index: int, bracket: Bracket) -> tuple[int, int]:
        """Cut a predicted leaf and return its left and right child."""
        self.brackets[index] = bracket
        self.children[index] = (self._add(), self._add())
        return self.children[index]

    def _add(self) -> int:
        self.brackets.append(None)
        self.children.append((-1, -1))
        return len(self) - 1

    def __len__(self) -> int:
        return len(self.children)

    @property
    def width(self) -> int:
        """Largest number of keys that a bracket compares."""
        return max(len(bracket.keys) for bracket in self.brackets if bracket is not None)

    def arrays(self, nodes: int, d: int) -> ForestArrays:
        """Return the forest as arrays for the kernel.

        ``nodes`` counts the nodes of the tree that it extends, and ``d`` the quasi-identifiers.
        Rows of nodes without a bracket are 0.
        """
        roots = np.full(nodes, -1, np.int64)
        roots[list(self.roots)] = list(self.roots.values())
        attributes = np.zeros((len(self), self.width), np.int64)
        ends = np.zeros((len(self), 2, self.width), np.int64)
        levels = np.zeros((len(self), 2), np.int64)
        decided = np.zeros((len(self), 2), bool)
        points = np.zeros((len(self), d), np.float64)
        measured = False
        for index, bracket in enumerate(self.brackets):
            if bracket is None:
                continue
            attributes[index, : len(bracket.keys)] = bracket.keys
            if bracket.vantage_point is not None:
                points[index] = bracket.vantage_point
                measured = True
            decided[index] = bracket.lower_goes_left, bracket.upper_goes_right
            for side, end in enumerate((bracket.lower, bracket.upper)):
                ends[index, side, : len(end)] = end
                levels[index, side] = len(end)
        children = np.array(self.children, np.int64)
        return ForestArrays(roots, attributes, points, ends, levels, decided, children, measured)


@dataclass(frozen=True)
class ForestArrays:
    """A forest as :func:`anonspark.kernels.brackets.follow_brackets` takes it.

    ``roots`` (int64) is the predicted node of each node of the tree, -1 without one. ``measured``
    is true if any bracket has a vantage point.
    """

    roots: Integers
    attributes: Integers
    points: Figures
    ends: Integers
    levels: Integers
    decided: Flags
    children: Integers
    measured: bool
