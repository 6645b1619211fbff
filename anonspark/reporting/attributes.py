"""The attributes that a report shows, and how their values are read on both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.hierarchies.files import BLANKS
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading
from anonspark.engine.tasks import Batches
from anonspark.engine.values.grouping import Aggregate, aggregate
from anonspark.labels.regions import (
    Leaves,
    PublishedAttribute,
    leaves_by_label,
    published_attributes,
)
from anonspark.release.manifest import Manifest
from anonspark.reporting.bins import Scale
from anonspark.staged.records import together

RECORDS = "records"

_INDEX = "place"
_PART_BYTES = 2**25


def count_values(
    table: Table,
    columns: Mapping[int, Sequence[str]],
    most: int | None = None,
) -> dict[int, pa.Table]:
    """Count the records of each different value of several attributes.

    ``columns`` are those of each attribute by its index. The result has them and :data:`RECORDS`.
    At most ``most`` rows are collected. One pass, and one shuffle of the counts of tasks.
    """
    names = [name for column in columns.values() for name in column]
    fields = [table.schema.field(name) for name in names]
    schema = pa.schema([(_INDEX, pa.int32()), *fields, (RECORDS, pa.int64())])
    parts = table.select(names).map_batches(_CountEach(columns, schema), schema)
    counted = parts.aggregate([_INDEX, *names], sums=[RECORDS])
    collected = counted.collect(most)
    return {
        index: collected.filter(pc.field(_INDEX) == index).select([*column, RECORDS])
        for index, column in columns.items()
    }


@dataclass(frozen=True)
class _CountEach:
    """Counts the values of each attribute in a task, with nulls in the columns of the others."""

    columns: Mapping[int, Sequence[str]]
    schema: pa.Schema

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        count = Aggregate(RECORDS, "count", "", pa.int64())
        for rows in together(batches, _PART_BYTES):
            for index, names in self.columns.items():
                counted = aggregate(rows.select(names), names, [count])
                indices = pa.repeat(pa.scalar(index, pa.int32()), len(counted))
                both = [self.schema.empty_table(), counted.append_column(_INDEX, indices)]
                yield from pa.concat_tables(both, promote_options="default").to_batches()


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

    ``published`` is None for attributes that are published as they are, ``scale`` for categories.
    ``hierarchy`` is one of a file.
    """

    name: str
    published: PublishedAttribute | None
    scale: Scale | None
    hierarchy: Hierarchy | None = None

    @property
    def kind(self) -> str:
        """The kind of its values, or the rule that generalizes them."""
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
        """Describe how a raw column is read under a name. ``markers`` mean missing."""
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
