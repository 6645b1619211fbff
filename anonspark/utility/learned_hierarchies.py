"""``anonspark arrange``: orders and hierarchies of categories that go with a target."""

from __future__ import annotations

import csv
import io
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.config import Configuration
from anonspark.config.variables import configuration_yaml
from anonspark.core.arrangement import TOP, group_label, learned_hierarchy, learned_order
from anonspark.core.arrays import Integers
from anonspark.core.association import entropy
from anonspark.core.hierarchies.files import parse_hierarchy
from anonspark.engine.files import Files, require_ours
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.raw_columns import Reading
from anonspark.engine.tasks import Batches
from anonspark.engine.values.column_plans import PlannedColumn, plan_columns
from anonspark.engine.values.value_texts import coded_values, read_values
from anonspark.engine.values.value_validation import validate
from anonspark.errors import ConfigurationError, DataError, PublishingError
from anonspark.progress import report_step
from anonspark.release.noisy_tables import read_noisy_tables
from anonspark.staged.records import together
from anonspark.utility.learning import LABEL, MOST_CLASSES, PART_BYTES, Target, count_values

MOST_VALUES = 1_000_000
"""Different values of an attribute at most: they are collected."""

_LOGGER = logging.getLogger("anonspark")

Form = Literal["order", "hierarchy"]
Counts = Mapping[str, Mapping[str, int]]
"""Records by value and class."""


