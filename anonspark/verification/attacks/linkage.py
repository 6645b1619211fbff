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
    ``matched`` counts the records with a candidate, ``fewer_than_k`` those of them with fewer than
    k, ``smallest_candidates`` is the fewest candidates of a matched record, or 0 if none is
    matched. ``singled_out`` counts published records that are alone in their class and in whose
    region one record of the table lies: if the table covers the released people, that one is
    theirs, whatever other candidates it has. ``re_identified`` are those of them whose record has
    no other candidate. With ``k`` 1 no person was promised to be one of several.

    >>> Linkage(records=9, matched=8, fewer_than_k=1, smallest_candidates=2, singled_out=0,
    ...         re_identified=0, k=3).holds
    False
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
        """Whether matched records have k candidates, and none is singled out from k = 2 on."""
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

    ``labels`` only has attributes that the attacker knows. The table holds the originals, or what
    an attacker knows of a population, and messages call it ``subject``. Numbers and times are
    compared by value, whatever their types, and texts exactly, without blanks at their ends. Raises
    ConfigurationError if the release publishes means, DataError if labels cannot be read, or the
    table lacks columns or has unreadable values, and
    :class:`~anonspark.labels.region_matching.TooManyClassesError` if over 1,000,000 classes overlap
    too much.

    Two jobs: one pass over the release, with one shuffle of a row a class and task, and one over
    the table's quasi-identifiers, with one shuffle of a row a task and, in each task, a row for
    each class of one record. The published classes are collected. They and their tree go to every
    task. More than 1,000,000 are shuffled with the records
    (:meth:`~anonspark.labels.region_matching.LabelledTable.map_records`). No record of the table
    reaches the driver.
    """
    prepared = labels.prepare(table, subject, drops_missing=drops_missing)
    counted = labels.map_records(prepared, partial(CountCandidates, k), FIGURES)
    figures = (
        counted.aggregate(["figure", "class"], sums=["records", "alone"], least=["smallest"])
        .aggregate(["figure", "records"], count="classes", sums=["alone"], least=["smallest"])
        .collect()
    )
    totals = read_totals(figures, subject, labels.attributes)
    # A class of one record is singled out if one record of the table lies in its region.
    is_single = (pc.field("figure") == OF_CLASS) & (pc.field("records") == 1)
    single = figures.filter(is_single).to_pylist()
    (smallest,) = figures.filter(pc.field("figure") == MATCHED)["smallest"].to_pylist() or [0]
    return Linkage(
        records=totals[RECORDS],
        matched=totals[MATCHED],
        fewer_than_k=totals[FEWER],
        smallest_candidates=smallest if totals[MATCHED] else 0,
        singled_out=sum(row["classes"] for row in single),
        re_identified=sum(row["alone"] for row in single),
        k=k,
    )


_NAMES = ("figure", "class", "released", "records", "alone", "smallest")
FIGURES = pa.schema([(name, pa.int64()) for name in _NAMES])
"""Rows of counted records, and of a class those that it has and those of whom it alone is one."""

OF_CLASS, RECORDS, MATCHED, FEWER, _UNREADABLE = range(5)
"""What a row counts: records in the region of a class, or all, those with candidates, those with
fewer than k, and, from the last on, unreadable values of each attribute."""


def read_totals(
    figures: pa.Table, subject: str, attributes: Sequence[PublishedAttribute]
) -> Counter[int]:
    """Return the figures that are of no class. Raises DataError if values cannot be read."""
    others = figures.filter(pc.field("figure") != OF_CLASS)
    columns = (others[name].to_pylist() for name in ("figure", "records"))
    totals = Counter(dict(zip(*columns, strict=True)))
    require_all_read(subject, attributes, [totals[_UNREADABLE + i] for i in range(len(attributes))])
    return totals


@dataclass(frozen=True)
class CountCandidates:
    """Counts the candidates of a task's records: of each class its records, or one if ``alike``.

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
        """Count the candidates of all batches, and yield one batch of figures."""
        classes = len(self.sizes)
        # Sums of whole numbers are exact in float64.
        sizes = np.ones(classes) if self.alike else self.sizes.astype(np.float64)
        single_classes = np.flatnonzero(sizes == 1)
        inside = np.zeros(classes, np.int64)
        alone = np.zeros(classes, np.int64)
        totals = np.zeros(_UNREADABLE + len(self.search.axes), np.int64)
        smallest = np.iinfo(np.int64).max
        for batch in batches:
            codes, is_unreadable = self.search.points(batch)
            candidates = self.search.sum_figures(codes, sizes)
            is_matched = candidates > 0
            is_few = is_matched & (candidates < self.k)
            totals[RECORDS:_UNREADABLE] += [len(candidates), is_matched.sum(), is_few.sum()]
            totals[_UNREADABLE:] += is_unreadable.sum(axis=0)
            if is_matched.any():
                smallest = min(smallest, int(candidates[is_matched].min()))
            if len(single_classes):
                self.search.count(codes, inside)
                self.search.count(codes[candidates == 1], alone)
        held = single_classes if self.every else single_classes[inside[single_classes] > 0]
        rows = np.zeros((len(held) + len(totals) - 1, len(FIGURES)), np.int64)
        rows[: len(held), 1:5] = np.stack([self.names, self.sizes, inside, alone], axis=1)[held]
        rows[len(held) :, 0] = np.arange(1, len(totals))
        rows[len(held) :, 3] = totals[1:]
        rows[:, 5] = smallest
        yield pa.record_batch([pa.array(column) for column in rows.T], schema=FIGURES)
