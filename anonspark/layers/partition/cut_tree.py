"""The tree of cuts on the cluster, and the arrays of it that travel to the tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from anonspark.core.arrays import Flags, Integers
from anonspark.core.encoding import QuasiIdentifier
from anonspark.kernels.descent import find_leaves
from anonspark.staged.keys import normalized_positions

Positions = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Boundary:
    """A position in the order of records, compared key by key.

    ``keys`` are compared in turn: columns of the key matrix (a quasi-identifier's index, d for the
    record hash, d + 1 for the record number) or ``DISTANCE``, the distance to the vantage point.
    ``thresholds`` are the boundary's values. ``equal_goes_left`` decides on records equal in all
    keys. ``vantage_point`` is the normalized position that distances are measured from.
    """

    keys: tuple[int, ...]
    thresholds: tuple[int, ...]
    equal_goes_left: bool = True
    vantage_point: tuple[float, ...] | None = None


@dataclass(frozen=True)
class BoundaryArrays:
    """Boundaries as arrays of one row each, -1 after the last key.

    ``measured`` says whether any boundary has a vantage point, which ``points`` holds.
    """

    keys: Integers
    thresholds: Integers
    points: Positions
    measured: bool

    @classmethod
    def of(cls, boundaries: Sequence[Boundary | None], d: int) -> BoundaryArrays:
        """Return boundaries over d quasi-identifiers as arrays. None, in a leaf, has no keys."""
        # A row has room for the distance, all quasi-identifiers, the hash, the number and -1.
        keys = np.full((len(boundaries), d + 4), -1, np.int64)
        thresholds = np.zeros((len(boundaries), d + 4), np.int64)
        points = np.zeros((len(boundaries), d), np.float64)
        measured = False
        for row, boundary in enumerate(boundaries):
            if boundary is None:
                continue
            keys[row, : len(boundary.keys)] = boundary.keys
            thresholds[row, : len(boundary.keys)] = boundary.thresholds
            if boundary.vantage_point is not None:
                points[row] = boundary.vantage_point
                measured = True
        return cls(keys, thresholds, points, measured)


def positions_for(
    keys: Integers, quasi_identifiers: Sequence[QuasiIdentifier], *, measured: bool
) -> Positions:
    """Return the records' normalized positions, without rows unless a boundary measures any."""
    if measured:
        return normalized_positions(keys, quasi_identifiers)
    return np.empty((0, len(quasi_identifiers)), np.float64)


@dataclass(frozen=True)
class Descent:
    """A tree as arrays of one row a node, which travel to the tasks.

    ``equal_goes_left`` decides on records on the boundary. ``children`` (int64, shape (nodes, 2))
    is -1 in a leaf.
    """

    quasi_identifiers: tuple[QuasiIdentifier, ...]
    boundaries: BoundaryArrays
    equal_goes_left: Flags
    children: Integers

    def __len__(self) -> int:
        return len(self.children)

    def find_leaves(
        self, keys: Integers, normalized: Positions | None = None
    ) -> npt.NDArray[np.int32]:
        """Return the node number of each record's leaf.

        ``keys`` is a :func:`anonspark.staged.keys.key_matrix`. ``normalized`` are the records'
        positions, or None to compute them.
        """
        if normalized is None:
            measured = self.boundaries.measured
            normalized = positions_for(keys, self.quasi_identifiers, measured=measured)
        leaves: npt.NDArray[np.int32] = find_leaves(
            keys,
            normalized,
            self.boundaries.keys,
            self.boundaries.thresholds,
            self.boundaries.points,
            self.equal_goes_left,
            self.children,
        )
        return leaves


@dataclass
class CutTree:
    """A binary tree whose inner nodes hold boundaries. Node 0 is the root.

    >>> tree = CutTree(())
    >>> tree.cut(0, Boundary((0,), (42,))), len(tree)
    ((1, 2), 3)
    """

    quasi_identifiers: tuple[QuasiIdentifier, ...]
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

    def descent(self) -> Descent:
        """Return the present tree as arrays."""
        equal_goes_left = [
            boundary is not None and boundary.equal_goes_left for boundary in self.boundaries
        ]
        return Descent(
            self.quasi_identifiers,
            BoundaryArrays.of(self.boundaries, len(self.quasi_identifiers)),
            np.array(equal_goes_left),
            np.array(self.children, np.int64),
        )
