"""Find columns that number people or households, by their names and by counts of their values."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.config import Configuration
from anonspark.core.recognition.names import (
    Unit,
    may_be_unit_name,
    may_mean_people,
    may_number_people,
    unit_of_name,
)
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading, flags, is_number, is_plain, is_text
from anonspark.engine.tasks import Batches
from anonspark.engine.values.hashing import content_hash, xxhash64
from anonspark.engine.values.value_texts import as_floats, read_values
from anonspark.pipeline.warnings.dependencies import RecordSample
from anonspark.pipeline.warnings.release_warning import ReleaseWarning
from anonspark.pipeline.warnings.value_sizes import CountedColumn, ValueSizes, count_value_sizes

MOST_RECORDS_OF_A_VALUE = 50
"""On the average. Fewer values are those of a code of many people, as a kind of admission."""

# A person has few records compared with the table; a frequent measurement has many.
_MOST_SHARE = 0.05
_FEWEST_VALUES = 10
# Amounts repeat by accident, too.
_NEARLY_ALL = 0.95
# Days and numbers with a fraction.
_NO_KEY = (
    r"^\s*(?:[+-]?[0-9]*[.,][0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[ T].*)?"
    r"|[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4}(?: .*)?)\s*$"
)

_RECORD = "record"

_UNITS: dict[Unit, str] = {"person": "people", "household": "households"}
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w-]*")


@dataclass(frozen=True)
class Counts:
    """The frequencies of a column's values.

    ``records`` have a value, there are ``values`` different ones, and the most frequent one has
    ``most`` records. ``exact`` is False if only some values were counted.
    """

    records: int
    values: int
    most: int
    exact: bool = True

    @classmethod
    def of(cls, sizes: ValueSizes) -> Counts:
        """Return the counts of a column whose values were counted."""
        return cls(sizes.counted, sizes.values, max(sizes.sizes, default=0), sizes.is_exact)


def looks_like_key(name: str, counts: Counts, rows: int) -> bool:
    """Return whether a column may number people or households that have several records.

    If its name shows that it numbers people, they need only repeat. If its name shows something
    else, such as an income, the column is no key.

    >>> looks_like_key("patient_nbr", Counts(records=900, values=300, most=7), rows=1000)
    True
    >>> looks_like_key("income", Counts(records=900, values=300, most=7), rows=1000)
    False
    """
    records, values, most = counts.records, counts.values, counts.most
    if most < 2 or records > MOST_RECORDS_OF_A_VALUE * values or 2 * records < rows:
        return False
    if unit_of_name(name) is not None and may_number_people(name):
        return True
    return (
        (may_be_unit_name(name) or (may_mean_people(name) and values <= _NEARLY_ALL * records))
        and values >= _FEWEST_VALUES
        and most <= max(MOST_RECORDS_OF_A_VALUE, _MOST_SHARE * records)
    )


def units_first(counts: Mapping[str, Counts]) -> list[str]:
    """Return the columns whose names are enough for a unit, the most protective first.

    k households are at least k people, unless people move, so households come before people.

    >>> units_first({"person_id": Counts(9, 5, 2), "hhid": Counts(9, 3, 4), "sex": Counts(9, 2, 5)})
    ['hhid', 'person_id']
    """
    return sorted(
        filter(may_be_unit_name, counts),
        key=lambda name: (
            unit_of_name(name) != "household",
            unit_of_name(name) is None,
            counts[name].values,
        ),
    )


def repeat_text(name: str, counts: Counts, k: int, *, is_identifier: bool = False) -> str:
    """Describe what repeats and how often, what k then means, and which option to set."""
    unit = unit_of_name(name)
    about = "" if counts.exact else "about "
    units = _UNITS[unit or "person"]
    remedy = f"name {name!r} in privacy.unit"
    if _PLAIN_NAME.fullmatch(name):
        role = "" if is_identifier else f"--set attributes.{name}=identifier "
        remedy = f"{role}--set privacy.unit={name}"
    if not (is_identifier or may_be_unit_name(name)):
        figure = f"{name}: {{role: quasi_identifier, type: number}}"
        remedy += f". If it is a figure, attributes.{figure} says so"
    return (
        f"{name} repeats: {about}{counts.records:,} records of {about}{counts.values:,} "
        f"{units if unit else 'different values'}, at most {counts.most:,} of one. k = {k:,} "
        f"counts records, so {'' if unit else 'if each value is a person, '}a class may hold fewer "
        f"than {k:,} {units}: {remedy}"
    )


def key_texts(keys: Mapping[str, Counts], k: int) -> dict[tuple[str, ...], str]:
    """Describe columns that repeat. Those without a name of people share a text."""
    texts: dict[tuple[str, ...], str] = {
        (name,): repeat_text(name, keys[name], k) for name in keys if may_be_unit_name(name)
    }
    # The records of people are more even than those of amounts.
    others = sorted(
        (name for name in keys if not may_be_unit_name(name)),
        key=lambda name: keys[name].most * keys[name].values / keys[name].records,
    )
    if others:
        more = "; ".join(f"{name} ({keys[name].values:,} values)" for name in others[1:])
        first = repeat_text(others[0], keys[others[0]], k)
        texts[tuple(others)] = first + (f". The same goes for {more}" if more else "")
    return texts


def repeat_warnings(
    keys: Mapping[str, Counts], copies: int, configuration: Configuration
) -> list[ReleaseWarning]:
    """Warn of repeats in the words of a release: no figure, and only names of listed columns.

    ``copies`` counts the records that have an equal one. It is 0 unless they are at least half of
    all, and nearly all of them come in multiples of two or of three (:func:`_copies`).
    """
    k = configuration.privacy.k
    warnings = []
    if copies:
        text = (
            "half of the records or more have an equal one, as if a file was delivered twice: k "
            f"counts records, so a class may hold fewer than k = {k:,} people. Remove the copies"
        )
        advice = f" ({copies:,} records have an equal one in all columns that were looked at)"
        warnings.append(ReleaseWarning("delivered_twice", text, advice=advice))
    listed = {name.lower(): name for name in configuration.attributes}
    for names, advice in key_texts(keys, k).items():
        attribute = listed.get(names[0].lower()) if len(names) == 1 else None
        unit = unit_of_name(names[0])
        units = _UNITS[unit or "person"]
        about = "it" if attribute else "a column that may not be published"
        claim = f"{about} numbers {units} who have several records: "
        if unit is None:
            claim = (
                f"{about} may number people (or firms or places), because its values repeat as "
                "those of a key. If it numbers people, "
            )
        text = f"{claim}k counts records, so a class may hold fewer than k = {k:,} {units}"
        warnings.append(ReleaseWarning("people_repeat", text, attribute, advice=f" ({advice})"))
    return warnings


def repeats_of_others(
    configuration: Configuration,
    table: Table,
    records: int,
    identifiers: Mapping[str, ValueSizes],
    sample: RecordSample | None = None,
    *,
    staged: bool = False,
) -> tuple[dict[str, Counts], int]:
    """Find columns that number people or households who repeat, by their names or their counts.

    Also return how many records have an equal one, if nearly all seem to be delivered twice. If a
    name shows that it numbers people, counts do not matter. ``table`` is the input unchanged, or
    with ``staged`` the records that a run has staged, without columns that are not listed.
    ``records`` counts its rows, ``identifiers`` are the values of the identifiers, and ``sample``
    is drawn from the kept records.

    Finds nothing if ``privacy.unit`` is set. Otherwise it costs the job of `count_value_sizes`. If
    the table is larger than the sample, only those columns are counted that are not in it, or have
    enough different values in it, most of them whole, to number people. In the input all records
    count, also those that a run drops.
    """
    if configuration.privacy.unit:
        return {}, 0
    # Two columns of one name are no error, unless they are listed.
    times = Counter(map(str.lower, table.schema.names))
    columns = {
        field.name: field.name
        for field in table.schema
        if times[field.name.lower()] == 1 and is_plain(field.type)
    }
    if staged and sample is not None:
        columns = dict(sample.columns)
    possible = {
        name: column
        for name, column in columns.items()
        if _may_be_key(name, table.schema.field(column).type, configuration)
    }
    if sample is not None and (staged or sample.records > len(sample.drawn)):
        possible = _possible_keys(sample, possible)
    markers = ("", *configuration.input.missing_markers)
    readings = {
        name: Reading(column, f"value_{index}", None, markers)
        for index, (name, column) in enumerate(possible.items())
    }
    counted = {
        name: CountedColumn(reading.name, reading.missing) for name, reading in readings.items()
    }
    # Staged records have only some columns, and their sample counts equal ones.
    whole = () if staged else tuple(columns.values())
    hashed = _KeyValues(tuple(readings.values()), whole)
    narrow = table.select(list(whole or possible.values()))
    sizes = count_value_sizes(
        narrow.map_batches(hashed, hashed.schema),
        counted | ({_RECORD: CountedColumn(_RECORD)} if whole else {}),
        records,
    )
    if whole:
        copies = _copies(sizes.pop(_RECORD).sizes)
    else:
        copies = 0.0 if sample is None else _copies(sample.sizes())
    numbered = [*identifiers.items(), *sizes.items()]
    if any(unit_of_name(n) == "person" and size.values == size.records for n, size in numbered):
        # Each record is of another person.
        sizes = {name: size for name, size in sizes.items() if may_be_unit_name(name)}
    counts = {name: Counts.of(size) for name, size in sizes.items()}
    keys = {name: size for name, size in counts.items() if looks_like_key(name, size, records)}
    return {name: keys[name] for name in units_first(keys) or keys}, round(copies * records)


def _may_be_key(name: str, data_type: pa.DataType, configuration: Configuration) -> bool:
    """Return whether a column may number people, by its type and by its attribute."""
    if not (is_text(data_type) or is_number(data_type)):
        return False
    listed = {key.lower(): entry for key, entry in configuration.attributes.items()}
    attribute = listed.get(name.lower())
    if attribute is None or attribute.role == "identifier":
        return attribute is None
    says_figure = (
        attribute.role == "sensitive"
        or name == configuration.evaluate.risk.weights
        or (attribute.role == "quasi_identifier" and not attribute.is_undeclared)
    )
    return may_be_unit_name(name) or not says_figure


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
            # At least half of all records of a key have a whole number.
            and 4 * sample.whole_numbers(name) >= len(sample.drawn)
        )
    }


def _copies(sizes: Mapping[int, int]) -> float:
    """Return the share of records that have equal ones, or 0 unless nearly all came twice.

    Records that are equal by nature come in twos, threes or more. Copies come in twos and fours, or
    in threes and sixes.

    >>> _copies({2: 500}), _copies({1: 900, 2: 50})
    (1.0, 0.0)
    """
    records = sum(size * values for size, values in sizes.items())
    several = {size: size * values for size, values in sizes.items() if size > 1}
    equal = sum(several.values())
    regular = max(
        sum(number for size, number in several.items() if not size % times) for times in (2, 3)
    )
    return (
        equal / records if 2 * equal >= max(records, 1) and regular >= _NEARLY_ALL * equal else 0.0
    )


@dataclass(frozen=True)
class _KeyValues:
    """Hashes values and whole records, and flags values that are missing or cannot be keys."""

    readings: tuple[Reading, ...]
    whole: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        names = [(reading.name, reading.missing) for reading in self.readings]
        fields = [
            field for value, gone in names for field in ((value, pa.int64()), (gone, pa.bool_()))
        ]
        return pa.schema([*fields, *[(_RECORD, pa.int64())] * bool(self.whole)])

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            arrays = []
            for reading in self.readings:
                values, missing = read_values(reading, batch.column(reading.column))
                arrays += [
                    pa.array(xxhash64([values])),
                    pa.array(flags(missing) | _are_no_keys(values)),
                ]
            if self.whole:
                arrays.append(pa.array(content_hash([batch.column(name) for name in self.whole])))
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _are_no_keys(values: pa.Array) -> np.ndarray:
    """Return which values number nothing: days, and numbers with a fraction.

    >>> _are_no_keys(pa.array(["17", "2.5", "2024-01-31", "A7"])).tolist()
    [False, True, True, False]
    """
    if is_text(values.type):
        return flags(pc.fill_null(pc.match_substring_regex(values, _NO_KEY), False))
    if pa.types.is_integer(values.type):
        return np.zeros(len(values), bool)
    # Converted to floats, because decimals without digits before the point have no floor.
    floats = as_floats(values)
    return ~flags(pc.fill_null(pc.equal(floats, pc.floor(floats)), False))
