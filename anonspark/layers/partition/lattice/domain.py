"""The groups that values fall into at every level of generalization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.columns import UNIT, quasi_identifier_column
from anonspark.core.criteria import Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.hierarchies.hierarchy import Hierarchy

Levels = tuple[int, ...]
"""One level for each quasi-identifier, 0 for values as they are."""

Codes = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class AttributeGroups:
    """The groups of one quasi-identifier, numbered in the order of its hierarchy at every level.

    Missing values, if they are a category, are the last group of every level but the highest, whose
    only group takes in everything. ``position`` is that of the quasi-identifier, which has a
    hierarchy, in the configuration.
    """

    quasi_identifier: QuasiIdentifier
    position: int

    @property
    def hierarchy(self) -> Hierarchy:
        """The hierarchy of the quasi-identifier."""
        hierarchy = self.quasi_identifier.hierarchy
        if hierarchy is None:
            raise ValueError(f"{self.quasi_identifier.name} has no hierarchy")
        return hierarchy

    @property
    def height(self) -> int:
        """The highest level."""
        return self.hierarchy.height

    def _missing(self, level: int) -> bool:
        return self.quasi_identifier.has_missing and level < self.height

    def _named(self, level: int) -> int:
        """Return how many groups the hierarchy has at a level."""
        if level == 0:
            return len(self.hierarchy.leaves)
        return len(self.hierarchy.levels[level - 1].starts)

    def number(self, level: int) -> int:
        """Return how many groups a level has, that of missing values among them."""
        # The highest level has a group even where no value is present.
        return max(self._named(level) + self._missing(level), 1)

    def first_leaves(self, level: int) -> Counts:
        """Return the code of the first leaf of each group that the hierarchy has at a level."""
        if level == 0:
            return np.arange(len(self.hierarchy.leaves))
        return np.array(self.hierarchy.levels[level - 1].starts, np.int64)

    def leaves(self, level: int) -> Counts:
        """Return how many values each group covers. Missing ones count as one value."""
        bounds = np.append(self.first_leaves(level), len(self.hierarchy.leaves))
        counts = np.diff(bounds)
        if self._missing(level):
            return np.append(counts, 1)
        if not len(counts):
            return np.ones(1, np.int64)
        return counts + 1 if self.quasi_identifier.has_missing else counts

    def of_codes(self, level: int) -> Codes:
        """Return the group at a level of every code of :meth:`QuasiIdentifier.encode`, int32."""
        # Leaves beyond the largest that occurs have no code: theirs may mean missing.
        codes = np.arange(self.quasi_identifier.highest + 1)
        groups = self._of_leaves(level)[codes]
        if self.quasi_identifier.has_missing:
            groups = np.append(groups, self.number(level) - 1)
        return groups.astype(np.int32)

    def between(self, low: int, high: int) -> Codes:
        """Return the group at a higher level of each group of a lower one, int32.

        >>> ages = Hierarchy.from_rows([("17", "10s", "*"), ("19", "10s", "*"), ("25", "20s", "*")])
        >>> age = QuasiIdentifier("age", "category", pa.string(), 0, 2, hierarchy=ages)
        >>> AttributeGroups(age, 0).between(0, 1).tolist()
        [0, 0, 1]
        """
        groups = self._of_leaves(high)[self.first_leaves(low)]
        if self._missing(low):
            groups = np.append(groups, self.number(high) - 1)
        return groups.astype(np.int32)

    def _of_leaves(self, level: int) -> Counts:
        leaves = np.arange(len(self.hierarchy.leaves))
        return np.searchsorted(self.first_leaves(level), leaves, side="right") - 1


@dataclass(frozen=True)
class Domain:
    """All columns of distinct tuples: the quasi-identifiers in their order there, and the criteria.

    The criteria decide which sensitive attributes are counted.
    """

    attributes: tuple[AttributeGroups, ...]
    criteria: Criteria

    @property
    def columns(self) -> int:
        """Number of columns of a table of distinct tuples.

        The quasi-identifiers and sensitive attributes, and the people if they are counted.
        """
        return len(self.attributes) + len(self.criteria.sensitive) + self.counts_units

    @property
    def counts_units(self) -> bool:
        """Return whether tuples have the person of their records."""
        return self.criteria.units is not None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the quasi-identifiers."""
        return tuple(attribute.quasi_identifier.name for attribute in self.attributes)

    @property
    def heights(self) -> Levels:
        """The highest level of each quasi-identifier."""
        return tuple(attribute.height for attribute in self.attributes)

    def groups(self, levels: Levels) -> list[int]:
        """Return the number of groups of each quasi-identifier at a node."""
        return [
            attribute.number(level)
            for attribute, level in zip(self.attributes, levels, strict=True)
        ]

    def first_groups(self, levels: Levels) -> Counts:
        """Return where the groups of each quasi-identifier begin if all are numbered through."""
        return np.cumsum([0, *self.groups(levels)])[:-1].astype(np.int64)

    def radices(self, levels: Levels) -> list[int]:
        """Return an upper bound of the codes of each column of a table of distinct tuples."""
        values = [int(last) for last in self.criteria.first_value[1:]]
        return [*self.groups(levels), *values]

    def encode(
        self, batch: pa.RecordBatch | pa.Table, levels: Levels
    ) -> tuple[Codes, Counts | None]:
        """Return the tuples (int32) of staged records at a node, and their people.

        The tuples lack the column of people. These are hashes (int64), or None without people.
        """
        codes = np.empty((batch.num_rows, self.columns - self.counts_units), np.int32)
        codes[:, : len(self.attributes)] = self.encode_groups(batch, levels)
        sensitive = zip(self.criteria.first_value, self.criteria.sensitive, strict=False)
        for index, (first, attribute) in enumerate(sensitive, start=len(self.attributes)):
            codes[:, index] = first + attribute.encode(batch.column(attribute.column))
        return codes, batch.column(UNIT).to_numpy() if self.counts_units else None

    def encode_groups(self, batch: pa.RecordBatch | pa.Table, levels: Levels) -> Codes:
        """Return the tuples of the quasi-identifiers only."""
        groups = np.empty((batch.num_rows, len(self.attributes)), np.int32)
        for index, (attribute, level) in enumerate(zip(self.attributes, levels, strict=True)):
            column = batch.column(quasi_identifier_column(attribute.position))
            groups[:, index] = attribute.of_codes(level)[attribute.quasi_identifier.encode(column)]
        return groups


def domain_of(quasi_identifiers: Sequence[QuasiIdentifier], criteria: Criteria) -> Domain:
    """Return the domain of a table.

    The quasi-identifiers of the largest hierarchies come first: a search raises the last one most
    often, from tables that are small for that.
    """
    attributes = [
        AttributeGroups(identifier, position)
        for position, identifier in enumerate(quasi_identifiers)
    ]
    attributes.sort(key=lambda attribute: (-attribute.number(0), attribute.position))
    return Domain(tuple(attributes), criteria)
