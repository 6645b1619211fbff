"""Count the original's records by class of a target and bin of an attribute.

One pass counts each different value with its classes (:mod:`anonspark.utility.value_counts`). Of
numbers with many different values it finds where the quantiles are, and a second one counts there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Figures, Integers
from anonspark.core.queries import Domain
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.release.axes import Axis
from anonspark.release.regions import Leaves, PublishedAttribute
from anonspark.staged.records import together
from anonspark.utility.bins import Bins, frequent_of
from anonspark.utility.class_reading import PART_BYTES, ReadRecords
from anonspark.utility.learning import Target
from anonspark.utility.original import PlannedValues, order_of_texts, plan_values
from anonspark.utility.value_counts import (
    COUNTS,
    Numbers,
    collect_counts,
    count_near_quantiles,
    count_part,
    counts_by_class,
)


@dataclass(frozen=True)
class BinnedClasses:
    """The bins of an attribute, and the original's records in them.

    Parameters
    ----------
    bins : Bins
    records : int64 ndarray of shape (bins, c)
        By class of the target. Records without one are left out.
    """

    bins: Bins
    records: Integers


def count_classes(
    original: Table,
    attributes: Sequence[PublishedAttribute],
    leaves: Mapping[str, Leaves],
    target: Target,
    missing_markers: Sequence[str],
    *,
    drops_missing: bool,
) -> list[BinnedClasses]:
    """Find the bins of attributes, and count the original's records in them.

    Parameters
    ----------
    original : Table
    attributes : sequence of PublishedAttribute
    leaves : mapping of str to (mapping of str to collection of str)
        Of attributes generalized by the hierarchy of a file.
    target : Target
    missing_markers : sequence of str
    drops_missing : bool
        Whether records with a missing value are left out.

    Returns
    -------
    list of BinnedClasses
        In the order of the attributes' names.

    Raises
    ------
    DataError
        If columns are missing or cannot be read.

    Notes
    -----
    One pass, with a shuffle of the different values of parts. Another
    pass over the numbers with more than about 2,048 different ones in a part of more than 32,768
    records, if there are any. Different values or ranges of parts are collected, and different
    values in the ranges with quantiles.
    """
    in_order = sorted(attributes, key=lambda one: one.name)
    plans = plan_values(original, {one.name: one for one in in_order}, missing_markers)
    read = ReadRecords(
        {place: plan.reading for place, plan in enumerate(plans)},
        target,
        target.reading(original),
        drops_missing,
    )
    parts = original.select(read.columns).map_batches(_CountValues(read), COUNTS)
    counted = collect_counts(parts)
    of_places = [counted.filter(pc.equal(counted["place"], place)) for place in range(len(plans))]
    classes = len(target.classes)
    numbers = {
        place: Numbers.of(of_places[place], classes)
        for place, plan in enumerate(plans)
        if plan.scale != "text"
    }
    ranges = {place: own for place, own in numbers.items() if own.shift}
    numbers |= count_near_quantiles(original, ranges, read)
    return [
        _binned(
            plan, leaves.get(plan.reading.column), of_places[place], numbers.get(place), classes
        )
        for place, plan in enumerate(plans)
    ]


@dataclass(frozen=True)
class _CountValues:
    """Counts a task's records of each value and class, part by part."""

    read: ReadRecords

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        classes = len(self.read.target.classes)
        for records in together(batches, PART_BYTES):
            values, labels = self.read(records)
            for place, own in values.items():
                yield from count_part(place, own, labels, classes).to_batches()


def _binned(
    plan: PlannedValues,
    leaves: Leaves | None,
    counted: pa.Table,
    numbers: Numbers | None,
    classes: int,
) -> BinnedClasses:
    """Return the bins of an attribute and the records in them."""
    has_value = pc.or_(pc.is_valid(counted["text"]), pc.is_valid(counted["key"]))
    present, lacking = counted.filter(has_value), counted.filter(pc.invert(has_value))
    missing = counts_by_class(np.zeros(len(lacking), np.int64), 1, lacking, classes)
    texts: list[str] = []
    frequent = edges = places = np.zeros(0)
    if numbers is None:
        texts, frequent, records = _texts(plan, present, classes)
        places = np.arange(len(texts), dtype=np.float64)
    else:
        edges, records = numbers.bins()
        if len(present):
            ends = pc.min(present["smallest"]).as_py(), pc.max(present["largest"]).as_py()
            places = np.array(ends)
    axis = Axis(
        name=plan.reading.column,
        scale=plan.scale,
        published=plan.published,
        leaves=leaves,
        whole=not pc.max(counted["broken"]).as_py(),
        texts=tuple(texts),
        domain=Domain(places, np.full(len(places), 1 / max(1, len(places))), evenly=True),
        frequent=frequent,
        missing=int(lacking["records"].to_numpy().sum()),
    )
    return BinnedClasses(Bins(axis, edges), np.concatenate([records, missing]))


def _texts(
    plan: PlannedValues, present: pa.Table, classes: int
) -> tuple[list[str], Figures, Integers]:
    """Return the texts in order, the places of the frequent ones, and the records in their bins."""
    encoded = present["text"].combine_chunks().dictionary_encode()
    order = order_of_texts(encoded.dictionary, plan.published).to_numpy()
    place_of = np.argsort(order)
    places = place_of[encoded.indices.to_numpy(zero_copy_only=False)]
    every = counts_by_class(places, len(order), present, classes)
    frequent = frequent_of(every.sum(axis=1))
    own = every[frequent.astype(np.int64)]
    rest = every.sum(axis=0, keepdims=True) - own.sum(axis=0, keepdims=True)
    texts = encoded.dictionary.take(pa.array(order)).to_pylist()
    return texts, frequent, np.concatenate([own, rest])
