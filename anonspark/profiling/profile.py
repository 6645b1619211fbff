"""Profile a table: find the columns that identify people (``anonspark profile``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from anonspark.core.recognition.values import Form, recognize_values
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
# Different values of a column of which it is asked what they look like.
_LOOKED_AT = 2_000
_EXAMPLES = 3
_SHOWN = 10
_NEARLY_ALL = 0.95
_MOST_ORDERED = 50
# In pounds.
_HEAVIEST = 700

# Kinds of values that may have a form: what is measured or counted in time has none.
_WRITTEN = {"text", "code", "mixed", "whole number"}

# Kinds of values that are given away, too, where they are nearly right.
_NUMBERS = ("whole number", "number")
_MEASURED: dict[str, Kind] = {
    "whole number": "integer",
    "number": "float",
    "date": "date",
    "timestamp": "timestamp",
}


@dataclass(frozen=True)
class ColumnProfile:
    """What a column has.

    Parameters
    ----------
    name : str
    type : str
        As the table has it, in the words of SQL.
    kind : str
        What its values are: ``whole number``, ``number``, ``date``, ``timestamp``, ``boolean``,
        ``text``, ``code`` (digits with leading zeros), ``mixed`` (numbers among other texts),
        ``other date`` (days that are not written as 2026-01-31), ``other number`` (with a comma
        where 1234.5 has a point), ``nested`` or ``empty``.
    counts : ColumnCounts
        Over all rows.
    looks_like : str or None
        What its values are, as far as they can identify a person.
    told_by : str or None
        ``values`` or ``name``: what says so.
    role : str or None
        That is proposed. None is not published.
    reason : str
        Of the proposal.
    length : int or None
        Letters of nearly all its values, if they are equally many.
    examples : tuple of str
        Values, if they were asked for.
    order : tuple of str
        All its values, where they are groups that letters would order otherwise, as 5-9 and 10-14,
        and each is shared by k records.
    are_names : bool
        Whether its values are a few whole numbers that stand for names, as those of races.
    grid : float, str or None
        Where its ranges may end: the default of numbers and times, by the values of the sample.
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
        """Return the fields as JSON values. Shares are of all rows."""
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
        Where it lies, and how it was read.
    rows : int
    k : int
        What few records are fewer than.
    sample_rows : int
        Records by which sets of columns, forms of values and dependencies were judged.
    seed : int
        Key by which they were drawn.
    columns : list of ColumnProfile
        In the table's order. Of a struct its fields.
    measured : list of str
        Columns of the sets.
    uniqueness : Uniqueness
        Of the sample.
    dependencies : list of Dependency
        Of the sample: what proposed quasi-identifiers give away, and which other columns give
        them away. Identifiers and names of people aside.
    unit : str or None
        Column that identifies people who have several records.
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
        """Texts that mean missing: those of any table, and words that occur in this one."""
        present = {marker for column in self.columns for marker in column.counts.markers}
        return MISSING_MARKERS + tuple(word for word in MISSING_WORDS if word in present)

    @property
    def possible_units(self) -> tuple[str, ...] | None:
        """Columns that may number people. None if one does for sure, or if each row is a person."""
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
        """Return the weights of quasi-identifiers, without those that nothing is measured of."""
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
        """Return the fields as JSON values, and examples of the data if they were asked for."""
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
    """Profile a table.

    Parameters
    ----------
    engine : Engine
    source : Source
        Of :func:`anonspark.profiling.source.find_source`.
    progress : Progress
    k : int
        What few records are fewer than. At least 2.
    sample : int
        Records at most by which sets of columns are measured. All, if there are no more.
    seed : int
        Key of the hashes by which they are drawn.
    show_values : bool
        Whether the profile holds examples of values.

    Returns
    -------
    Profile
        The same by both engines, in whatever order and files the rows are.

    Raises
    ------
    DataError
        If there is no table, it cannot be read, or it is empty.
    ConfigurationError
        If the format is not known or refuses its options.

    Notes
    -----
    A pass over the table that counts, with a shuffle of the different values of each column, and
    those of :func:`anonspark.staged.sampling.sample_records`. The sample is collected. Sets of
    columns are then measured in this process: see
    :func:`anonspark.profiling.counting.measure_sets`.
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
        by_name = dict(zip(names, counts, strict=True))
        sampled = {reading.name: _sampled(reading, drawn[reading.name]) for reading in readings}
    with progress.stage("measure sets of columns"):
        return _profile(
            source, table.schema, by_name, rows, len(drawn), sampled, k, seed, show_values
        )


@dataclass(frozen=True)
class _Sampled:
    """A column of the sample."""

    codes: Integers
    values: pa.Array
    separation: float

    def texts(self, most: int) -> list[str]:
        """Return some different values as texts, in the order of the records' hashes."""
        return [str(value) for value in self.values[:most].to_pylist()]

    def length(self) -> int | None:
        """Return how many letters nearly all different values have. None has one letter only."""
        lengths = np.bincount([len(text) for text in self.texts(_LOOKED_AT)] or [0])
        most = int(lengths.argmax())
        is_nearly_all = lengths[most] >= _NEARLY_ALL * lengths.sum()
        return most if is_nearly_all and not lengths[:2].any() else None

    def weighs(self) -> Weighs:
        """Return what numbers may be the weight of."""
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
    values, _ = read_values(reading, column)
    coded = values.dictionary_encode()
    codes = pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy().astype(np.int64)
    separation = measure_sets([reading.name], [codes], 2).sets[0].separation
    return _Sampled(codes, coded.dictionary, separation)


