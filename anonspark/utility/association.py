"""Measure the association of each attribute with a target, in a release and its original.

Values of the original are put into bins (:mod:`anonspark.utility.class_counts`). A release answers
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

    Parameters
    ----------
    name : str
    before, after : float or None
        Share of the target's uncertainty that the original's values remove, and that is removed by
        who believes the release. Below 0 where that misleads. None where the target is constant.
    """

    name: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Association:
    """The association of a release's quasi-identifiers with a target.

    Parameters
    ----------
    target : str
    attributes : list of AttributeAssociation
        In the order of the names.
    loss : float or None
        0 of a release that is its original, about 1 of one without information. None where the
        original holds no information.
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
    """Measure the association of a release with a target.

    Parameters
    ----------
    release : Table
        Published records.
    original : Table
    attributes : sequence of PublishedAttribute
        The quasi-identifiers.
    leaves : mapping of str to (mapping of str to collection of str)
        Of attributes generalized by the hierarchy of a file.
    target : Target
        Published as it is. Records without it are left out.
    missing_markers : sequence of str
    drops_missing : bool
        Whether records with a missing value were not to be published: they are left out.

    Raises
    ------
    DataError
        If columns are missing, or labels cannot be read.

    Notes
    -----
    Over the original :func:`~anonspark.utility.class_counts.count_classes`, over the release one
    pass without a shuffle of records. Python time for each different label of a part of a task,
    but for plain values and intervals.
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
    measured = []
    released = (tables[-1][0] * _UNIT).astype(np.int64)
    # Those of the target that no record has which is looked at here are none.
    some = np.any([binned.records.sum(axis=0) > 0 for binned in counted], axis=0) | (released > 0)
    for binned, sums in zip(counted, tables, strict=False):
        records = binned.records[:, some]
        before = removed_uncertainty(records, records.astype(np.float64), records.sum(axis=0))
        after = removed_uncertainty(records, sums[:, some] * _UNIT, released[some])
        measured.append(AttributeAssociation(binned.bins.axis.name, before, after))
    loss = association_loss(
        [attribute.before for attribute in measured], [attribute.after for attribute in measured]
    )
    return Association(target.name, measured, loss)


def _starts(bins: Sequence[Bins], classes: int) -> Integers:
    return np.cumsum([0, *(part.number * classes for part in bins)])


@dataclass(frozen=True)
class _SpreadClasses:
    """Spreads a task's classes over the bins, in units of 2**-30."""

    bins: tuple[Bins, ...]
    target: Target
    reading: Reading

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
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
            every = np.bincount(labels, minlength=classes + 1)[:classes]
            sums[starts[-1] :] += every * round(1 / _UNIT)
        yield cells_of(sums, unreadable)
