"""How many records of each class of a target the original has in each bin of its attributes.

One pass counts each different value with its classes. Of numbers with many different values it
draws some instead, between which a second pass counts, and a third one looks at those alone that
may be quantiles.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from anonspark.staged.records import pack_table, together, unpack_table
from anonspark.utility.axes import Axis
from anonspark.utility.bins import Bins, frequent_of, quantile_ranks
from anonspark.utility.class_reading import PART_BYTES, ReadRecords, count_values
from anonspark.utility.learning import Target
from anonspark.utility.original import PlannedValues, order_of_texts, plan_values
from anonspark.utility.quantiles import by_value, count_around

Figures = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Numbers of more different values are not counted one by one: in a part, a small part, and in all.
_MOST_IN_PART = 2**12
_FEW_RECORDS = 2**15
_MOST_TOGETHER = 2**15
# Of a part with more of them, so many are drawn; of all that were drawn these steps are kept.
_DRAWN = 2048
_STEPS = 1000

_COMPACTED_AT = 2**20

# The class of values that were drawn: their records are how many each stands for.
_NO_CLASS = -1

_PARTS = pa.schema(
    [
        ("place", pa.int32()),
        ("exact", pa.bool_()),
        ("whole", pa.bool_()),
        ("smallest", pa.float64()),
        ("largest", pa.float64()),
        ("part", pa.binary()),
    ]
)


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
    One pass, with a shuffle of the different values of parts of tasks; two more over the numbers
    with more than 4,096 different ones (32,768 where records are few), if there are any. Different
    texts, at most 32,768 different numbers an attribute, and values near quantiles are collected.
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
    found = _count_values(original, plans, read)
    brackets = count_around(
        original, {place: one.steps for place, one in found.items() if not one.exact}, read
    )
    return [
        _binned(
            plan,
            leaves.get(plan.reading.column),
            found.get(place, _Values(plan.scale == "text", len(target.classes))),
            brackets.get(place),
        )
        for place, plan in enumerate(plans)
    ]


@dataclass
class _Values:
    """Different values of one attribute with their classes, of some parts of tasks."""

    is_text: bool
    classes: int
    exact: bool = True
    whole: bool = True
    smallest: float = math.inf
    largest: float = -math.inf
    _tables: list[pa.Table] = field(default_factory=list)

    def add(self, row: Mapping[str, object]) -> None:
        """Take one row of parts."""
        self.exact &= bool(row["exact"])
        self.whole &= bool(row["whole"])
        for name, better in (("smallest", min), ("largest", max)):
            if (own := row[name]) is not None:
                setattr(self, name, better(getattr(self, name), own))
        self._tables.append(unpack_table(pa.scalar(row["part"], pa.binary())))
        if sum(map(len, self._tables)) > _COMPACTED_AT:
            self._tables = [self.counts]

    @property
    def counts(self) -> pa.Table:
        """Columns ``value``, ``class`` and ``records``, each pair once but for drawn values."""
        if not self._tables:
            empty = {"value": pa.array([], pa.string() if self.is_text else pa.float64())}
            return pa.table(
                {**empty, "class": pa.array([], pa.int32()), "records": pa.array([], pa.int64())}
            )
        if len(self._tables) == 1:
            return self._tables[0]
        grouped = pa.concat_tables(self._tables).group_by(["value", "class"])
        counted = grouped.aggregate([("records", "sum")])
        return counted.rename_columns(["value", "class", "records"])

    def merged(self) -> dict[str, object]:
        """Return all parts as one."""
        counts = self.counts
        present = counts.filter(pc.is_valid(counts["value"]))
        if not self.is_text and (
            not self.exact or pc.count_distinct(present["value"]).as_py() > _MOST_TOGETHER
        ):
            self.exact = False
            missing = counts.filter(pc.is_null(counts["value"]))
            counts = pa.concat_tables([missing, self._ladder(present)])
        return {
            "exact": self.exact,
            "whole": self.whole,
            "smallest": self.smallest if self.smallest <= self.largest else None,
            "largest": self.largest if self.smallest <= self.largest else None,
            "part": pack_table(counts),
        }

    def _ladder(self, present: pa.Table) -> pa.Table:
        """Return values with about as many records between each and the next; last the largest."""
        in_order = present.sort_by("value")
        values, weights = in_order["value"].to_numpy(), in_order["records"].to_numpy()
        up_to = np.cumsum(weights)
        ranks = -(-np.arange(1, _STEPS) * int(up_to[-1]) // _STEPS)
        steps = np.unique(np.append(values[np.searchsorted(up_to, ranks)], self.largest))
        return _pairs_table(
            pa.array(steps), np.full(len(steps), _NO_CLASS), np.zeros(len(steps), np.int64)
        )

    @property
    def steps(self) -> Figures:
        """Of numbers that were not counted one by one: between them it is counted."""
        counts = self.counts
        drawn = counts.filter(pc.equal(counts["class"], _NO_CLASS))
        return np.sort(drawn["value"].to_numpy())


def _pairs_table(values: pa.Array, classes: Integers, records: Integers) -> pa.Table:
    return pa.table(
        {
            "value": values,
            "class": pa.array(classes.astype(np.int32)),
            "records": pa.array(records.astype(np.int64)),
        }
    )


def _count_values(
    original: Table, plans: Sequence[PlannedValues], read: ReadRecords
) -> dict[int, _Values]:
    """Return the different values of each attribute."""
    texts = tuple(plan.scale == "text" for plan in plans)
    parts = original.select(read.columns).map_batches(_CountValues(texts, read), _PARTS)
    merge = _MergeValues(texts, len(read.target.classes))
    merged = parts.group(["place"], len(plans)).map_batches(merge, _PARTS).gather()
    found = {}
    for row in merged.to_pylist():
        own = _Values(texts[row["place"]], len(read.target.classes))
        own.add(row)
        found[row["place"]] = own
    return found


@dataclass(frozen=True)
class _CountValues:
    """Counts a task's records of each value and class, part by part."""

    texts: tuple[bool, ...]
    read: ReadRecords

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        for records in together(batches, PART_BYTES):
            values, labels = self.read(records)
            rows = []
            for place, is_text in enumerate(self.texts):
                count = self._texts if is_text else self._numbers
                rows.append({"place": place, **count(values[place], labels)})
            yield pa.RecordBatch.from_pylist(rows, schema=_PARTS)

    @property
    def _classes(self) -> int:
        """Classes, and none."""
        return len(self.read.target.classes) + 1

    def _texts(self, values: pa.Array, labels: Integers) -> dict[str, object]:
        encoded = values.dictionary_encode(null_encoding="encode")
        return {
            "exact": True,
            "whole": True,
            "part": pack_table(_pairs_table(*count_values(encoded, labels, self._classes))),
        }

    def _numbers(self, values: pa.Array, labels: Integers) -> dict[str, object]:
        own, missing = labels, np.zeros(self._classes, np.int64)
        if values.null_count:
            is_missing = np.asarray(values.is_null())
            missing = np.bincount(labels[is_missing], minlength=len(missing))
            values, own = values.drop_null(), labels[~is_missing]
        # -0.0 and 0.0 are one value.
        present = values.to_numpy(zero_copy_only=False) + 0.0
        some = np.flatnonzero(missing)
        nothing = pa.nulls(len(some), pa.float64())
        tables = [_pairs_table(nothing, some, missing[some])]
        few = len(present) <= _FEW_RECORDS
        exact = few or not _has_many(present[: 2 * _MOST_IN_PART])
        if exact:
            encoded = pa.array(present).dictionary_encode()
            exact = few or len(encoded.dictionary) <= _MOST_IN_PART
        if exact:
            tables.append(_pairs_table(*count_values(encoded, own, self._classes)))
        else:
            drawn = present[:: max(1, len(present) // _DRAWN)]
            weight = np.full(len(drawn), max(1, len(present) // len(drawn)))
            tables.append(_pairs_table(pa.array(drawn), np.full(len(drawn), _NO_CLASS), weight))
        return {
            "exact": exact,
            "whole": bool((present == np.rint(present)).all()),
            "smallest": float(present.min()) if len(present) else None,
            "largest": float(present.max()) if len(present) else None,
            "part": pack_table(pa.concat_tables(tables)),
        }


def _has_many(numbers: Figures) -> bool:
    return len(pa.array(numbers).unique()) > _MOST_IN_PART


@dataclass(frozen=True)
class _MergeValues:
    """Adds up the parts of each attribute, which are all in one task."""

    texts: tuple[bool, ...]
    classes: int

    def __call__(self, batches: Batches) -> Batches:
        found: dict[int, _Values] = {}
        for batch in batches:
            for row in batch.to_pylist():
                place = row["place"]
                own = found.setdefault(place, _Values(self.texts[place], self.classes))
                own.add(row)
        for place, own in found.items():
            merged = {"place": place, **own.merged()}
            yield pa.RecordBatch.from_pylist([merged], schema=_PARTS)


def _binned(
    plan: PlannedValues,
    leaves: Leaves | None,
    values: _Values,
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
