"""Quantiles of numbers with very many different values: those near them are counted one by one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.kernels.steps import count_between
from anonspark.staged.records import together
from anonspark.utility.bins import Brackets, quantile_ranks
from anonspark.utility.class_reading import PART_BYTES, ReadRecords, count_values

Figures = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_COUNTED = pa.schema(
    [
        ("place", pa.int32()),
        ("between", pa.bool_()),
        ("at", pa.float64()),
        ("class", pa.int32()),
        ("records", pa.int64()),
    ]
)


@dataclass(frozen=True, eq=False)
class Steps:
    """Where the quantiles of an attribute are looked for.

    Parameters
    ----------
    values : float64 ndarray of shape (s,)
        Ascending, of which the last is the largest of all.
    wanted : bool ndarray of shape (s,)
        Whether there may be a quantile up to each and above the one before.
    """

    values: Figures
    wanted: npt.NDArray[np.bool_]

    @classmethod
    def around_quantiles(
        cls, values: Figures, records: Integers, slack: int, largest: float
    ) -> Steps:
        """Return where the quantiles are, given how many records there are about.

        Parameters
        ----------
        values : float64 ndarray of shape (n,)
            Some of an attribute's, ascending.
        records : int64 ndarray of shape (n,)
            In sum, up to a value, they are at most the records up to it, and fewer by `slack` at
            most; in sum they are all records.
        slack : int
        largest : float
            Largest value of all.
        """
        up_to = np.cumsum(records)
        if not len(up_to):
            return cls(np.array([largest]), np.zeros(1, bool))
        ranks = quantile_ranks(int(up_to[-1]))
        high = values[np.searchsorted(up_to, ranks)]
        # The last value with fewer records for certain.
        before = np.searchsorted(up_to + slack, ranks) - 1
        low = np.where(before < 0, -np.inf, values[before])
        steps = np.unique(np.concatenate([low[before >= 0], high, [largest]]))
        wanted = np.zeros(len(steps), bool)
        for first, last in zip(low, high, strict=True):
            wanted |= (first < steps) & (steps <= last)
        return cls(steps, wanted)


def count_around(
    original: Table, steps: Mapping[int, Steps], read: ReadRecords
) -> dict[int, tuple[Figures, Integers]]:
    """Find the quantiles of some attributes.

    Parameters
    ----------
    original : Table
    steps : mapping of int to Steps
        Of each attribute, by its place.
    read : ReadRecords

    Returns
    -------
    dict of int to (float64 ndarray of shape (e,), int64 ndarray of shape (e + 1, c))
        The different quantiles, and the records up to each by class; last those of all.

    Notes
    -----
    One pass; the counts between steps and the values near quantiles are collected.
    """
    if not steps:
        return {}
    classes = len(read.target.classes)
    read = read.of(steps)
    count = _CountAround(dict(steps), read)
    counted = original.select(read.columns).map_batches(count, _COUNTED)
    found = counted.aggregate(["place", "between", "at", "class"], sums=["records"]).collect()
    quantiles = {}
    for place, own in steps.items():
        at, counts = _rows_of(found, place, classes, between=True)
        every = np.zeros((len(own.values), classes), np.int64)
        every[at.astype(np.int64)] = counts
        brackets = Brackets.of(own.values, every)
        edges, up_to = brackets.edges(*_rows_of(found, place, classes, between=False))
        quantiles[place] = edges, np.concatenate([up_to, every.sum(axis=0)[None, :]])
    return quantiles


def _rows_of(
    found: pa.Table, place: int, classes: int, *, between: bool
) -> tuple[Figures, Integers]:
    """Return steps or values of one attribute, ascending, and their records by class."""
    own = found.filter(
        pc.and_(pc.equal(found["place"], place), pc.equal(found["between"], between))
    )
    return by_value(own["at"].to_numpy(), own, classes)


def by_value(at: Figures, own: pa.Table, classes: int) -> tuple[Figures, Integers]:
    """Return different values, ascending, and their records by class.

    Parameters
    ----------
    at : float64 ndarray of shape (n,)
        The value of each row.
    own : pyarrow.Table
        Of n rows, with ``class`` and ``records``; the class after the last one is left out.
    classes : int
    """
    values, rows = np.unique(at, return_inverse=True)
    counts = np.zeros((len(values), classes + 1), np.int64)
    np.add.at(counts, (rows, own["class"].to_numpy()), own["records"].to_numpy().astype(np.int64))
    return values, counts[:, :classes]


@dataclass(frozen=True)
class _CountAround:
    """Counts a task's records by class: between steps, and of values near quantiles."""

    steps: dict[int, Steps]
    read: ReadRecords

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        classes = len(self.read.target.classes)
        sums = {
            place: np.zeros((len(own.values), classes), np.int64)
            for place, own in self.steps.items()
        }
        for records in together(batches, PART_BYTES):
            values, labels = self.read(records)
            for place, own in self.steps.items():
                numbers = _numbers(values[place])
                chosen = count_between(numbers, labels, own.values, own.wanted, sums[place])
                # -0.0 and 0.0 are one value.
                near = pa.array(numbers[chosen] + 0.0).dictionary_encode()
                yield _counted(place, False, *count_values(near, labels[chosen], classes))
        for place, counts in sums.items():
            some = np.nonzero(counts)
            yield _counted(place, True, some[0], some[1], counts[some])


def _numbers(values: pa.Array) -> Figures:
    """Return values as numbers, NaN where there is none."""
    if values.null_count:
        values = pc.fill_null(values, math.nan)
    numbers: Figures = values.to_numpy(zero_copy_only=False)
    return numbers


def _counted(
    place: int, between: bool, at: npt.ArrayLike, classes: Integers, records: Integers
) -> pa.RecordBatch:
    columns = [
        pa.array(np.full(len(records), place, np.int32)),
        pa.repeat(pa.scalar(between), len(records)),
        pa.array(np.asarray(at, np.float64)),
        pa.array(classes.astype(np.int32)),
        pa.array(records.astype(np.int64)),
    ]
    return pa.record_batch(columns, schema=_COUNTED)