def _profile(  # noqa: PLR0913 - what was found meanwhile
    source: Source,
    schema: pa.Schema,
    counts: dict[str, ColumnCounts],
    rows: int,
    sample_rows: int,
    sampled: dict[str, _Sampled],
    k: int,
    seed: int,
    show_values: bool,
) -> Profile:
    structs = whole_structs(schema)
    fields = {column.name: column.type for column in schema if column.name not in structs}
    forms = {
        name: recognize_values(sample.texts(_LOOKED_AT))
        for name, sample in sampled.items()
        if _kind(fields[name], counts[name], rows) in _WRITTEN
    }
    described = [
        replace(
            _described(name, data_type, counts, rows, sampled, forms, _meaning(name, structs)),
            remedy_for_days=source.remedy_for_days,
        )
        for name, data_type in fields.items()
    ]
    first = propose_roles(described)
    codes = {name: sample.codes for name, sample in sampled.items()}
    asked = [name for name, proposal in first.items() if proposal.role == "quasi_identifier"]
    dependencies = find_dependencies(list(codes), list(codes.values()), asked)
    roles = propose_roles(described, dependencies)
    final = [name for name, proposal in roles.items() if proposal.role == "quasi_identifier"]
    others = [
        column.name
        for column in described
        if column.name in codes
        and roles[column.name].role in (None, "sensitive")
        and not roles[column.name].is_name
    ]
    revealed = [dependency for dependency in dependencies if dependency.column in final]
    numbers = {
        name: np.append(as_floats(sampled[name].values).to_numpy(), np.nan)[codes[name]]
        for name in (column.name for column in described if column.kind in _MEASURED)
    }
    revealed += find_dependencies(list(codes), list(codes.values()), others, final, numbers)
    telling = _most_telling(described, roles)
    return Profile(
        source=source,
        rows=rows,
        k=k,
        sample_rows=sample_rows,
        seed=seed,
        columns=[
            _column(column, fields, counts, roles, sampled, show_values) for column in described
        ],
        measured=telling,
        uniqueness=measure_sets(telling, [codes[name] for name in telling], k),
        dependencies=revealed,
        unit=unit_of(described, roles),
        keys=keys_among(described),
    )


def _may_be_key(kind: str, sampled: _Sampled) -> bool:
    """Return whether values may number people: texts, and numbers that are whole."""
    if kind == "number":
        return all(float(text).is_integer() for text in sampled.texts(_LOOKED_AT))
    return kind in _WRITTEN


