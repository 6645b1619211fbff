"""The people whom the records of each class are about, counted before anything is published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from anonspark.core.columns import CLASS_ID, UNIT
from anonspark.engine.tasks import Batches
from anonspark.errors import GuaranteeError
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.staged.records import Records
from anonspark.verification.classes import PublishedClasses

_UNITS = "units"
_CLASSES = "classes"
_PAIRS = pa.schema([(CLASS_ID, pa.int64()), (UNIT, pa.int64())])
_NUMBERS = pa.schema([(_UNITS, pa.int64())])


@dataclass(frozen=True)
class _FindPairs:
    """Yields each class and whom its records are about, batch by batch, each pair once."""

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            pairs = pa.Table.from_batches([batch]).group_by(_PAIRS.names).aggregate([])
            yield from pairs.cast(_PAIRS).to_batches()


@dataclass(frozen=True)
class _Numbers:
    """Yields the numbers of people alone."""

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            yield pa.RecordBatch.from_arrays([batch.column(_UNITS)], schema=_NUMBERS)


def require_units(
    finished: Records, snapshot: Snapshot, published: PublishedClasses, k: int
) -> Mapping[int, int] | None:
    """Count the people of each class, and check that they are k.

    Parameters
    ----------
    finished : Records
        Those that are published, of :func:`anonspark.models.model.finished_schema`.
    snapshot : Snapshot
    published : PublishedClasses
        Of the staged release: where everybody has one record, records are people.
    k : int

    Returns
    -------
    mapping of int to int or None
        Classes of each number of people; None where records count.

    Raises
    ------
    GuaranteeError
        If a class has fewer.

    Notes
    -----
    Nothing that formed the classes is asked. One job with two shuffles, of the different pairs of a
    class and a person and of the classes; none where everybody has one record.
    """
    if snapshot.units is None:
        return None
    if not snapshot.units.repeat:
        return published.sizes
    pairs = finished.map_batches(_FindPairs(), _PAIRS, _PAIRS.names).aggregate(_PAIRS.names)
    units = pairs.aggregate([CLASS_ID], count=_UNITS).map_batches(_Numbers(), _NUMBERS)
    found = units.aggregate([_UNITS], count=_CLASSES).collect()
    numbers = dict(zip(found[_UNITS].to_pylist(), found[_CLASSES].to_pylist(), strict=True))
    if min(numbers) < k:
        raise GuaranteeError(
            f"privacy.unit: a class is about {min(numbers)} people, expected {k} at least; nothing "
            "was published. Please report this as a bug"
        )
    return numbers
