"""Leave out the classes that lose most, at most a share of the records, once all rounds are done.

Whole classes are left out, so that the others are as they were and satisfy every criterion. Where
records are counted, those that are left out satisfy every criterion but distances as one class:
what figures reveal of them is what their labels would have shown. Where people are counted, who may
be in several classes, the caller has to look.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pyarrow as pa

from anonspark.core.arrays import Flags, Integers
from anonspark.core.columns import CLASS_ID, PART, RECORD_LOSS, ROUND, SIZE, Part
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.layers.evaluate.metrics import RoundResult
from anonspark.layers.generalize.figures import losses_of_records
from anonspark.models.model import RESULT, result_batch
from anonspark.staged.records import BYTES, PACKED, Packer, Records, together

_RANKED = pa.schema([("rank", pa.int64()), (SIZE, pa.int64())])

# Bits of a loss, and of a name, that do not rank classes: 12 bits of the fraction, and 16, are
# few enough ranks for the driver.
_BITS_OF_LOSS = 40
_BITS_OF_NAME = 48

_HIGHEST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class _Classes:
    """Decides which classes are left out: by their loss, of equal ones by their name.

    Parameters
    ----------
    weights : tuple of float
        Of the quasi-identifiers.
    loss : int
        Rank by loss above which classes are left out.
    name : int
        Rank by name above which classes with that rank by loss are left out.
    """

    weights: tuple[float, ...]
    loss: int = _HIGHEST
    name: int = _HIGHEST

    @property
    def columns(self) -> list[str]:
        """Return the columns of classes that ranks are made of."""
        return [CLASS_ID, *(f"penalty_{index}" for index in range(len(self.weights)))]

    def ranks(self, batch: pa.RecordBatch | pa.Table) -> tuple[Integers, Integers]:
        """Return the ranks of classes, or of the classes of records, by loss and by name."""
        if RECORD_LOSS in batch.schema.names:
            losses = batch.column(RECORD_LOSS).to_numpy()
        else:
            penalties = [batch.column(name).to_numpy() for name in self.columns[1:]]
            losses = losses_of_records(penalties, self.weights)
        # Numbers from 0 on are ordered as their bits.
        by_loss = losses.view(np.int64) >> _BITS_OF_LOSS
        return by_loss, batch.column(CLASS_ID).to_numpy() >> _BITS_OF_NAME

    def leave(self, batch: pa.RecordBatch | pa.Table) -> Flags:
        """Return which classes, or which records, are left out."""
        by_loss, by_name = self.ranks(batch)
        leave: Flags = (by_loss > self.loss) | ((by_loss == self.loss) & (by_name > self.name))
        return leave


@dataclass(frozen=True)
class _Rank:
    """Yields the rank of each class by loss, or by name among those of one loss, and its size."""

    classes: _Classes
    among: int | None = None

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            ranks, by_name = self.classes.ranks(batch)
            sizes = batch.column(SIZE).to_numpy()
            if self.among is not None:
                own = ranks == self.among
                ranks, sizes = by_name[own], sizes[own]
            yield pa.RecordBatch.from_arrays([pa.array(ranks), pa.array(sizes)], schema=_RANKED)


@dataclass(frozen=True)
class _Kept:
    """Yields the classes that stay, packed, those of one round together as they came."""

    classes: _Classes

    def __call__(self, batches: Batches) -> Batches:
        packer = Packer()
        for batch in batches:
            own = pa.Table.from_batches([batch]).filter(pa.array(~self.classes.leave(batch)))
            if own.num_rows:
                yield pa.RecordBatch.from_pydict(packer.pack(own))


@dataclass(frozen=True)
class _Divide:
    """Packs the records of a task, those of the classes that stay and the others apart.

    Parameters
    ----------
    names : mapping of Part to sequence of str
        Columns of either.
    """

    classes: _Classes
    names: Mapping[Part, Sequence[str]]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        packer = Packer()
        for records in together(batches):
            leave = self.classes.leave(records)
            for part, mask in ((Part.FINISHED, ~leave), (Part.LEFT_OVER, leave)):
                if mask.any():
                    own = records.select(self.names[part]).filter(pa.array(mask))
                    yield result_batch(part, packer.pack(own))


@dataclass(frozen=True)
class Suppression:
    """The finished records and classes of all rounds, without those that are left out.

    Parameters
    ----------
    results : list of RoundResult
        Of the rounds of which classes stay.
    finished : list of str
        Where the records that stay are staged.
    classes : Records
        Those that stay.
    left_out : tuple of Records and int, or None
        The records that are left out, and their number. None where none is.
    """

    results: list[RoundResult]
    finished: list[str]
    classes: Records
    left_out: tuple[Records, int] | None


def suppress_classes(
    results: list[RoundResult],
    finished: Table,
    classes: Records,
    quasi_identifiers: Sequence[QuasiIdentifier],
    schemas: tuple[pa.Schema, pa.Schema],
    *,
    limit: float,
    path: str,
) -> Suppression:
    """Leave out the classes whose records lose most, as many as a share of the records allows.

    Parameters
    ----------
    results : list of RoundResult
        Of all rounds.
    finished : Table
        Packed records of all rounds, with their codes and :data:`RECORD_LOSS`.
    classes : Records
        Of all rounds.
    quasi_identifiers : sequence of QuasiIdentifier
    schemas : tuple of pyarrow.Schema
        Of the records that stay, and of those that are left out.
    limit : float
        The share, below 1.
    path : str
        A new directory.

    Notes
    -----
    Two jobs that count classes by rank, one that counts those that stay, and one that reads and
    writes all finished records. At most some 100,000 counts are collected. Classes are ranked by 12
    bits of the fraction of their loss and by 16 bits of their name. Of one rank all are left out or
    none.
    """
    rows = results[0].rows
    own = _Classes(tuple(identifier.weight for identifier in quasi_identifiers))
    loss, most = _rank_that_exceeds(classes, _Rank(own), int(Decimal(str(limit)) * rows))
    # Of classes that lose nothing none is left out.
    name, _ = _rank_that_exceeds(classes, _Rank(own, loss), most) if loss else (_HIGHEST, 0)
    own = replace(own, loss=loss, name=name)
    packed = classes.map_batches(_Kept(own), PACKED)
    classes = Records(packed, classes.schema)
    sizes = classes.rows(ROUND, SIZE).aggregate([ROUND], sums=[SIZE]).collect().to_pylist()
    kept = {row[ROUND]: row[SIZE] for row in sizes}
    parts = (Part.FINISHED, Part.LEFT_OVER)
    names = {part: schema.names for part, schema in zip(parts, schemas, strict=True)}
    of_records = pa.schema([*schemas[1], (CLASS_ID, pa.int64()), (RECORD_LOSS, pa.float64())])
    divided = Records(finished, of_records).map_batches(_Divide(own, names), RESULT)
    taken = divided.stage_parts(path, PART, parts, [BYTES])[Part.FINISHED][BYTES]
    remaining: list[RoundResult] = []
    for result in results:
        if result.number in kept:
            left_over = rows - kept[result.number]
            # All of them are counted with the first round.
            own_bytes = 0 if remaining else int(taken or 0)
            remaining.append(
                replace(result, rows=rows, left_over=left_over, staged_bytes=own_bytes)
            )
            rows = left_over
    left_out = None
    if rows:
        packed = finished.engine.staged([f"{path}/{PART}={Part.LEFT_OVER}"], PACKED)
        left_out = Records(packed, schemas[1]), rows
    return Suppression(remaining, [f"{path}/{PART}={Part.FINISHED}"], classes, left_out)


def _rank_that_exceeds(classes: Records, rank: _Rank, most: int) -> tuple[int, int]:
    """Return the highest rank whose records are too many with those above, and how many may be."""
    names = [SIZE, *rank.classes.columns]
    counted = classes.map_batches(rank, _RANKED, names).aggregate(["rank"], sums=[SIZE]).collect()
    by_rank = counted.sort_by([("rank", "descending")])
    so_far = np.cumsum(by_rank[SIZE].to_numpy())
    place = int(np.searchsorted(so_far, most, side="right"))
    return by_rank["rank"][place].as_py(), most - int(so_far[place - 1] if place else 0)
