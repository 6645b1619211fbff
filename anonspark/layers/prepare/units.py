"""The people that records are about: how many there are, and how many records the most have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anonspark.config.privacy import PrivacyOptions
from anonspark.core.columns import UNIT
from anonspark.core.criteria import Criteria
from anonspark.core.units import Units
from anonspark.engine.tasks import Batches
from anonspark.errors import DataError
from anonspark.staged.records import Records, Rows

_UNITS = pa.schema([(UNIT, pa.int64())])
_FOUND = pa.schema(
    [(name, pa.int64()) for name in ("units", "missing")] + [("largest", pa.list_(pa.int64()))]
)


@dataclass(frozen=True)
class _FindLargest:
    """Finds the units with the most records in one task."""

    most: int

    def __call__(self, batches: Batches) -> Batches:
        largest = np.zeros(0, np.int64)
        units = missing = 0
        for batch in batches:
            counts = batch.column("records").to_numpy(zero_copy_only=False)
            known = batch.column(UNIT).is_valid().to_numpy(zero_copy_only=False)
            units += int(known.sum())
            missing += int(counts[~known].sum())
            largest = _largest(np.concatenate([largest, counts[known]]), self.most)
        row = {"units": units, "missing": missing, "largest": largest.tolist()}
        yield pa.RecordBatch.from_pylist([row], schema=_FOUND)


def _largest(counts: np.ndarray, most: int) -> np.ndarray:
    return np.sort(counts)[::-1][:most]


def count_units(records: Records | Rows, names: Sequence[str], k: int) -> Units:
    """Count the people that records are about.

    Parameters
    ----------
    records : Records or Rows
        With :data:`~anonspark.core.columns.UNIT`.
    names : sequence of str
        The attributes that identify people, for messages.
    k : int

    Raises
    ------
    DataError
        If it is missing whom a record is about, or there are fewer than k people.

    Notes
    -----
    One job with one shuffle of the different units of each task. Of each task k counts are
    collected.
    """
    counted = records.rows(UNIT).aggregate([UNIT], count="records")
    # Of the k people with the most records k - 1 are asked for, and one where k is 1.
    found = counted.map_batches(_FindLargest(max(k - 1, 1)), _FOUND).collect()
    missing = sum(found["missing"].to_pylist())
    units = sum(found["units"].to_pylist())
    keys = ", ".join(names)
    if missing:
        raise DataError(
            f"privacy.unit: {missing:,} records have no person because {keys} is missing. Expected "
            "it in every record. Complete them, or leave these records out of the input"
        )
    if units < k:
        raise DataError(
            f"privacy.k: {k} needs at least {k} people, but the input is about {units:,}, "
            f"identified by {keys}. Nothing can be published"
        )
    every = [np.asarray(one, np.int64) for one in found["largest"].to_pylist()]
    largest = _largest(np.concatenate(every), max(k - 1, 1))
    return Units(units, int(largest.max(initial=0)), int(largest[: k - 1].sum()))


def require_countable(units: Units, privacy: PrivacyOptions) -> None:
    """Check that nothing is required that counts records where people have several.

    Parameters
    ----------
    units : Units
    privacy : PrivacyOptions

    Raises
    ------
    DataError
    """
    keys = privacy.counting_records()
    if units.repeat and keys:
        raise DataError(
            f"privacy.{' and privacy.'.join(keys)}: found together with privacy.unit, and a person "
            f"has {units.most_records:,} records. Expected one record of every person, because "
            "these criteria count records and would promise more than they keep. Remove them, or "
            "bring the input to one record a person"
        )


@dataclass(frozen=True)
class _FindUnits:
    """Finds some of the people of one task: the smallest hashes, so that all tasks agree."""

    most: int

    def __call__(self, batches: Batches) -> Batches:
        found = np.zeros(0, np.int64)
        for batch in batches:
            own = batch.column(0).to_numpy(zero_copy_only=False)
            found = np.union1d(found, own)[: self.most]
        yield pa.RecordBatch.from_arrays([pa.array(found, pa.int64())], schema=_UNITS)


def has_units(records: Records, rows: int, criteria: Criteria) -> bool:
    """Return whether records are about k people at least. True where records are counted.

    Parameters
    ----------
    records : Records
    rows : int
        Their number.
    criteria : Criteria

    Notes
    -----
    One job, of each of whose tasks k hashes at most are collected. None where so many records
    cannot be about fewer people.
    """
    units = criteria.units
    if units is None or rows > units.of_fewer_than_k:
        return True
    found = records.map_batches(_FindUnits(criteria.k), _UNITS, [UNIT]).collect()
    return len(np.unique(found[UNIT].to_numpy())) >= criteria.k
