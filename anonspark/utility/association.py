"""Measure the association of each attribute with a target, in a release and its original.

Values of the original are put into bins (:mod:`anonspark.utility.class_counts`). A release shows
how many records of each class a bin has, with every published value spread evenly over what it
covers (:mod:`anonspark.core.association`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from anonspark.core.arrays import Integers
from anonspark.core.association import association_loss, removed_uncertainty
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading
from anonspark.engine.tasks import Batches
from anonspark.errors import DataError
from anonspark.labels.regions import Leaves, PublishedAttribute
from anonspark.staged.records import together
from anonspark.utility.bins import Bins
from anonspark.utility.class_counts import count_classes
from anonspark.utility.learning import PART_BYTES, Target, class_numbers, count_pairs
from anonspark.utility.records import cells_of, require_published, sum_cells

# Sums are whole multiples of this, so that their order does not matter.
_UNIT = 2.0**-30


@dataclass(frozen=True)
class AttributeAssociation:
    """The association of one attribute with a target.

    ``before`` is the share of the target's uncertainty that the values of the original remove, and
    ``after`` the share that is removed for a reader who believes the release: below 0 if it
    misleads. Both are None if the target is constant.
    """

    name: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Association:
    """The association of a release's quasi-identifiers with a target, in the order of their names.

    ``loss`` is 0 for a release that is its original, about 1 without any information, and None if
    the original holds none.
    """

    target: str
    attributes: list[AttributeAssociation]
    loss: float | None

    @property
    def by_name(self) -> dict[str, AttributeAssociation]:
        """The attributes by their names."""
        return {attribute.name: attribute for attribute in self.attributes}


def measure_association(
    release: Table,
    original: Table,
    attributes: Sequence[PublishedAttribute],
    leaves: Mapping[str, Leaves],
    target: Target,
    missing_markers: Sequence[str],
    *,
    drops_missing: bool = False,
) -> Association:
    """Measure how much of the association of quasi-identifiers with a target a release keeps.

    The target is published as it is. Records without a target are left out, and with
    ``drops_missing`` also those with another missing value, which were not published. ``leaves``
    belong to attributes that the hierarchy of a file generalizes. Raises DataError if columns are
    absent, or labels cannot be read. Costs :func:`~anonspark.utility.class_counts.count_classes`
    over the original, and one pass over the release without a shuffle of records. Each different
    label of a part of a task takes Python time, except plain values and intervals.
    """
    counted = count_classes(
        original,
        attributes,
        leaves,
        target,
        missing_markers,
        drops_missing=drops_missing,
    )
    bins = tuple(binned.bins for binned in counted)
    columns = [part.axis.columns for part in bins]
    require_published(release, columns)
    spread = _SpreadClasses(bins, target, target.reading(release))
    published = release.select([*(name for column in columns for name in column), target.name])
    classes = len(target.classes)
    starts = _starts(bins, classes)
    names = [part.axis.name for part in bins]
    flat = sum_cells(published, spread, int(starts[-1]) + classes, names)
    tables = [part.reshape(-1, classes) for part in np.split(flat, starts[1:])]
    results = []
    released = (tables[-1][0] * _UNIT).astype(np.int64)
    # Classes of the target that no record here has do not count.
    occurs = np.any([binned.records.sum(axis=0) > 0 for binned in counted], axis=0) | (released > 0)
    for binned, sums in zip(counted, tables, strict=False):
        records = binned.records[:, occurs]
        before = removed_uncertainty(records, records.astype(np.float64), records.sum(axis=0))
        after = removed_uncertainty(records, sums[:, occurs] * _UNIT, released[occurs])
        results.append(AttributeAssociation(binned.bins.axis.name, before, after))
    loss = association_loss(
        [attribute.before for attribute in results], [attribute.after for attribute in results]
    )
    return Association(target.name, results, loss)


def _starts(bins: Sequence[Bins], classes: int) -> Integers:
    """Return where the sums of each attribute begin, in a flat array of bins by classes."""
    return np.cumsum([0, *(part.number * classes for part in bins)])


@dataclass(frozen=True)
class _SpreadClasses:
    """Spreads a task's classes over the bins, in units of 2**-30."""

    bins: tuple[Bins, ...]
    target: Target
    reading: Reading

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        """Sum the parts of all records by bin and class, and note unreadable attributes."""
        classes = len(self.target.classes)
        starts = _starts(self.bins, classes)
        sums = np.zeros(starts[-1] + classes, np.int64)
        unreadable: set[int] = set()
        for records in together(batches, PART_BYTES):
            labels = class_numbers(self.target, self.reading, records)
            for index, bins in enumerate(self.bins):
                block = sums[starts[index] : starts[index + 1]].reshape(bins.number, classes)
                try:
                    spread, numbers = bins.axis.spread(
                        [records.column(name) for name in bins.axis.columns]
                    )
                except DataError:
                    unreadable.add(index)
                    continue
                counts = count_pairs(numbers, labels, len(spread.starts), classes + 1)[:, :classes]
                bins.add_records(spread, np.ascontiguousarray(counts), _UNIT, block)
            of_class = np.bincount(labels, minlength=classes + 1)[:classes]
            sums[starts[-1] :] += of_class * round(1 / _UNIT)
        yield cells_of(sums, unreadable)
