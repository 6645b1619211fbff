"""Quantiles of numbers with very many different values: between steps, then near the quantiles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.staged.records import together
from anonspark.utility.bins import Brackets
from anonspark.utility.class_reading import PART_BYTES, ReadRecords

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
    near = values.map_batches(_CountNear(brackets, read), _COUNTED)
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

    def __call__(self, batches: Batches) -> Batches:
        classes = len(self.read.target.classes)
        sums = {place: np.zeros(len(own) * classes, np.int64) for place, own in self.steps.items()}
        for records in together(batches, PART_BYTES):
            for place, positions, labels in _present(records, self.steps, self.read):
                # The last step is the largest value.
                cells = np.searchsorted(self.steps[place], positions) * classes + labels
                sums[place] += np.bincount(cells, minlength=len(sums[place]))
        for place, own in sums.items():
            some = np.flatnonzero(own)
            yield _counted(place, some // classes, some % classes, own[some])


@dataclass(frozen=True)
class _CountNear:
    """Counts a task's records of each value that may be a quantile, by class."""

    brackets: dict[int, Brackets]
    read: ReadRecords

    def __call__(self, batches: Batches) -> Batches:
        classes = len(self.read.target.classes)
        for records in together(batches, PART_BYTES):
            for place, positions, labels in _present(records, self.brackets, self.read):
                chosen = self.brackets[place].holds(positions)
                values, codes = np.unique(positions[chosen], return_inverse=True)
                cells, counts = np.unique(codes * classes + labels[chosen], return_counts=True)
                yield _counted(place, values[cells // classes], cells % classes, counts)


def _present(
    records: pa.Table, places: Mapping[int, object], read: ReadRecords
) -> list[tuple[int, Figures, Integers]]:
    """Return the values of some attributes, and the classes, of records that have both."""
    values, labels = read(records)
    found = []
    for place in places:
        own = values[place]
        kept = labels < len(read.target.classes)
        if own.null_count:
            kept &= np.asarray(own.is_valid())
            own = pc.fill_null(own, math.nan)
        numbers = own.to_numpy(zero_copy_only=False) + 0.0
        some = slice(None) if kept.all() else kept
        found.append((place, numbers[some], labels[some]))
    return found


def _counted(place: int, at: npt.ArrayLike, classes: Integers, records: Integers) -> pa.RecordBatch:
    columns = [
        pa.array(np.full(len(records), place, np.int32)),
        pa.array(np.asarray(at, np.float64)),
        pa.array(classes.astype(np.int32)),
        pa.array(records.astype(np.int64)),
    ]
    return pa.record_batch(columns, schema=_COUNTED)
