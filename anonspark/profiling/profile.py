"""Profile a table: find the columns that identify people (``anonspark profile``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Integers
from anonspark.core.association import Dependency, find_dependencies
from anonspark.core.grids import default_grid, grid_text
from anonspark.core.labels import Kind
from anonspark.core.recognition.disguised import MISSING_WORDS, letters_misorder, natural_order
from anonspark.core.recognition.names import (
    MOST_NAMES,
    Meaning,
    may_number_names,
    meaning_of,
    unit_of_name,
    weight_of_name,
)
from anonspark.core.recognition.values import recognize_values
from anonspark.engine.protocol import Engine
from anonspark.engine.raw_columns import Reading, is_number, require_distinct, type_name
from anonspark.engine.struct_fields import DOT, whole_structs
from anonspark.engine.values.value_texts import as_floats, convert, read_values
from anonspark.errors import DataError
from anonspark.pipeline.repeats import Counts
from anonspark.profiling.counting import (
    ColumnCounts,
    Uniqueness,
    count_columns,
    measure_sets,
    readings_of,
    weigh_columns,
)
from anonspark.profiling.roles import (
    Described,
    Proposal,
    Role,
    Weighs,
    keys_among,
    propose_roles,
    unit_of,
)
from anonspark.profiling.source import Source
from anonspark.progress import Progress
from anonspark.redaction import Redacted
from anonspark.staged.sampling import sample_records

SAMPLE_ROWS = 200_000
"""Records of the sample by which sets of columns are measured by default."""

MISSING_MARKERS = ("", "?")
"""Texts that mean missing, as in a configuration that says nothing else."""

_MOST_COLUMNS = 12
# Different values of a column by which its form is recognized.
_LOOKED_AT = 2_000
_EXAMPLES = 3
_SHOWN = 10
_NEARLY_ALL = 0.95
_MOST_ORDERED = 50
# In pounds.
_HEAVIEST = 700

# Kinds of values that may have a form, or be keys: measures, dates and times are neither.
_WRITTEN = {"text", "code", "mixed", "whole number"}

# Another column gives numbers away even if they follow from it only nearly.
_NUMBERS = ("whole number", "number")
_MEASURED: dict[str, Kind] = {
    "whole number": "integer",
    "number": "float",
    "date": "date",
    "timestamp": "timestamp",
}


@dataclass(frozen=True)
class ColumnProfile:
    """A column: its values over all rows, what they mean, and the role that is proposed.

    Parameters
    ----------
    type : str
        The column's type in the words of SQL.
    kind : str
        What the values are: ``whole number``, ``number``, ``date``, ``timestamp``, ``boolean``,
        ``text``, ``code`` (digits with leading zeros), ``mixed`` (numbers among other texts),
        ``other date`` (days that are not written as 2026-01-31), ``other number`` (with a comma
        where 1234.5 has a point), ``nested`` or ``empty``.
    looks_like : str or None
        What the values are, if they can identify a person.
    told_by : {"values", "name"} or None
        Whether values or name show what the column looks like.
    role : str or None
        The proposed role, or None for a column that is not published.
    length : int or None
        How many letters nearly all values have, or None if their lengths differ.
    examples : tuple of str
        Frequent values, or none unless they were asked for.
    order : tuple of str
        All values in their natural order, if letters would order them otherwise, as 5-9 and 10-14,
        and k records share each. Else none.
    are_names : bool
        Whether the values are a few whole numbers that stand for names, as those of races.
    grid : float, str or None
        The default grid on which ranges end, or None if the values are no numbers or times.
    """

    name: str
    type: str
    kind: str
    counts: ColumnCounts
    looks_like: str | None
    told_by: str | None
    role: Role | None
    reason: str
    length: int | None = None
    examples: tuple[str, ...] = field(default=(), repr=False)
    order: tuple[str, ...] = field(default=(), repr=False)
    are_names: bool = False
    grid: float | str | None = None

    def as_dict(self, rows: int) -> dict[str, object]:
        """Return the fields for JSON, with shares of all rows."""
        document = {
            "name": self.name,
            "type": self.type,
            "kind": self.kind,
            "distinct": self.counts.distinct,
            "missing": self.counts.missing,
            "unique": self.counts.unique,
            "unique_share": self.counts.unique / rows,
            "few": self.counts.few,
            "few_share": self.counts.few / rows,
            "looks_like": self.looks_like,
            "told_by": self.told_by,
            "role": self.role,
            "reason": self.reason,
            "length": self.length,
            "grid": self.grid,
            "missing_markers": list(self.counts.markers),
        }
        return document | ({"examples": list(self.examples)} if self.examples else {})


@dataclass(frozen=True, repr=False)
class Profile(Redacted):
    """What identifies people in a table.

    Parameters
    ----------
    source : Source
        Where the table lies, and how it was read.
    k : int
        Fewer records are few.
    sample_rows : int
        Records of the sample, by which sets, forms of values and dependencies were measured.
    seed : int
        Key by which they were drawn.
    columns : list of ColumnProfile
        In the table's order, with the fields of a struct in its place.
    measured : list of str
        Columns of which sets were measured.
    uniqueness : Uniqueness
        How these sets identify records of the sample.
    dependencies : list of Dependency
        What proposed quasi-identifiers give away, and which other columns give them away in the
        sample, without identifiers and names of people.
    unit : str or None
        Column that identifies people who have several records, or None if no column does.
    keys : mapping of str to Counts
        Columns that may number people or households.
    """

    source: Source
    rows: int
    k: int
    sample_rows: int
    seed: int
    columns: list[ColumnProfile]
    measured: list[str]
    uniqueness: Uniqueness
    dependencies: list[Dependency]
    unit: str | None
    keys: Mapping[str, Counts]

    @property
    def is_sampled(self) -> bool:
        """Return whether the sample is a part of the table only."""
        return self.sample_rows < self.rows

    @property
    def missing_markers(self) -> tuple[str, ...]:
        """Texts that mean missing in any table, and words that mean it in this one."""
        present = {marker for column in self.columns for marker in column.counts.markers}
        return MISSING_MARKERS + tuple(word for word in MISSING_WORDS if word in present)

    @property
    def possible_units(self) -> tuple[str, ...] | None:
        """Columns that may number people, or None if one does for sure, or each row is a person."""
        is_person = any(
            unit_of_name(column.name) == "person" and column.counts.unique == self.rows
            for column in self.columns
        )
        if self.unit is not None or is_person:
            return None
        return tuple(self.keys)

    def with_role(self, role: str | None) -> list[ColumnProfile]:
        """Return the columns for which a role is proposed."""
        return [column for column in self.columns if column.role == role]

    def weights(self, names: Sequence[str]) -> dict[str, float]:
        """Return the weights of quasi-identifiers, without those that were not measured."""
        weighed = [
            column.name
            for column in self.columns
            if column.name in names
            and (column.name in self.measured or 2 * column.counts.unique > self.rows)
        ]
        return weigh_columns(self.uniqueness, weighed, self.sample_rows) if weighed else {}

    @property
    def proposed_weights(self) -> dict[str, float]:
        """Weights of the proposed quasi-identifiers."""
        return self.weights([column.name for column in self.with_role("quasi_identifier")])

    def as_dict(self) -> dict[str, object]:
        """Return the fields for JSON, with examples of values if they were asked for."""
        sets = self.uniqueness
        return {
            "path": self.source.path,
            "format": self.source.format,
            "options": dict(self.source.options),
            "rows": self.rows,
            "k": self.k,
            "sample": {"rows": self.sample_rows, "seed": self.seed},
            "columns": [column.as_dict(self.rows) for column in self.columns],
            "sets": {
                "columns": self.measured,
                "singles": [group.as_dict() for group in sets.of_size(1)],
                "pairs": [group.as_dict() for group in sets.of_size(2)],
                "triples": [group.as_dict() for group in sets.of_size(3)],
                "unique_by_size": list(sets.unique_by_size),
            },
            "weights": self.proposed_weights,
            "minimal_unique_sets": [group.as_dict() for group in sets.causing(_SHOWN)],
            "missing_markers": list(self.missing_markers),
            "dependencies": [dependency.as_dict() for dependency in self.dependencies],
            "unit": self.unit,
        }


def profile_table(
    engine: Engine,
    source: Source,
    progress: Progress,
    *,
    k: int = 5,
    sample: int = SAMPLE_ROWS,
    seed: int = 0,
    show_values: bool = False,
) -> Profile:
    """Profile a table: its columns, their proposed roles, and which sets of them single out people.

    The profile does not depend on the engine, nor on the order or files of the rows. A value is
    rare if fewer than ``k`` records have it (``k`` is at least 2). Sets of columns are measured on
    at most ``sample`` records, which hashes with the key ``seed`` draw. ``show_values`` adds
    examples of values. Raises DataError if the table is missing, unreadable or empty, and
    ConfigurationError if the format is unknown or refuses its options.

    One pass counts, with a shuffle of the different values of each column. The passes of
    :func:`anonspark.staged.sampling.sample_records` draw the sample, which is collected and
    measured in this process by :func:`anonspark.profiling.counting.measure_sets`.
    """
    with engine.reading((source.path,), "DATA: "):
        with progress.stage("open"):
            source = source.recognized(engine.files)
            table = source.open(engine)
        require_distinct(table.schema.names, table.schema.names, "DATA")
        readings = readings_of(table.schema, MISSING_MARKERS + MISSING_WORDS)
        names = [reading.name for reading in readings]
        with progress.stage("count values of each column"):
            rows, counts = count_columns(table, readings, k)
        if rows == 0:
            raise DataError(f"DATA: the table at {source.path} is empty. Expected rows")
        with progress.stage("draw a sample"):
            drawn = sample_records(table, names, rows, sample, seed)
        sampled = {reading.name: _sampled(reading, drawn[reading.name]) for reading in readings}
        facts = _Facts(table.schema, rows, dict(zip(names, counts, strict=True)), sampled)
    with progress.stage("measure sets of columns"):
        columns = _describe_columns(facts, source.remedy_for_days)
        codes = {name: sample.codes for name, sample in sampled.items()}
        roles, dependencies = _propose(columns, facts, codes)
        measured = _columns_of_sets(columns, roles)
        return Profile(
            source=source,
            rows=rows,
            k=k,
            sample_rows=len(drawn),
            seed=seed,
            columns=[_column(column, facts, roles[column.name], show_values) for column in columns],
            measured=measured,
            uniqueness=measure_sets(measured, [codes[name] for name in measured], k),
            dependencies=dependencies,
            unit=unit_of(columns, roles),
            keys=keys_among(columns),
        )


@dataclass(frozen=True)
class _Sampled:
    """A column of the sample: its different values, and the number of each record's, int64 (n,).

    Missing has the number behind the last. ``separation`` is the share of pairs of records that
    differ in the column.
    """

    codes: Integers
    values: pa.Array
    separation: float

    def texts(self, most: int) -> list[str]:
        """Return the first different values as texts, in the order of the records' hashes."""
        return [str(value) for value in self.values[:most].to_pylist()]

    def length(self) -> int | None:
        """Return how many letters nearly all different values have, or None if they differ."""
        lengths = np.bincount([len(text) for text in self.texts(_LOOKED_AT)] or [0])
        length = int(lengths.argmax())
        is_nearly_all = lengths[length] >= _NEARLY_ALL * lengths.sum()
        return length if is_nearly_all and not lengths[:2].any() else None

    def weighs(self) -> Weighs:
        """Return what the numbers may be the weight of, see :class:`Described`."""
        numbers = as_floats(self.values).to_numpy(zero_copy_only=False)
        if not np.all(numbers >= 0):
            return "neither"
        is_body = 0 < numbers.min() <= numbers.max() <= _HEAVIEST
        return "body" if is_body and np.all(np.round(numbers, 1) == numbers) else "record"

    def frequent(self, most: int) -> tuple[str, ...]:
        """Return the most frequent values as texts."""
        sizes = np.bincount(self.codes, minlength=len(self.values))[: len(self.values)]
        order = np.argsort(-sizes, kind="stable")[:most]
        return tuple(str(value) for value in self.values.take(pa.array(order)).to_pylist())


