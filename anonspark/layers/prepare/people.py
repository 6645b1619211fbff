"""The people of a table and the sensitive values that they have, where criteria count people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from anonspark.config.privacy import PrivacyOptions
from anonspark.core.arrays import Figures, Integers
from anonspark.core.columns import UNIT
from anonspark.core.criteria import Criteria, PeopleOfGroup, Units
from anonspark.core.matching import enough_pairs, matched_of_attributes, ranges_of_counts
from anonspark.engine.tasks import Batches
from anonspark.errors import DataError, GuaranteeError
from anonspark.staged.records import Records, Rows

_PAIRS = pa.schema([("item", pa.int64()), (UNIT, pa.int64())])
_VALUES = pa.schema([("attribute", pa.int64()), ("item", pa.int64()), (UNIT, pa.int64())])
_PARTS = pa.schema([("item", pa.int64()), ("values", pa.int64())])
_RANGES = pa.schema([(name, pa.int64()) for name in ("attribute", UNIT, "least", "most")])
_ENDS = pa.schema([("end", pa.int64()), ("item", pa.int64())])


@dataclass(frozen=True)
class _FindPairs:
    """Yields whom each record is about, behind all values, and its values."""

    criteria: Criteria

    def __call__(self, batches: Batches) -> Batches:
        person = int(self.criteria.first_value[-1])
        for batch in batches:
            people = batch.column(UNIT)
            items = [*_numbers(batch, self.criteria), np.full(len(people), person)]
            for item in items:
                arrays = [pa.array(item, pa.int64()), people]
                yield pa.RecordBatch.from_arrays(arrays, schema=_PAIRS)


@dataclass(frozen=True)
class _FindEdges:
    """Yields pairs of a value and a person that show how many values can be matched, few a task."""

    criteria: Criteria

    def __call__(self, batches: Batches) -> Batches:
        most = self.criteria.most_matched
        found = [(np.zeros(0, np.int64), np.zeros(0, np.int64)) for _ in most]
        for batch in batches:
            people = batch.column(UNIT).to_numpy()
            for place, items in enumerate(_numbers(batch, self.criteria)):
                if most[place]:
                    values = np.concatenate([found[place][0], items])
                    own = np.concatenate([found[place][1], people])
                    found[place] = enough_pairs(values, own, most[place])
        for values, own in found:
            arrays = [pa.array(values, pa.int64()), pa.array(own, pa.int64())]
            yield pa.RecordBatch.from_arrays(arrays, schema=_PAIRS)


def _numbers(batch: pa.RecordBatch, criteria: Criteria) -> list[Integers]:
    """Return the numbers of the sensitive values, those of all attributes numbered through."""
    return [
        first + attribute.encode(batch.column(attribute.column))
        for first, attribute in zip(criteria.first_value, criteria.sensitive, strict=False)
    ]


def count_people(records: Records | Rows, criteria: Criteria) -> PeopleOfGroup:
    """Count the people of some records, and what criteria ask of their values.

    Parameters
    ----------
    records : Records or Rows
    criteria : Criteria
        That count people.

    Notes
    -----
    One job with two shuffles, of the different pairs of a value and a person of each task, and of
    their numbers, which are collected. For distinct l-diversity one more with one shuffle, of whose
    tasks 2 l^2 pairs at most are collected.
    """
    names = [UNIT, *dict.fromkeys(attribute.column for attribute in criteria.sensitive)]
    pairs = records.map_batches(_FindPairs(criteria), _PAIRS, names).aggregate(_PAIRS.names)
    counted = pairs.select(["item"]).aggregate(["item"], count="people").collect()
    values = int(criteria.first_value[-1])
    counts = np.zeros(values + 1, np.int64)
    counts[counted["item"].to_numpy()] = counted["people"].to_numpy()
    matched = [0 for _ in criteria.sensitive]
    if any(criteria.most_matched):
        edges = records.map_batches(_FindEdges(criteria), _PAIRS, names).aggregate(_PAIRS.names)
        found = edges.collect()
        matched = matched_of_attributes(
            criteria.first_value,
            criteria.most_matched,
            found["item"].to_numpy(),
            found[UNIT].to_numpy(),
        )
    split = np.split(counts[:-1], criteria.first_value[1:-1])
    ranges = _count_ranges(records, criteria, names) if criteria.asks_for_ranges else None
    return PeopleOfGroup(int(counts[-1]), split, matched, ranges)


@dataclass(frozen=True)
class _FindRanges:
    """Yields each record's value as the first and the last one of whom it is about."""

    criteria: Criteria

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            people = batch.column(UNIT)
            for place, item in enumerate(_numbers(batch, self.criteria)):
                own, value = pa.repeat(place, len(item)), pa.array(item, pa.int64())
                columns = [own, people, value, value]
                yield pa.RecordBatch.from_arrays(columns, schema=_RANGES)


