"""A release, opened from its files by its recipient: typed rows, and answers to questions."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.protocol import Engine, Table
from anonspark.errors import ConfigurationError, EnvironmentProblem
from anonspark.foreign_text import visible
from anonspark.labels.regions import CategoryRegion, Interval, OrderedRegion, PublishedAttribute
from anonspark.labels.typed_names import typed_names
from anonspark.reading.attributes import (
    ARGUMENT,
    HierarchyFile,
    ReadAttribute,
    read_attributes,
    read_hierarchies,
)
from anonspark.reading.counting import (
    Count,
    CountedRegions,
    Counts,
    attribute_of,
    count_regions,
    equated,
    formula_of,
    tests_of,
)
from anonspark.reading.frames import as_pandas
from anonspark.reading.questions import Condition, Question, Token, asking_error, parse_question
from anonspark.reading.shares import Regions, regions_of
from anonspark.release.manifest import Manifest, read_manifest

if TYPE_CHECKING:
    import pandas
    import polars


def with_typed_columns(
    table: pa.Table, attributes: Mapping[str, ReadAttribute], *, may_miss: bool
) -> pa.Table:
    """Add typed columns behind the labels of each quasi-identifier of published records.

    These are ``<name>_min``, ``<name>_max`` and ``<name>_mid`` of numbers, dates and times, with
    ``<name>_max_included`` if intervals are half-open, ``<name>_set`` of categories, and
    ``<name>_missing`` if ``may_miss``, unless they are published already. They are null if nothing
    is known, as for suppressed records. :mod:`anonspark.sidecars.views` makes the same columns in
    SQL.
    """
    added: dict[str, list[tuple[str, pa.Array]]] = {}
    for attribute in attributes.values():
        if attribute.published is not None:
            columns = [table.column(name).combine_chunks() for name in attribute.columns]
            typed = _typed(
                attribute, attribute.published, columns, table.column_names, may_miss=may_miss
            )
            added[attribute.columns[-1]] = list(typed.items())
    names: list[str] = []
    arrays: list[Any] = []
    for name in table.column_names:
        names.append(name)
        arrays.append(table.column(name))
        for new, column in added.get(name, ()):
            names.append(new)
            arrays.append(column)
    return pa.table(arrays, names=names)


def _typed(
    attribute: ReadAttribute,
    published: PublishedAttribute,
    columns: Sequence[pa.Array],
    taken: Collection[str],
    *,
    may_miss: bool,
) -> dict[str, pa.Array]:
    """Build the typed columns of a quasi-identifier, under names that are not ``taken``."""
    names = typed_names(published, taken, is_opaque=attribute.is_opaque, may_miss=may_miss)
    if not names:
        return {}
    typed: dict[str, pa.Array] = {}
    if attribute.hides_regions:
        return {names["mid"]: columns[0]}
    if "mid" in names and "min" not in names:
        low, high = columns[0], columns[1]
        return {names["mid"]: _middle(low, high)}
    regions = regions_of(attribute, columns)
    if "set" in names:
        return {names["set"]: _sets(regions)}
    raw = attribute.raw_type
    ends = [_ends(region) for region in regions.regions]
    numbers = pa.array(regions.numbers)
    low = _as(raw, [end[0] for end in ends])
    high = _as(raw, [end[1] for end in ends])
    typed[names["min"]], typed[names["max"]] = low.take(numbers), high.take(numbers)
    if "max_included" in names:
        included = pa.array([end[2] for end in ends], pa.bool_())
        typed[names["max_included"]] = included.take(numbers)
    typed[names["mid"]] = _middle(low, high).take(numbers)
    if "missing" in names:
        missing = pa.array([region.missing for region in regions.regions], pa.bool_())
        typed[names["missing"]] = missing.take(numbers)
    return typed


def _ends(region: object) -> tuple[Any, Any, bool | None]:
    """Return smallest and largest value of a region, and whether the largest belongs to it.

    An end that is not known is None: those of a category, or the upper one of ``90+``.
    """
    if not isinstance(region, OrderedRegion) or not region.intervals:
        return None, None, None
    last: Interval = max(region.intervals, key=lambda end: (end.high, end.high_included))
    low: Any = min(interval.low for interval in region.intervals)
    low = None if low == -math.inf else low
    return (low, None, None) if last.high == math.inf else (low, last.high, last.high_included)


def _as(arrow_type: pa.DataType | None, values: Sequence[Any]) -> pa.Array:
    """Build an array of a type from numbers. Dates are days and times microseconds since 1970.

    >>> _as(pa.date32(), [0, None]).to_pylist()
    [datetime.date(1970, 1, 1), None]
    """
    if arrow_type is None:
        raise TypeError("a category has no ends")
    if pa.types.is_date(arrow_type):
        return pa.array(values, pa.int32()).cast(pa.date32()).cast(arrow_type)
    if pa.types.is_timestamp(arrow_type):
        return pa.array(values, pa.int64()).cast(arrow_type)
    if pa.types.is_decimal(arrow_type):
        return pa.array([None if value is None else Decimal(value) for value in values], arrow_type)
    if pa.types.is_floating(arrow_type):
        return pa.array([None if value is None else float(value) for value in values], arrow_type)
    return pa.array(values, arrow_type)


def _middle(low: pa.Array, high: pa.Array) -> pa.Array:
    """Return the middles between two arrays: dates and times rounded down, numbers as float64.

    >>> _middle(pa.array([30, None]), pa.array([39, 5])).to_pylist()
    [34.5, None]
    """
    if pa.types.is_date(low.type) or pa.types.is_timestamp(low.type):
        number = pa.int32() if pa.types.is_date32(low.type) else pa.int64()
        first, last = (end.cast(number).cast(pa.int64()) for end in (low, high))
        pairs = zip(first.to_pylist(), last.to_pylist(), strict=True)
        middle = [
            None if start is None or end is None else (start + end) // 2 for start, end in pairs
        ]
        return pa.array(middle, pa.int64()).cast(number).cast(low.type)
    # Integers beyond 2^53 are rounded, as the view in SQL rounds them.
    first, last = (
        end.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) for end in (low, high)
    )
    middle = pa.array(first / 2 + last / 2, pa.float64())
    unknown = pc.or_(pc.is_null(low), pc.is_null(high))
    return pc.if_else(unknown, pa.scalar(None, pa.float64()), middle)


def _sets(regions: Regions) -> pa.Array:
    """Return sets as lists of texts, with null for missing, or a null list for all values."""
    members: list[list[str | None] | None] = []
    for region in regions.regions:
        if not isinstance(region, CategoryRegion) or region.values is None:
            members.append(None)
        else:
            members.append([*region.values, *([None] if region.missing else [])])
    return pa.array(members, pa.list_(pa.string())).take(pa.array(regions.numbers))


_LOGGER = logging.getLogger("anonspark")

OpenEngine = Callable[[], AbstractContextManager[Engine]]
"""Opens the engine for one question."""

_A_QUESTION = "a text, as 'age between 30 and 40'. An empty one counts all records"


@dataclass(frozen=True)
class Answer:
    """The answer to a question: the count of all records, and that of each group.

    ``by`` is the column of the groups, which are None without one. ``left_out`` is the number of
    records that the release leaves out, or None if it is not published. ``warnings`` name literals
    that no record can equal.
    """

    question: str
    count: Count
    by: str | None
    groups: Counts | None
    left_out: int | None
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return the answer for JSON, with a list of groups."""
        document: dict[str, object] = {"question": self.question, **self.count.as_dict()}
        if self.groups is not None:
            document["by"] = self.by
            document["groups"] = [
                {"value": value, **count.as_dict()} for value, count in self.groups.items()
            ]
        return {**document, "left_out": self.left_out, "warnings": list(self.warnings)}


