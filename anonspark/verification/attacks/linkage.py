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

    ``labels`` has no attributes that the attacker does not know. The table is the originals, or
    what an attacker knows of a population. Numbers and times are compared by value, whatever types
    the tables have, texts exactly, without blanks at their ends. ``subject`` is what messages call
    it. Raises ConfigurationError if the release publishes means, and DataError if it has more than
    1,000,000 classes, labels cannot be read, or the table lacks columns or has unreadable values.

    Two jobs: one pass over the release, with one shuffle of a row a class and task, and one over
    the table's quasi-identifiers, with one shuffle of a row a task and, in each task, a row for
    each class of one record. The published classes are collected. They and their tree go to every
    task. No record of the table reaches the driver.
    """
    prepared = labels.prepare(table, subject, drops_missing=drops_missing)
    sizes = labels.classes.column("records").to_numpy()
    task = _CountCandidates(labels.search(prepared), sizes, k)
    rows = prepared.records.map_batches(task, _FIGURES)
    counted = rows.aggregate(["figure"], sums=["records", "alone"], least=["smallest"]).collect()
    # A class of one record is singled out if one record of the table lies in its region.
    counted = counted.filter((pc.field("figure") < 0) | (pc.field("records") == 1))
    numbers: Integers = counted.column("figure").to_numpy()
    pairs = zip(numbers.tolist(), counted.column("records").to_pylist(), strict=True)
    records = {figure: count for figure, count in pairs if figure < 0}
    unreadable = [records.get(_UNREADABLE - i, 0) for i in range(len(labels.attributes))]
    require_all_read(subject, labels.attributes, unreadable)
    smallest = counted.column("smallest").to_numpy()[numbers == _MATCHED]
    alone = counted.column("alone").to_numpy()[numbers >= 0]
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

# The figure of a row. Numbers from 0 on are classes, those below _UNREADABLE further attributes.
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
        """Count the candidates of all batches, and yield one batch of figures."""
        classes = len(self.sizes)
        single_classes = np.flatnonzero(self.sizes == 1)
        inside = np.zeros(classes, np.int64)
        alone = np.zeros(classes, np.int64)
        unreadable = np.zeros(len(self.search.axes), np.int64)
        # Sums of whole numbers are exact in float64.
        sizes = self.sizes.astype(np.float64)
        records = matched = fewer = 0
        smallest = np.iinfo(np.int64).max
        for batch in batches:
            codes, is_unreadable = self.search.points(batch)
            unreadable += is_unreadable.sum(axis=0)
            candidates = self.search.sum_figures(codes, sizes)
            is_matched = candidates > 0
            records += len(candidates)
            matched += int(is_matched.sum())
            fewer += int((is_matched & (candidates < self.k)).sum())
            if is_matched.any():
                smallest = min(smallest, int(candidates[is_matched].min()))
            if len(single_classes):
                self.search.count(codes, inside)
                self.search.count(codes[candidates == 1], alone)
        held = single_classes[inside[single_classes] > 0]
        figures = [_RECORDS, _MATCHED, _FEWER, *(_UNREADABLE - np.arange(len(unreadable)))]
        count = len(figures) + len(held)
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(np.concatenate([np.array(figures, np.int64), held])),
                pa.array(np.concatenate([[records, matched, fewer], unreadable, inside[held]])),
                pa.array(np.concatenate([np.zeros(len(figures), np.int64), alone[held]])),
                pa.array(np.full(count, smallest)),
            ],
            schema=_FIGURES,
        )
