"""A release, opened from its own files by who received it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from anonspark.engine.protocol import Engine, Table
from anonspark.errors import ConfigurationError, EnvironmentProblem
from anonspark.foreign_text import visible
from anonspark.reading.attributes import ReadAttribute, read_attributes
from anonspark.reading.conditions import tests_of
from anonspark.reading.counting import Count, CountedRegions, Counts, count_regions
from anonspark.reading.frames import as_pandas
from anonspark.reading.hierarchies import ARGUMENT, GivenHierarchy, read_given
from anonspark.reading.query_compiler import attribute_of, equated, formula_of
from anonspark.reading.questions import Condition, Question, Token, asking_error, parse_question
from anonspark.reading.typed import with_typed_columns
from anonspark.release.manifest import Manifest, read_manifest

if TYPE_CHECKING:
    import pandas
    import polars

_LOGGER = logging.getLogger("anonspark")

OpenEngine = Callable[[], AbstractContextManager[Engine]]
"""Opens the engine for one question."""

_A_QUESTION = "a text, as 'age between 30 and 40'. An empty one counts all records"


@dataclass(frozen=True)
class Answer:
    """The answer to a question.

    Parameters
    ----------
    question : str
    count : Count
        Of all records.
    by : str or None
        The column of the groups.
    groups : dict or None
        A count for each value, None for missing. None where no groups were asked for.
    left_out : int or None
        Records that were left out of the release and are not counted. None where their number is
        not published.
    warnings : tuple of str
        Values that no record can have.
    """

    question: str
    count: Count
    by: str | None
    groups: Counts | None
    left_out: int | None
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON has it."""
        document: dict[str, object] = {"question": self.question, **self.count.as_dict()}
        if self.groups is not None:
            document["by"] = self.by
            document["groups"] = [
                {"value": value, **count.as_dict()} for value, count in self.groups.items()
            ]
        return {**document, "left_out": self.left_out, "warnings": list(self.warnings)}


class PublishedRelease:
    """A release as its recipient has it: its files, and nothing else.

    Parameters
    ----------
    path : str
        The directory.
    manifest : dict
        What the release is and how it was made.
    hierarchies : mapping of str to GivenHierarchy
        Those from files that are at hand, by attribute.
    open_engine : callable
    """

    def __init__(
        self,
        path: str,
        manifest: Manifest,
        hierarchies: Mapping[str, GivenHierarchy],
        open_engine: OpenEngine,
    ) -> None:
        self.path = path
        self._manifest = manifest
        self._open_engine = open_engine
        self._leaves = {name: hierarchy.leaves() for name, hierarchy in hierarchies.items()}
        self._unproven = dict(hierarchies)

    @property
    def manifest(self) -> dict[str, object]:
        """Return the manifest of the release, ``manifest.json``."""
        return self._manifest.document

    @property
    def columns(self) -> list[str]:
        """Names of the published columns, in order."""
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
        """Return what :meth:`count` counts, and what else there is to know of it."""
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
        warnings = tuple(_unheard_of(parsed.condition, counted))
        for warning in warnings:
            _LOGGER.warning("%s", warning)
        judged = counted.judge(formula)
        groups = None if group is None else counted.groups(formula, judged, group)
        return Answer(
            question,
            judged.count(counted.records),
            None if group is None else group.name,
            groups,
            self._left_out(),
            warnings,
        )

    def _names(self) -> list[str]:
        """Return the names that a question may have, without a look at the data."""
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
        return engine.published(f"{self.path}/data", self._manifest.data_format)

    def _attributes(self, data: Table) -> dict[str, ReadAttribute]:
        """Return the attributes, those of hierarchies at hand with labels that these can make.

        All of these are looked at, asked for or not: a question that contradicts itself by a wrong
        one would be answered without a look at the records.
        """
        attributes = read_attributes(self._manifest, data, self._leaves)
        for name, file in list(self._unproven.items()):
            # A name that no engine takes for an expression.
            column = data.select({"label": attributes[name].columns[0]})
            labels = column.aggregate(["label"]).collect().column("label").to_pylist()
            file.require_labels({label for label in labels if label is not None}, file.labels())
            del self._unproven[name]
        return attributes

    def _reading(self, engine: Engine) -> AbstractContextManager[None]:
        return engine.reading((f"{self.path}/data",), key="")


def _unheard_of(condition: Condition, counted: CountedRegions) -> Iterator[str]:
    """Warn of literals that no record of a release can have."""
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
    """Open a release from its files.

    Parameters
    ----------
    path : str
        Its directory.
    hierarchies : mapping of str to str or None
        Files of hierarchies, by attribute.
    open_engine : callable
    key : str
        What names such a file in messages. See :func:`anonspark.reading.hierarchies.read_given`.

    Raises
    ------
    ConfigurationError
        If a hierarchy cannot be read, or is of no quasi-identifier with one.
    DataError
        If there is no complete release.
    GuaranteeError
        If its manifest is damaged.
    """
    directory = path.rstrip("/")
    with open_engine() as engine:
        manifest = read_manifest(engine.files, directory)
        from_files = read_given(engine.files, hierarchies or {}, key)
    return PublishedRelease(directory, manifest, from_files, open_engine)


def _require_text(argument: str, value: object, expected: str) -> None:
    """Check what a program gives.

    Raises
    ------
    ConfigurationError
    """
    if not isinstance(value, str):
        what = "None" if value is None else f"a value of type {type(value).__name__}"
        raise ConfigurationError(f"{argument}: found {what}. Expected {expected}")


def _require(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise EnvironmentProblem(
            f"{name} is not installed. Install it (pip install {name}), or use to_arrow()"
        ) from error


def _require_groups(group: ReadAttribute, token: Token) -> None:
    """Check that an attribute has values to count by.

    Raises
    ------
    ConfigurationError
    """
    if group.published is not None and (not group.is_category or group.is_opaque):
        raise asking_error(
            token.position,
            f"by {group.name!r}, which is generalized to ranges or groups",
            "a category, or a column that is published as it is. Ask for one range at a time",
        )