def _sampled(reading: Reading, column: pa.ChunkedArray) -> _Sampled:
    """Read a column of the sample, and number its different values."""
    values, _ = read_values(reading, column)
    coded = values.dictionary_encode()
    codes = pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy().astype(np.int64)
    separation = measure_sets([reading.name], [codes], 2).sets[0].separation
    return _Sampled(codes, coded.dictionary, separation)


@dataclass(frozen=True)
class _Facts:
    """What is known of a table: the counts of all rows, and a sample, of each readable column."""

    schema: pa.Schema
    rows: int
    counts: Mapping[str, ColumnCounts]
    sampled: Mapping[str, _Sampled]


def _propose(
    columns: Sequence[Described], facts: _Facts, codes: Mapping[str, Integers]
) -> tuple[dict[str, Proposal], list[Dependency]]:
    """Propose roles, in two rounds: the second leaves out what quasi-identifiers give away.

    Also return the dependencies from and to the chosen quasi-identifiers.
    """
    first = propose_roles(columns)
    candidates = [name for name, proposal in first.items() if proposal.role == "quasi_identifier"]
    dependencies = find_dependencies(list(codes), list(codes.values()), candidates)
    roles = propose_roles(columns, dependencies)
    chosen = [name for name, proposal in roles.items() if proposal.role == "quasi_identifier"]
    others = [
        name
        for name, proposal in roles.items()
        if name in codes and proposal.role in (None, "sensitive") and not proposal.is_name
    ]
    numbers = {
        name: np.append(as_floats(facts.sampled[name].values).to_numpy(), np.nan)[codes[name]]
        for name in (column.name for column in columns if column.kind in _MEASURED)
    }
    revealed = [dependency for dependency in dependencies if dependency.column in chosen]
    revealing = find_dependencies(list(codes), list(codes.values()), others, chosen, numbers)
    return roles, revealed + revealing


