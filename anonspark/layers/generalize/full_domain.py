"""Layer 5 of full-domain recoding: every value of an attribute replaced at the same level."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Figures, Integers
from anonspark.core.labels import MISSING, hierarchy_label
from anonspark.layers.generalize.classes import ClassFigures, PublishedColumn
from anonspark.layers.partition.lattice.domain import AttributeGroups, Levels

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True)
class RecodedAttribute:
    """The labels of the groups of one attribute, and their penalties and losses.

    See :class:`anonspark.layers.generalize.classes.ClassFigures`.
    """

    labels: pa.Array
    penalties: Figures
    losses: Figures


def recode(attribute: AttributeGroups, level: int) -> RecodedAttribute:
    """Return the labels of an attribute's groups at a level, with their penalties and losses."""
    quasi_identifier, hierarchy = attribute.quasi_identifier, attribute.hierarchy
    has_no_values = not hierarchy.leaves
    may_be_missing = (
        quasi_identifier.has_missing and level == attribute.height and not has_no_values
    )
    labels = [
        hierarchy_label(label, with_missing=may_be_missing)
        for label in hierarchy.labels(level, attribute.first_leaves(level)).tolist()
    ]
    if quasi_identifier.has_missing and not may_be_missing:
        labels.append(MISSING)
    covered = attribute.leaves(level)
    shares = np.where(covered > 1, covered / max(len(hierarchy.leaves), 1), 0.0)
    if may_be_missing:
        # Any value may be missing, so such a class shows nothing for sure.
        shares[:] = 1.0
    return RecodedAttribute(
        labels=pa.array(labels, pa.string()),
        penalties=shares,
        losses=(covered - 1) / max(quasi_identifier.domain_size, 1),
    )


@dataclass(frozen=True)
class FullDomainRecoding:
    """Publishes every quasi-identifier at one level of its hierarchy.

    ``columns`` are those of the release that describe quasi-identifiers: one label each.
    """

    attributes: tuple[AttributeGroups, ...]
    levels: Levels
    columns: tuple[PublishedColumn, ...]

    @cached_property
    def _recoded(self) -> list[RecodedAttribute]:
        pairs = zip(self.attributes, self.levels, strict=True)
        return [recode(attribute, level) for attribute, level in pairs]

    @cached_property
    def _indices(self) -> list[int]:
        """Index among the attributes of each quasi-identifier of the configuration."""
        places = range(len(self.attributes))
        return sorted(places, key=lambda index: self.attributes[index].position)

    def publish(self, groups: Codes) -> list[pa.Array]:
        """Return the published columns, one element a row.

        ``groups`` (int32, shape (n, d)) is the group of each quasi-identifier at its level, in the
        order of :attr:`attributes`.
        """
        published = []
        for column in self.columns:
            index = self._indices[column.attribute]
            recoded = self._recoded[index]
            published.append(recoded.labels.take(pa.array(groups[:, index])))
        return published

    def names(self, groups: Codes) -> list[pa.Array]:
        """Return the labels that name classes, in configuration order, null for missing values.

        ``groups`` is that of :meth:`publish`. Numbers of groups would depend on what else the input
        holds, and so on records that are left out.
        """
        names = []
        for index in self._indices:
            attribute, level = self.attributes[index], self.levels[index]
            first = attribute.first_leaves(level)
            labels = pa.array(attribute.hierarchy.labels(level, first).tolist(), pa.string())
            numbers = pa.array(groups[:, index])
            beyond = pc.greater_equal(numbers, len(labels))
            names.append(labels.take(pc.if_else(beyond, pa.scalar(None, pa.int32()), numbers)))
        return names

    def figures(self, groups: Codes, sizes: Integers) -> ClassFigures:
        """Return the losses of classes, with labels as bounds, in the order of the configuration.

        ``groups`` is that of :meth:`publish`.
        """
        # No values: those of a rule's hierarchy are the input's, also of records that are left out.
        labels = []
        penalties = np.empty(groups.shape)
        losses = np.empty(groups.shape)
        for index, column in enumerate(self._indices):
            recoded = self._recoded[column]
            numbers = groups[:, column]
            arrow_type = self.attributes[column].quasi_identifier.arrow_type
            labels.append(recoded.labels.take(pa.array(numbers)).cast(arrow_type))
            penalties[:, index] = recoded.penalties[numbers]
            losses[:, index] = recoded.losses[numbers]
        published = [self.levels[column] for column in self._indices]
        levels = np.tile(np.array(published, np.int64), (len(groups), 1))
        return ClassFigures(sizes, labels, labels, levels, penalties, losses)
