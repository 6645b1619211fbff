"""Measure which ends of published ranges isolate one record of the original."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from anonspark.core.arrays import Integers
from anonspark.core.grids import gap
from anonspark.engine.protocol import Table
from anonspark.labels.raw_records import PreparedTable
from anonspark.labels.region_matching import LabelledTable, RegionReader, class_columns
from anonspark.labels.regions import (
    Interval,
    Number,
    OrderedRegion,
    PublishedAttribute,
    Region,
    read_regions,
)
from anonspark.verification.attacks.presence import count_records

_MOST_ENDS = 400_000
"""Of more ends, or of a sample of the classes, some are measured: regions travel to every task."""


@dataclass(frozen=True)
class Ends:
    """The ends of ranges of numbers and times, and those that isolate one record.

    A range of several values has two ends, if it is not open. ``by_value`` are ends that are the
    value of one original record among those with the other labels of the class, ``by_strip`` ends
    in whose strip of the grid one such record lies. Without a grid a strip is a value.
    """

    ends: int
    by_value: int
    by_strip: int


def measure_ends(labels: LabelledTable, original: Table, *, drops_missing: bool) -> Ends:
    """Count the original records at each end of each range, of those that the class may hold.

    Two jobs over the original's quasi-identifiers, each with a shuffle of a count an end and task.
    """
    prepared = labels.prepare(original, "original", drops_missing=drops_missing)
    rows, (by_value, by_strip) = _count_at_ends(labels, prepared, (False, True))
    return Ends(len(rows), int((by_value == 1).sum()), int((by_strip == 1).sum()))


def keys_of_proven(labels: LabelledTable, population: Table) -> Integers:
    """Return the keys of classes in which a person of a population is proven to be.

    A range ends at a value of its class, or within a step of the grid from one. So a person who
    alone has the labels of a class and lies there is in it. One job like :func:`measure_ends`.
    """
    prepared = labels.prepare(population, "population")
    rows, (by_strip,) = _count_at_ends(labels, prepared, (True,))
    proven: Integers = labels.classes["key"].to_numpy()[rows[by_strip == 1]]
    return proven


def _count_at_ends(
    labels: LabelledTable, prepared: PreparedTable, strips: Sequence[bool]
) -> tuple[Integers, list[Integers]]:
    """Return the class of each end, and the records there: by value, or in the strip of a step."""
    ends = _ends_of_ranges(labels)
    rows = np.concatenate([np.zeros(0, np.int64), *(rows for *_, rows in ends)])
    if not len(rows):
        return rows, [rows for _ in strips]
    classes = labels.classes.take(pa.array(rows))
    reader = RegionReader(labels.attributes, prepared.compared_as, labels.leaves)
    counts = []
    for in_strip in strips:
        search = reader.search(classes, _Narrow(labels.attributes, ends, in_strip))
        counts.append(count_records(prepared, search, labels.attributes))
    return rows, counts


def _ends_of_ranges(labels: LabelledTable) -> list[tuple[int, int, Integers]]:
    """List attribute, side (0 is lower) and classes of the ends, every n-th of too many."""
    ends: list[tuple[int, int, Integers]] = []
    for index, attribute in enumerate(labels.attributes):
        if attribute.is_category or attribute.rule or attribute.name in labels.leaves:
            continue
        columns = class_columns(labels.classes, labels.attributes, index)
        regions, numbers = read_regions(columns, attribute)
        for side in (0, 1):
            has_end = [_end(region, side, attribute) is not None for region in regions]
            ends.append((index, side, np.flatnonzero(np.array(has_end, bool)[numbers])))
    step = -(-sum(len(rows) for *_, rows in ends) // _MOST_ENDS) or 1
    return [(index, side, rows[::step]) for index, side, rows in ends]


@dataclass(frozen=True)
class _Narrow:
    """Replaces regions by their ends, in classes that are repeated for each of their ends."""

    attributes: Sequence[PublishedAttribute]
    ends: Sequence[tuple[int, int, Integers]]
    in_strip: bool

    def __call__(
        self, index: int, regions: Sequence[Region], numbers: Integers
    ) -> tuple[Sequence[Region], Integers]:
        """Return the regions of an attribute with their ends, and the number of each class's."""
        attribute, narrowed, numbers = self.attributes[index], list(regions), numbers.copy()
        bounds = np.cumsum([len(rows) for *_, rows in self.ends])[:-1]
        for (end_of, side, _), part in zip(self.ends, np.split(numbers, bounds), strict=True):
            if end_of == index:
                part[:] += len(narrowed)  # a view of the numbers
                narrowed += [_at_end(r, side, attribute, in_strip=self.in_strip) for r in regions]
        return narrowed, numbers


def _end(region: Region, side: int, attribute: PublishedAttribute) -> Number | None:
    """Return the lower or upper end of a range, or None if it has none or a public bound."""
    if not isinstance(region, OrderedRegion) or len(region.intervals or ()) != 1:
        return None
    (interval,) = region.intervals or ()
    end = interval.high if side else interval.low
    if isinstance(end, str) or not np.isfinite(float(end)) or interval.low == interval.high:
        return None
    return None if end in (attribute.bottom, attribute.top) else end


def _at_end(region: Region, side: int, attribute: PublishedAttribute, *, in_strip: bool) -> Region:
    """Return the end of a range as a region: its value, or its strip of the grid."""
    end = _end(region, side, attribute)
    if end is None:
        return region
    if not in_strip:
        return OrderedRegion((Interval(end, end),), False)
    # If a strip ends at the next line of the grid, that line belongs to the next strip.
    is_after = side == 1 and gap(attribute.kind) == 0 and attribute.grid is not None
    return OrderedRegion((Interval(*attribute.strip(Fraction(end), before=is_after)),), False)
