"""How many records of each class of a target the original has in each bin of its attributes.

One pass counts each different value with its classes (:mod:`anonspark.utility.value_parts`). Of
numbers with many different values it finds where the quantiles are, and a second one counts there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.queries import Domain
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.errors import DataError
from anonspark.release.regions import Leaves, PublishedAttribute
from anonspark.staged.records import together
from anonspark.utility.axes import Axis
from anonspark.utility.bins import Bins, frequent_of, quantile_ranks
from anonspark.utility.class_notes import NotedClasses
from anonspark.utility.class_reading import PART_BYTES, ReadRecords
from anonspark.utility.learning import Target
from anonspark.utility.original import PlannedValues, order_of_texts, plan_values
from anonspark.utility.quantiles import by_value, count_around
from anonspark.utility.value_parts import PARTS, Values, count_part, put_together

Figures = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class BinnedClasses:
    """The bins of an attribute, and the original's records in them.

    Parameters
    ----------
    bins : Bins
    records : int64 ndarray of shape (bins, c)
        By class of the target; records without one are left out.
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
    noted: NotedClasses | None = None,
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
    noted : NotedClasses or None
        What was noted of the original while it was staged, if it is known to be its records.

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
    One pass, or a job over what was noted, with a shuffle of the different values of parts; another
    pass over the numbers with more than 4,096 different ones (32,768 where records are few), if
    there are any. Different texts, at most 32,768 different numbers an attribute, and values near
    quantiles are collected.
    """
    plans: list[PlannedValues] = []
    problems = []
    for attribute in sorted(attributes, key=lambda one: one.name):
        plan = plan_values(original, attribute.name, attribute, missing_markers, len(plans))
        if isinstance(plan, PlannedValues):
            plans.append(plan)
        else:
            problems.append(plan)
    if problems:
        raise DataError(*problems)
    read = ReadRecords(
        {place: plan.reading for place, plan in enumerate(plans)},
        target,
        target.reading(original),
        drops_missing,
    )
    parts = None if noted is None or drops_missing else noted.parts(plans, target)
    if parts is None:
        parts = original.select(read.columns).map_batches(_CountValues(read), PARTS)
    texts = [plan.scale == "text" for plan in plans]
    found = put_together(parts, texts, len(target.classes))
    brackets = count_around(
        original, {place: one.steps for place, one in found.items() if not one.exact}, read
    )
    return [
        _binned(
            plan,
            leaves.get(plan.reading.column),
            found.get(place, Values(plan.scale == "text", len(target.classes))),
            brackets.get(place),
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
            rows = [count_part(place, own, labels, classes) for place, own in values.items()]
            yield pa.RecordBatch.from_pylist(rows, schema=PARTS)


def _binned(
    plan: PlannedValues,
    leaves: Leaves | None,
    values: Values,
    quantiles: tuple[Figures, Integers] | None,
) -> BinnedClasses:
    """Return the bins of an attribute and the records in them."""
    counts, classes = values.counts, values.classes
    lacking = counts.filter(pc.is_null(counts["value"]))
    _, missing = by_value(np.zeros(len(lacking)), lacking, classes)
    missing = missing.sum(axis=0, keepdims=True)
    present = counts.filter(pc.is_valid(counts["value"]))
    texts: list[str] = []
    frequent = edges = np.zeros(0)
    if plan.scale == "text":
        texts, frequent, records = _texts(plan, present, classes)
        places = np.arange(len(texts), dtype=np.float64)
    else:
        places = np.array([values.smallest, values.largest]) if len(present) else np.zeros(0)
        edges, records = _numbers(present, classes) if quantiles is None else _cut(*quantiles)
    axis = Axis(
        name=plan.reading.column,
        scale=plan.scale,
        published=plan.published,
        leaves=leaves,
        whole=values.whole,
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
    encoded = present["value"].combine_chunks().dictionary_encode()
    order = order_of_texts(encoded.dictionary, plan.published).to_numpy()
    place_of = np.empty(len(order), np.int64)
    place_of[order] = np.arange(len(order))
    places = place_of[encoded.indices.to_numpy(zero_copy_only=False)]
    own = present["class"].to_numpy()
    records = present["records"].to_numpy().astype(np.int64)
    has_target = own < classes
    places, own, records = places[has_target], own[has_target], records[has_target]
    every = np.zeros(len(order), np.int64)
    np.add.at(every, places, records)
    frequent = frequent_of(every)
    bins = np.full(len(order), len(frequent))
    bins[frequent.astype(np.int64)] = np.arange(len(frequent))
    counts = np.zeros((len(frequent) + 1, classes), np.int64)
    np.add.at(counts, (bins[places], own), records)
    return encoded.dictionary.take(pa.array(order)).to_pylist(), frequent, counts


def _numbers(present: pa.Table, classes: int) -> tuple[Figures, Integers]:
    """Return the quantiles of numbers of which all are known, and the records in their bins."""
    values, counts = by_value(present["value"].to_numpy(), present, classes)
    up_to = np.cumsum(counts, axis=0)
    records = up_to.sum(axis=1)
    if not len(records) or not records[-1]:
        return np.zeros(0), np.zeros((1, classes), np.int64)
    places = np.unique(np.searchsorted(records, quantile_ranks(int(records[-1]))))
    return _cut(values[places], np.concatenate([up_to[places], up_to[-1:]]))


def _cut(edges: Figures, up_to: Integers) -> tuple[Figures, Integers]:
    """Return edges with the records between them, given those up to each and those of all."""
    return edges, np.diff(up_to, axis=0, prepend=0)
