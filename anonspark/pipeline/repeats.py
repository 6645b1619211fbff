"""Columns that tell people apart and repeat: k counts records, and may count fewer people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from anonspark.config import Configuration
from anonspark.core.recognition.names import Unit
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading, is_plain
from anonspark.pipeline.unit_keys import (
    KeyCounts,
    best_first,
    find_unit_keys,
    hashed_values,
    may_be_key_type,
)
from anonspark.pipeline.warnings.release_warning import ReleaseWarning
from anonspark.pipeline.warnings.value_sizes import CountedColumn, ValueSizes, count_value_sizes

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
    unit : str
        Whom the values number: ``person`` or ``household``.
    """

    column: str
    records: int
    people: int
    most: int
    is_identifier: bool
    exact: bool
    unit: Unit = "person"

    @property
    def remedy(self) -> str:
        """What makes k count people."""
        if not _PLAIN_NAME.fullmatch(self.column):
            return f"name {self.column!r} in privacy.unit"
        role = "" if self.is_identifier else f"--set attributes.{self.column}=identifier "
        return f"{role}--set privacy.unit={self.column}"

    def warning(self, configuration: Configuration) -> ReleaseWarning:
        """Return what a release says of it: no figure, and names of listed columns only."""
        k = configuration.privacy.k
        listed = {name.lower(): name for name in configuration.attributes}.get(self.column.lower())
        about = "it" if listed else "a column that is not published"
        units = "people" if self.unit == "person" else "households"
        text = (
            f"{about} numbers {units} who have several records: k counts records, so a class may "
            f"hold fewer than k = {k:,} {units}"
        )
        return ReleaseWarning("people_repeat", text, listed, advice=f" ({self.describe(k)})")

    def describe(self, k: int) -> str:
        """Say what repeats, how often, and what k then means."""
        about = "" if self.exact else "about "
        units = "people" if self.unit == "person" else "households"
        return (
            f"{self.column} repeats: {about}{self.records:,} records of {about}{self.people:,} "
            f"{units}, at most {self.most:,} of one; k = {k:,} counts records, so a class may hold "
            f"fewer than {k:,} {units}: {self.remedy}"
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
        Repeat(name, own.counted, own.values, most, is_identifier=True, exact=own.is_exact)
        for name, own in sizes.items()
        if configuration.attributes[name].role == "identifier"
        and (most := max(own.sizes, default=0)) > 1
    ]


def repeats_of_others(configuration: Configuration, table: Table, records: int) -> list[Repeat]:
    """Return the columns of any role and name that number people or households, and repeat.

    Parameters
    ----------
    configuration : Configuration
    table : Table
        The input as it lies there.
    records : int
        Its rows.

    Notes
    -----
    None where ``privacy.unit`` is set. Else two passes over all columns: the job of
    :func:`anonspark.pipeline.warnings.value_sizes.count_value_sizes`, and that of
    :func:`anonspark.pipeline.unit_keys.find_unit_keys` where a column may be a key. All records of
    the input count, also those that a run drops.
    """
    if configuration.privacy.unit:
        return []
    markers = ("", *configuration.input.missing_markers)
    roles = {name.lower(): one.role for name, one in configuration.attributes.items()}
    readings = [
        Reading(field.name, f"value_{place}", None, markers)
        for place, field in enumerate(table.schema)
        if is_plain(field.type)
    ]
    columns = {
        one.column: CountedColumn(one.name, one.missing)
        for one in readings
        if may_be_key_type(table.schema.field(one.column).type)
        and roles.get(one.column.lower()) != "identifier"
    }
    hashed = hashed_values(table, readings)
    sizes = count_value_sizes(hashed, columns, records)
    counts = {
        name: KeyCounts(own.counted, own.values, max(own.sizes, default=0))
        for name, own in sizes.items()
    }
    keys = find_unit_keys(hashed, readings, counts, records)
    return [
        Repeat(
            one.column,
            one.counts.records,
            one.counts.values,
            one.counts.most,
            is_identifier=False,
            exact=sizes[one.column].is_exact,
            unit=one.named or "person",
        )
        for one in best_first(keys)
    ]