class PublishedRelease:
    """A release as its recipient has it: its files, and nothing else.

    :func:`anonspark.open_release` opens one. ``hierarchies`` are the files at hand, by attribute.
    """

    def __init__(
        self,
        path: str,
        manifest: Manifest,
        hierarchies: Mapping[str, HierarchyFile],
        open_engine: OpenEngine,
    ) -> None:
        self.path = path
        self._manifest = manifest
        self._open_engine = open_engine
        self._leaves = {name: hierarchy.leaves() for name, hierarchy in hierarchies.items()}
        self._unproven = dict(hierarchies)

    @property
    def manifest(self) -> dict[str, object]:
        """Return the manifest of the release, ``manifest.json``: what it is and how it was made."""
        return self._manifest.document

    @property
    def columns(self) -> list[str]:
        """Return the names of the published columns, in order."""
        return list(self._manifest.published["columns"])

    def __len__(self) -> int:
        return int(self._manifest.published["rows"])

    def __repr__(self) -> str:
        manifest = self._manifest
        return visible(
            f"PublishedRelease({self.path!r}: {len(self):,} records, k = {manifest.k}, style "
            f"{manifest.style}, columns {', '.join(self.columns)})"
        )

    def to_arrow(self) -> pa.Table:
        """Return the records as a table of Arrow, with typed columns next to the labels.

        Returns
        -------
        pyarrow.Table
            The published columns, and behind those of each quasi-identifier: ``<name>_min``,
            ``<name>_max`` (of the type of the raw column) and ``<name>_mid`` of numbers, dates and
            times, ``<name>_max_included`` where a hierarchy's intervals are half-open,
            ``<name>_set``, a list of texts with null for missing, of categories, and
            ``<name>_missing``, whether the value may be missing. Null where nothing is published.

        Raises
        ------
        DataError
            If the data or their labels cannot be read, or a hierarchy is not the one that made the
            labels.

        Notes
        -----
        All records are read into memory. Of means (``output.style: mean``) nothing but the middle
        is known, and of labels of a hierarchy of a file nothing but themselves.
        """
        with self._open_engine() as engine, self._reading(engine):
            data = self._data(engine)
            attributes = self._attributes(data)
            table = data.collect().replace_schema_metadata(None)
        return with_typed_columns(table, attributes, may_miss=not self._manifest.drops_missing)

    def to_pandas(self) -> pandas.DataFrame:
        """Return :meth:`to_arrow` as a DataFrame of pandas.

        Raises
        ------
        EnvironmentProblem
            If pandas is not installed.

        Notes
        -----
        See :func:`~anonspark.reading.frames.as_pandas`.
        """
        _require("pandas")
        return as_pandas(self.to_arrow())

    def to_polars(self) -> polars.DataFrame:
        """Return :meth:`to_arrow` as a DataFrame of polars.

        Raises
        ------
        EnvironmentProblem
            If polars is not installed.
        """
        frame: polars.DataFrame = _require("polars").from_arrow(self.to_arrow())
        return frame

    def count(self, question: str = "", by: str | None = None) -> Count | Counts:
        """Count the records that meet a condition, with certain bounds.

        Parameters
        ----------
        question : str
            As in SQL behind ``where``: ``age between 30 and 40 and sex = 'f'``, with ``=``, ``!=``,
            ``<``, ``<=``, ``>``, ``>=``, ``between``, ``in (...)``, ``is null``, ``and``, ``or``,
            ``not`` and parentheses. Names of columns in double quotes where they are not words. It
            may end in ``by column``. An empty one counts all records.
        by : str or None
            A column: records are counted for each of its values.

        Returns
        -------
        Count or Counts
            ``estimate`` with ``lower`` and ``upper``. With ``by`` one for each value, None for
            missing.

        Raises
        ------
        ConfigurationError
            If the question is wrong, at which character, or something else is given for it.
        DataError
            If the data or their labels cannot be read, or a hierarchy is not the one that made the
            labels.

        Notes
        -----
        ``lower`` are the records of classes whose region lies wholly inside, ``upper`` those that
        may lie inside: the number of the release's records that meet the condition is between them
        for certain. The estimate spreads each class evenly over its region, each attribute by
        itself. As in SQL a missing value meets no comparison and no negated one.

        One job: the different rows of the columns that are asked for are counted and collected.
        One more for each hierarchy of a file, the first time: its labels are looked at.
        """
        answer = self.answer(question, by)
        return answer.count if answer.groups is None else answer.groups

    def answer(self, question: str = "", by: str | None = None) -> Answer:
        """Return the counts of :meth:`count`, with records left out and warnings."""
        _require_text("question", question, _A_QUESTION)
        if by is not None:
            _require_text("by", by, "the name of one column as a text, or None")
        parsed = parse_question(question, self._names())
        if by is not None:
            if parsed.by is not None and parsed.by.text != by:
                raise ConfigurationError(
                    f"by: found {by!r}, and {parsed.by.text!r} in the query. Leave one of them out"
                )
            parsed = Question(parsed.condition, Token("column", by, len(question) + 1))
        with self._open_engine() as engine, self._reading(engine):
            data = self._data(engine)
            attributes = self._attributes(data)
            formula = formula_of(parsed.condition, attributes)
            names = [test.attribute for test in tests_of(formula)]
            group = None
            if parsed.by is not None:
                group = attribute_of(parsed.by, attributes)
                _require_groups(group, parsed.by)
                names.append(group.name)
            counted = count_regions(data, [attributes[name] for name in dict.fromkeys(names)])
        warnings = tuple(_impossible_literals(parsed.condition, counted))
        for warning in warnings:
            _LOGGER.warning("%s", warning)
        evaluated = counted.evaluate(formula)
        groups = None if group is None else counted.groups(formula, evaluated, group)
        return Answer(
            question,
            evaluated.count(counted.records),
            None if group is None else group.name,
            groups,
            self._left_out(),
            warnings,
        )

    def _names(self) -> list[str]:
        """List the names that a question may have, without reading the data."""
        manifest = self._manifest
        generalized = set(manifest.quasi_identifier_columns)
        names = [str(described["name"]) for described in manifest.quasi_identifiers]
        return names + [name for name in self.columns if name not in generalized]

    def _left_out(self) -> int | None:
        """Return how many records were left out, or None if that is not published."""
        summary = self._manifest.summary
        left_out = 0
        for name in ("rows_dropped_missing", "rows_left_out"):
            rows = summary.get(name)
            if rows is None:
                return None
            left_out += int(rows)
        return left_out

    def _data(self, engine: Engine) -> Table:
        """Return the published records."""
        return engine.published(f"{self.path}/data", self._manifest.data_format)

    def _attributes(self, data: Table) -> dict[str, ReadAttribute]:
        """Return the attributes by name, after a check of all hierarchies at hand by the labels.

        Also checks those that the question does not need: a wrong hierarchy may make it
        contradictory, and it would then be answered without reading the labels. Raises DataError if
        a hierarchy cannot have made the labels.
        """
        attributes = read_attributes(self._manifest, data, self._leaves)
        for name, file in list(self._unproven.items()):
            # Under this name no engine takes the column for an expression.
            column = data.select({"label": attributes[name].columns[0]})
            labels = column.aggregate(["label"]).collect().column("label").to_pylist()
            file.require_labels({label for label in labels if label is not None}, file.labels())
            del self._unproven[name]
        return attributes

    def _reading(self, engine: Engine) -> AbstractContextManager[None]:
        """Raise errors of reading the data as DataError."""
        return engine.reading((f"{self.path}/data",), key="")