@dataclass(frozen=True)
class _ByEnd:
    """Yields for each person and attribute the first value, and the last one."""

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            for end, name in enumerate(("least", "most")):
                ends = pa.repeat(end, batch.num_rows)
                yield pa.RecordBatch.from_arrays([ends, batch.column(name)], schema=_ENDS)


def _count_ranges(
    records: Records | Rows, criteria: Criteria, names: list[str]
) -> list[tuple[Integers, Integers]]:
    """Count people by the first and by the last of their values. One job with two shuffles."""
    found = records.map_batches(_FindRanges(criteria), _RANGES, names)
    people = found.aggregate(["attribute", UNIT], least=["least"], most=["most"])
    counted = people.map_batches(_ByEnd(), _ENDS).aggregate(_ENDS.names, count="people").collect()
    ends, items, counts = (counted[name].to_numpy() for name in ("end", "item", "people"))
    return ranges_of_counts(criteria.first_value, ends, items, counts)


def with_people(criteria: Criteria, units: Units, records: Records | Rows) -> Criteria:
    """Return criteria that count people, after a look whether a whole table satisfies them.

    Parameters
    ----------
    criteria : Criteria
        That count records.
    units : Units
        The people of the table.
    records : Records or Rows

    Raises
    ------
    GuaranteeError
        If the whole table violates a criterion.
    """
    criteria = replace(criteria, units=units)
    if not criteria.counts_people:
        return criteria
    people = count_people(records, criteria)
    criteria = of_people(criteria, people, records)
    violated = criteria.violated_by_people(people)
    if violated is not None:
        raise GuaranteeError(
            f"privacy: the whole input violates {violated.describe()} on attribute "
            f"{violated.attribute!r}, where people are counted. Weaken it. Nothing was published"
        )
    return criteria


def of_people(criteria: Criteria, people: PeopleOfGroup, records: Records | Rows) -> Criteria:
    """Return criteria that compare shares in classes with those of some people.

    Parameters
    ----------
    criteria : Criteria
        That count people.
    people : PeopleOfGroup
        Those of the records.
    records : Records or Rows

    Notes
    -----
    Where a distance is asked for, one job with three shuffles: of the different pairs of a value
    and a person, of people, and of numbers, which are collected.
    """
    if criteria.units is None:
        raise ValueError("the criteria count records")
    even: list[Figures | None] = [None for _ in criteria.sensitive]
    if any(one.is_even for one in criteria.criteria):
        shares = _even_shares(records, criteria, people.number)
        even = [*np.split(shares, criteria.first_value[1:-1])]
    sensitive = zip(criteria.sensitive, people.counts, even, strict=True)
    return replace(
        criteria,
        units=replace(criteria.units, number=people.number),
        sensitive=tuple(
            replace(one, people=own, even_shares=shares) for one, own, shares in sensitive
        ),
    )


@dataclass(frozen=True)
class _FindValues:
    """Yields each attribute's values, and whom they are of."""

    criteria: Criteria

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            people = batch.column(UNIT)
            for place, item in enumerate(_numbers(batch, self.criteria)):
                columns = [pa.repeat(place, len(item)), pa.array(item, pa.int64()), people]
                yield pa.RecordBatch.from_arrays(columns, schema=_VALUES)


@dataclass(frozen=True)
class _Parts:
    """Yields for each value of a person how many values he or she has."""

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            values = batch.column("item")
            sizes = batch.column("values").take(values.value_parent_indices())
            yield pa.RecordBatch.from_arrays([values.flatten(), sizes], schema=_PARTS)


def _even_shares(records: Records | Rows, criteria: Criteria, number: int) -> Figures:
    """Return the share of each value where people count as one, in equal parts for each value."""
    names = [UNIT, *dict.fromkeys(attribute.column for attribute in criteria.sensitive)]
    pairs = records.map_batches(_FindValues(criteria), _VALUES, names).aggregate(_VALUES.names)
    people = pairs.aggregate(["attribute", UNIT], count="values", lists=["item"])
    parts = people.select(["item", "values"]).map_batches(_Parts(), _PARTS)
    found = parts.aggregate(_PARTS.names, count="people").collect()
    sums: dict[int, list[float]] = {}
    for row in found.to_pylist():
        sums.setdefault(row["item"], []).append(row["people"] / row["values"])
    shares = np.zeros(int(criteria.first_value[-1]))
    for item, own in sums.items():
        # Rounded once, so that no order of the rows matters.
        shares[item] = math.fsum(own) / number
    return shares


def satisfied_by_people(records: Records, rows: int, criteria: Criteria) -> bool:
    """Return whether records satisfy k and all criteria that count people.

    Parameters
    ----------
    records : Records
    rows : int
        Their number.
    criteria : Criteria

    Notes
    -----
    Costs as :func:`count_people`. Nothing for fewer than k records.
    """
    if rows < criteria.k:
        return False
    people = count_people(records, criteria)
    return people.number >= criteria.k and criteria.violated_by_people(people) is None


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
