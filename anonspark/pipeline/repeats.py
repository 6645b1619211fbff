"""Find columns that identify people and repeat, so that k may count fewer people."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow.compute as pc

from anonspark.config import Configuration
from anonspark.core.recognition.names import Unit, unit_of_name
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading, is_plain
from anonspark.pipeline.unit_keys import (
    MOST_RECORDS_OF_A_VALUE,
    KeyCounts,
    best_first,
    find_unit_keys,
    hashed_values,
    may_be_key_type,
)
from anonspark.pipeline.warnings.dependencies import RecordSample
from anonspark.pipeline.warnings.release_warning import ReleaseWarning
from anonspark.pipeline.warnings.value_sizes import CountedColumn, ValueSizes, count_value_sizes

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
    :func:`anonspark.pipeline.unit_keys.find_unit_keys` where a column may be a key. Of a
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
