"""The linkage attack: joining a release with a table of people by the quasi-identifiers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Integers
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.labels.raw_records import require_all_read
from anonspark.labels.region_matching import LabelledTable, RegionSearch


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
        If the release has more than 1,000,000 classes, its labels cannot be read, or the table
        lacks columns or has values that cannot be read.

    Notes
    -----
    Two jobs: one pass over the release, with one shuffle of a row a class and task, and one over
    the table's quasi-identifiers, with one shuffle of a row a task and, in each task, a row for
    each class of one record. The published classes are collected. They and their tree go to every
    task. No record of the table reaches the driver.
    """
    prepared = labels.prepare(table, subject, drops_missing=drops_missing)
    sizes = labels.classes.column("records").to_numpy()
    task = _CountCandidates(labels.search(prepared), sizes, k)
    counted = prepared.records.map_batches(task, _FIGURES)
    found = counted.aggregate(["figure"], sums=["records", "alone"], least=["smallest"]).collect()
    # Of the classes, those of one record and one candidate are told.
    found = found.filter((pc.field("figure") < 0) | (pc.field("records") == 1))
    figures: Integers = found.column("figure").to_numpy()
    pairs = zip(figures.tolist(), found.column("records").to_pylist(), strict=True)
    records = {figure: count for figure, count in pairs if figure < 0}
    require_all_read(
        subject,
        labels.attributes,
        [records.get(_UNREADABLE - i, 0) for i in range(len(labels.attributes))],
    )
    smallest = found.column("smallest").to_numpy()[figures == _MATCHED]
    alone = found.column("alone").to_numpy()[figures >= 0]
    return Linkage(
        records=records.get(_RECORDS, 0),
        matched=records.get(_MATCHED, 0),
        fewer_than_k=records.get(_FEWER, 0),
        smallest_candidates=int(smallest[0]) if records.get(_MATCHED) else 0,
        singled_out=len(alone),
        re_identified=int(alone.sum()),
        k=k,
    )


_FIGURES = pa.schema([(name, pa.int64()) for name in ("figure", "records", "alone", "smallest")])

# What a row tells of; numbers from 0 on are classes, those below _UNREADABLE further attributes.
_RECORDS, _MATCHED, _FEWER, _UNREADABLE = -1, -2, -3, -4


@dataclass(frozen=True)
class _CountCandidates:
    """Counts the candidates of a task's records.

    One row for each figure, and one for each class of one record in whose region records lie.
    """

    search: RegionSearch
    sizes: Integers
    k: int

    def __call__(self, batches: Batches) -> Batches:
        classes = len(self.sizes)
        of_one = np.flatnonzero(self.sizes == 1)
        inside = np.zeros(classes, np.int64)
        alone = np.zeros(classes, np.int64)
        unreadable = np.zeros(len(self.search.axes), np.int64)
        # Sums of whole numbers are exact in float64.
        sizes = self.sizes.astype(np.float64)
        records = matched = fewer = 0
        smallest = np.iinfo(np.int64).max
        for batch in batches:
            codes, bad = self.search.points(batch)
            unreadable += bad.sum(axis=0)
            candidates = self.search.sum_figures(codes, sizes)
            found = candidates > 0
            records += len(candidates)
            matched += int(found.sum())
            fewer += int((found & (candidates < self.k)).sum())
            if found.any():
                smallest = min(smallest, int(candidates[found].min()))
            if len(of_one):
                self.search.count(codes, inside)
                self.search.count(codes[candidates == 1], alone)
        named = of_one[inside[of_one] > 0]
        figures = [_RECORDS, _MATCHED, _FEWER, *(_UNREADABLE - np.arange(len(unreadable)))]
        count = len(figures) + len(named)
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(np.concatenate([np.array(figures, np.int64), named])),
                pa.array(np.concatenate([[records, matched, fewer], unreadable, inside[named]])),
                pa.array(np.concatenate([np.zeros(len(figures), np.int64), alone[named]])),
                pa.array(np.full(count, smallest)),
            ],
            schema=_FIGURES,
        )
