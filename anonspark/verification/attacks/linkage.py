"""The linkage attack: joining a release with a table of people by the quasi-identifiers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Integers
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.labels.raw_records import require_all_read
from anonspark.labels.region_matching import LabelledTable, RegionSearch
from anonspark.labels.regions import PublishedAttribute


@dataclass(frozen=True)
class Linkage:
    """The findings of an attacker who looks up the records of a table in a release.

    A published record is a candidate for a record of the table if its region holds that one.

    Parameters
    ----------
    records : int
        Records of the table.
    matched : int
        Of them, those with at least one candidate.
    fewer_than_k : int
        Of them, those with at least one candidate, but fewer than k.
    smallest_candidates : int
        Fewest candidates of a matched record. 0 where none is matched.
    singled_out : int
        Published records that are alone in their class and in whose region one record of the table
        lies. Where the table covers the released people, that one is theirs, whatever other
        candidates it has.
    re_identified : int
        Of them, those whose record has no other candidate: a match one to one.
    k : int
        Candidates that everybody should have. With 1 no person was promised to be one of several.
    """

    records: int
    matched: int
    fewer_than_k: int
    smallest_candidates: int
    singled_out: int
    re_identified: int
    k: int = field(default=2, compare=False)

    @property
    def unmatched(self) -> int:
        """Records of the table without a candidate."""
        return self.records - self.matched

    @property
    def holds(self) -> bool:
        """Return whether matched records have k candidates, and none is singled out from k = 2."""
        return not self.fewer_than_k and (self.k < 2 or not self.singled_out)


def measure_linkage(
    labels: LabelledTable,
    table: Table,
    *,
    k: int,
    drops_missing: bool = False,
    subject: str = "population",
) -> Linkage:
    """Count, for each record of a table, the published records that it may be.

    Parameters
    ----------
    labels : LabelledTable
        Published records. Attributes that the attacker does not know are left out.
    table : Table
        The originals, or what an attacker knows of a population: raw records, with a column of
        each attribute's name. Numbers and times are compared by value, whatever types the two
        tables have. Texts exactly, without blanks at their ends.
    k : int
        Candidates that everybody should have.
    drops_missing : bool
        Whether records with a missing value were not anonymized.
    subject : str
        What messages call the table.

    Returns
    -------
    Linkage

    Raises
    ------
    ConfigurationError
        If the release publishes means.
    DataError
        If the release's labels cannot be read, or the table lacks columns or has values that cannot
        be read. :class:`~anonspark.labels.region_matching.TooManyClassesError` if over 1,000,000
        classes overlap too much.

    Notes
    -----
    Two jobs: one pass over the release, with one shuffle of a row a class and task, and one over
    the table's quasi-identifiers, with one shuffle of a row a task and, in each task, a row for
    each class of one record. The published classes are collected. They and their tree go to every
    task, or (:meth:`~anonspark.labels.region_matching.LabelledTable.map_records`) classes and
    records are shuffled. No record of the table reaches the driver.
    """
    prepared = labels.prepare(table, subject, drops_missing=drops_missing)
    counted = labels.map_records(prepared, partial(CountCandidates, k), FIGURES)
    figures = (
        counted.aggregate(["figure", "class"], sums=["records", "alone"], least=["smallest"])
        .aggregate(["figure", "records"], count="classes", sums=["alone"], least=["smallest"])
        .collect()
    )
    totals = read_totals(figures, subject, labels.attributes)
    rows = figures.to_pylist()
    single = [row for row in rows if (row["figure"], row["records"]) == (OF_CLASS, 1)]
    smallest = [row["smallest"] for row in rows if row["figure"] == MATCHED]
    return Linkage(
        records=totals[RECORDS],
        matched=totals[MATCHED],
        fewer_than_k=totals[FEWER],
        smallest_candidates=min(smallest) if totals[MATCHED] else 0,
        singled_out=sum(row["classes"] for row in single),
        re_identified=sum(row["alone"] for row in single),
        k=k,
    )


FIGURES = pa.schema(
    [(name, pa.int64()) for name in ("figure", "class", "released", "records", "alone", "smallest")]
)
"""What a row counts: records of the region of a class, or one of the other figures."""

OF_CLASS, RECORDS, MATCHED, FEWER, _UNREADABLE = range(5)
"""The figures. From the last on, unreadable values of each attribute."""


def read_totals(
    figures: pa.Table, subject: str, attributes: Sequence[PublishedAttribute]
) -> Counter[int]:
    """Return the figures that are of no class.

    Raises
    ------
    DataError
        If values cannot be read.
    """
    others = figures.filter(pc.field("figure") != OF_CLASS)
    totals = Counter(
        dict(zip(others["figure"].to_pylist(), others["records"].to_pylist(), strict=True))
    )
    require_all_read(subject, attributes, [totals[_UNREADABLE + i] for i in range(len(attributes))])
    return totals


@dataclass(frozen=True)
class CountCandidates:
    """Counts the candidates of a task's records.

    One row for each figure, and one for each class of one candidate in whose region records lie, or
    for ``every`` such class.
    """

    k: int
    search: RegionSearch
    names: Integers
    sizes: Integers
    alike: bool = False
    every: bool = False

    def __call__(self, batches: Batches) -> Batches:
        """Yield the figures of a task."""
        classes = len(self.sizes)
        # Sums of whole numbers are exact in float64.
        sizes = np.ones(classes) if self.alike else self.sizes.astype(np.float64)
        of_one = np.flatnonzero(sizes == 1)
        inside = np.zeros(classes, np.int64)
        alone = np.zeros(classes, np.int64)
        totals = np.zeros(_UNREADABLE + len(self.search.axes), np.int64)
        smallest = np.iinfo(np.int64).max
        for batch in batches:
            codes, bad = self.search.points(batch)
            candidates = self.search.sum_figures(codes, sizes)
            found = candidates > 0
            fewer = found & (candidates < self.k)
            totals[RECORDS:_UNREADABLE] += [len(candidates), found.sum(), fewer.sum()]
            totals[_UNREADABLE:] += bad.sum(axis=0)
            if found.any():
                smallest = min(smallest, int(candidates[found].min()))
            if len(of_one):
                self.search.count(codes, inside)
                self.search.count(codes[candidates == 1], alone)
        shown = of_one if self.every else of_one[inside[of_one] > 0]
        rows = np.zeros((len(shown) + len(totals) - 1, len(FIGURES)), np.int64)
        of_classes = np.stack([self.names, self.sizes, inside, alone], axis=1)
        rows[: len(shown), 1:5] = of_classes[shown]
        rows[len(shown) :, 0] = np.arange(1, len(totals))
        rows[len(shown) :, 3] = totals[1:]
        rows[:, 5] = smallest
        yield pa.record_batch([pa.array(column) for column in rows.T], schema=FIGURES)
