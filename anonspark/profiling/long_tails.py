"""Categories of which many are rare: a hierarchy for each, to be edited."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.hierarchies.files import parse_hierarchy
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading
from anonspark.engine.tasks import Batches
from anonspark.engine.values.value_texts import coded_values, read_values
from anonspark.errors import ConfigurationError
from anonspark.profiling.counting import PART_BYTES
from anonspark.profiling.profile import Profile
from anonspark.staged.records import together

FEWEST_VALUES, MOST_VALUES = 12, 1_000

_RARE = 0.005
_COUNTS = pa.schema([("place", pa.int32()), ("value", pa.string()), ("records", pa.int64())])


def may_have_tail(profile: Profile) -> list[str]:
    """Return the columns of categories that may have a long tail."""
    return [
        one.name
        for one in profile.columns
        if one.kind == "text"
        and FEWEST_VALUES <= one.counts.distinct <= MOST_VALUES
        and one.role != "identifier"
        and one.looks_like != "free text"
    ]


def count_categories(
    table: Table, names: Sequence[str], markers: Sequence[str]
) -> dict[str, dict[str, int]]:
    """Count the records of each value of some columns of text.

    Parameters
    ----------
    table : Table
    names : sequence of str
        Columns of few different values, which are collected.
    markers : sequence of str
        Texts that mean missing.

    Returns
    -------
    dict of str to dict of str to int
        Values without blanks at their ends, as hierarchies compare them. Without missing ones.

    Notes
    -----
    One pass over the columns, with a shuffle of the different values of each task.
    """
    if not names:
        return {}
    readings = tuple(Reading(name, name, pa.string(), tuple(markers), " ") for name in names)
    found = (
        table.select(names)
        .map_batches(_CountValues(readings), _COUNTS)
        .aggregate(["place", "value"], sums=["records"])
        .collect()
    )
    counts: dict[str, dict[str, int]] = {name: {} for name in names}
    for place, value, records in zip(
        *(found[name].to_pylist() for name in _COUNTS.names), strict=True
    ):
        counts[names[place]][value] = int(records)
    return counts


@dataclass(frozen=True)
class _CountValues:
    """Counts a task's records of each value."""

    readings: tuple[Reading, ...]

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        for records in together(batches, PART_BYTES):
            for place, reading in enumerate(self.readings):
                coded = coded_values(records.column(reading.column))
                values, _ = read_values(reading, coded.dictionary)
                texts = values.take(coded.indices).drop_null()
                counted = pc.value_counts(texts)
                columns = [
                    pa.array([place] * len(counted), pa.int32()),
                    counted.field("values"),
                    counted.field("counts"),
                ]
                yield pa.record_batch(columns, schema=_COUNTS)


def tail_hierarchy(counts: Mapping[str, int], rows: int, k: int) -> str | None:
    """Return a hierarchy in which rare values are one group, as the text of a file.

    Parameters
    ----------
    counts : mapping of str to int
        Records of each value.
    rows : int
        Of the table.
    k : int
        Values of fewer records are rare in any case.

    Returns
    -------
    str or None
        Values from the most frequent to the rarest. None if rare ones are not at least half of
        them, or a value cannot stand in such a file.
    """
    least = max(k, _RARE * rows)
    order = sorted(counts, key=lambda value: (-counts[value], value))
    rare = [value for value in order if counts[value] < least]
    if 2 * len(rare) < len(order) or len(rare) == len(order):
        return None
    group = "other"
    while group in counts:
        group += " values"
    text = io.StringIO()
    writer = csv.writer(text, delimiter=";", lineterminator="\n")
    for value in order:
        writer.writerow([value, group if counts[value] < least else value, "*"])
    try:
        parse_hierarchy(text.getvalue(), "hierarchy")
    except ConfigurationError:
        return None
    return text.getvalue()
