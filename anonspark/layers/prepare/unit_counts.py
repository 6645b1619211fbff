"""The people of a table and the sensitive values that they have, if criteria count people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from anonspark.config.privacy import PrivacyOptions
from anonspark.core.arrays import Integers
from anonspark.core.columns import UNIT
from anonspark.core.criteria import (
    Criteria,
    PeopleOfGroup,
    Units,
    enough_pairs,
    matched_of_attributes,
)
from anonspark.engine.tasks import Batches
from anonspark.errors import DataError, GuaranteeError
from anonspark.staged.records import Records, Rows

_PAIRS = pa.schema([("item", pa.int64()), (UNIT, pa.int64())])


@dataclass(frozen=True)
class _FindEdges:
    """Yields few pairs of a value and a person, which show how many values can be matched."""

    criteria: Criteria

    def __call__(self, batches: Batches) -> Batches:
        most = self.criteria.most_matched
        pairs = [(np.zeros(0, np.int64), np.zeros(0, np.int64)) for _ in most]
        for batch in batches:
            people = batch.column(UNIT).to_numpy()
            for index, items in enumerate(_numbers(batch, self.criteria)):
                if most[index]:
                    values = np.concatenate([pairs[index][0], items])
                    owners = np.concatenate([pairs[index][1], people])
                    pairs[index] = enough_pairs(values, owners, most[index])
        for values, owners in pairs:
            arrays = [pa.array(values, pa.int64()), pa.array(owners, pa.int64())]
            yield pa.RecordBatch.from_arrays(arrays, schema=_PAIRS)


def _numbers(batch: pa.RecordBatch, criteria: Criteria) -> list[Integers]:
    """Return the numbers of the sensitive values, those of all attributes numbered through."""
    return [
        first + attribute.encode(batch.column(attribute.column))
        for first, attribute in zip(criteria.first_value, criteria.sensitive, strict=False)
    ]


def count_people(records: Records | Rows, criteria: Criteria) -> PeopleOfGroup:
    """Count the people of some records, and the values that different people can have.

    Two jobs with a shuffle each: of the different people of each task, and of at most 2 l^2 pairs
    of a value and a person, which are collected.
    """
    names = [UNIT, *dict.fromkeys(attribute.column for attribute in criteria.sensitive)]
    edges = records.map_batches(_FindEdges(criteria), _PAIRS, names).aggregate(_PAIRS.names)
    pairs = edges.collect()
    matched = matched_of_attributes(
        criteria.first_value,
        criteria.most_matched,
        pairs["item"].to_numpy(),
        pairs[UNIT].to_numpy(),
    )
    return PeopleOfGroup(records.rows(UNIT).aggregate([UNIT]).count(), matched)


def with_people(criteria: Criteria, units: Units, records: Records | Rows) -> Criteria:
    """Return criteria that count people, or raise GuaranteeError if the table violates one."""
    criteria = replace(criteria, units=units)
    if not criteria.counts_people:
        return criteria
    violated = criteria.violated_by_people(count_people(records, criteria))
    if violated is not None:
        raise GuaranteeError(
            f"privacy: the whole input violates {violated.describe()} on attribute "
            f"{violated.attribute!r}, where people are counted. Weaken it. Nothing was published"
        )
    return criteria


def satisfied_by_people(records: Records, rows: int, criteria: Criteria) -> bool:
    """Return whether records satisfy k and all criteria that count people.

    Costs those of :func:`count_people`, and nothing for fewer than k records.
    """
    if rows < criteria.k:
        return False
    people = count_people(records, criteria)
    return people.number >= criteria.k and criteria.violated_by_people(people) is None


_UNITS = pa.schema([(UNIT, pa.int64())])
_LARGEST_UNITS = pa.schema(
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
            has_person = batch.column(UNIT).is_valid().to_numpy(zero_copy_only=False)
            units += int(has_person.sum())
            missing += int(counts[~has_person].sum())
            largest = _largest(np.concatenate([largest, counts[has_person]]), self.most)
        row = {"units": units, "missing": missing, "largest": largest.tolist()}
        yield pa.RecordBatch.from_pylist([row], schema=_LARGEST_UNITS)


def _largest(counts: np.ndarray, most: int) -> np.ndarray:
    return np.sort(counts)[::-1][:most]


def count_units(records: Records | Rows, names: Sequence[str], k: int) -> Units:
    """Count the people, :data:`~anonspark.core.columns.UNIT`, who have records.

    ``names`` are the attributes that identify people, for messages. Raises DataError if a record
    has no person, or there are fewer than k people. One job with one shuffle of the different units
    of each task. From each task k counts are collected.
    """
    counted = records.rows(UNIT).aggregate([UNIT], count="records")
    # The records of k - 1 people are needed, or of one person if k is 1.
    counts = counted.map_batches(_FindLargest(max(k - 1, 1)), _LARGEST_UNITS).collect()
    missing = sum(counts["missing"].to_pylist())
    units = sum(counts["units"].to_pylist())
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
    counts_of_tasks = [np.asarray(value, np.int64) for value in counts["largest"].to_pylist()]
    largest = _largest(np.concatenate(counts_of_tasks), max(k - 1, 1))
    return Units(units, int(largest.max(initial=0)), int(largest[: k - 1].sum()))


def require_countable(units: Units, privacy: PrivacyOptions) -> None:
    """Raise DataError if presence is bounded and people have several records."""
    if units.repeat and privacy.delta_presence is not None:
        raise DataError(
            "privacy.delta_presence: found together with privacy.unit, and a person has "
            f"{units.most_records:,} records. Expected one record of every person, because it "
            "counts records and would promise more than it keeps. Remove it, or bring the input "
            "to one record a person"
        )


@dataclass(frozen=True)
class _FindUnits:
    """Finds some of the people of one task: the smallest hashes, so that all tasks agree."""

    most: int

    def __call__(self, batches: Batches) -> Batches:
        units = np.zeros(0, np.int64)
        for batch in batches:
            people = batch.column(0).to_numpy(zero_copy_only=False)
            units = np.union1d(units, people)[: self.most]
        yield pa.RecordBatch.from_arrays([pa.array(units, pa.int64())], schema=_UNITS)


def has_units(records: Records, rows: int, criteria: Criteria) -> bool:
    """Return whether records are about k people at least. True if records are counted.

    One job, from each of whose tasks at most k hashes are collected. None if so many records cannot
    be about fewer people.
    """
    units = criteria.units
    if units is None or rows > units.of_fewer_than_k:
        return True
    people = records.map_batches(_FindUnits(criteria.k), _UNITS, [UNIT]).collect()
    return len(np.unique(people[UNIT].to_numpy())) >= criteria.k
