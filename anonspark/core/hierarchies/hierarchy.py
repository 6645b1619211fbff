"""The tree of a hierarchy: leaves in order, and for each level the groups that they fall into.

The leaves stand in tree order, so that every group is a run of neighbours. The place of a leaf is
its code. Whatever works on numbers (medians, widths, distances) works on these codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from anonspark.core.arrays import Integers


class Level(NamedTuple):
    """One level above the leaves.

    Attributes
    ----------
    starts : tuple of int
        Code of the first leaf of each group, ascending. Each group ends where the next begins.
    labels : tuple of str
        Of each group.
    """

    starts: tuple[int, ...]
    labels: tuple[str, ...]


class Tree(NamedTuple):
    """The nodes bottom up: the leaves in order, then the groups of level 1, of level 2, ...

    Attributes
    ----------
    parents : int64 ndarray of shape (nodes,)
        Place of each node's parent, which is always a later one. -1 for the root.
    heights : int64 ndarray of shape (nodes,)
        Level of each node, 0 for leaves.
    """

    parents: Integers
    heights: Integers


@dataclass(frozen=True)
class Hierarchy:
    """A tree over values, all of whose leaves have the same depth.

    Parameters
    ----------
    leaves : tuple of str
        The values, in tree order. The place of a value is its code.
    levels : tuple of Level
        The groups from fine to coarse, at least one level. The last one has one group.
    """

    leaves: tuple[str, ...]
    levels: tuple[Level, ...]

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[str]], height: int | None = None) -> Self:
        """Build a hierarchy from one row a value.

        Parameters
        ----------
        rows : sequence of sequence of str
            Each value and the labels of its groups from fine to coarse, the last one the same for
            all. No value occurs twice, and no group lies in two different ones.
        height : int or None
            Levels above the leaves. Needed only where there are no rows.

        Returns
        -------
        Hierarchy
            Depth first, the children of a group in the order of their first appearance.
        """
        columns = list(zip(*rows, strict=True)) if rows else [()] * ((height or 0) + 1)
        # In each column the labels are numbered as they first appear; coarse columns decide first.
        keys = [np.arange(len(rows))]
        for column in columns[1:]:
            number: dict[str, int] = {}
            keys.append(np.array([number.setdefault(label, len(number)) for label in column]))
        order = np.lexsort(keys).tolist() if rows else []
        levels = []
        for column, key in zip(columns[1:], keys[1:], strict=True):
            sorted_key = key[order]
            starts = np.flatnonzero(np.diff(sorted_key, prepend=-1)).tolist()
            levels.append(Level(tuple(starts), tuple(column[order[start]] for start in starts)))
        return cls(tuple(columns[0][index] for index in order), tuple(levels))

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the arrays that are derived from the fields.
        return type(self), (self.leaves, self.levels)

    @property
    def height(self) -> int:
        """Level of the root. Leaves have level 0."""
        return len(self.levels)

    @cached_property
    def _nodes(self) -> Integers:
        """Place in :meth:`tree` of the node above each leaf, of shape (height + 1, leaves)."""
        nodes = np.empty((self.height + 1, len(self.leaves)), np.int64)
        nodes[0] = np.arange(len(self.leaves))
        first = len(self.leaves)
        for level, (starts, _) in enumerate(self.levels, start=1):
            nodes[level] = first - 1
            nodes[level] += np.searchsorted(np.array(starts, np.int64), nodes[0], side="right")
            first += len(starts)
        return nodes

    @cached_property
    def _first_leaves(self) -> Integers:
        """Code of the first leaf below each node."""
        starts = chain(range(len(self.leaves)), *(level.starts for level in self.levels))
        return np.fromiter(starts, np.int64)

    @cached_property
    def _leaf_counts(self) -> Integers:
        """Leaves below each node."""
        ends = chain(
            range(1, len(self.leaves) + 1),
            *((*level.starts[1:], len(self.leaves)) for level in self.levels if level.starts),
        )
        return np.fromiter(ends, np.int64) - self._first_leaves

    @cached_property
    def _labels(self) -> npt.NDArray[np.object_]:
        """Label of each node."""
        labels = [*self.leaves, *chain.from_iterable(level.labels for level in self.levels)]
        array = np.empty(len(labels), object)
        array[:] = labels
        return array

    def lowest_common_level(self, low_codes: Integers, high_codes: Integers) -> Integers:
        """Return the level of the lowest common ancestor of sets of leaves.

        Parameters
        ----------
        low_codes, high_codes : int64 ndarray of the same shape (n,)
            Smallest and largest code of each set.

        Returns
        -------
        int64 ndarray of shape (n,)
            0 where they are equal.
        """
        # Leaves that share a group share all coarser ones, so the different levels are the lower.
        different = self._nodes[:, low_codes] != self._nodes[:, high_codes]
        levels: Integers = different.sum(axis=0, dtype=np.int64)
        return levels

    def nodes(self, level: int | Integers, codes: Integers) -> Integers:
        """Return the place in :meth:`tree` of the ancestors of leaves.

        Parameters
        ----------
        level : int or int64 ndarray of shape (n,)
            One level, or one for each code.
        codes : int64 ndarray of shape (n,)

        Returns
        -------
        int64 ndarray of shape (n,)
        """
        numbers: Integers = self._nodes[level, codes]
        return numbers

    def leaf_counts(self, level: int | Integers, codes: Integers) -> Integers:
        """Return how many leaves lie below the ancestors of leaves. See :meth:`nodes`."""
        return self._leaf_counts[self.nodes(level, codes)]

    def labels(self, level: int | Integers, codes: Integers) -> npt.NDArray[np.object_]:
        """Return the labels of the ancestors of leaves, an array of str. See :meth:`nodes`."""
        return self._labels[self.nodes(level, codes)]

    def tree(self) -> Tree:
        """Return all nodes bottom up, as the hierarchical earth mover's distance goes over them."""
        widths = [len(self.leaves), *(len(level.starts) for level in self.levels)]
        heights = np.repeat(np.arange(self.height + 1, dtype=np.int64), widths)
        parents = np.full(len(heights), -1, np.int64)
        inner = heights < self.height
        parents[inner] = self._nodes[heights[inner] + 1, self._first_leaves[inner]]
        return Tree(parents, heights)