def _may_be_key(kind: str, sampled: _Sampled) -> bool:
    """Return whether values may number people: texts and whole numbers may."""
    if kind == "number":
        return all(float(text).is_integer() for text in sampled.texts(_LOOKED_AT))
    return kind in _WRITTEN


def _meaning(name: str, structs: Sequence[str]) -> Meaning | None:
    """Return the meaning of the name of a column, or of a field of a struct.

    >>> _meaning("address.city", ["address"]).kind
    'city'
    """
    around = max(
        (struct for struct in structs if name.startswith(f"{struct}{DOT}")), key=len, default=None
    )
    meant = None if around is None else meaning_of(name[len(around) + 1 :])
    # The field of address.city says more than the struct, but that of product.name says less.
    return meaning_of(name) if meant is None or meant.kind == "name of a person" else meant


def _describe_columns(facts: _Facts, remedy_for_days: str) -> list[Described]:
    """Describe each column, and each field of a struct, for the proposal of a role."""
    structs = whole_structs(facts.schema)
    return [
        _describe_column(column, facts, _meaning(column.name, structs), remedy_for_days)
        for column in facts.schema
        if column.name not in structs
    ]


def _describe_column(
    column: pa.Field, facts: _Facts, meaning: Meaning | None, remedy_for_days: str
) -> Described:
    """Describe a column by its type, its name, its counts and its sample."""
    name, counts = column.name, facts.counts.get(column.name, ColumnCounts())
    kind, sample = "nested", facts.sampled.get(name)
    form, weighs = None, None
    if sample is not None:
        kind = _kind(column.type, counts, facts.rows)
        form = recognize_values(sample.texts(_LOOKED_AT)) if kind in _WRITTEN else None
        if weight_of_name(name) is not None and kind in _NUMBERS and counts.distinct > 1:
            weighs = "neither" if counts.missing else sample.weighs()
    return Described(
        name=name,
        kind=kind,
        meaning=meaning,
        form=form.kind if form else None,
        rows=facts.rows,
        missing=counts.missing,
        distinct=counts.distinct,
        unique=counts.unique,
        few=counts.few,
        largest=counts.largest,
        infinite=counts.infinite,
        separation=sample.separation if sample else 0.0,
        remedy_for_days=remedy_for_days,
        length=sample.length() if sample else None,
        numbers_things=sample is not None and _may_be_key(kind, sample),
        weighs=weighs,
    )


