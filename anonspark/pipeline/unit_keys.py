"""Columns that number people or households who have several records, whatever they are called."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Flags, Integers
from anonspark.core.recognition.names import (
    Unit,
    is_key_name,
    may_mean_people,
    may_tell_people_apart,
    meaning_of,
    unit_of_name,
)
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading, is_number, is_text
from anonspark.engine.tasks import Batches
from anonspark.engine.values.hashing import xxhash64
from anonspark.engine.values.values import as_floats, read_values
from anonspark.staged.sampling import DrawByHash, draw_divisor

MOST_RECORDS_OF_A_VALUE = 50
"""On the average. Fewer values are those of a code of many people, as a kind of admission."""

# A person has few records compared with the table; a frequent measurement has many.
_MOST_SHARE = 0.05
_FEWEST_VALUES = 10
# A key with a value for so many records at least is one even where nothing else says so.
_RECORDS_OF_A_KEY = 5
_MOST_KEYS = 12
_DRAWN_RECORDS = 10_000
# The hash of no value, for what is missing.
_NOBODY = np.int64(-1)

# Of the changes that there would be at random, those that a column may have within a person.
_STABLE = 0.05
_INDEPENDENT, _EXCLUSIVE = 0.3, 0.5
_FEWEST_CHANGES = 8.0
_ALIAS = 0.9
_MOST_COMPARED = 10

# What does not change in the life of a person, as a rule.
_PERSONAL = ("sex", "race", "date of birth")


@dataclass(frozen=True)
class KeyCounts:
    """The frequencies of a column's values.

    Parameters
    ----------
    records : int
        Those that have a value.
    values : int
        Different values.
    most : int
        Records of the most frequent value.
    """

    records: int
    values: int
    most: int

    @property
    def unevenness(self) -> float:
        """Records of the most frequent value, in those of one on the average."""
        return self.most * self.values / self.records


@dataclass(frozen=True)
class UnitKey:
    """A column that may number people or households who have several records.

    Parameters
    ----------
    column : str
    counts : KeyCounts
    named : str or None
        Whom the name numbers, if it says so.
    stable : tuple of str
        Columns that are the same in all records of a value.
    is_sure : bool
        Whether name or stable columns are evidence enough.
    """

    column: str
    counts: KeyCounts
    named: Unit | None
    stable: tuple[str, ...]
    is_sure: bool


def may_be_key_type(data_type: pa.DataType) -> bool:
    """Return whether values of a type may number people: no days, times, truth values or halves."""
    return is_text(data_type) or is_number(data_type)


def hashed_values(table: Table, readings: Collection[Reading]) -> Table:
    """Return hashes of the values of columns, and which of them are no keys. Lazy.

    Parameters
    ----------
    table : Table
    readings : collection of Reading
        Of the columns whose values can be compared.

    Returns
    -------
    Table
        For each reading its name with the hash, of what is missing :data:`_NOBODY`, and the name of
        its missing values with what is missing or no whole number.
    """
    schema = pa.schema(
        field for one in readings for field in ((one.name, pa.int64()), (one.missing, pa.bool_()))
    )
    return table.select([one.column for one in readings]).map_batches(
        _Hash(tuple(readings), schema), schema
    )


def find_unit_keys(
    hashed: Table, names: Mapping[str, str], counts: Mapping[str, KeyCounts], records: int
) -> list[UnitKey]:
    """Find the columns that may number people or households who have several records.

    Parameters
    ----------
    hashed : Table
        Of :func:`hashed_values`.
    names : mapping of str to str
        Of columns, and of those of the table with their hashes.
    counts : mapping of str to KeyCounts
        Of those that may be keys.
    records : int
        Of the table.

    Returns
    -------
    list of UnitKey
        The same on both engines, in whatever order the records are.

    Notes
    -----
    One pass over the table where a column may be a key by its counts. Of some ten thousand records
    for each such column, all of the values that are drawn, hashes of all columns are collected.
    """
    # A person's records are few and evenly spread.
    possible = sorted(
        (name for name, own in counts.items() if _may_repeat_as_people(name, own, records)),
        key=lambda name: (unit_of_name(name) is None, counts[name].unevenness),
    )[:_MOST_KEYS]
    if not possible:
        return []
    mask = np.int64(draw_divisor(records, _DRAWN_RECORDS) - 1)
    drawing = _DrawKeys(tuple(names[key] for key in possible), tuple(names.values()), mask)
    schema = pa.schema([(name, pa.int64()) for name in names.values()])
    collected = hashed.map_batches(drawing, schema).collect()
    hashes = {name: collected[own].to_numpy() for name, own in names.items()}
    found = []
    for name in possible:
        own = counts[name]
        drawn = drawing.draws(hashes[name])
        stable, is_sure = _evidence(
            {other: column[drawn] for other, column in hashes.items()}, name
        )
        named = unit_of_name(name)
        says_key = is_key_name(name) or may_tell_people_apart(name)
        has_many = _RECORDS_OF_A_KEY * own.values >= own.records
        is_sure = is_sure or named is not None or (says_key and (bool(stable) or has_many))
        if is_sure or says_key or len(stable) > 1:
            found.append(UnitKey(name, own, named, tuple(stable), is_sure))
    return found


def best_first(keys: Sequence[UnitKey]) -> list[UnitKey]:
    """Return the keys that are sure, first the one by which k protects most.

    k households are of k people at least, if no person is in several of them. So a household goes
    before its people.
    """
    sure = [one for one in keys if one.is_sure]
    people = [one for one in sure if one.named != "household"]
    return sorted(
        sure,
        key=lambda one: (
            one in people or not all(one.column in own.stable for own in people),
            one not in people,
            one.named is None,
            one.counts.values,
        ),
    )


def _may_repeat_as_people(name: str, own: KeyCounts, records: int) -> bool:
    is_spread = own.records <= MOST_RECORDS_OF_A_VALUE * own.values and 2 * own.records >= records
    if own.most < 2 or not is_spread:
        return False
    if unit_of_name(name) is not None:
        return True
    return (
        may_mean_people(name)
        and own.values >= _FEWEST_VALUES
        and own.most <= max(MOST_RECORDS_OF_A_VALUE, _MOST_SHARE * own.records)
    )


@dataclass(frozen=True)
class _Hash:
    """Hash the values of each column."""

    readings: tuple[Reading, ...]
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            arrays = []
            for reading in self.readings:
                values, missing = read_values(reading, batch.column(reading.column))
                hashes = np.where(missing, _NOBODY, xxhash64([values]))
                if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
                    # As floats, because decimals with all digits behind the point have no floor.
                    floats = as_floats(values)
                    is_whole = pc.fill_null(pc.equal(floats, pc.floor(floats)), False)
                    missing = pc.or_(missing, pc.invert(is_whole))
                arrays += [pa.array(hashes), missing]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class _DrawKeys(DrawByHash):
    """Leave the hashes of records that are drawn by the value of any key."""

    def draws(self, hashes: Integers) -> Flags:
        """Return which values are drawn. Nothing that is missing is."""
        drawn: Flags = super().draws(hashes) & (hashes != _NOBODY)
        return drawn


def _evidence(hashes: Mapping[str, Integers], key: str) -> tuple[list[str], bool]:
    """Return the columns that are stable within a key, and whether they show that it is people.

    People differ in sex, race and date of birth, and each keeps them. So does no town and no
    product. Where no name says such a thing, two columns show it of which none gives the other
    away, as town and region do. A column that is nearly a key itself shows nothing.
    """
    _, groups, sizes = np.unique(hashes[key], return_inverse=True, return_counts=True)
    repeated = sizes[groups] > 1
    groups = np.unique(groups[repeated], return_inverse=True)[1]
    if not len(groups):
        return [], False
    personal: list[str] = []
    stable: dict[str, Integers] = {}
    for name, column in hashes.items():
        if name == key:
            continue
        codes = np.unique(column[repeated], return_inverse=True)[1]
        changes = _changes(groups, codes, _FEWEST_CHANGES)
        if changes is None:
            continue
        meaning = meaning_of(name)
        is_personal = meaning is not None and meaning.kind in _PERSONAL
        if is_personal:
            personal.append(name)
        if changes > _STABLE:
            continue
        order = np.lexsort((codes, groups))
        first = codes[order][np.unique(groups[order], return_index=True)[1]]
        if is_personal or len(np.unique(first)) < _ALIAS * len(first):
            stable[name] = np.unique(first, return_inverse=True)[1]
    if personal:
        return list(stable), not stable.keys().isdisjoint(personal)
    pairs = combinations(list(stable.values())[:_MOST_COMPARED], 2)
    return list(stable), any(_are_independent(one, other) for one, other in pairs)


def _are_independent(one: Integers, other: Integers) -> bool:
    """Return whether neither of two columns gives the other away, not even in part."""
    # Of two that exclude one another, as south and north, half of the changes are there.
    least = _EXCLUSIVE if max(one.max(), other.max()) == 1 else _INDEPENDENT
    return all((_changes(*both, 1) or 0) > least for both in ((one, other), (other, one)))


def _changes(groups: Integers, codes: Integers, fewest: float) -> float | None:
    """Return how often values change within groups, compared with values in any order.

    Parameters
    ----------
    groups, codes : int64 ndarray of shape (n,)
        From 0 on, without gaps.
    fewest : float
        Changes that there have to be on the average in any order.

    Returns
    -------
    float or None
        0 where each group has one value, about 1 where groups say nothing. None where there would
        be too few changes in any order.
    """
    number = int(groups.max()) + 1
    sizes, of_size = np.unique(np.bincount(groups), return_counts=True)
    shares, of_share = np.unique(np.bincount(codes) / len(codes), return_counts=True)
    expected = of_size @ (1 - (1 - shares[None, :]) ** sizes[:, None]) @ of_share - number
    if expected < fewest:
        return None
    pairs = len(np.unique(groups * (int(codes.max()) + 1) + codes))
    return float((pairs - number) / expected)
