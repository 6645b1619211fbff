"""Layer 5 of full-domain recoding: every value of an attribute replaced at the same level."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.full_domain.domain import AttributeGroups, Levels
from anonspark.generalize.classes import ClassFigures, PublishedColumn
from anonspark.generalize.labels import MISSING, hierarchy_label

__all__ = ["FullDomainRecoding"]

Codes = npt.NDArray[np.int32]
Figures = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _RecodedAttribute:
    """What the groups of one attribute are published as, and what they lose."""

    labels: pa.Array
    sets: pa.Array
    lowest: pa.Array
    highest: pa.Array
    penalties: Figures
    losses: Figures


def _recode(attribute: AttributeGroups, level: int) -> _RecodedAttribute:
    quasi_identifier, hierarchy = attribute.quasi_identifier, attribute.hierarchy
    first = attribute.first_leaves(level)
    stops = np.append(first[1:], len(hierarchy.leaves))
    everything = quasi_identifier.has_missing and level == attribute.height
    labels = [
        hierarchy_label(label, with_missing=everything)
        for label in hierarchy.labels(level, first).tolist()
    ]
    sets: list[list[str | None]] = [
        [*hierarchy.leaves[start:stop], *([None] * everything)]
        for start, stop in zip(first.tolist(), stops.tolist(), strict=True)
    ]
    ends: list[list[str | None]] = [
        [hierarchy.leaves[place] for place in places] for places in (first, stops - 1)
    ]
    if quasi_identifier.has_missing and not everything:
        labels.append(MISSING)
        sets.append([None])
        for end in ends:
            end.append(None)
    covered = attribute.leaves(level)
    shares = np.where(covered > 1, covered / max(len(hierarchy.leaves), 1), 0.0)
    if everything:
        # Anything may be missing: such a class tells nothing for sure.
        shares[:] = 1.0
    lowest, highest = (pa.array(end, quasi_identifier.arrow_type) for end in ends)
    return _RecodedAttribute(
        labels=pa.array(labels, pa.string()),
        sets=pa.array(sets, pa.list_(pa.string())),
        lowest=lowest,
        highest=highest,
        penalties=shares,
        losses=(covered - 1) / quasi_identifier.domain_size,
    )


@dataclass(frozen=True)
class FullDomainRecoding:
    """Publishes every quasi-identifier at one level of its hierarchy.

    Parameters
    ----------
    attributes : tuple of AttributeGroups
    levels : tuple of int
        One level for each.
    columns : tuple of PublishedColumn
        Columns of the release that tell of quasi-identifiers: labels, or sets of values.
    """

    attributes: tuple[AttributeGroups, ...]
    levels: Levels
    columns: tuple[PublishedColumn, ...]

    @cached_property
    def _recoded(self) -> list[_RecodedAttribute]:
        pairs = zip(self.attributes, self.levels, strict=True)
        return [_recode(attribute, level) for attribute, level in pairs]

    @cached_property
    def _places(self) -> list[int]:
        """Place among the attributes of each quasi-identifier of the configuration."""
        places = range(len(self.attributes))
        return sorted(places, key=lambda place: self.attributes[place].position)

    def publish(self, groups: Codes) -> list[pa.Array]:
        """Return the published columns.

        Parameters
        ----------
        groups : int32 ndarray of shape (n, d)
            Group of each quasi-identifier at its level, in the order of :attr:`attributes`.

        Returns
        -------
        list of pyarrow.Array
            One entry a row, for each of :attr:`columns`.
        """
        published = []
        for column in self.columns:
            place = self._places[column.attribute]
            recoded = self._recoded[place]
            values = recoded.sets if column.content == "set" else recoded.labels
            published.append(values.take(pa.array(groups[:, place])))
        return published

    def figures(self, groups: Codes, sizes: npt.NDArray[np.int64]) -> ClassFigures:
        """Return the bounds and the loss of classes, in the order of the configuration.

        Parameters
        ----------
        groups : int32 ndarray of shape (classes, d)
            In the order of :attr:`attributes`.
        sizes : int64 ndarray of shape (classes,)
        """
        ends: dict[str, list[pa.Array]] = {"lowest": [], "highest": []}
        penalties = np.empty(groups.shape)
        losses = np.empty(groups.shape)
        for index, place in enumerate(self._places):
            recoded = self._recoded[place]
            own = groups[:, place]
            for name, arrays in ends.items():
                arrays.append(getattr(recoded, name).take(pa.array(own)))
            penalties[:, index] = recoded.penalties[own]
            losses[:, index] = recoded.losses[own]
        own_levels = [self.levels[place] for place in self._places]
        levels = np.tile(np.array(own_levels, np.int64), (len(groups), 1))
        return ClassFigures(sizes, ends["lowest"], ends["highest"], levels, penalties, losses)
