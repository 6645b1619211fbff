"""The tree of cuts made on the cluster, as plain arrays that travel to the tasks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from anonspark.kernels.descent import find_leaves

__all__ = ["Boundary", "CutTree"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Boundary:
    """A place in the order of records, compared key by key.

    Parameters
    ----------
    keys : tuple of int
        Columns of the key matrix to compare in turn: a quasi-identifier's index, d for the record
        hash, d + 1 for the occurrence number.
    thresholds : tuple of int
        The boundary's value of each.
    equal_goes_left : bool
        Where records equal in all of ``keys`` go.
    """

    keys: tuple[int, ...]
    thresholds: tuple[int, ...]
    equal_goes_left: bool = True


@dataclass
class CutTree:
    """A binary tree whose inner nodes hold boundaries; node 0 is the root.

    Parameters
    ----------
    width : int
        Columns of the key matrix: quasi-identifiers + 2.
    """

    width: int
    boundaries: list[Boundary | None] = field(default_factory=lambda: [None])
    children: list[tuple[int, int]] = field(default_factory=lambda: [(-1, -1)])

    def cut(self, node: int, boundary: Boundary) -> tuple[int, int]:
        """Cut a leaf and return the numbers of its left and right child."""
        left = len(self.children)
        self.boundaries[node] = boundary
        self.children[node] = (left, left + 1)
        self.boundaries += [None, None]
        self.children += [(-1, -1), (-1, -1)]
        return left, left + 1

    def __len__(self) -> int:
        return len(self.children)

    def find_leaves(self, keys: Integers) -> npt.NDArray[np.int32]:
        """Return the node number of each record's leaf.

        Parameters
        ----------
        keys : int64 ndarray of shape (n, width)
            Codes, record hash, occurrence number.
        """
        attributes, thresholds = boundary_arrays(self.boundaries, self.width)
        equal_goes_left = np.array(
            [boundary is not None and boundary.equal_goes_left for boundary in self.boundaries]
        )
        children = np.array(self.children, np.int64)
        leaves: npt.NDArray[np.int32] = find_leaves(
            keys, attributes, thresholds, equal_goes_left, children
        )
        return leaves


def boundary_arrays(boundaries: list[Boundary | None], width: int) -> tuple[Integers, Integers]:
    """Return keys (-1 behind the last) and thresholds of boundaries, a row each."""
    attributes = np.full((len(boundaries), width), -1, np.int64)
    thresholds = np.zeros((len(boundaries), width), np.int64)
    for row, boundary in enumerate(boundaries):
        if boundary is not None:
            attributes[row, : len(boundary.keys)] = boundary.keys
            thresholds[row, : len(boundary.keys)] = boundary.thresholds
    return attributes, thresholds