def _kind(data_type: pa.DataType, counts: ColumnCounts, rows: int) -> str:
    """Classify the values of a column by type or, for texts, by what nearly all of them look like.

    >>> _kind(pa.string(), ColumnCounts(numbers=9, whole=9, padded=2), rows=9)
    'code'
    >>> _kind(pa.string(), ColumnCounts(numbers=6), rows=9)
    'mixed'
    """
    present = rows - counts.missing
    if present == 0:
        return "empty"
    if is_number(data_type):
        return "whole number" if pa.types.is_integer(data_type) else "number"
    if pa.types.is_date(data_type):
        return "date"
    if pa.types.is_timestamp(data_type):
        return "timestamp"
    if pa.types.is_boolean(data_type):
        return "boolean"
    if counts.numbers == present:
        if counts.padded:
            return "code"
        return "whole number" if counts.whole == present else "number"
    if counts.days == present:
        return "date"
    if counts.days + counts.moments == present:
        return "timestamp"
    if counts.days + counts.other_days >= _NEARLY_ALL * present:
        return "other date"
    if counts.other_numbers and counts.numbers + counts.other_numbers >= _NEARLY_ALL * present:
        return "other number"
    return "mixed" if 2 * counts.numbers >= present else "text"


def _columns_of_sets(columns: Sequence[Described], roles: dict[str, Proposal]) -> list[str]:
    """Choose the columns whose sets are measured: at most 12, in the table's order.

    Leaves out keys, because every set with a key is unique in all records. Prefers proposed
    quasi-identifiers, and then the columns that separate most pairs of records.
    """
    candidates = [
        column
        for column in columns
        if column.kind not in ("nested", "empty")
        and column.distinct > 1
        and column.unique < _NEARLY_ALL * column.present
        and roles[column.name].role != "identifier"
        and not roles[column.name].is_name
    ]
    candidates.sort(
        key=lambda item: (roles[item.name].role != "quasi_identifier", -item.separation)
    )
    names = {column.name for column in candidates[:_MOST_COLUMNS]}
    return [column.name for column in columns if column.name in names]


