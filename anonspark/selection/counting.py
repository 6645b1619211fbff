"""Tables of counts of all candidates and the target, in one pass over the records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.selection.domains import Domain

Integers = npt.NDArray[np.int64]

MOST_CELLS = 10_000_000
"""Cells of all tables together at most."""

_COUNTS = pa.schema([("cell", pa.int64()), ("records", pa.int64())])


def count_tables(
    table: Table,
    candidates: Sequence[Domain],
    target: Domain,
    markers: Sequence[str],
    *,
    drop_missing: bool,
) -> list[Integers]:
    """Count the records of every cell.

    Parameters
    ----------
    table : Table
        With a column of each name.
    candidates : sequence of Domain
    target : Domain
        Records whose target is missing or not declared are left out.
    markers : sequence of str
        Texts that mean missing.
    drop_missing : bool
        Whether records with a missing candidate are left out.

    Returns
    -------
    list of int64 ndarray of shape (rows of the domain, classes)
        Exact counts, which must not leave the process.

    Notes
    -----
    One job with a shuffle of the cells that each task counts.
    """
    names = list(dict.fromkeys([*(one.name for one in candidates), target.name]))
    task = _CountCells(tuple(candidates), target, tuple(markers), drop_missing)
    counted = table.select(names).map_batches(task, _COUNTS).add_up(["cell"], sums=["records"])
    found = counted.gather()
    classes = len(target.labels)
    starts = _starts(candidates, classes)
    flat = np.zeros(starts[-1], np.int64)
    flat[found["cell"].to_numpy()] = found["records"].to_numpy()
    return [
        flat[start : start + one.rows * classes].reshape(one.rows, classes)
        for start, one in zip(starts[:-1].tolist(), candidates, strict=True)
    ]


def _starts(candidates: Sequence[Domain], classes: int) -> Integers:
    return np.cumsum([0, *(one.rows * classes for one in candidates)])


@dataclass(frozen=True)
class _CountCells:
    """Counts a task's records of every cell."""

    candidates: tuple[Domain, ...]
    target: Domain
    markers: tuple[str, ...]
    drop_missing: bool

    def __call__(self, batches: Batches) -> Batches:
        classes = len(self.target.labels)
        starts = _starts(self.candidates, classes)
        counts = np.zeros(starts[-1], np.int64)
        for batch in batches:
            own = self.target.rows_of(batch.column(self.target.name), self.markers)
            kept = own < self.target.other
            rows = [one.rows_of(batch.column(one.name), self.markers) for one in self.candidates]
            if self.drop_missing:
                for one, found in zip(self.candidates, rows, strict=True):
                    kept &= found != one.missing
            for start, one, found in zip(starts.tolist(), self.candidates, rows, strict=False):
                cells = np.bincount(found[kept] * classes + own[kept], minlength=one.rows * classes)
                counts[start : start + len(cells)] += cells
        some = np.flatnonzero(counts)
        yield pa.record_batch([pa.array(some), pa.array(counts[some])], schema=_COUNTS)