def _impossible_literals(condition: Condition, counted: CountedRegions) -> Iterator[str]:
    """Warn of literals that no record of a release can equal, by position, not by value."""
    for column, literal in equated(condition):
        regions = counted.regions.get(column.text)
        if regions is None or not len(regions.numbers):
            continue
        if not regions.may_have(regions.attribute.compared("=", literal)).any():
            yield (
                f"query: no record can have the value that {column.text!r} is compared with at "
                f"character {literal.position}. Check its spelling, also small and capital letters"
            )


def open_published(
    path: str,
    hierarchies: Mapping[str, str] | None,
    open_engine: OpenEngine,
    key: str = ARGUMENT,
) -> PublishedRelease:
    """Open the release in a directory.

    ``hierarchies`` are paths of hierarchies by attribute, and ``key`` names them in messages, see
    :func:`anonspark.reading.attributes.read_hierarchies`. Raises ConfigurationError if a hierarchy
    cannot be read or the attribute has none, DataError without a complete release, and
    GuaranteeError if its manifest is damaged.
    """
    directory = path.rstrip("/")
    with open_engine() as engine:
        manifest = read_manifest(engine.files, directory)
        from_files = read_hierarchies(engine.files, hierarchies or {}, key)
    return PublishedRelease(directory, manifest, from_files, open_engine)


def _require_text(argument: str, value: object, expected: str) -> None:
    """Raise ConfigurationError if an argument is no text."""
    if not isinstance(value, str):
        what = "None" if value is None else f"a value of type {type(value).__name__}"
        raise ConfigurationError(f"{argument}: found {what}. Expected {expected}")


def _require(name: str) -> Any:
    """Import a library of DataFrames. Raises EnvironmentProblem if it is not installed."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise EnvironmentProblem(
            f"{name} is not installed. Install it (pip install {name}), or use to_arrow()"
        ) from error


def _require_groups(group: ReadAttribute, token: Token) -> None:
    """Raise ConfigurationError if an attribute has ranges or groups in place of values."""
    if group.published is not None and (not group.is_category or group.is_opaque):
        raise asking_error(
            token.position,
            f"by {group.name!r}, which is generalized to ranges or groups",
            "a category, or a column that is published as it is. Ask for one range at a time",
        )
