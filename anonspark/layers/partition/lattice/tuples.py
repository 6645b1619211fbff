"""The distinct tuples of a table at one node of the lattice, on the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from anonspark.core.criteria import Criteria, PairedPeople
from anonspark.kernels.criteria import Requirements
from anonspark.kernels.tuple_classes import find_utility_classes, raise_column, score_classes
from anonspark.layers.partition.lattice.domain import Domain, Levels

Codes = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]


class NodeScore(NamedTuple):
    """The figures of a node's classes.

    Utility classes satisfy the criteria, and ``suppressed`` counts the records of the others.
    ``squares`` sums the squared sizes of all classes, and ``utility_squares`` of the utility
    classes. ``groups`` holds the records of the utility classes in every group of every
    quasi-identifier, numbered through, and is empty if that was not asked for.
    """

    classes: int
    utility_classes: int
    suppressed: int
    squares: int
    utility_squares: int
    groups: Counts


class TupleTable(Protocol):
    """Distinct tuples at one node, on the driver or the cluster."""

    @property
    def levels(self) -> Levels:
        """The node."""

    @property
    def tuples(self) -> int:
        """Number of distinct tuples, each with its sensitive values."""

    def roll_up(self, levels: Levels) -> TupleTable:
        """Return the table of a more general node."""

    def score(self, criteria: Criteria, *, by_group: bool) -> NodeScore:
        """Judge the classes, and count the records of each group if that is asked for."""

    def release(self) -> None:
        """Free what the table holds on the cluster."""


def score_tuples(
    codes: Codes,
    counts: Counts,
    domain: Domain,
    levels: Levels,
    requirements: Requirements,
    *,
    by_group: bool,
) -> NodeScore:
    """Judge the classes of distinct tuples.

    ``codes`` (int32, shape (n, columns)) are in lexicographic order and belong to the node
    ``levels``. With ``by_group``, the records of each group are counted.
    """
    first = domain.first_groups(levels) if by_group else np.zeros(0, np.int64)
    groups = np.zeros(sum(domain.groups(levels)) if by_group else 0, np.int64)
    classes, utility_classes, suppressed, *squares = score_classes(
        codes, counts, len(levels), requirements, first, groups
    )
    low, high, utility_low, utility_high = squares
    return NodeScore(
        classes,
        utility_classes,
        suppressed,
        low + (high << 32),
        utility_low + (utility_high << 32),
        groups,
    )


@dataclass(frozen=True)
class Tuples:
    """Distinct tuples in memory.

    ``codes`` (int32, shape (n, columns)) are the groups of the quasi-identifiers, then numbers of
    the sensitive values and, if they are counted, of people; in lexicographic order, no row twice.
    ``counts`` (int64, (n,)) are the records with each, at least 1. ``pairs`` describes what the
    last columns number if people are counted: pairs of a sensitive value and a person instead of
    the values, and people.
    """

    domain: Domain
    levels: Levels
    codes: Codes
    counts: Counts
    pairs: PairedPeople | None = None

    @property
    def tuples(self) -> int:
        """Number of distinct tuples, each with its sensitive values."""
        return len(self.counts)

    def roll_up(self, levels: Levels) -> Self:
        """Return the table of a more general node. O(n columns) for each level that rises."""
        codes, counts = self.codes, self.counts
        steps = zip(self.domain.attributes, self.levels, levels, strict=True)
        for column, (attribute, low, high) in enumerate(steps):
            if low < high:
                codes, counts = raise_column(codes, counts, column, attribute.between(low, high))
        return type(self)(self.domain, levels, codes, counts, self.pairs)

    def score(self, criteria: Criteria, *, by_group: bool) -> NodeScore:
        """Judge the classes. O(n columns), and one pass over the sensitive values of each class."""
        requirements = criteria.requirements_among(self.pairs)
        return score_tuples(
            self.codes, self.counts, self.domain, self.levels, requirements, by_group=by_group
        )

    def utility_classes(self, criteria: Criteria) -> tuple[Codes, Counts]:
        """Return the groups (int32) of each class that satisfies the criteria, and its size."""
        d = len(self.levels)
        requirements = criteria.requirements_among(self.pairs)
        rows, sizes = find_utility_classes(self.codes, self.counts, d, requirements)
        return self.codes[rows, :d], sizes

    def release(self) -> None:
        """Do nothing: memory is freed with the object."""
