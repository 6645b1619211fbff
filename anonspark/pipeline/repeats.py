"""Columns that tell people apart and repeat: k counts records, and may count fewer people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from anonspark.config import Configuration
from anonspark.core.recognition.names import may_tell_people_apart
from anonspark.engine.protocol import Engine
from anonspark.engine.raw_columns import Reading, is_hashable
from anonspark.pipeline.warnings.value_sizes import CountedColumn, ValueSizes, count_value_sizes

# What few values have is a code of many people, as a kind of admission.
_MOST_RECORDS_OF_A_VALUE = 50

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
    """

    column: str
    records: int
    people: int
    most: int
    is_identifier: bool
    exact: bool

    @property
    def remedy(self) -> str:
        """What makes k count people."""
        if not _PLAIN_NAME.fullmatch(self.column):
            return f"name {self.column!r} in privacy.unit"
        role = "" if self.is_identifier else f"--set attributes.{self.column}=identifier "
        return f"{role}--set privacy.unit={self.column}"

    def describe(self, k: int) -> str:
        """Say what repeats, how often, and what k then means."""
        about = "" if self.exact else "about "
        return (
            f"{self.column} repeats: {about}{self.records:,} records of {about}{self.people:,} "
            f"people, at most {self.most:,} of one; k = {k:,} counts records, so a class may hold "
            f"fewer than {k:,} people: {self.remedy}"
        )


def repeats_of_identifiers(
    sizes: Mapping[str, ValueSizes], configuration: Configuration
) -> list[Repeat]:
    """Return the columns that repeat, among those that were counted.

    Parameters
    ----------
    sizes : mapping of str to ValueSizes
        Of identifiers, and of columns that are published as they are; of the latter those count
        that look like identifiers.
    configuration : Configuration

    Returns
    -------
    list of Repeat
        Nothing where ``privacy.unit`` makes k count people.
    """
    if configuration.privacy.unit:
        return []
    found = []
    for name, own in sizes.items():
        has_role = configuration.attributes[name].role == "identifier"
        repeat = _repeat(name, own, has_role=has_role)
        if repeat is not None:
            found.append(repeat)
    return found


def repeats_of_others(engine: Engine, configuration: Configuration, records: int) -> list[Repeat]:
    """Return the columns that the configuration does not list, look like identifiers and repeat.

    Parameters
    ----------
    engine : Engine
    configuration : Configuration
    records : int
        Rows of the input.

    Notes
    -----
    None where ``privacy.unit`` is set, or no name looks like one. Else one pass over these columns
    alone, and the job of :func:`anonspark.pipeline.warnings.value_sizes.count_value_sizes`. All
    records of the input count, also those that a run drops.
    """
    if configuration.privacy.unit:
        return []
    table = engine.open_source(configuration)
    listed = {name.lower() for name in configuration.attributes}
    names = [
        name
        for name in table.schema.names
        if name.lower() not in listed
        and may_tell_people_apart(name)
        and is_hashable(table.schema.field(name).type)
    ]
    if not names:
        return []
    markers = ("", *configuration.input.missing_markers)
    readings = [
        Reading(name, f"identifier_{place}", None, markers) for place, name in enumerate(names)
    ]
    columns = {
        name: CountedColumn(one.name, one.missing)
        for name, one in zip(names, readings, strict=True)
    }
    sizes = count_value_sizes(table.read(readings), columns, records)
    repeats = [_repeat(name, own, has_role=False) for name, own in sizes.items()]
    return [one for one in repeats if one is not None]


def _repeat(name: str, own: ValueSizes, *, has_role: bool) -> Repeat | None:
    """Return a column whose values repeat as people do, None for any other."""
    most = max(own.sizes, default=0)
    if most < 2:
        return None
    few = own.counted > _MOST_RECORDS_OF_A_VALUE * own.values
    if not has_role and (few or not may_tell_people_apart(name)):
        return None
    return Repeat(name, own.counted, own.values, most, has_role, own.is_exact)
