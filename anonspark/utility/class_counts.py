"""Count records by class of a target and by value or bin of an attribute, in parts of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Figures, Integers
from anonspark.core.queries import Domain
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.labels.axes import Axis
from anonspark.labels.regions import Leaves, PublishedAttribute
from anonspark.staged.records import together
from anonspark.utility.bins import Bins, frequent_of, quantile_positions
from anonspark.utility.learning import PART_BYTES, ReadRecords, Target, count_values
from anonspark.utility.original import PlannedValues, order_of_texts, plan_values

# A part of no more records is counted value by value; else so many numbers are looked at, and so
# many ranges may hold them.
_FEW_RECORDS = 2**15
_LOOKED_AT = 2**13
_MOST_RANGES = 2**11

_ALL_BUT_SIGN = np.int64(2**63 - 1)

_PAIR = ("place", "text", "key", "shift", "class")

COUNTS = pa.schema(
    [
        ("place", pa.int32()),
        ("text", pa.string()),
        ("key", pa.int64()),
        ("shift", pa.int32()),
        ("class", pa.int32()),
        ("records", pa.int64()),
        ("smallest", pa.float64()),
        ("largest", pa.float64()),
        ("broken", pa.int32()),
    ]
)
"""Records of a part with a value, by the attribute's place, and a class: a text, a number's key
without its last bits, or neither where it is missing. The last three are of the whole part: ends of
its numbers, and 1 if some are not whole."""


def count_part(index: int, values: pa.Array, labels: Integers, classes: int) -> pa.Table:
    """Count the records of each value and class of an attribute in a part, as :data:`COUNTS`.

    ``values`` are texts or float64, see :func:`~anonspark.utility.learning.read_column`. ``labels``
    (int64) are the classes of the records. A record without a class has the number after the last.

    >>> count_part(0, pa.array(["a", "b", "a"]), np.array([0, 1, 0]), 2)["records"].to_pylist()
    [2, 1]
    """
    if not pa.types.is_floating(values.type):
        encoded = values
        if not pa.types.is_dictionary(values.type):
            encoded = values.dictionary_encode(null_encoding="encode")
        texts, of_class, records = count_values(encoded, labels, classes + 1)
        return counts_table(index, of_class, records, text=texts)
    numbers, missing = _numbers(values)
    keys, present = _keys_of(numbers), numbers[~missing]
    shift = _bits_left_out(keys[~missing])
    encoded = pa.array(keys >> shift, mask=missing).dictionary_encode(null_encoding="encode")
    ranges, of_class, records = count_values(encoded, labels, classes + 1)
    facts = {"shift": shift, "broken": int((present != np.rint(present)).any())}
    if len(present):
        facts |= {"smallest": present.min(), "largest": present.max()}
    return counts_table(index, of_class, records, key=ranges, **facts)


def counts_table(index: int, classes: Integers, records: Integers, **others: object) -> pa.Table:
    """Return rows of :data:`COUNTS`. Other columns are arrays, or one value for all rows."""
    columns: dict[str, object] = {"place": index, "class": classes, "records": records, **others}
    arrays = []
    for field in COUNTS:
        values = columns.get(field.name)
        if not isinstance(values, (pa.Array, np.ndarray)):
            values = pa.repeat(pa.scalar(values, field.type), len(records))
        arrays.append(pa.array(values).cast(field.type))
    return pa.table(arrays, schema=COUNTS)


def _numbers(values: pa.Array) -> tuple[Figures, npt.NDArray[np.bool_]]:
    """Return values as numbers, 0 for missing ones, and which are missing."""
    # -0.0 and 0.0 are one value.
    return pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False) + 0.0, np.asarray(
        values.is_null()
    )


def _keys_of(numbers: Figures) -> Integers:
    """Map numbers to whole numbers in the same order.

    >>> bool(np.all(np.diff(_keys_of(np.array([-2.5, -1.0, 0.0, 3.5]))) > 0))
    True
    """
    bits = numbers.view(np.int64)
    return bits ^ ((bits >> 63) & _ALL_BUT_SIGN)


def _numbers_of(keys: Integers) -> Figures:
    """Return the numbers of keys.

    >>> _numbers_of(_keys_of(np.array([-2.5, 3.5]))).tolist()
    [-2.5, 3.5]
    """
    return (keys ^ ((keys >> 63) & _ALL_BUT_SIGN)).view(np.float64)


def _bits_left_out(keys: Integers) -> int:
    """Return how many bits of keys are left out, so that few ranges hold them."""
    if len(keys) <= _FEW_RECORDS:
        return 0
    drawn = np.sort(keys[:: max(1, len(keys) // _LOOKED_AT)])
    shift = 0
    while np.count_nonzero(np.diff(drawn >> shift)) >= _MOST_RANGES:
        shift += 1
    return shift


def collect_counts(parts: Table) -> pa.Table:
    """Collect each value and class once, as :data:`COUNTS`. One shuffle of what parts counted."""
    counted = parts.aggregate(
        _PAIR, sums=["records"], least=["smallest"], most=["largest", "broken"]
    )
    return counted.collect()


@dataclass(frozen=True)
class Numbers:
    """The numbers of an attribute, or ranges of them.

    ``keys`` (int64, ascending) lack their last ``shift`` bits. ``counts`` (int64, shape (n, c))
    holds the records by class.
    """

    keys: Integers
    shift: int
    counts: Integers

    @classmethod
    def of(cls, counted: pa.Table, classes: int) -> Numbers:
        """Return the numbers of one attribute from rows of :data:`COUNTS`."""
        present = counted.filter(pc.is_valid(counted["key"]))
        shifts = present["shift"].to_numpy()
        shift = int(shifts.max(initial=0))
        keys, rows = np.unique(present["key"].to_numpy() >> (shift - shifts), return_inverse=True)
        return cls(keys, shift, counts_by_class(rows, len(keys), present, classes))

    @property
    def with_quantiles(self) -> Integers:
        """Keys of the ranges that hold a quantile."""
        return self.keys[quantile_positions(self.counts)]

    def refined(self, near: Numbers) -> Numbers:
        """Replace the ranges with quantiles by the numbers near the quantiles."""
        rest = ~np.isin(self.keys, self.with_quantiles)
        keys = np.concatenate([self.keys[rest] << self.shift, near.keys])
        order = np.argsort(keys)
        counts = np.concatenate([self.counts[rest], near.counts])
        return Numbers(keys[order], 0, counts[order])

    def bins(self) -> tuple[Figures, Integers]:
        """Return the different quantiles, and the records between them by class."""
        positions = quantile_positions(self.counts)
        up_to = np.cumsum(self.counts, axis=0)
        ends = np.concatenate([up_to[positions], self.counts.sum(axis=0, keepdims=True)])
        return _numbers_of(self.keys[positions]), np.diff(ends, axis=0, prepend=0)


def counts_by_class(rows: Integers, number: int, counted: pa.Table, classes: int) -> Integers:
    """Return the records by row and class, int64. Records without a class are left out."""
    counts = np.zeros((number, classes + 1), np.int64)
    records = counted["records"].to_numpy().astype(np.int64)
    np.add.at(counts, (rows, counted["class"].to_numpy()), records)
    return counts[:, :classes]


def count_near_quantiles(
    original: Table, numbers: Mapping[int, Numbers], read: ReadRecords
) -> dict[int, Numbers]:
    """Count single numbers near the quantiles of attributes that were counted by range. One pass.

    Attributes are named by their indices. Different numbers in ranges with quantiles are collected.
    """
    ranges = {index: (number.shift, number.with_quantiles) for index, number in numbers.items()}
    if not ranges:
        return {}
    read = read.of(ranges)
    near = collect_counts(
        original.select(read.columns).map_batches(_CountNear(ranges, read), COUNTS)
    )
    classes = len(read.target.classes)
    return {
        index: number.refined(Numbers.of(near.filter(pc.equal(near["place"], index)), classes))
        for index, number in numbers.items()
    }


@dataclass(frozen=True)
class _CountNear:
    """Counts a task's records with numbers in some ranges, by number and class."""

    ranges: dict[int, tuple[int, Integers]]
    read: ReadRecords

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        classes = len(self.read.target.classes)
        for records in together(batches, PART_BYTES):
            values, labels = self.read(records)
            for index, (shift, ranges) in self.ranges.items():
                numbers, missing = _numbers(values[index])
                keys = _keys_of(numbers)
                near = (labels < classes) & ~missing & _are_among(keys >> shift, ranges)
                encoded = pa.array(keys[near]).dictionary_encode()
                counted = count_values(encoded, labels[near], classes)
                yield from counts_table(index, *counted[1:], key=counted[0], shift=0).to_batches()


