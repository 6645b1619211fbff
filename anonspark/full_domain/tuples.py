"""The distinct tuples of a table at one node of the lattice, on the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from anonspark.full_domain.domain import Domain, Levels
from anonspark.kernels.criteria import Requirements
from anonspark.kernels.tuple_classes import count_groups, judge_classes, roll_up

__all__ = ["NodeScore", "TupleTable", "Tuples", "score_tuples", "square_sum"]

Codes = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]

# Squares of fewer records than that add up without overflow.
_SAFE_ROWS = 2**31


class NodeScore(NamedTuple):
    """What the classes of a node are like.

    Attributes
    ----------
    classes : int
        All of them.
    utility_classes : int
        Those that satisfy the criteria.
    suppressed : int
        Records of the others.
    squares : int
        Sum of the squared sizes of all classes.
    utility_squares : int
        The same of the utility classes.
    groups : int64 ndarray
        Records of the utility classes in every group of every quasi-identifier, numbered through.
    """

    classes: int
    utility_classes: int
    suppressed: int
    squares: int
    utility_squares: int
    groups: Counts


class TupleTable(Protocol):
    """Distinct tuples at one node, wherever they are."""

    @property
    def levels(self) -> Levels:
        """The node."""

    @property
    def tuples(self) -> int:
        """Number of distinct tuples, each with its sensitive values."""

    def roll_up(self, levels: Levels) -> TupleTable:
        """Return the table of a more general node."""

    def score(self, requirements: Requirements) -> NodeScore:
        """Judge the classes."""

    def release(self) -> None:
        """Free what the table holds on the cluster."""


def square_sum(sizes: Counts) -> int:
    """Return the sum of squares, exact however large."""
    if int(sizes.sum()) < _SAFE_ROWS:
        return int(np.dot(sizes, sizes))
    return sum(
        int(size) ** 2 * int(times)
        for size, times in zip(*np.unique(sizes, return_counts=True), strict=True)
    )


def score_tuples(
    codes: Codes, counts: Counts, domain: Domain, levels: Levels, requirements: Requirements
) -> NodeScore:
    """Judge the classes of distinct tuples.

    Parameters
    ----------
    codes : int32 ndarray of shape (n, columns)
    counts : int64 ndarray of shape (n,)
    domain : Domain
    levels : tuple of int
        The node that the codes belong to.
    requirements : Requirements
    """
    members, sizes, satisfied = judge_classes(codes, counts, len(levels), requirements)
    kept = sizes[satisfied]
    groups = sum(domain.groups(levels))
    return NodeScore(
        classes=len(sizes),
        utility_classes=len(kept),
        suppressed=int(sizes.sum() - kept.sum()),
        squares=square_sum(sizes),
        utility_squares=square_sum(kept),
        groups=count_groups(codes, members, sizes, satisfied, domain.first_groups(levels), groups),
    )


@dataclass(frozen=True)
class Tuples:
    """Distinct tuples in memory.

    Parameters
    ----------
    domain : Domain
    levels : tuple of int
        The node.
    codes : int32 ndarray of shape (n, columns)
        Groups of the quasi-identifiers, then numbers of the sensitive values; no row twice.
    counts : int64 ndarray of shape (n,)
        Records with each, at least 1.
    """

    domain: Domain
    levels: Levels
    codes: Codes
    counts: Counts

    @property
    def tuples(self) -> int:
        """Number of distinct tuples, each with its sensitive values."""
        return len(self.counts)

    def roll_up(self, levels: Levels) -> Self:
        """Return the table of a more general node; O(n columns)."""
        maps, first = self.domain.maps(self.levels, levels)
        codes, counts = roll_up(self.codes, self.counts, maps, first)
        return type(self)(self.domain, levels, codes, counts)

    def score(self, requirements: Requirements) -> NodeScore:
        """Judge the classes; O(n columns), and one look at the sensitive values of each class."""
        return score_tuples(self.codes, self.counts, self.domain, self.levels, requirements)

    def utility_classes(self, requirements: Requirements) -> tuple[Codes, Counts]:
        """Return the groups of each class that satisfies the criteria, and its size.

        Returns
        -------
        groups : int32 ndarray of shape (classes, d)
        sizes : int64 ndarray of shape (classes,)
        """
        d = len(self.levels)
        members, sizes, satisfied = judge_classes(self.codes, self.counts, d, requirements)
        return self.codes[members[satisfied], :d], sizes[satisfied]

    def release(self) -> None:
        """Do nothing: memory is freed with the object."""
