"""The source of a plan: opened, checked, frozen, and selected for each recipient."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from anonspark.config import Configuration
from anonspark.core.columns import ATOM, SUBJECT
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.files import Files
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.raw_columns import is_text
from anonspark.engine.tasks import Batches
from anonspark.engine.values.column_plans import PlannedColumn, plan_columns, require_types
from anonspark.engine.values.reading import ReadRecords
from anonspark.engine.values.record_input import RecordInput
from anonspark.engine.values.text_forms import FORMS, Forms
from anonspark.engine.values.text_reader import Reader, reader_of_texts
from anonspark.errors import DataError
from anonspark.layers.prepare.hierarchies import read_hierarchies
from anonspark.layers.prepare.inspection import require_enough_rows
from anonspark.layers.publish.paths import require_apart, require_target
from anonspark.sharing.ledger.chain import Key
from anonspark.sharing.recipients.plan import Plan, Recipient
from anonspark.sharing.recipients.source_snapshot import (
    PATTERN,
    FreezeRows,
    RowsOf,
    column_of,
    plan_freezing,
    type_family,
)
from anonspark.staged.records import PACKED, PackRecords, Records

MOST_PATTERNS = 100_000
"""Patterns at most: they are collected."""


@dataclass(frozen=True)
class FrozenSource:
    """A table that was read once for all recipients.

    ``records`` have numbered columns, unchanged, :data:`~anonspark.core.columns.SUBJECT`,
    :data:`PATTERN`, and :data:`~anonspark.core.columns.ATOM` if there are atoms. ``columns`` are
    their names in the input, ``subject_types`` families of the types of the columns that identify
    people, and records. ``version`` are options that were recognized in the input.
    """

    records: Records
    columns: tuple[str, ...]
    subject_types: tuple[str, ...] = ()
    version: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def again(cls, engine: Engine, path: str, document: Mapping[str, Any]) -> FrozenSource:
        """Return what an earlier attempt has staged, by what :meth:`as_dict` recorded."""
        schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(document["schema"])))
        records = Records(engine.staged([path], PACKED), schema)
        types, version = tuple(document["subject_types"]), document["version"]
        return cls(records, tuple(document["columns"]), types, version)

    def as_dict(self) -> dict[str, object]:
        """Return what :meth:`again` needs, as JSON has it."""
        schema = self.records.schema.serialize().to_pybytes().hex()
        fields = {"columns": self.columns, "subject_types": self.subject_types}
        return fields | {"schema": schema, "version": dict(self.version)}

    @property
    def has_atoms(self) -> bool:
        """Whether each record has the name of the group that no release divides."""
        return ATOM in self.records.schema.names

    def fresh(self, *names: str) -> Table:
        """Return some columns of the records that have no atom. Lazy."""
        if not self.has_atoms:
            return self.records.rows(*names)
        schema = pa.schema([self.records.schema.field(name) for name in names])
        return self.records.rows(*names, ATOM).map_batches(_WithoutAtom(names), schema)

    def strata(self, *, without_atom: bool = False) -> dict[int, int]:
        """Count the records of each pattern, among all records or those without an atom.

        One job with a shuffle of the different patterns. Raises DataError if there are more than
        :data:`MOST_PATTERNS`.
        """
        rows = self.fresh(PATTERN) if without_atom else self.records.rows(PATTERN)
        patterns = rows.aggregate([PATTERN], count="records")
        counts = patterns.collect(MOST_PATTERNS + 1)
        if len(counts) > MOST_PATTERNS:
            raise DataError(
                f"recipients: their conditions divide the records into more than {MOST_PATTERNS:,} "
                "groups that different recipients may have. Expected fewer. Make plans of some "
                "recipients each"
            )
        pairs = zip(counts[PATTERN].to_pylist(), counts["records"].to_pylist(), strict=True)
        return dict(pairs)


def rows_of(strata: Mapping[int, int], bit: int) -> int:
    """Return how many records a recipient may have, by the strata.

    >>> rows_of({0b01: 10, 0b11: 5, 0: 7}, bit=1)
    5
    """
    return sum(number for pattern, number in strata.items() if pattern >> bit & 1)


def freeze(engine: Engine, table: Table, freezing: FreezeRows, path: str) -> FrozenSource:
    """Write the input that all releases are made of to a new private directory.

    One pass over the input that writes Parquet.
    """
    schema = freezing.schema(table.schema)
    names = list(dict.fromkeys([*freezing.columns, *freezing.subject, *freezing.record]))
    frozen = table.select(names).map_batches(freezing, schema)
    frozen.map_batches(PackRecords(), PACKED).stage(path)
    types = [
        type_family(table.schema.field(name).type) for name in (*freezing.subject, *freezing.record)
    ]
    records = Records(engine.staged([path], PACKED), schema)
    return FrozenSource(records, freezing.columns, tuple(types))


def source_fingerprint(frozen: FrozenSource, subject: Sequence[str], run_id: str) -> str:
    """Return a fingerprint, equal for two sources about the same people. One job.

    ``subject`` are the columns that identify people. Without any, only two of one run are equal.
    """
    text = run_id
    if subject:
        keys = frozen.records.map_batches(_FirstBytes(), _KEYS, [SUBJECT])
        (row,) = keys.aggregate([], count="people", hashes="key").collect().to_pylist()
        text = f"{row['people']} {row['key_sum']} {row['key_xor']}"
    return hashlib.sha256(text.encode()).hexdigest()


_KEYS = pa.schema([("key", pa.int64())])


@dataclass(frozen=True)
class _FirstBytes:
    """Yields the first 64 bits of the keys of subjects."""

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            joined = b"".join(value[:8] for value in batch.column(SUBJECT).drop_null().to_pylist())
            yield pa.RecordBatch.from_arrays([pa.array(np.frombuffer(joined, "<i8"))], schema=_KEYS)


_COUNTS = pa.schema([("records", pa.int64()), ("subjects", pa.int64())])


@dataclass(frozen=True)
class _CountRepeated:
    """Counts subjects by the number of their records. Missing ones count as 0 records."""

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            has_person = batch.column(SUBJECT).is_valid().to_numpy(zero_copy_only=False)
            records = batch.column("records").to_numpy(zero_copy_only=False)
            repeats = np.where(has_person, np.minimum(records, 2), 0)
            numbers = np.where(has_person, 1, records)
            yield pa.RecordBatch.from_arrays(
                [pa.array(repeats, pa.int64()), pa.array(numbers, pa.int64())], schema=_COUNTS
            )


def require_subjects(
    frozen: FrozenSource, subject: Sequence[str], record: Sequence[str] = ()
) -> None:
    """Raise DataError if a record has no person, or a person has two equal records.

    ``subject`` are the columns that identify people, and ``record`` those that distinguish the
    records of a person, or none if each has one. One shuffle of the keys.
    """
    counted = frozen.records.rows(SUBJECT).aggregate([SUBJECT], count="records")
    sizes = counted.map_batches(_CountRepeated(), _COUNTS).aggregate(["records"], sums=["subjects"])
    numbers = {row["records"]: row["subjects"] for row in sizes.collect().to_pylist()}
    keys = ", ".join([*subject, *record])
    if numbers.get(0):
        raise DataError(
            f"subject: {numbers[0]:,} records have no person because {keys} is missing. Expected "
            "it in every record. Complete them, or leave them out of the input"
        )
    if numbers.get(2) and record:
        raise DataError(
            f"record: {numbers[2]:,} records occur several times, identified by {keys}. Expected "
            "each once. Name the columns that distinguish the records of a person"
        )
    if numbers.get(2):
        raise DataError(
            f"subject: {numbers[2]:,} people have several records, identified by {keys}. Expected "
            "one record a person. Name the columns that distinguish records as record, so that "
            "people are counted, or bring the table to one record each"
        )


@dataclass(frozen=True)
class _WithoutAtom:
    """Yields columns of records that have no atom."""

    names: Sequence[str]

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            rows = batch.filter(batch.column(ATOM).is_null()).select(list(self.names))
            yield pa.RecordBatch.from_arrays(rows.columns, list(self.names))


@dataclass(frozen=True)
class _InferForms:
    """Yields the forms of the values of a task."""

    late: Reader

    def __call__(self, batches: Batches) -> Batches:
        forms = reduce(Forms.__or__, map(self.late.forms, batches), Forms())
        yield pa.RecordBatch.from_arrays([pa.array([forms.to_text()])], schema=FORMS)


EVERYBODY = -1
"""The place of no recipient: of all records of the source."""


@dataclass(frozen=True)
class _Select:
    """Yields the records of one recipient with the names and the types of the input."""

    schema: pa.Schema
    bit: int | None
    becomes: Mapping[int, int] | None = None
    late: Reader | None = None

    def __call__(self, batches: Batches) -> Batches:
        """Filter each batch by the patterns of its records, and restore names and types."""
        for batch in batches:
            patterns = batch.column(PATTERN).to_numpy(zero_copy_only=False)
            selected = (patterns != 0) | (self.bit == EVERYBODY)
            if self.bit not in (None, EVERYBODY):
                selected = (patterns >> self.bit & 1).astype(bool)
            if self.becomes is not None:
                new_patterns = np.array(
                    [self.becomes.get(pattern, 0) for pattern in patterns.tolist()], np.int64
                )
                selected &= new_patterns != 0
                if ATOM in batch.schema.names:
                    has_atom = batch.column(ATOM).is_valid().to_numpy(zero_copy_only=False)
                    selected |= has_atom & (patterns != 0)
            rows = batch if selected.all() else batch.filter(pa.array(selected))
            columns = dict(zip(self.schema.names, rows.columns, strict=False))
            texts = {name: column for name, column in columns.items() if is_text(column.type)}
            if self.late is not None and texts:
                types = pa.schema(map(self.schema.field, texts))
                columns |= zip(texts, self.late.typed(pa.record_batch(texts), types), strict=True)
            yield pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


@dataclass(frozen=True)
class OpenFrozen:
    """Opens the records of a recipient. See :data:`anonspark.engine.protocol.OpenInput`.

    ``bit`` is the recipient's index, or None for all records that any recipient gets.
    ``with_patterns`` says whether patterns travel beside the records. ``becomes`` are the new
    patterns of records without an atom: 0 is withheld.
    """

    frozen: FrozenSource
    bit: int | None
    with_patterns: bool = False
    becomes: Mapping[int, int] | None = None

    def __call__(
        self, configuration: Configuration, hierarchies: Mapping[str, Hierarchy]
    ) -> FrozenInput:
        """Open the records, as an :data:`anonspark.engine.protocol.OpenInput`."""
        companions = {SUBJECT: SUBJECT} | ({ATOM: ATOM} if self.frozen.has_atoms else {})
        companions |= {PATTERN: PATTERN} if self.with_patterns else {}
        # The input may have columns of these names.
        in_use = set(self.frozen.columns)
        for staged in companions:
            while companions[staged] in in_use:
                companions[staged] += "_"
        schema = self.frozen.records.schema
        fields = [
            schema.field(column_of(index)).with_name(name)
            for index, name in enumerate(self.frozen.columns)
        ]
        fields += [schema.field(column).with_name(name) for column, name in companions.items()]
        opened = FrozenInput(
            self.frozen, self.bit, configuration, (), pa.schema(fields), companions, self.becomes
        )
        late = reader_of_texts(configuration.with_input(self.frozen.version))[1]
        if late is not None:
            opened = self._typed(opened, late)
        plans = tuple(plan_columns(opened.input_schema, configuration, hierarchies))
        return replace(opened, plans=plans)

    def _typed(self, opened: FrozenInput, late: Reader) -> FrozenInput:
        """Infer the types of texts from the values of the selected records, and no others.

        One job, two if recipients share the ranges of quasi-identifiers, and so their types. Raises
        DataError if a column has values of several kinds, or of one that cannot be published.
        """
        configuration, schema = opened.configuration, opened.input_schema
        names = {name for name in configuration.attributes if name in schema.names}
        names = {name for name in names if is_text(schema.field(name).type)}
        shared = names.intersection(
            configuration.quasi_identifiers if self.frozen.has_atoms else ()
        )
        for source, columns in ((opened, names - shared), (replace(opened, bit=None), shared)):
            if columns:
                texts = source.rows(sorted(columns)).map_batches(_InferForms(late), FORMS).collect()
                for column in late.schema(Forms.of_texts(texts["forms"].to_pylist())):
                    schema = schema.set(schema.get_field_index(column.name), column)
        require_types(schema, configuration)
        return replace(opened, input_schema=schema, late=late)


@dataclass(frozen=True)
class FrozenInput(RecordInput):
    """The records of one recipient as an :class:`anonspark.engine.protocol.Input`.

    ``plans`` are those of the quasi-identifiers, ``input_schema`` has the names of the input.
    ``companions`` are the staged names of what travels with the records, and the names in
    ``input_schema``. ``late`` gives values their types, or is None if they have types.
    """

    frozen: FrozenSource
    bit: int | None
    configuration: Configuration
    plans: tuple[PlannedColumn, ...]
    input_schema: pa.Schema
    companions: Mapping[str, str]
    becomes: Mapping[int, int] | None = None
    late: Reader | None = None

    @property
    def engine(self) -> Engine:
        """The engine that froze the source."""
        return self.frozen.records.engine

    @property
    def names(self) -> None:
        """None: the private copy has the columns that some recipient asked for."""
        return

    def reader(self, *, identifiers: bool = False, seed: int | None = None) -> ReadRecords:
        """Return what reads the records, with what travels beside those that are staged."""
        reader = super().reader(identifiers=identifiers, seed=seed)
        companions = {} if seed is None else self.companions
        # Blank rows were removed for all recipients alike.
        return replace(reader, listed=(), companions=companions)

    def rows(self, names: Sequence[str]) -> Table:
        """Return some columns of the records. Lazy."""
        staged = {name: column_of(index) for index, name in enumerate(self.frozen.columns)}
        staged |= {name: column for column, name in self.companions.items()}
        selected = [name for name in self.input_schema.names if name in names]
        schema = pa.schema(map(self.input_schema.field, selected))
        select = _Select(schema, self.bit, self.becomes, self.late)
        needed = [PATTERN, *([ATOM] if self.becomes and self.frozen.has_atoms else [])]
        columns = list(dict.fromkeys([*(staged[name] for name in selected), *needed]))
        return self.frozen.records.map_batches(select, schema, columns)


def read_source(
    engine: Engine, plan: Plan, key: Key, path: str, table: Table | None = None
) -> FrozenSource:
    """Read the source of a plan once, and write the private copy to a new private directory.

    ``key`` is that of the names of people, and ``table`` the source, or None for the base's input.
    One pass over the source that writes Parquet, and a shuffle of the names of people. Raises
    ConfigurationError or DataError.
    """
    configuration = plan.source
    with engine.reading(configuration.input.paths):
        # A table has types, whatever the plan says of files.
        version = engine.input_version(configuration) if table is None else {"format": "parquet"}
        configuration = configuration.with_input(version)
        opened = engine.open_source(reader_of_texts(configuration)[0]) if table is None else table
        freezing = plan_freezing(
            opened.schema,
            configuration,
            read_hierarchies(engine.files, configuration),
            [_rows_of(recipient) for recipient in plan.recipients],
            plan.names,
            plan.file.subject,
            key,
            plan.file.record,
        )
        frozen = replace(freeze(engine, opened, freezing, path), version=version)
    if plan.file.subject:
        require_subjects(frozen, plan.file.subject, plan.file.record)
    return frozen


def _rows_of(recipient: Recipient) -> RowsOf:
    """Return which records a recipient may have."""
    configuration = recipient.configuration
    present = configuration.quasi_identifiers if configuration.missing == "drop" else []
    return RowsOf(recipient.conditions, tuple(present))


def require_rows(plan: Plan, rows: list[int]) -> None:
    """Raise DataError with every recipient who would get fewer than k records."""
    problems = []
    for recipient, number in zip(plan.recipients, rows, strict=True):
        try:
            require_enough_rows(number, number, recipient.configuration.privacy.k)
        except DataError as error:
            problems += [f"recipients.{recipient.name}: {problem}" for problem in error.problems]
    if problems:
        raise DataError(*problems)


def require_places(files: Files, plan: Plan) -> None:
    """Raise ConfigurationError unless releases, ledger, source and staging are apart."""
    paths = {
        f"recipients.{recipient.name}.output.path": recipient.configuration.output.path
        for recipient in plan.recipients
    }
    for key, path in {"output": plan.output, **paths}.items():
        require_target(files, key, path)
    if plan.file.ledger is not None:
        paths["ledger.path"] = plan.file.ledger.path
    if plan.base.execution.staging_path is not None:
        paths["base.execution.staging_path"] = plan.base.execution.staging_path
    for number, path in enumerate(plan.base.input.paths_of_files):
        if not set(path) & set("*?[{"):
            paths[f"base.input.path[{number}]"] = path
    require_apart(files, paths)
