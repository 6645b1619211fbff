"""Compute the certainty of an attacker that a person is in a release (delta-presence).

Nergiz, Atzori and Clifton (2007): the attacker knows the quasi-identifiers of a population, of
which the released people are a part. A published class C has a region: the values that its
published tuple leaves possible. Of the population's records in the region, |C| are in the class, so
each of them is in the release with the probability |C| / records in the region, and others are not.
This is exact where labels depend on no record, which is why other models are refused: then regions
do not overlap, and every part of the population of the same classes is as likely as the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.config.privacy import DeltaPresence
from anonspark.core.arrays import Integers
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.raw_columns import WantedColumns
from anonspark.labels.raw_records import PreparedTable
from anonspark.labels.region_matching import LabelledTable, RegionSearch
from anonspark.labels.regions import PublishedAttribute
from anonspark.release.originals import open_named
from anonspark.verification.attacks.linkage import (
    FEWER,
    FIGURES,
    MATCHED,
    OF_CLASS,
    RECORDS,
    CountCandidates,
    read_totals,
)

_SUBJECT = "population"

# Sums of shares are rounded: a record exactly at a bound is within it.
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class RegionCounts:
    """The keys of published classes, their records, and those of a population in their regions.

    All are int64 of shape (classes,).
    """

    keys: Integers
    released: Integers
    population: Integers


@dataclass(frozen=True)
class Presence:
    """The knowledge of an attacker about who is in a release.

    ``smallest`` and ``largest`` bound the probability of the population's records to be in the
    release, in [0, 1], 0 for an empty population. ``out_of_bounds`` counts records whose
    probability is beyond the bounds asked for, or unknown: in the regions of several classes, whose
    labels then depend on the records. ``classes_not_covered`` counts classes with more records than
    the population has in their region. If there is one, the population is no superset of the
    released people, and the other figures do not say who is in the release.
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
        """Whether the release is delta-present in a population that covers it."""
        return not self.out_of_bounds and not self.classes_not_covered


def measure_presence(
    labels: LabelledTable, population: Table, *, lower: float = 0.0, upper: float = 1.0
) -> Presence:
    """Bound the probability that each record of a population is in a release.

    ``lower`` and ``upper`` are delta_min and delta_max in [0, 1], both included. Numbers and times
    are compared by value, whatever their types, and texts exactly, without blanks at their ends.
    Raises ConfigurationError if the release publishes means, DataError if labels cannot be read, or
    the population lacks columns or has unreadable values, and
    :class:`~anonspark.labels.region_matching.TooManyClassesError` if over 1,000,000 classes overlap
    too much.

    Two jobs: one pass over the release, with one shuffle of a row a class and task, and one over
    the population's quasi-identifiers, with one shuffle of a count a class and task. The published
    classes and their counts are collected. They and their tree go to every task. No record of the
    population reaches the driver. Time for a record grows with the logarithm of the classes and
    with the regions that hold it.
    """
    rows, in_several, region_counts = _count(labels, population)
    sizes, counts = region_counts.released, region_counts.population
    shares = np.divide(sizes, counts, out=np.ones(len(sizes)), where=counts > 0)
    # People in no region are not in the release.
    persons = np.append(counts, max(rows - int(counts.sum()), 0))
    presence = np.append(np.minimum(shares, 1.0), 0.0)
    is_out = (presence < lower - _TOLERANCE) | (presence > upper + _TOLERANCE)
    present = presence[persons > 0]
    return Presence(
        smallest=float(present.min(initial=1.0)) if rows else 0.0,
        largest=float(present.max(initial=0.0)),
        population=rows,
        out_of_bounds=int(persons[is_out].sum()) + in_several,
        classes=len(sizes),
        classes_not_covered=int((counts < sizes).sum()),
        counts=region_counts,
    )


def count_regions(labels: LabelledTable, population: Table) -> RegionCounts:
    """Count the records of a population in the region of every published class.

    Two jobs, and parameters and errors as of :func:`measure_presence`.
    """
    return _count(labels, population)[2]


def _count(labels: LabelledTable, population: Table) -> tuple[int, int, RegionCounts]:
    """Return the records of a population, those in several regions, and those in each."""
    # To be the candidate of a record, every class counts one.
    task = partial(CountCandidates, 2, alike=True, every=labels.has_sample)
    counted = labels.map_records(labels.prepare(population, _SUBJECT), task, FIGURES)
    rows = counted.aggregate(["figure", "class"], sums=["records"], most=["released"]).collect()
    totals = read_totals(rows, _SUBJECT, labels.attributes)
    if labels.has_sample:
        # Of a class no more than these numbers is in this process.
        rows = rows.filter(pc.field("figure") == OF_CLASS).sort_by("class")
        columns = [rows[name].to_numpy() for name in ("class", "released", "records")]
    else:
        columns = [labels.classes[name].to_numpy() for name in ("key", "records")]
        columns.append(_of_classes(rows, len(labels.classes)))
    return totals[RECORDS], totals[MATCHED] - totals[FEWER], RegionCounts(*columns)


def count_records(
    population: PreparedTable, search: RegionSearch, attributes: Sequence[PublishedAttribute]
) -> Integers:
    """Count the records of a table in each region. Raises DataError if values cannot be read."""
    names = np.arange(search.classes)
    counting = CountCandidates(2, search, names, names, alike=True)
    counted = population.records.map_batches(counting, FIGURES)
    rows = counted.aggregate(["figure", "class"], sums=["records"]).collect()
    read_totals(rows, _SUBJECT, attributes)
    return _of_classes(rows, search.classes)


def _of_classes(rows: pa.Table, classes: int) -> Integers:
    """Return the records of each class, int64 of shape (classes,), by its number as name."""
    rows = rows.filter(pc.field("figure") == OF_CLASS)
    counts = np.zeros(classes, np.int64)
    counts[rows["class"].to_numpy()] = rows["records"].to_numpy()
    return counts


_SECTION = "privacy.delta_presence"


def require_population(engine: Engine, options: DeltaPresence, names: Iterable[str]) -> Table:
    """Open the population table, each of whose files has to have the quasi-identifiers as columns.

    Raises ConfigurationError or DataError if it cannot be opened or lacks columns.
    """
    return open_named(
        engine,
        options.population,
        options.format,
        options.options,
        key=f"{_SECTION}.population",
        section=_SECTION,
        columns=WantedColumns(dict.fromkeys(names, True)),
    )


def measure_delta_presence(
    labels: LabelledTable, population: Table, options: DeltaPresence
) -> Presence:
    """Measure delta-presence in published files, with the table of :func:`require_population`.

    Jobs and errors are those of :func:`measure_presence`.
    """
    with labels.data.engine.reading((options.population,), key=f"{_SECTION}.population: "):
        return measure_presence(labels, population, lower=options.min, upper=options.max)


def broken_presence(presence: Presence, options: DeltaPresence) -> list[str]:
    """List how a release violates delta-presence, without values of the data."""
    if presence.classes_not_covered:
        return [
            f"{_SECTION}.population: {presence.classes_not_covered:,} of {presence.classes:,} "
            "classes hold more records than the population has in their region, so it is not a "
            "population of the released people. The release must not be used"
        ]
    if presence.out_of_bounds:
        return [
            f"{_SECTION}: for {presence.out_of_bounds:,} of {presence.population:,} records of the "
            "population the probability to be in the release is out of bounds, or unknown because "
            f"labels overlap. It is {presence.smallest:.4g} to {presence.largest:.4g}, expected "
            f"{options.min:g} to {options.max:g}. The release must not be used"
        ]
    return []
