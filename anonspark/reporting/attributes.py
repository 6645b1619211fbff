"""The attributes that a report shows, and how their values are read on both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from anonspark.core.hierarchies.files import BLANKS
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.raw_columns import Reading
from anonspark.release.manifest import Manifest
from anonspark.release.regions import (
    Leaves,
    PublishedAttribute,
    leaves_by_label,
    published_attributes,
)
from anonspark.reporting.bins import Scale

_SCALES: dict[str, Scale] = {
    "integer": "whole",
    "float": "real",
    "decimal": "real",
    "number": "real",
    "date": "date",
    "timestamp": "timestamp",
}

_READ_AS = {None: pa.string(), "date": pa.date32(), "timestamp": pa.timestamp("us")}


@dataclass
class Attribute:
    """One attribute of the report, and how it is read on both sides.

    Parameters
    ----------
    name : str
    published : PublishedAttribute or None
        None for attributes that are published as they are.
    scale : Scale or None
        None for categories.
    hierarchy : Hierarchy or None
        That of a file.
    """

    name: str
    published: PublishedAttribute | None
    scale: Scale | None
    hierarchy: Hierarchy | None = None

    @property
    def kind(self) -> str:
        """What its values are, or the rule that generalizes them."""
        return "" if self.published is None else self.published.rule or self.published.kind

    @property
    def columns(self) -> Sequence[str]:
        """Its columns in the release."""
        return (self.name,) if self.published is None else self.published.columns

    @property
    def by_hierarchy(self) -> bool:
        """Return whether its labels are those of a hierarchy."""
        rule = None if self.published is None else self.published.rule
        return self.hierarchy is not None or rule is not None

    @property
    def leaves(self) -> Leaves | None:
        """The values that each label of its hierarchy's file stands for."""
        return None if self.hierarchy is None else leaves_by_label(self.hierarchy)

    @property
    def read_as(self) -> pa.DataType:
        """The type that raw values are read as."""
        return _READ_AS.get(self.scale, pa.float64())

    def reading(self, column: str, name: str, markers: Sequence[str]) -> Reading:
        """Return how raw values are read.

        Parameters
        ----------
        column, name : str
            See :class:`~anonspark.engine.raw_columns.Reading`.
        markers : sequence of str
            Texts that mean missing.
        """
        # Labels of hierarchies know 17.0 as 17, and texts without blanks at their ends.
        as_labels = self.scale is None and self.by_hierarchy
        blanks = BLANKS if as_labels else ""
        return Reading(column, name, self.read_as, tuple(markers), blanks=blanks, whole=as_labels)


def quasi_identifiers_of(
    manifest: Manifest, hierarchies: Mapping[str, Hierarchy]
) -> list[Attribute]:
    """Return the quasi-identifiers of a release."""
    return [
        Attribute(
            attribute.name,
            attribute,
            None if attribute.is_category or attribute.is_code else _SCALES[attribute.kind],
            None if attribute.rule else hierarchies.get(attribute.name),
        )
        for attribute in published_attributes(manifest)
    ]