def _are_among(keys: Integers, ascending: Integers) -> npt.NDArray[np.bool_]:
    """Return which keys are among ascending ones.

    >>> _are_among(np.array([5, 1, 9]), np.array([1, 5])).tolist()
    [True, True, False]
    """
    if not len(ascending):
        return np.zeros(len(keys), bool)
    positions = np.minimum(np.searchsorted(ascending, keys), len(ascending) - 1)
    return np.asarray(ascending[positions] == keys)


@dataclass(frozen=True)
class BinnedClasses:
    """The bins of an attribute, and the original's records in them by class of the target.

    Records without a class are left out of ``records`` (int64, shape (bins, c)).
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
    """Find the bins of attributes, in the order of their names, and count the original's records.

    ``leaves`` belong to attributes that the hierarchy of a file generalizes. With
    ``drops_missing``, records with a missing value are left out. Raises DataError if columns are
    absent or cannot be read. One pass, with a shuffle of the different values of parts. Another
    pass over numbers with more than about 2,048 different ones in a part of more than 32,768
    records. Different values or ranges of parts are collected, and different values in the ranges
    with quantiles.
    """
    in_order = sorted(attributes, key=lambda column: column.name)
    plans = plan_values(original, {column.name: column for column in in_order}, missing_markers)
    read = ReadRecords(
        {index: plan.reading for index, plan in enumerate(plans)},
        target,
        target.reading(original),
        drops_missing,
    )
    parts = original.select(read.columns).map_batches(_CountValues(read), COUNTS)
    counted = collect_counts(parts)
    by_index = [counted.filter(pc.equal(counted["place"], index)) for index in range(len(plans))]
    classes = len(target.classes)
    numbers = {
        index: Numbers.of(by_index[index], classes)
        for index, plan in enumerate(plans)
        if plan.scale != "text"
    }
    ranges = {index: number for index, number in numbers.items() if number.shift}
    numbers |= count_near_quantiles(original, ranges, read)
    return [
        _binned(plan, leaves.get(plan.reading.column), by_index[index], numbers.get(index), classes)
        for index, plan in enumerate(plans)
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
            for index, value in values.items():
                yield from count_part(index, value, labels, classes).to_batches()


def _binned(
    plan: PlannedValues,
    leaves: Leaves | None,
    counted: pa.Table,
    numbers: Numbers | None,
    classes: int,
) -> BinnedClasses:
    """Choose the bins of an attribute, and sum the records in them by class."""
    has_value = pc.or_(pc.is_valid(counted["text"]), pc.is_valid(counted["key"]))
    present, lacking = counted.filter(has_value), counted.filter(pc.invert(has_value))
    missing = counts_by_class(np.zeros(len(lacking), np.int64), 1, lacking, classes)
    texts: list[str] = []
    frequent = edges = positions = np.zeros(0)
    if numbers is None:
        texts, frequent, records = _texts(plan, present, classes)
        positions = np.arange(len(texts), dtype=np.float64)
    else:
        edges, records = numbers.bins()
        if len(present):
            ends = pc.min(present["smallest"]).as_py(), pc.max(present["largest"]).as_py()
            positions = np.array(ends)
    axis = Axis(
        name=plan.reading.column,
        scale=plan.scale,
        published=plan.published,
        leaves=leaves,
        whole=not pc.max(counted["broken"]).as_py(),
        texts=tuple(texts),
        domain=Domain(positions, np.full(len(positions), 1 / max(1, len(positions))), evenly=True),
        frequent=frequent,
        missing=int(lacking["records"].to_numpy().sum()),
    )
    return BinnedClasses(Bins(axis, edges), np.concatenate([records, missing]))


def _texts(
    plan: PlannedValues, present: pa.Table, classes: int
) -> tuple[list[str], Figures, Integers]:
    """Return the texts in order, the indices of frequent ones, and the records in their bins."""
    encoded = present["text"].combine_chunks().dictionary_encode()
    order = order_of_texts(encoded.dictionary, plan.published).to_numpy()
    rank_of = np.argsort(order)
    codes = rank_of[encoded.indices.to_numpy(zero_copy_only=False)]
    by_text = counts_by_class(codes, len(order), present, classes)
    frequent = frequent_of(by_text.sum(axis=1))
    selected = by_text[frequent.astype(np.int64)]
    rest = by_text.sum(axis=0, keepdims=True) - selected.sum(axis=0, keepdims=True)
    texts = encoded.dictionary.take(pa.array(order)).to_pylist()
    return texts, frequent, np.concatenate([selected, rest])
