"""Different values of attributes with their classes, found in parts of a table and put together.

Of numbers with many different values a part tells some instead, so near each other that it is
known how many records are up to each, but for a few.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.kernels.steps import count_between
from anonspark.staged.records import pack_table, unpack_table
from anonspark.utility.class_reading import count_values
from anonspark.utility.quantiles import Steps

Figures = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Numbers of more different values are not counted one by one: in a part, a small part, and in all.
_MOST_IN_PART = 2**12
_FEW_RECORDS = 2**15
_MOST_TOGETHER = 2**15
# Of a part with more of them, so many are told, and so many times more are looked at for that.
_TOLD = 2048
_DRAWN = 4

_COMPACTED_AT = 2**20

# The class of values that stand for others, whose records are how many they stand for; and, of all
# parts, of the steps between which it is counted.
_NO_CLASS = -1

PARTS = pa.schema(
    [
        ("place", pa.int32()),
        ("exact", pa.bool_()),
        ("whole", pa.bool_()),
        ("smallest", pa.float64()),
        ("largest", pa.float64()),
        ("slack", pa.int64()),
        ("part", pa.binary()),
    ]
)
"""What parts tell of the values of an attribute, by its place."""


def count_part(place: int, values: pa.Array, labels: Integers, classes: int) -> dict[str, object]:
    """Count the records of each value and class of an attribute in a part.

    Parameters
    ----------
    place : int
    values : pyarrow.Array
        Texts, or float64; see :func:`~anonspark.utility.class_reading.read_column`.
    labels : int64 ndarray
        Class of each record; to have none is one more of these.
    classes : int

    Returns
    -------
    dict
        A row of :data:`PARTS`.
    """
    if pa.types.is_floating(values.type):
        return {"place": place, **_count_numbers(values, labels, classes)}
    encoded = values
    if not pa.types.is_dictionary(values.type):
        encoded = values.dictionary_encode(null_encoding="encode")
    counts = pairs_table(*count_values(encoded, labels, classes + 1))
    return {"place": place, "exact": True, "whole": True, "slack": 0, "part": pack_table(counts)}


def _count_numbers(values: pa.Array, labels: Integers, classes: int) -> dict[str, object]:
    missing = np.zeros(classes + 1, np.int64)
    if values.null_count:
        is_missing = np.asarray(values.is_null())
        missing = np.bincount(labels[is_missing], minlength=len(missing))
        values, labels = values.drop_null(), labels[~is_missing]
    # -0.0 and 0.0 are one value.
    present = values.to_numpy(zero_copy_only=False) + 0.0
    some = np.flatnonzero(missing)
    nothing = pa.nulls(len(some), pa.float64())
    tables = [pairs_table(nothing, some, missing[some])]
    few = len(present) <= _FEW_RECORDS
    exact = few or not _has_many(present[: 2 * _MOST_IN_PART])
    if exact:
        encoded = pa.array(present).dictionary_encode()
        exact = few or len(encoded.dictionary) <= _MOST_IN_PART
    slack = 0
    if exact:
        tables.append(pairs_table(*count_values(encoded, labels, classes + 1)))
    else:
        told, records = _stand_for_all(present[labels < classes])
        slack = int(records.max(initial=1)) - 1
        tables.append(pairs_table(pa.array(told), np.full(len(told), _NO_CLASS), records))
    return {
        "exact": exact,
        "whole": bool((present == np.rint(present)).all()),
        "smallest": float(present.min()) if len(present) else None,
        "largest": float(present.max()) if len(present) else None,
        "slack": slack,
        "part": pack_table(pa.concat_tables(tables)),
    }


def _has_many(numbers: Figures) -> bool:
    return len(pa.array(numbers).unique()) > _MOST_IN_PART


def _stand_for_all(numbers: Figures) -> tuple[Figures, Integers]:
    """Return some numbers, ascending, and how many records from the one before to each they are."""
    if not len(numbers):
        return np.zeros(0), np.zeros(0, np.int64)
    # Counting between some takes a fraction of the time that sorting all does.
    drawn = numbers[:: max(1, len(numbers) // (_DRAWN * _TOLD))]
    values = np.unique(np.append(drawn, numbers.max()))
    counts = np.zeros((len(values), 1), np.int64)
    none = np.zeros(len(values), bool)
    count_between(numbers, np.zeros(len(numbers), np.int64), values, none, counts)
    up_to = np.cumsum(counts)
    ranks = np.unique(np.maximum(np.arange(1, _TOLD + 1) * len(numbers) // _TOLD, 1))
    places = np.unique(np.searchsorted(up_to, ranks))
    return values[places], np.diff(up_to[places], prepend=0)


def pairs_table(values: pa.Array, classes: Integers, records: Integers) -> pa.Table:
    """Return values with classes and their records, as parts tell them."""
    return pa.table(
        {
            "value": values,
            "class": pa.array(classes.astype(np.int32)),
            "records": pa.array(records.astype(np.int64)),
        }
    )


@dataclass
class Values:
    """Different values of one attribute with their classes, of some parts."""

    is_text: bool
    classes: int
    exact: bool = True
    whole: bool = True
    smallest: float = math.inf
    largest: float = -math.inf
    slack: int = 0
    _tables: list[pa.Table] = field(default_factory=list)

    def add(self, row: Mapping[str, object]) -> None:
        """Take one row of :data:`PARTS`."""
        self.exact &= bool(row["exact"])
        self.whole &= bool(row["whole"])
        self.slack += int(str(row["slack"]))
        for name, better in (("smallest", min), ("largest", max)):
            if (own := row[name]) is not None:
                setattr(self, name, better(getattr(self, name), own))
        self._tables.append(unpack_table(pa.scalar(row["part"], pa.binary())))
        if sum(map(len, self._tables)) > _COMPACTED_AT:
            self._tables = [self.counts]

    @property
    def counts(self) -> pa.Table:
        """Columns ``value``, ``class`` and ``records``, each pair once."""
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
            counts = pa.concat_tables([missing, self._steps(present)])
        return {
            "exact": self.exact,
            "whole": self.whole,
            "smallest": self.smallest if self.smallest <= self.largest else None,
            "largest": self.largest if self.smallest <= self.largest else None,
            "slack": self.slack,
            "part": pack_table(counts),
        }

    def _steps(self, present: pa.Table) -> pa.Table:
        """Return where the quantiles are to be looked for."""
        classed = present.filter(pc.less(present["class"], self.classes))
        values, rows = np.unique(classed["value"].to_numpy(), return_inverse=True)
        records = np.zeros(len(values), np.int64)
        np.add.at(records, rows, classed["records"].to_numpy())
        steps = Steps.around_quantiles(values, records, self.slack, self.largest)
        return pairs_table(
            pa.array(steps.values),
            np.full(len(steps.values), _NO_CLASS),
            steps.wanted.astype(np.int64),
        )

    @property
    def steps(self) -> Steps:
        """Of numbers that were not counted one by one: where to look for quantiles."""
        counts = self.counts
        own = counts.filter(pc.equal(counts["class"], _NO_CLASS)).sort_by("value")
        return Steps(own["value"].to_numpy().copy(), own["records"].to_numpy() > 0)


def put_together(parts: Table, texts: Sequence[bool], classes: int) -> dict[int, Values]:
    """Return the different values of each attribute.

    Parameters
    ----------
    parts : Table
        Of :data:`PARTS`.
    texts : sequence of bool
        Of each place, whether its values are texts.
    classes : int

    Returns
    -------
    dict of int to Values
        By place; without those that no part has.

    Notes
    -----
    One shuffle of the parts, by attribute.
    """
    merge = _MergeParts(tuple(texts), classes)
    found = {}
    for row in parts.group(["place"], len(texts)).map_batches(merge, PARTS).collect().to_pylist():
        own = Values(texts[row["place"]], classes)
        own.add(row)
        found[row["place"]] = own
    return found


@dataclass(frozen=True)
class _MergeParts:
    """Adds up the parts of each attribute, which are all in one task."""

    texts: tuple[bool, ...]
    classes: int

    def __call__(self, batches: Batches) -> Batches:
        found: dict[int, Values] = {}
        for batch in batches:
            for row in batch.to_pylist():
                place = row["place"]
                own = found.setdefault(place, Values(self.texts[place], self.classes))
                own.add(row)
        for place, own in found.items():
            merged = {"place": place, **own.merged()}
            yield pa.RecordBatch.from_pylist([merged], schema=PARTS)
