"""Layer 3: in each group, the records that stay together and those that get another round."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from anonspark.core.arrays import Figures, Flags, Integers
from anonspark.core.encoding import QuasiIdentifier
from anonspark.kernels.criteria import Requirements
from anonspark.kernels.paying_separation import Spans, separate_where_paying
from anonspark.kernels.separation import separate_outliers


class GroupedRecords(NamedTuple):
    """Records of groups, as :mod:`anonspark.kernels.separation` takes them."""

    codes: Integers
    normalized: Figures
    values: Integers
    order: Integers
    starts: Integers
    requirements: Requirements


@dataclass(frozen=True)
class OutlierSeparation:
    """Finds the records that a group keeps. It travels to the workers and holds plain values only.

    A record is compared with so many ``neighbors``. With ``by_density``, the reference is the point
    with the smallest sum of distances to its neighbours, not the smallest local outlier factor.
    """

    neighbors: int
    by_density: bool

    @abstractmethod
    def normal_records(self, records: GroupedRecords) -> Flags:
        """Return whether each of ``order`` stays."""


@dataclass(frozen=True)
class PublishedSeparation(OutlierSeparation):
    """Keeps the k records nearest to each group's reference, as published (docs/algorithms.md)."""

    def normal_records(self, records: GroupedRecords) -> Flags:
        """Return whether each of ``order`` stays."""
        normal: Flags = separate_outliers(*records, self.neighbors, self.by_density)
        return normal


@dataclass(frozen=True)
class PayingSeparation(OutlierSeparation):
    """Gives records up only if the release loses less without them.

    ``price`` is the certainty penalty that a record that is given up is expected to have elsewhere.
    """

    quasi_identifiers: tuple[QuasiIdentifier, ...]
    price: float

    @cached_property
    def _spans(self) -> Spans:
        return penalty_arrays(self.quasi_identifiers)

    def normal_records(self, records: GroupedRecords) -> Flags:
        """Return whether each stays. See :mod:`anonspark.kernels.paying_separation`."""
        stays: Flags = separate_where_paying(
            *records, self._spans, self.neighbors, self.by_density, self.price
        )
        return stays


def penalty_arrays(quasi_identifiers: Sequence[QuasiIdentifier]) -> Spans:
    """Flatten quasi-identifiers into the arrays from which kernels compute certainty penalties.

    The missing code of one without missing values never occurs. Among present values, missing ones
    widen numbers and trees to the whole range, not categories without a tree. A node costs the
    share of the leaves below it, and a single leaf nothing.
    """
    no_code = np.iinfo(np.int64).max
    first_node, nodes, shares = [0], [np.zeros(0, np.int64)], [np.zeros(0)]
    for identifier in quasi_identifiers:
        if identifier.hierarchy is not None:
            leaves = np.arange(len(identifier.categories))
            for level in range(identifier.hierarchy.height + 1):
                nodes.append(identifier.hierarchy.nodes(level, leaves))
                covered = identifier.hierarchy.leaf_counts(level, leaves)
                shares.append(np.where(covered > 1, covered / max(len(leaves), 1), 0.0))
        first_node.append(sum(map(len, nodes)))
    return Spans(
        weights=np.array([identifier.weight for identifier in quasi_identifiers], np.float64),
        missing=np.array(
            [
                identifier.missing_code if identifier.has_missing else no_code
                for identifier in quasi_identifiers
            ],
            np.int64,
        ),
        is_whole=np.array(
            [
                identifier.has_missing
                and (identifier.hierarchy is not None or not identifier.is_category)
                for identifier in quasi_identifiers
            ]
        ),
        first_node=np.array(first_node, np.int64),
        leaves=np.array([len(identifier.categories) for identifier in quasi_identifiers], np.int64),
        nodes=np.concatenate(nodes),
        shares=np.concatenate(shares),
    )