def _meaning(name: str, structs: Sequence[str]) -> Meaning | None:
    """Return the meaning of the name of a column, or of a field of a struct."""
    around = max(
        (struct for struct in structs if name.startswith(f"{struct}{DOT}")), key=len, default=None
    )
    meant = None if around is None else meaning_of(name[len(around) + 1 :])
    # Of address.city the field says more, of product.name the struct.
    return meaning_of(name) if meant is None or meant.kind == "name of a person" else meant


def _described(
    name: str,
    data_type: pa.DataType,
    counts: dict[str, ColumnCounts],
    rows: int,
    sampled: dict[str, _Sampled],
    forms: dict[str, Form | None],
    meaning: Meaning | None,
) -> Described:
    totals = counts.get(name, ColumnCounts())
    form = forms.get(name)
    kind = _kind(data_type, totals, rows) if name in counts else "nested"
    is_weight = weight_of_name(name) is not None and kind in _NUMBERS and totals.distinct > 1
    return Described(
        name=name,
        kind=kind,
        meaning=meaning,
        form=form.kind if form else None,
        rows=rows,
        missing=totals.missing,
        distinct=totals.distinct,
        unique=totals.unique,
        few=totals.few,
        largest=totals.largest,
        infinite=totals.infinite,
        separation=sampled[name].separation if name in sampled else 0.0,
        length=sampled[name].length() if name in sampled else None,
        numbers_things=name in counts and _may_be_key(kind, sampled[name]),
        weighs=(sampled[name].weighs() if not totals.missing else "neither") if is_weight else None,
    )


def _kind(data_type: pa.DataType, counts: ColumnCounts, rows: int) -> str:
    """Return what the values of a column are."""
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


def _most_telling(described: Sequence[Described], roles: dict[str, Proposal]) -> list[str]:
    """Return the columns whose sets are measured, in the table's order.

    Keys are left out, for each set with one of them would be unique in all records.
    """
    some = [
        column
        for column in described
        if column.kind not in ("nested", "empty")
        and column.distinct > 1
        and column.unique < _NEARLY_ALL * column.present
        and roles[column.name].role != "identifier"
        and not roles[column.name].is_name
    ]
    some.sort(key=lambda item: (roles[item.name].role != "quasi_identifier", -item.separation))
    names = {column.name for column in some[:_MOST_COLUMNS]}
    return [column.name for column in described if column.name in names]


def _column(
    column: Described,
    fields: dict[str, pa.DataType],
    counts: dict[str, ColumnCounts],
    roles: dict[str, Proposal],
    sampled: dict[str, _Sampled],
    show_values: bool,
) -> ColumnProfile:
    name, kind = column.name, column.kind
    proposal, shown = roles[name], show_values and name in sampled
    return ColumnProfile(
        name=name,
        type=type_name(fields[name]),
        kind=kind,
        counts=counts.get(name, ColumnCounts()),
        looks_like=column.looks_like,
        told_by="values" if column.form else "name" if column.looks_like else None,
        role=proposal.role,
        reason=proposal.reason,
        length=column.length,
        examples=sampled[name].frequent(_EXAMPLES) if shown else (),
        order=_natural_order(column, sampled[name]) if kind in ("text", "mixed") else (),
        are_names=kind in ("whole number", "number")
        and column.distinct <= MOST_NAMES
        and may_number_names(name)
        and _may_be_key(kind, sampled[name]),
        grid=_grid(_MEASURED.get(kind), sampled[name]) if name in sampled else None,
    )


def _grid(kind: Kind | None, sampled: _Sampled) -> float | str | None:
    """Return the default grid of numbers and times, or None for other kinds."""
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
    """Return all values of groups in their order, or none if letters order them alike."""
    texts = sampled.texts(_MOST_ORDERED + 1)
    # A rare value is not written into a file that others may read.
    if column.few or column.form or not 2 < column.distinct == len(texts) <= _MOST_ORDERED:
        return ()
    return tuple(natural_order(texts)) if letters_misorder(texts) else ()
