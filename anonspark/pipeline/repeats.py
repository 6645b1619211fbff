"""Columns that number people or households, and those that repeat so that k counts fewer."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.config import Configuration
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
from anonspark.engine.raw_columns import Reading, is_number, is_plain, is_text
from anonspark.engine.tasks import Batches
from anonspark.engine.values.hashing import xxhash64
from anonspark.engine.values.value_texts import as_floats, read_values
from anonspark.pipeline.warnings.dependencies import RecordSample
from anonspark.pipeline.warnings.release_warning import ReleaseWarning
from anonspark.pipeline.warnings.value_sizes import CountedColumn, ValueSizes, count_value_sizes
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


_UNITS: dict[Unit, str] = {"person": "people", "household": "households"}
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w-]*")


@dataclass(frozen=True)
class Repeat:
    """A column whose values may be people, of whom some have several records.

    Parameters
    ----------
    column : str
    records : int
        Those that have a value.
    people : int
        Different values.
    most : int
        Records of the value that most have.
    is_identifier : bool
        Whether the column has the role.
    exact : bool
        Whether all values were counted.
    unit : str or None
        Whom the values number by the name of the column, ``person`` or ``household``. None where
        it does not say that: they may be firms or towns, too.
    """

    column: str
    records: int
    people: int
    most: int
    is_identifier: bool
    exact: bool
    unit: Unit | None

    @property
    def remedy(self) -> str:
        """The setting with which k counts people."""
        if not _PLAIN_NAME.fullmatch(self.column):
            return f"name {self.column!r} in privacy.unit"
        role = "" if self.is_identifier else f"--set attributes.{self.column}=identifier "
        return f"{role}--set privacy.unit={self.column}"

    def warning(self, configuration: Configuration) -> ReleaseWarning:
        """Return what a release says of it: no figure, and names of listed columns only."""
        k = configuration.privacy.k
        listed = {name.lower(): name for name in configuration.attributes}.get(self.column.lower())
        about = "it" if listed else "a column that is not published"
        units = _UNITS[self.unit or "person"]
        may = f"k counts records, so a class may hold fewer than k = {k:,} {units}"
        text = f"{about} numbers {units} who have several records: {may}"
        if self.unit is None:
            text = (
                f"{about} may number people (or firms or places), because its values repeat and "
                f"other columns stay the same within each. If it numbers people, {may}"
            )
        return ReleaseWarning("people_repeat", text, listed, advice=f" ({self.describe(k)})")

    def describe(self, k: int) -> str:
        """Describe what repeats, how often, and the meaning of k then."""
        about = "" if self.exact else "about "
        units = _UNITS[self.unit] if self.unit else "different values"
        if_people = "" if self.unit else "if each value is a person, "
        return (
            f"{self.column} repeats: {about}{self.records:,} records of {about}{self.people:,} "
            f"{units}, at most {self.most:,} of one. k = {k:,} counts records, so {if_people}a "
            f"class may hold fewer than {k:,} {_UNITS[self.unit or 'person']}: {self.remedy}"
        )


def repeats_of_identifiers(
    sizes: Mapping[str, ValueSizes], configuration: Configuration
) -> list[Repeat]:
    """Return the columns that repeat, among those that were counted.

    Parameters
    ----------
    sizes : mapping of str to ValueSizes
        Of identifiers, and of other columns, which do not count.
    configuration : Configuration

    Returns
    -------
    list of Repeat
        Nothing where ``privacy.unit`` makes k count people.
    """
    if configuration.privacy.unit:
        return []
    return [
        _repeat(name, own, is_identifier=True)
        for name, own in sizes.items()
        if configuration.attributes[name].role == "identifier" and max(own.sizes, default=0) > 1
    ]


def repeats_of_others(
    configuration: Configuration,
    table: Table,
    records: int,
    sample: RecordSample | None = None,
    *,
    staged: bool = False,
) -> list[Repeat]:
    """Return the columns of any role and name that number people or households, and repeat.

    Parameters
    ----------
    configuration : Configuration
    table : Table
        The input as it lies there, or the records that a run has staged.
    records : int
        Its rows.
    sample : RecordSample or None
        Of the records that are kept.
    staged : bool
        Whether the table is the latter, in which columns that are not listed are not there.

    Notes
    -----
    None where ``privacy.unit`` is set. Else two passes over all columns: the job of
    :func:`anonspark.pipeline.warnings.value_sizes.count_value_sizes`, and that of
    :func:`anonspark.pipeline.repeats.find_unit_keys` where a column may be a key. Of a
    table larger than the sample the passes follow for columns with so many different values in it,
    most of them whole, that they may number people, and for columns that are not in it. Of the
    input all records count, also those that a run drops.
    """
    if configuration.privacy.unit:
        return []
    markers = ("", *configuration.input.missing_markers)
    roles = {name.lower(): one.role for name, one in configuration.attributes.items()}
    # Two columns of one name are no error, unless they are listed.
    times = Counter(table.schema.names)
    columns = {
        one.name: one.name for one in table.schema if times[one.name] == 1 and is_plain(one.type)
    }
    if staged and sample is not None:
        columns = dict(sample.columns)
    possible = {
        name: column
        for name, column in columns.items()
        if may_be_key_type(table.schema.field(column).type)
        and roles.get(name.lower()) != "identifier"
    }
    if sample is not None and (staged or sample.records > len(sample.drawn)):
        possible = _possible_keys(sample, possible)
    if not possible:
        return []
    readings = {
        name: Reading(column, f"value_{place}", None, markers)
        for place, (name, column) in enumerate(columns.items())
    }
    counted = {
        name: CountedColumn(readings[name].name, readings[name].missing) for name in possible
    }
    narrow = hashed_values(table, [readings[name] for name in possible])
    sizes = count_value_sizes(narrow, counted, records)
    counts = {
        name: KeyCounts(own.counted, own.values, max(own.sizes, default=0))
        for name, own in sizes.items()
    }
    hashed = hashed_values(table, readings.values())
    keys = find_unit_keys(hashed, {n: one.name for n, one in readings.items()}, counts, records)
    return [_repeat(one.column, sizes[one.column]) for one in best_first(keys)]


def _possible_keys(sample: RecordSample, columns: dict[str, str]) -> dict[str, str]:
    """Return the columns of staged records that may be keys by what a sample shows."""
    least = sample.records / MOST_RECORDS_OF_A_VALUE
    # A sample has about so many of the fewest values, if they are equally frequent.
    expected = -least * math.expm1(-len(sample.drawn) / least)
    return {
        name: column
        for name, column in columns.items()
        if name not in sample.columns
        or (
            2 * pc.count_distinct(sample.hashes(name)).as_py() >= expected
            # Of a key at least half of all records have a whole number.
            and 4 * sample.whole_numbers(name) >= len(sample.drawn)
        )
    }


def _repeat(name: str, sizes: ValueSizes, *, is_identifier: bool = False) -> Repeat:
    most = max(sizes.sizes, default=0)
    unit = unit_of_name(name)
    return Repeat(name, sizes.counted, sizes.values, most, is_identifier, sizes.is_exact, unit)
