"""Compare nodes by their cost, and by a lower bound of the cost of all nodes above."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from anonspark.config.models import ObjectiveName
from anonspark.core.arrays import Figures
from anonspark.layers.partition.lattice.domain import AttributeGroups, Domain, Levels
from anonspark.layers.partition.lattice.tuples import NodeScore

Counts = npt.NDArray[np.int64]

# Decimals of a cost: last digits, which differ among machines, must not decide between nodes.
_DECIMALS = 6


class Objective(ABC):
    """The objective that the search minimizes.

    ``by_group`` says whether a cost depends on the records of each group.
    """

    by_group: ClassVar[bool] = False

    @abstractmethod
    def cost(self, levels: Levels, score: NodeScore) -> float:
        """Return what a node costs. The smaller the better."""

    @abstractmethod
    def least_cost_above(self, levels: Levels, score: NodeScore) -> float:
        """Return a lower bound of the cost of a node and all that generalize it, from its score."""

    def least_cost(self, levels: Levels) -> float:  # noqa: ARG002
        """Return a lower bound without a score: from the levels alone."""
        return -np.inf


class AverageClassSize(Objective):
    """Prefers most utility classes, which is the smallest average size of classes."""

    def cost(self, levels: Levels, score: NodeScore) -> float:  # noqa: ARG002
        """Return the number of utility classes, negative."""
        return -float(score.utility_classes)

    def least_cost_above(self, levels: Levels, score: NodeScore) -> float:  # noqa: ARG002
        """Return the number of all classes, negative: generalizing never adds any."""
        return -float(score.classes)


class Discernibility(Objective):
    """Sums squared class sizes, and ``rows``, the whole table, for every suppressed record."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def cost(self, levels: Levels, score: NodeScore) -> float:  # noqa: ARG002
        """Return the discernibility metric."""
        return score.utility_squares + self._rows * score.suppressed

    def least_cost_above(self, levels: Levels, score: NodeScore) -> float:  # noqa: ARG002
        """Return the squares of all classes: merging never makes them smaller."""
        return score.squares


class MonotonicDiscernibility(Objective):
    """Sums squared class sizes, suppressed classes included: no node above costs less."""

    def cost(self, levels: Levels, score: NodeScore) -> float:  # noqa: ARG002
        """Return the squares of all classes."""
        return score.squares

    def least_cost_above(self, levels: Levels, score: NodeScore) -> float:  # noqa: ARG002
        """Return the squares of all classes: merging never makes them smaller."""
        return score.squares


class ValueCost(Objective):
    """A cost of every value by the group that it falls into. Suppressed values cost the most.

    ``costs`` are, for each quasi-identifier and level, the cost of one value of each group, weight
    included, never smaller at a higher level, and ``records`` the table's records in each group.
    ``suppressed`` is the cost of a suppressed record.
    """

    by_group = True

    def __init__(
        self,
        costs: Sequence[Sequence[Figures]],
        suppressed: float,
        records: Sequence[Sequence[Counts]],
    ) -> None:
        self._costs = costs
        self._suppressed = suppressed
        self._least = [
            [_total(level_costs, counts) for level_costs, counts in zip(cost, ours, strict=True)]
            for cost, ours in zip(costs, records, strict=True)
        ]

    def cost(self, levels: Levels, score: NodeScore) -> float:
        """Return the costs of all values."""
        costs_of_levels = [costs[level] for costs, level in zip(self._costs, levels, strict=True)]
        values = _total(np.concatenate(costs_of_levels), score.groups)
        return round(values + score.suppressed * self._suppressed, _DECIMALS)

    def least_cost_above(self, levels: Levels, score: NodeScore) -> float:  # noqa: ARG002
        """Return the cost without suppression, see :meth:`least_cost`."""
        return self.least_cost(levels)

    def least_cost(self, levels: Levels) -> float:
        """Return what the node costs if nothing is suppressed, less what rounding may add."""
        least = sum(least[level] for least, level in zip(self._least, levels, strict=True))
        return least - 10.0**-_DECIMALS


def _total(costs: Figures, counts: Counts) -> float:
    # Rounded once, so that every machine gets the same digits.
    return math.fsum((costs * counts).tolist())


def create_objective(
    name: ObjectiveName, domain: Domain, lowest: Levels, records: Sequence[Counts]
) -> Objective:
    """Create the objective of a configuration.

    ``lowest`` is the node that all others generalize, and ``records`` the table's records in each
    group of each quasi-identifier at that node.
    """
    rows = int(records[0].sum())
    if name == "average_class_size":
        return AverageClassSize()
    if name == "discernibility":
        return Discernibility(rows)
    if name == "monotonic_discernibility":
        return MonotonicDiscernibility()
    costs: list[list[Figures]] = []
    counts: list[list[Counts]] = []
    suppressed = 0.0
    for attribute, low, record in zip(domain.attributes, lowest, records, strict=True):
        weight = attribute.quasi_identifier.weight
        suppressed += weight * (math.log2(rows) if name == "entropy" else 1.0)
        costs.append([np.zeros(0)] * low)
        counts.append([np.zeros(0, np.int64)] * low)
        for level in range(low, attribute.height + 1):
            groups = np.zeros(attribute.number(level), np.int64)
            np.add.at(groups, attribute.between(low, level), record)
            counts[-1].append(groups)
            costs[-1].append(weight * _value_costs(name, attribute, level, groups))
    return ValueCost(costs, suppressed, counts)


def _value_costs(
    name: ObjectiveName, attribute: AttributeGroups, level: int, records: Counts
) -> Figures:
    """Return the cost of one value of each group of a level, without the weight."""
    if name == "precision":
        return np.full(len(records), level / attribute.height)
    if name == "loss":
        domain = int(attribute.leaves(attribute.height)[0])
        return (attribute.leaves(level) - 1) / max(domain - 1, 1)
    # Bits that identify the value among all that the group covers, without the bits of the values
    # themselves, which are the same for all nodes.
    return np.array([math.log2(max(count, 1)) for count in records.tolist()])
