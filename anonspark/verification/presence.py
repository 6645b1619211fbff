"""Compute the certainty of an attacker that a person is in a release (delta-presence).

Nergiz, Atzori and Clifton (2007): the attacker knows the quasi-identifiers of a population, of
which the released people are a part. A published class C has a region: the values that its
published tuple leaves possible. Of the population's records in the region, |C| are in the class:
its share is |C| / records in the region. The presence of a record of the population is the sum of
the shares of all classes whose region holds it, at most 1: the probability that it is in the
release, for an attacker who looks at every class by itself. Where regions do not overlap this is
exact. Where they do, it is an estimate, because no person is in two classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Figures, Integers
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.release.raw_records import PreparedTable, require_all_read
from anonspark.release.region_matching import LabelledTable, RegionSearch
from anonspark.release.regions import PublishedAttribute

_SUBJECT = "population"

# Sums of shares are rounded: a record exactly at a bound is within it.
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class RegionCounts:
    """The number of records that share each published class's region.

    Parameters
    ----------
    released : int64 ndarray of shape (classes,)
        Records of the class.
    population : int64 ndarray of shape (classes,)
        Records of the population in its region.
    """

    released: Integers
    population: Integers


@dataclass(frozen=True)
class Presence:
    """The knowledge of an attacker about who is in a release.

    Parameters
    ----------
    smallest, largest : float
        Of the population's records, the smallest and the largest probability to be in
        the release, in [0, 1]. 0 where the population is empty.
    population : int
        Records of the population.
    out_of_bounds : int
        Of them, those whose probability is below the lower or above the upper bound asked for.
    classes : int
        Published classes.
    classes_not_covered : int
        Of them, those that hold more records than the population has in their region. Where there
        is one, the population is not a superset of the released people, and the other figures say
        nothing of who is in the release.
    counts : RegionCounts
        What the figures were made of.
    """

    smallest: float
    largest: float
    population: int
    out_of_bounds: int
    classes: int
    classes_not_covered: int
    counts: RegionCounts = field(compare=False, repr=False)

    @property
    def holds(self) -> bool:
        """Return whether the release is delta-present in a population that covers it."""
        return not self.out_of_bounds and not self.classes_not_covered


def measure_presence(
    labels: LabelledTable, population: Table, *, lower: float = 0.0, upper: float = 1.0
) -> Presence:
    """Bound the probability that each record of a population is in a release.

    Parameters
    ----------
    labels : LabelledTable
        Published records.
    population : Table
        Raw records, with a column of each attribute's name. Numbers and times are compared by
        value, whatever types the two tables have. Texts exactly, without blanks at their ends.
    lower, upper : float
        delta_min and delta_max, both in [0, 1]. A probability equal to one of them is within.

    Returns
    -------
    Presence

    Raises
    ------
    ConfigurationError
        If the release publishes means.
    DataError
        If the release has more than 1,000,000 classes, its labels cannot be read, or the
        population lacks columns or has values that cannot be read.

    Notes
    -----
    Three jobs: one pass over the release, with one shuffle of a row a class and task, and two
    passes over the population's quasi-identifiers, with one shuffle of a count a class and task.
    The published classes and their counts are collected. They and their tree go to every task. No
    record of the population reaches the driver. A record takes time in proportion to the logarithm
    of the classes and to the regions that hold it.
    """
    prepared, search, found = _count(labels, population)
    sizes, counts = found.released, found.population
    shares = np.divide(sizes, counts, out=np.zeros(len(sizes)), where=counts > 0)
    bound = _BoundPresence(search, shares, lower, upper)
    bounds = prepared.records.map_batches(bound, _BOUNDS).collect()
    return Presence(
        smallest=pc.min(bounds["smallest"]).as_py() or 0.0,
        largest=pc.max(bounds["largest"]).as_py() or 0.0,
        population=pc.sum(bounds["rows"], min_count=0).as_py(),
        out_of_bounds=pc.sum(bounds["outside"], min_count=0).as_py(),
        classes=len(sizes),
        classes_not_covered=int((counts < sizes).sum()),
        counts=found,
    )


def count_regions(labels: LabelledTable, population: Table) -> RegionCounts:
    """Count the records of a population in the region of every published class.

    Parameters and errors: :func:`measure_presence`.

    Notes
    -----
    Two jobs: one pass over the release, and one over the population's quasi-identifiers.
    """
    return _count(labels, population)[2]


def _count(
    labels: LabelledTable, population: Table
) -> tuple[PreparedTable, RegionSearch, RegionCounts]:
    prepared = labels.prepare(population, _SUBJECT)
    search = labels.search(prepared)
    counts = count_records(prepared, search, labels.attributes)
    return prepared, search, RegionCounts(labels.classes.column("records").to_numpy(), counts)


# The two passes over the population.


_COUNTS = pa.schema([("class", pa.int64()), ("records", pa.int64())])
_BOUNDS = pa.schema(
    [
        ("rows", pa.int64()),
        ("smallest", pa.float64()),
        ("largest", pa.float64()),
        ("outside", pa.int64()),
    ]
)


def count_records(
    population: PreparedTable, search: RegionSearch, attributes: Sequence[PublishedAttribute]
) -> Integers:
    """Count the records of a table in each region. Refuse values that cannot be read."""
    counting = population.records.map_batches(_CountRecords(search), _COUNTS)
    counted = counting.aggregate(["class"], sums=["records"]).collect()
    numbers: Integers = counted.column("class").to_numpy()
    records: Integers = counted.column("records").to_numpy()
    unreadable = np.zeros(len(attributes), np.int64)
    unreadable[-1 - numbers[numbers < 0]] = records[numbers < 0]
    require_all_read(_SUBJECT, attributes, unreadable.tolist())
    counts = np.zeros(search.classes, np.int64)
    counts[numbers] = records
    return counts


@dataclass(frozen=True)
class _CountRecords:
    """Counts a task's records in each region. Unreadable values of attribute i as -1 - i."""

    search: RegionSearch

    def __call__(self, batches: Batches) -> Batches:
        counts = np.zeros(self.search.classes, np.int64)
        unreadable = np.zeros(len(self.search.axes), np.int64)
        for batch in batches:
            codes, bad = self.search.points(batch)
            self.search.count(codes, counts)
            unreadable += bad.sum(axis=0)
        numbers = np.concatenate([-1 - np.arange(len(unreadable)), np.arange(len(counts))])
        records = np.concatenate([unreadable, counts])
        some = records > 0
        yield pa.RecordBatch.from_arrays(
            [pa.array(numbers[some]), pa.array(records[some])], names=["class", "records"]
        )


@dataclass(frozen=True)
class _BoundPresence:
    """Bounds the probability of a task's records. One row a task."""

    search: RegionSearch
    shares: Figures
    lower: float
    upper: float

    def __call__(self, batches: Batches) -> Batches:
        rows, smallest, largest, outside = 0, math.inf, -math.inf, 0
        for batch in batches:
            if not batch.num_rows:
                continue
            codes, _ = self.search.points(batch)
            presence = np.minimum(self.search.sum_figures(codes, self.shares), 1.0)
            rows += len(presence)
            smallest = min(smallest, float(presence.min()))
            largest = max(largest, float(presence.max()))
            below, above = presence < self.lower - _TOLERANCE, presence > self.upper + _TOLERANCE
            outside += int((below | above).sum())
        if rows:
            row = {"rows": rows, "smallest": smallest, "largest": largest, "outside": outside}
            yield pa.RecordBatch.from_pylist([row], _BOUNDS)
