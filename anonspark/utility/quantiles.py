"""Quantiles of numbers with very many different values: between steps, then near the quantiles."""

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
from anonspark.kernels.steps import count_between, find_near
from anonspark.staged.records import together
from anonspark.utility.bins import Brackets
from anonspark.utility.class_reading import PART_BYTES, ReadRecords, count_values

Figures = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_COUNTED = pa.schema(
    [
        ("place", pa.int32()),
        ("at", pa.float64()),
        ("class", pa.int32()),
        ("records", pa.int64()),
    ]
)


def count_around(
    original: Table, steps: Mapping[int, Figures], read: ReadRecords
) -> dict[int, tuple[Figures, Integers]]:
    """Find the quantiles of some attributes.

    Parameters
    ----------
    original : Table
    steps : mapping of int to float64 ndarray
        Of each attribute, by its place: ascending values, of which the last is the largest of all.
    read : ReadRecords

    Returns
    -------
    dict of int to (float64 ndarray of shape (e,), int64 ndarray of shape (e + 1, c))
        The different quantiles, and the records up to each by class; last those of all.

    Notes
    -----
    Two passes; the counts between steps and the values near quantiles are collected.
    """
    if not steps:
        return {}
    classes = len(read.target.classes)
    read = read.of(steps)
    values = original.select(read.columns)
    counted = values.map_batches(_CountSteps(dict(steps), read), _COUNTED)
    found = counted.add_up(["place", "at", "class"], sums=["records"]).gather()
    brackets, totals = {}, {}
    for place, own in steps.items():
        at, counts = _rows_of(found, place, classes)
        every = np.zeros((len(own), classes), np.int64)
        every[at.astype(np.int64)] = counts
        brackets[place], totals[place] = Brackets.of(own, every), every.sum(axis=0)
    near = values.map_batches(_CountNear(dict(steps), brackets, read), _COUNTED)
    found = near.add_up(["place", "at", "class"], sums=["records"]).gather()
    quantiles = {}
    for place, bracket in brackets.items():
        edges, up_to = bracket.edges(*_rows_of(found, place, classes))
        quantiles[place] = edges, np.concatenate([up_to, totals[place][None, :]])
    return quantiles


def _rows_of(found: pa.Table, place: int, classes: int) -> tuple[Figures, Integers]:
    """Return the values of one attribute, ascending, and their records by class."""
    own = found.filter(pc.equal(found["place"], place))
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
class _CountSteps:
    """Counts a task's records between steps, by class; told is the step."""

    steps: dict[int, Figures]
    read: ReadRecords

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        classes = len(self.read.target.classes)
        sums = {place: np.zeros((len(own), classes), np.int64) for place, own in self.steps.items()}
        for records in together(batches, PART_BYTES):
            values, labels = self.read(records)
            for place, own in self.steps.items():
                # The last step is the largest value.
                count_between(_numbers(values[place]), labels, own, sums[place])
        for place, counts in sums.items():
            some = np.nonzero(counts)
            yield _counted(place, some[0], some[1], counts[some])


@dataclass(frozen=True)
class _CountNear:
    """Counts a task's records of each value that may be a quantile, by class."""

    steps: dict[int, Figures]
    brackets: dict[int, Brackets]
    read: ReadRecords

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        classes = len(self.read.target.classes)
        # Brackets go from a step to the next.
        wanted = {place: own.holds(self.steps[place]) for place, own in self.brackets.items()}
        for records in together(batches, PART_BYTES):
            values, labels = self.read(records)
            for place, own in self.steps.items():
                numbers = _numbers(values[place])
                chosen = find_near(numbers, labels, classes, own, wanted[place])
                # -0.0 and 0.0 are one value.
                near = pa.array(numbers[chosen] + 0.0).dictionary_encode()
                yield _counted(place, *count_values(near, labels[chosen], classes))


def _numbers(values: pa.Array) -> Figures:
    """Return values as numbers, NaN where there is none."""
    if values.null_count:
        values = pc.fill_null(values, math.nan)
    numbers: Figures = values.to_numpy(zero_copy_only=False)
    return numbers


def _counted(place: int, at: npt.ArrayLike, classes: Integers, records: Integers) -> pa.RecordBatch:
    columns = [
        pa.array(np.full(len(records), place, np.int32)),
        pa.array(np.asarray(at, np.float64)),
        pa.array(classes.astype(np.int32)),
        pa.array(records.astype(np.int64)),
    ]
    return pa.record_batch(columns, schema=_COUNTED)
