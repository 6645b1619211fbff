"""The staged snapshot: the input read once, so that every later pass sees the same records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import pyarrow as pa

from anonspark.config import Configuration
from anonspark.core.columns import RECORD_HASH, UNIT, payload_column, quasi_identifier_column
from anonspark.core.criteria import Criteria, Units
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.protocol import Engine, Input, InputColumn, OpenInput, OpenRecords
from anonspark.engine.tasks import Batches
from anonspark.engine.values.value_texts import plain
from anonspark.errors import ConfigurationError, DataError
from anonspark.layers.prepare.hierarchies import read_hierarchies
from anonspark.layers.prepare.inspection import (
    describe_quasi_identifier,
    require_enough_rows,
    require_fitting_ranges,
    require_sound_values,
)
from anonspark.layers.prepare.sensitive import describe_criteria, require_satisfiable
from anonspark.layers.prepare.unit_counts import count_units, require_countable, with_people
from anonspark.progress import report_step
from anonspark.staged.records import PACKED, PackRecords, Records, Rows

_VALUES = pa.schema([("attribute", pa.string()), ("value", pa.string())])


@dataclass(frozen=True)
class Snapshot:
    """The prepared table.

    Parameters
    ----------
    records : Records
        Records in the staging directory.
    rows_read : int
        Rows of the input, without blank ones.
    rows : int
        Staged rows: those read, less those dropped for missing values.
    missing : tuple of int
        Missing values of each quasi-identifier in the input.
    quasi_identifiers : tuple of QuasiIdentifier
        Quasi-identifiers in configuration order, with their global ranges.
    criteria : Criteria
        What every class must satisfy.
    hierarchies : dict
        Attribute name to hierarchy, of those that come from files.
    origin : str
        ``Configuration.input_fingerprint`` of the configuration that it was prepared for.
    fingerprint : str
        Equal for two inputs that hold the same records. Depends on the seed, not on their order.
    people : str or None
        Equal for two inputs whose records are about the same people, or None if people are not
        distinguished.
    open_records : callable
        Opens columns of the kept records, and of their identifiers, which are not staged: see
        :meth:`anonspark.engine.protocol.Input.open_records`.
    units : Units or None
        The people that records are about, if the configuration distinguishes them.
    unpublished : tuple of str or None
        Columns of the input that are not published, or None if a plan decides on them.
    blank_rows : int
        Rows of the input without a value in any column of an attribute: they are no records.
    """

    records: Records
    rows_read: int
    rows: int
    missing: tuple[int, ...]
    quasi_identifiers: tuple[QuasiIdentifier, ...]
    criteria: Criteria
    hierarchies: dict[str, Hierarchy]
    origin: str
    fingerprint: str
    open_records: OpenRecords
    people: str | None = None
    units: Units | None = None
    unpublished: tuple[str, ...] | None = None
    blank_rows: int = 0

    @property
    def rows_dropped(self) -> int:
        """Number of rows that are not kept because a quasi-identifier is missing."""
        return self.rows_read - self.rows

    def content_fingerprint(self) -> str:
        """Return a fingerprint of a prepared input: of its records, people and hierarchies."""
        hierarchies = sorted(
            (name, hierarchy.leaves, hierarchy.levels)
            for name, hierarchy in self.hierarchies.items()
        )
        people = [] if self.people is None else [self.people]
        content = json.dumps([self.fingerprint, hierarchies, *people])
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Inspection:
    """The findings about the input, as in a :class:`Snapshot`."""

    rows_read: int
    rows: int
    missing: tuple[int, ...]
    quasi_identifiers: tuple[QuasiIdentifier, ...]
    criteria: Criteria
    open_records: OpenRecords
    blank_rows: int

    @property
    def rows_dropped(self) -> int:
        """Number of rows that are not kept because a quasi-identifier is missing."""
        return self.rows_read - self.rows


def _units(records: Records | Rows, configuration: Configuration) -> Units | None:
    """Count the people that records are about, or return None if records are counted."""
    privacy = configuration.privacy
    if not privacy.unit:
        return None
    report_step("counting people")
    units = count_units(records, privacy.unit, privacy.k)
    require_countable(units, privacy)
    return units


def _criteria(
    records: Records | Rows,
    configuration: Configuration,
    hierarchies: dict[str, Hierarchy],
    units: Units | None,
) -> Criteria:
    """Return the criteria of every class, after a check that the whole table satisfies them."""
    if configuration.privacy.criteria:
        report_step("counting sensitive values")
    payload = configuration.published_as_is
    columns = {name: payload_column(index) for index, name in enumerate(payload)}
    criteria = describe_criteria(
        records, configuration.privacy, columns, configuration.sensitive_orders, hierarchies
    )
    if units is not None and units.repeat:
        return with_people(criteria, units, records)
    require_satisfiable(criteria)
    return criteria


def inspect_input(engine: Engine, configuration: Configuration) -> Inspection:
    """Check the input without staging anything. Raises DataError with all problems.

    One pass over the input, two if a text quasi-identifier needs its categories.
    """
    # Read first, so that a bad hierarchy fails before the input is read to infer its types.
    hierarchies = read_hierarchies(engine.files, configuration)
    opened = engine.open_input(configuration, hierarchies)
    require_fitting_ranges(opened.columns)
    report_step("checking values")
    figures = opened.inspect()
    require_sound_values(figures, opened.columns, configuration)
    rows = Rows(opened.records)
    units = _units(rows, configuration)
    return Inspection(
        rows_read=figures["rows"],
        rows=figures["kept"],
        missing=tuple(figures[f"missing_{index}"] for index in range(len(opened.columns))),
        criteria=_criteria(rows, configuration, hierarchies, units),
        quasi_identifiers=_describe(rows, opened.columns, figures, configuration),
        open_records=_open_records(opened, figures),
        blank_rows=figures["blank_rows"],
    )


def _open_records(opened: Input, figures: Mapping[str, Any]) -> OpenRecords:
    whole = figures["kept"] == figures["rows"] and not figures["blank_rows"]
    return partial(opened.open_records, whole=whole)


def take_snapshot(
    engine: Engine,
    configuration: Configuration,
    path: str,
    open_input: OpenInput | None = None,
) -> Snapshot:
    """Read the input once, check it and stage at ``path`` the raw values that later layers need.

    ``open_input`` opens the input, or is None to open the configuration's. The sensitive values are
    counted later, by :func:`require_criteria`. Raises DataError with all problems of the values.

    One pass over the input that writes Parquet and returns counts, ranges and fingerprint. Text
    quasi-identifiers take a second, narrow pass over the staged records to collect their
    categories, and people one over hashes.
    """
    hierarchies = read_hierarchies(engine.files, configuration)
    opened = (open_input or engine.open_input)(configuration, hierarchies)
    require_fitting_ranges(opened.columns)
    report_step("checking and staging records")
    staged = opened.stage(path, PackRecords(), PACKED, configuration.execution.seed)
    figures = staged.counts
    require_sound_values(figures, opened.columns, configuration)
    records = Records(engine.staged([staged.path], PACKED), staged.schema)
    return Snapshot(
        records=records,
        rows_read=figures["rows"],
        rows=figures["kept"],
        missing=tuple(figures[f"missing_{index}"] for index in range(len(opened.columns))),
        quasi_identifiers=_describe(records, opened.columns, figures, configuration),
        criteria=Criteria(configuration.privacy.k),
        hierarchies=hierarchies,
        origin=configuration.input_fingerprint(),
        fingerprint=staged.fingerprint,
        open_records=_open_records(opened, figures),
        people=records.fingerprint(RECORD_HASH, UNIT) if configuration.privacy.unit else None,
        unpublished=_unpublished(opened.names, configuration),
        blank_rows=figures["blank_rows"],
    )


def _unpublished(
    columns: Sequence[str] | None, configuration: Configuration
) -> tuple[str, ...] | None:
    """Return the columns of which neither the whole nor a field is published."""
    if columns is None:
        return None
    published = (*configuration.quasi_identifiers, *configuration.published_as_is)
    starts = tuple(f"{name}.".lower() for name in published)
    return tuple(
        name
        for name in columns
        if not any(start.startswith(f"{name}.".lower()) for start in starts)
    )


def require_criteria(snapshot: Snapshot, configuration: Configuration) -> Snapshot:
    """Add the criteria of every class to a snapshot, after a check that it can satisfy them.

    Raises ConfigurationError if the snapshot was prepared for another input, attributes, missing
    values or seed, DataError if the table has fewer than k records, or a sensitive attribute cannot
    be used, and GuaranteeError if the table as a whole violates a criterion. One job and one
    shuffle of counts for each sensitive attribute of a criterion, and those of `count_units` and,
    if criteria count them, `count_people`.
    """
    if snapshot.origin != configuration.input_fingerprint():
        raise ConfigurationError(
            "input, attributes, missing, execution.seed: found others than those that the records "
            "were prepared for. Prepare the input anew"
        )
    require_enough_rows(snapshot.rows_read, snapshot.rows, configuration.privacy.k)
    records = snapshot.records
    units = _units(records, configuration)
    criteria = _criteria(records, configuration, snapshot.hierarchies, units)
    if units is None or units.repeat:
        return replace(snapshot, criteria=criteria, units=units)
    # k people are k records, so the run goes on as without a unit.
    if not configuration.output.pseudonyms:
        records = records.only([name for name in records.schema.names if name != UNIT])
    return replace(snapshot, criteria=criteria, units=units, records=records)


@dataclass(frozen=True)
class _FindValues:
    """Finds the different values of some columns in each batch."""

    names: tuple[str, ...]

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            for name in self.names:
                values = plain(batch.column(name).drop_null().unique())
                columns = [pa.repeat(name, len(values)), values]
                yield pa.RecordBatch.from_arrays(columns, schema=_VALUES)


def _describe(
    records: Records | Rows,
    columns: Sequence[InputColumn],
    figures: Mapping[str, Any],
    configuration: Configuration,
) -> tuple[QuasiIdentifier, ...]:
    """Describe all quasi-identifiers, or raise DataError with the problems of all of them."""
    names = [quasi_identifier_column(index) for index in range(len(columns))]
    texts = [name for name, column in zip(names, columns, strict=True) if column.kind == "category"]
    if texts:
        report_step("collecting categories")
    categories = _categories(records, texts) if texts else {}
    described: list[QuasiIdentifier] = []
    problems: list[str] = []
    for index, (name, column) in enumerate(zip(names, columns, strict=True)):
        dtype = records.schema.field(name).type
        values = categories.get(name)
        try:
            described.append(
                describe_quasi_identifier(index, column, dtype, figures, configuration, values)
            )
        except DataError as error:
            problems += error.problems
    if problems:
        raise DataError(*problems)
    return tuple(described)


def _categories(records: Records | Rows, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the different values of columns of texts."""
    find = _FindValues(tuple(names))
    values = records.map_batches(find, _VALUES, names)
    different = values.aggregate(_VALUES.names).collect()
    by_name: dict[str, list[str]] = {name: [] for name in names}
    pairs = zip(different["attribute"].to_pylist(), different["value"].to_pylist(), strict=True)
    for name, value in pairs:
        by_name[name].append(value)
    return by_name