_ORDERS = "orders.yaml"
_COUNTS = pa.schema(
    [
        ("place", pa.int32()),
        ("value", pa.string()),
        (LABEL, pa.string()),
        ("records", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Arranged:
    """An attribute, arranged.

    Parameters
    ----------
    name : str
    values : tuple of str
        Values in the learned order.
    rare : int
        Number of values with too few records.
    association : float
        Share of the target's uncertainty that the values remove.
    levels : list of list of list of int
        Levels of a hierarchy from fine to coarse: positions of the values of each group.
    kept : list of float
        Share of that association that each level keeps.
    """

    name: str
    values: tuple[str, ...]
    rare: int
    association: float
    levels: list[list[list[int]]] = field(default_factory=list, repr=False)
    kept: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Arrangement:
    """The learned hierarchies and orders, and their files.

    ``min_records`` is None for noisy tables, whose values need no minimum.
    """

    target: str
    min_records: int | None
    attributes: list[Arranged]
    files: list[str]

    def as_dict(self) -> dict[str, object]:
        """Return the fields as JSON values, without values of the data."""
        attributes = [
            {
                "name": attribute.name,
                "values": len(attribute.values),
                "rare": attribute.rare,
                "association": attribute.association,
                "groups": [len(level) for level in attribute.levels],
                "kept": attribute.kept,
            }
            for attribute in self.attributes
        ]
        return {
            "target": self.target,
            "min_records": self.min_records,
            "attributes": attributes,
            "files": self.files,
        }


def arrange(
    engine: Engine,
    configuration: Configuration,
    target: str,
    out: str,
    *,
    attributes: Sequence[str] = (),
    form: Form = "order",
    min_records: int | None = None,
    selection: str | None = None,
) -> Arrangement:
    """Learn how the values of categories go with a target, and write it for a person to read.

    Parameters
    ----------
    engine : Engine
    configuration : Configuration
        Configuration of the table. It is not changed.
    target : str
        A column of 2 to 100 different values.
    out : str
        A directory: ``orders.yaml`` is written there, or a file for each attribute.
    attributes : sequence of str
        Quasi-identifiers. Without any, all of text that have neither order nor hierarchy.
    form : {"order", "hierarchy"}
    min_records : int or None
        Rarer values are ignored, and smaller groups are joined. None takes ``privacy.k``.
    selection : str or None
        Directory of a selection: its noisy tables are taken, for which ``min_records`` is not used,
        and the table of the configuration is not opened.

    Raises
    ------
    ConfigurationError
        If no attribute can be arranged, or a file exists already.
    DataError
        If columns are absent, the target has too few or too many values, or no value is frequent
        enough.
    PublishingError
        If the files cannot be written.

    Notes
    -----
    One pass over the table, with a shuffle of the different pairs of values and classes of each
    task, which are collected. The tables of a selection are collected.
    """
    if configuration.agreed_coding is not None:
        _LOGGER.warning(
            "coding: nothing in a coding may be computed from data, and this is learned from the "
            "holder's data. Do not put it into the coding"
        )
    least: int | None = configuration.privacy.k if min_records is None else min_records
    if selection is None:
        counts = _counts_of_table(engine, configuration, attributes, target)
    else:
        counts, least = _noisy_counts(engine, configuration, attributes, target, selection), None
    paths = _new_paths(engine.files, out, form, list(counts))
    report_step(f"arranging {len(counts):,} attributes")
    arranged = [_arranged(name, count, form, least) for name, count in counts.items()]
    if form == "order":
        texts = {paths[""]: _as_yaml(arranged, target, least)}
    else:
        texts = {paths[attribute.name]: _as_csv(attribute) for attribute in arranged}
    _write(engine.files, out, texts)
    return Arrangement(target, least, arranged, list(paths.values()))


def _counts_of_table(
    engine: Engine, configuration: Configuration, attributes: Sequence[str], target: str
) -> dict[str, Counts]:
    """Return the records of each value and class, by attribute."""
    report_step("counting values")
    with engine.reading(configuration.input.paths):
        table = engine.open_source(configuration, for_tasks=True)
        plans = _plans(table, configuration, attributes, target)
        markers = tuple(configuration.input.missing_markers)
        counts = _count(table, plans, Target(target, (), markers))
    return {plan.column.name: counts.get(index, {}) for index, plan in enumerate(plans)}


def _noisy_counts(
    engine: Engine,
    configuration: Configuration,
    attributes: Sequence[str],
    target: str,
    selection: str,
) -> dict[str, Counts]:
    """Return the noisy counts of a selection for each declared value and class, by attribute."""
    tables = read_noisy_tables(engine, selection)
    if tables.target != target:
        raise ConfigurationError(
            f"--from: the selection at {selection} is about the target {tables.target!r}. Expected "
            f"{target!r}. Name that target, or another selection"
        )
    texts = [
        name
        for name in configuration.quasi_identifiers
        if name in tables.counts
        and configuration.attributes[name].type in (None, "text")
        # The table of a column of booleans, which have no order.
        and set(tables.counts[name]) != {"false", "true"}
    ]
    wrong = [name for name in attributes if name not in texts]
    if wrong:
        raise ConfigurationError(
            *(
                f"--attribute: {name!r} is no quasi-identifier of text with a noisy table of its "
                f"values. Expected one of {', '.join(map(repr, texts)) or 'none there'}. Correct it"
                for name in wrong
            )
        )
    return {name: tables.counts[name] for name in _chosen(configuration, attributes, texts)}


def _plans(
    table: Table, configuration: Configuration, attributes: Sequence[str], target: str
) -> list[PlannedColumn]:
    """Plan how to read the attributes to arrange, or raise an error if some cannot be arranged."""
    names = configuration.quasi_identifiers
    absent = [name for name in names if name not in table.schema.names]
    if absent:
        raise DataError(*(f"attributes.{name}: the input has no such column" for name in absent))
    if target in names:
        raise ConfigurationError(
            f"--target: {target!r} is a quasi-identifier. Expected a column that is published as "
            "it is, or not at all. Choose another"
        )
    bare = {
        name: attribute.model_copy(update={"hierarchy": None, "order": None})
        for name, attribute in configuration.attributes.items()
    }
    plain = configuration.model_copy(update={"attributes": bare})
    by_name = {plan.column.name: plan for plan in plan_columns(table.schema, plain, {})}
    categories = {name: plan for name, plan in by_name.items() if plan.column.kind == "category"}
    wrong = [
        f"--attribute: {name!r} is no quasi-identifier of text. Expected one of "
        f"{', '.join(map(repr, categories)) or 'none there'}. Correct it"
        for name in attributes
        if name not in categories
    ]
    if wrong:
        raise ConfigurationError(*wrong)
    return [categories[name] for name in _chosen(configuration, attributes, list(categories))]


def _chosen(
    configuration: Configuration, attributes: Sequence[str], texts: Sequence[str]
) -> list[str]:
    """Return the named attributes, or else all that have neither order nor hierarchy."""
    declared = {
        name
        for name, attribute in configuration.attributes.items()
        if attribute.hierarchy is not None or attribute.order is not None
    }
    chosen = list(dict.fromkeys(attributes)) or [name for name in texts if name not in declared]
    if not chosen:
        raise ConfigurationError(
            "attributes: found no quasi-identifier of text without order and hierarchy. Name those "
            "to be arranged: --attribute"
        )
    return chosen


def _count(table: Table, plans: Sequence[PlannedColumn], target: Target) -> Mapping[int, Counts]:
    """Count the records of each value and class, by the index of the attribute."""
    names = [plan.column.name for plan in plans]
    task = _CountPairs(tuple(plans), target.reading(table))
    # Not table.read: an engine may then hand over every row.
    columns = list(dict.fromkeys([*names, target.name]))
    counted = (
        table.select(columns)
        .map_batches(task, _COUNTS)
        .aggregate(["place", "value", LABEL], sums=["records"])
    )
    most = MOST_VALUES * len(plans)
    rows = counted.collect(most + 1)
    if len(rows) > most:
        raise DataError(
            f"attributes: found more than {most:,} different values with their classes. Expected "
            "fewer. Name attributes with fewer values: --attribute"
        )
    counts: dict[int, dict[str, dict[str, int]]] = {}
    for index, value, label, records in zip(
        *(rows[name].to_pylist() for name in _COUNTS.names), strict=True
    ):
        counts.setdefault(index, {}).setdefault(value, {})[label] = records
    classes = {
        label for count in counts.values() for of_value in count.values() for label in of_value
    }
    if len(classes) < 2 or len(classes) > MOST_CLASSES:
        number = len(classes) if len(classes) <= MOST_CLASSES else f"more than {MOST_CLASSES}"
        raise DataError(
            f"--target: column {target.name!r} has {number} different values in addition to those "
            f"of the attributes. Expected 2 to {MOST_CLASSES}. Choose another column"
        )
    return counts


@dataclass(frozen=True)
class _CountPairs:
    """Counts a task's records of each value and class."""

    plans: tuple[PlannedColumn, ...]
    label: Reading

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        """Count pairs of a value and a class, if both are present, for each attribute."""
        for records in together(batches, PART_BYTES):
            classes = coded_values(records.column(self.label.column))
            names, _ = read_values(self.label, classes.dictionary)
            labels = _codes(classes, pa.array(np.arange(len(names))), names.is_valid())
            for index, plan in enumerate(self.plans):
                values = coded_values(records.column(plan.column.name))
                validated = validate(plan, values.dictionary, self.label.markers)
                texts = validated.values.cast(pa.string())
                present = pc.and_(texts.is_valid(), pa.array(~validated.missing))
                encoded = texts.dictionary_encode()
                codes = _codes(values, encoded.indices, present)
                counts_both = (codes >= 0) & (labels >= 0)
                counted = pa.DictionaryArray.from_arrays(codes[counts_both], encoded.dictionary)
                distinct, of_class, counts = count_values(counted, labels[counts_both], len(names))
                columns = [
                    pa.array(np.full(len(distinct), index, np.int32)),
                    distinct,
                    names.take(pa.array(of_class)),
                    pa.array(counts),
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=_COUNTS)


def _codes(coded: pa.DictionaryArray, numbers: pa.Array, present: pa.Array) -> Integers:
    """Return the number of each record's value, -1 for a missing one."""
    of_values = pc.fill_null(pc.if_else(present, numbers, None), -1).to_numpy(zero_copy_only=False)
    codes = pc.fill_null(coded.indices, len(of_values)).to_numpy(zero_copy_only=False)
    result: Integers = np.append(of_values, -1).astype(np.int64)[codes]
    return result


def _arranged(name: str, counts: Counts, form: Form, least: int | None) -> Arranged:
    """Learn the order of the values of an attribute and, for a hierarchy, its groups."""
    if form == "hierarchy":
        counts = _without_blanks(counts)
    values = sorted(counts)
    classes = sorted({label for count in counts.values() for label in count})
    matrix = np.array(
        [[counts[value].get(label, 0) for label in classes] for value in values], np.int64
    ).reshape(len(values), len(classes))
    # Classes without any noisy count left show nothing.
    occurs = matrix.sum(axis=0) > 0
    matrix, classes = matrix[:, occurs], list(np.array(classes, object)[occurs])
    # A value with a noisy count of 0 has no shares.
    enough = 1 if least is None else least
    rare = int((matrix.sum(axis=1) < enough).sum())
    if not values:
        raise DataError(
            f"attributes.{name}: found no record with both a value and a target. Expected some. "
            "Choose another attribute or target"
        )
    if len(values) > MOST_VALUES:
        raise DataError(
            f"attributes.{name}: found more than {MOST_VALUES:,} different values. Expected fewer. "
            "Leave it out: --attribute"
        )
    if least is None and not matrix.any():
        raise DataError(
            f"attributes.{name}: all noisy counts are 0 or less, so that they show nothing. "
            f"Expected some above 0. Leave it out: --attribute, or select with a larger epsilon"
        )
    if len(values) > 1 and rare == len(values):
        raise DataError(
            f"attributes.{name}: all of {len(values):,} values have fewer than {enough:,} records, "
            "so that none may be used. Expected some that are more frequent. Lower --min-records"
        )
    order = (
        learned_order(values, matrix, classes, enough) if len(classes) > 1 else range(len(values))
    )
    matrix = matrix[list(order)]
    arranged = Arranged(name, tuple(values[index] for index in order), rare, _association(matrix))
    if form == "order":
        return arranged
    hierarchy = learned_hierarchy(matrix, least or 0)
    bits = _bits(matrix)
    shares = [1 - _lost(matrix, level) / bits if bits > 0 else 1.0 for level in hierarchy.levels]
    return replace(arranged, levels=hierarchy.levels, kept=shares)


def _without_blanks(counts: Counts) -> dict[str, dict[str, int]]:
    """Strip blanks around values, as hierarchy files do, and add up their counts.

    >>> _without_blanks({" a": {"yes": 2}, "a": {"yes": 1}})
    {'a': {'yes': 3}}
    """
    stripped: dict[str, dict[str, int]] = {}
    for value, count in counts.items():
        joined = stripped.setdefault(value.strip(" "), {})
        for label, records in count.items():
            joined[label] = joined.get(label, 0) + records
    return stripped


def _bits(counts: Integers) -> float:
    """Return the bits of information about the target in rows: records times removed entropy."""
    totals = counts.sum(axis=0)
    rows = [int(count.sum()) * entropy(count) for count in counts if count.sum()]
    return int(totals.sum()) * entropy(totals) - math.fsum(rows)


def _association(counts: Integers) -> float:
    """Return the share of the target's uncertainty that the rows remove, 0 if it is constant."""
    uncertainty = int(counts.sum()) * entropy(counts.sum(axis=0))
    return _bits(counts) / uncertainty if uncertainty > 0 else 0.0


def _lost(counts: Integers, groups: Sequence[Sequence[int]]) -> float:
    """Return the bits of information that are lost if the rows of each group become one."""
    joined = np.array([counts[list(group)].sum(axis=0) for group in groups])
    return _bits(counts) - _bits(joined)


def _new_paths(files: Files, out: str, form: Form, names: Sequence[str]) -> dict[str, str]:
    """Return the path of each attribute's file, or of the one file of orders under the key "".

    Raises ConfigurationError if a file exists, or a name cannot be that of a file.
    """
    directory = out.rstrip("/")
    odd = [name for name in names if set(name) & set("/\\:")]
    if form == "order":
        paths = {"": f"{directory}/{_ORDERS}"}
    elif odd:
        raise ConfigurationError(
            f"--attribute: found {', '.join(map(repr, odd))}, which can be no name of a file. "
            "Expected others. Rename the columns, or arrange an order"
        )
    else:
        paths = {name: f"{directory}/{name}.csv" for name in names}
    for path in filter(files.exists, paths.values()):
        raise ConfigurationError(
            f"--out: found {path} already. Expected no such file. Remove it or choose another "
            "directory"
        )
    return paths


def _write(files: Files, out: str, texts: Mapping[str, str]) -> None:
    """Write a text to each path in the directory ``out``, which is made if it is absent."""
    require_ours(files, "--out", out)
    try:
        if not files.exists(out):
            files.make_private_directory(out)
        for path, text in texts.items():
            files.write_atomically(path, text)
    except OSError as error:
        raise PublishingError(
            f"--out: nothing can be written to {out}. Expected a directory that can be made. Check "
            "the path, permissions and free space"
        ) from error


def _as_yaml(arranged: Sequence[Arranged], target: str, least: int | None) -> str:
    comment = (
        "made of the noisy tables of a selection: as private as those"
        if least is None
        else f"values with fewer than {least} records where they show nothing"
    )
    head = (
        f"# Orders by {target}, {comment}.\n"
        "# Read and correct them, then put them into a configuration. The order shows\n"
        "# which values go with which class. Test models on records that were not in this table.\n"
        "# Do not put it into a coding of several holders, because it reveals this one's data.\n"
    )
    orders = {"attributes": {column.name: {"order": list(column.values)} for column in arranged}}
    return head + configuration_yaml(orders)


def _as_csv(arranged: Arranged) -> str:
    """Write a hierarchy file: a line for each value, its groups from fine to coarse."""
    columns = [
        {
            index: group_label([arranged.values[member] for member in group])
            for group in level
            for index in group
        }
        for level in arranged.levels
    ]
    text = io.StringIO()
    writer = csv.writer(text, delimiter=";", lineterminator="\n")
    for index, value in enumerate(arranged.values):
        writer.writerow([value, *(column[index] for column in columns), TOP])
    written = text.getvalue()
    try:
        readable = set(parse_hierarchy(written, arranged.name).leaves) == set(arranged.values)
    except ConfigurationError:
        # That error is about a file that a person wrote.
        readable = False
    if not readable:
        raise DataError(
            f"attributes.{arranged.name}: a value is {TOP}, has a line's end in it, or looks like "
            "the label of a group, so that the hierarchy file could not be read. Expected others. "
            "Arrange an order, or leave it out: --attribute"
        )
    return written
