"""Sums of products of all attributes, of which associations are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from anonspark.core.arrays import Figures
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading
from anonspark.engine.tasks import Batches
from anonspark.release.raw_values import comparable
from anonspark.release.regions import Leaves, PublishedAttribute, read_regions
from anonspark.reporting.association import SCALE, Part, weighted_products
from anonspark.reporting.attributes import Attribute, Axis
from anonspark.reporting.axes import GroupAxis, OrderedAxis
from anonspark.utility.records import cells_of, sum_cells


@dataclass(frozen=True)
class Reader:
    """Reads the columns of one attribute in a worker.

    Parameters
    ----------
    name : str
        Of the attribute.
    axis : OrderedAxis or GroupAxis
    columns : tuple of str
        Of the table. None where it lacks the attribute.
    published : PublishedAttribute or None
        None where the columns hold values, as numbers, times or texts.
    leaves : mapping of str to collection of str, or None
        What the labels of its hierarchy's file stand for.
    read_as : pyarrow.DataType or None
        Of the values, see :class:`~anonspark.engine.raw_columns.Reading`.
    """

    name: str
    axis: Axis
    columns: tuple[str, ...]
    published: PublishedAttribute | None = None
    leaves: Leaves | None = None
    read_as: pa.DataType | None = None

    def read(self, batch: pa.RecordBatch) -> Figures:
        """Return the columns of :mod:`~anonspark.reporting.association`, of shape (rows, width)."""
        if not self.columns:
            return np.zeros((batch.num_rows, self.axis.width))
        arrays = [batch.column(name) for name in self.columns]
        if self.published is not None:
            regions, numbers = read_regions(arrays, self.published, self.leaves, means=True)
            return self.axis.of_regions(regions)[numbers]
        if isinstance(self.axis, GroupAxis):
            return self.axis.columns(arrays[0])
        values = comparable(arrays[0]).fill_null(np.nan)
        return self.axis.columns(values.to_numpy(zero_copy_only=False))


def readers_of_release(attributes: Sequence[Attribute]) -> list[Reader]:
    """Return what reads attributes in a release."""
    return [
        Reader(
            attribute.name,
            attribute.axis,
            tuple(attribute.columns),
            attribute.published,
            attribute.leaves,
            attribute.read_as,
        )
        for attribute in attributes
        if attribute.axis is not None
    ]


@dataclass(frozen=True)
class _SumUp:
    """Sums up the products of all columns of a task."""

    readers: tuple[Reader, ...]

    def __call__(self, batches: Batches) -> Batches:
        width = sum(reader.axis.width for reader in self.readers)
        total = np.zeros((width, width), np.int64)
        for batch in batches:
            if batch.num_rows:
                total += weighted_products(
                    np.hstack([reader.read(batch) for reader in self.readers])
                )
        yield cells_of(total.reshape(-1))


def sum_of_products(table: Table, readers: Sequence[Reader]) -> tuple[Figures, list[Part]]:
    """Sum up the products of all pairs of columns. One pass, a shuffle of some thousand sums."""
    parts: list[Part] = []
    columns: dict[str, str] = {}
    readings: list[Reading] = []
    numbered: list[Reader] = []
    place = 0
    for reader in readers:
        stop = place + reader.axis.width
        parts.append(Part(reader.name, isinstance(reader.axis, OrderedAxis), slice(place, stop)))
        place = stop
        # Numbered, so that no published name clashes with ours.
        names = {f"column_{len(columns) + at}": name for at, name in enumerate(reader.columns)}
        columns |= names
        numbered.append(replace(reader, columns=tuple(names)))
        if reader.published is None:
            readings += [Reading(new, f"read_{new}", reader.read_as) for new in names]
            numbered[-1] = replace(reader, columns=tuple(f"read_{new}" for new in names))
    if not numbered:
        return np.zeros((0, 0)), parts
    as_they_are = [name for name in columns if name not in {one.column for one in readings}]
    read = table.select(columns).read(readings, as_they_are)
    sums = sum_cells(read, _SumUp(tuple(numbered)), place * place)
    return sums.reshape(place, place) / SCALE**2, parts