def _column(
    column: Described, facts: _Facts, proposal: Proposal, show_values: bool
) -> ColumnProfile:
    """Describe a column by its counts, its kind and the proposed role."""
    name, kind, sample = column.name, column.kind, facts.sampled.get(column.name)
    counts, reason = facts.counts.get(name, ColumnCounts()), proposal.reason
    if kind == "mixed":
        reason += f". {column.present - counts.numbers:,} values are no numbers, so all are texts"
    return ColumnProfile(
        name=name,
        type=type_name(facts.schema.field(name).type),
        kind=kind,
        counts=counts,
        looks_like=column.looks_like,
        told_by="values" if column.form else "name" if column.looks_like else None,
        role=proposal.role,
        reason=reason,
        length=column.length,
        examples=sample.frequent(_EXAMPLES) if sample and show_values else (),
        order=_natural_order(column, sample) if sample and kind in ("text", "mixed") else (),
        are_names=kind in _NUMBERS
        and column.numbers_things
        and column.distinct <= MOST_NAMES
        and may_number_names(name),
        grid=_grid(_MEASURED.get(kind), sample) if sample else None,
    )


def _grid(kind: Kind | None, sampled: _Sampled) -> float | str | None:
    """Return the default grid of numbers and times, or None for other kinds and without values."""
    if kind is None:
        return None
    data_type = {"date": pa.date32(), "timestamp": pa.timestamp("us")}.get(kind, pa.float64())
    numbers = as_floats(convert(sampled.values, data_type)).to_numpy()
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return None
    grid = default_grid(kind, Fraction(finite.min()), Fraction(finite.max()), 0)
    return None if grid is None else grid_text(grid)


def _natural_order(column: Described, sampled: _Sampled) -> tuple[str, ...]:
    """Return all values of groups in their order, or none if letters order them equally."""
    texts = sampled.texts(_MOST_ORDERED + 1)
    # The order is written into a configuration, which others may read: no rare value is.
    if column.few or column.form or not 2 < column.distinct == len(texts) <= _MOST_ORDERED:
        return ()
    return tuple(natural_order(texts)) if letters_misorder(texts) else ()
