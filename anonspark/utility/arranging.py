"""``anonspark arrange``: orders and hierarchies of categories that go with a target."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import yaml

from anonspark.config import Configuration
from anonspark.core.arrangement import TOP, group_label, learned_hierarchy, learned_order
from anonspark.core.association import entropy
from anonspark.engine.columns.judging import judge
from anonspark.engine.columns.planning import PlannedColumn, plan_columns
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.tasks import Batches
from anonspark.errors import ConfigurationError, DataError
from anonspark.utility.learning import LABEL, Target
from anonspark.utility.records import read_values

MOST_VALUES = 1_000_000
"""Different values of an attribute at most: they are collected."""

MOST_CLASSES = 100
"""Different values of the target at most."""

Form = Literal["order", "hierarchy"]
Integers = npt.NDArray[np.int64]

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
        In the learned order.
    rare : int
        How many of them are too rare to tell anything.
    association : float
        Share of the target's uncertainty that the values remove.
    levels : list of list of list of int
        Of a hierarchy: places of the values of each group of each level, from fine to coarse.
    kept : list of float
        Of each level, the share of that association that is kept.
    """

    name: str
    values: tuple[str, ...]
    rare: int
    association: float
    levels: list[list[list[int]]] = field(default_factory=list, repr=False)
    kept: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Arrangement:
    """What was learned, and where it was written.

    Parameters
    ----------
    target : str
    min_records : int
    attributes : list of Arranged
    files : list of str
    """

    target: str
    min_records: int
    attributes: list[Arranged]
    files: list[str]

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON has it, without values."""
        told = [
            {
                "name": one.name,
                "values": len(one.values),
                "rare": one.rare,
                "association": one.association,
                "groups": [len(level) for level in one.levels],
                "kept": one.kept,
            }
            for one in self.attributes
        ]
        return {
            "target": self.target,
            "min_records": self.min_records,
            "attributes": told,
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
) -> Arrangement:
    """Learn how the values of categories go with a target, and write it down for a person.

    Parameters
    ----------
    engine : Engine
    configuration : Configuration
        Of the table; it is not changed.
    target : str
        A column of 2 to 100 different values.
    out : str
        A directory: ``orders.yaml`` is written there, or a file for each attribute.
    attributes : sequence of str
        Quasi-identifiers; without any, all of text that have neither order nor hierarchy.
    form : {"order", "hierarchy"}
    min_records : int or None
        Rarer values tell nothing, and smaller groups are joined; None takes ``privacy.k``.

    Raises
    ------
    ConfigurationError
        If no attribute can be arranged, or something is at the paths already.
    DataError
        If columns are missing, the target is none, or no value is frequent enough.
    PublishingError
        If the files cannot be written.

    Notes
    -----
    One pass over the table, with a shuffle of the different pairs of values and classes of each
    task, which are collected.
    """
    least = configuration.privacy.k if min_records is None else min_records
    with engine.reading(configuration.input.paths):
        table = engine.open_source(configuration)
        plans = _plans(table, configuration, attributes, target)
        counts = _count(
            table, plans, Target(target, (), tuple(configuration.input.missing_markers))
        )
    paths = _paths(out, form, [plan.column.name for plan in plans])
    for path in paths.values():
        if engine.files.exists(path):
            raise ConfigurationError(
                f"--out: found {path} already; expected no such file; remove it or choose another "
                "directory"
            )
    found = [
        _arranged(plan.column.name, counts.get(place, {}), form, least)
        for place, plan in enumerate(plans)
    ]
    engine.files.make_private_directory(out)
    if form == "order":
        engine.files.write_atomically(paths[""], _as_yaml(found, target, least))
    else:
        for one in found:
            engine.files.write_atomically(paths[one.name], _as_csv(one))
    return Arrangement(target, least, found, list(paths.values()))


def _plans(
    table: Table, configuration: Configuration, attributes: Sequence[str], target: str
) -> list[PlannedColumn]:
    """Return how the attributes to arrange are read."""
    names = configuration.quasi_identifiers
    absent = [name for name in names if name not in table.schema.names]
    if absent:
        raise DataError(*(f"attributes.{name}: the input has no such column" for name in absent))
    if target in names:
        raise ConfigurationError(
            f"--target: {target!r} is a quasi-identifier; expected a column that is published as "
            "it is, or not at all; choose another"
        )
    bare = {
        name: one.model_copy(update={"hierarchy": None, "order": None})
        for name, one in configuration.attributes.items()
    }
    plain = configuration.model_copy(update={"attributes": bare})
    by_name = {one.column.name: one for one in plan_columns(table.schema, plain, {})}
    categories = {name: one for name, one in by_name.items() if one.column.kind == "category"}
    wrong = [
        f"--attribute: {name!r} is no quasi-identifier of text; expected one of "
        f"{', '.join(map(repr, categories)) or 'none there'}; correct it"
        for name in attributes
        if name not in categories
    ]
    if wrong:
        raise ConfigurationError(*wrong)
    declared = {
        name
        for name, one in configuration.attributes.items()
        if one.hierarchy is not None or one.order is not None
    }
    wanted = list(attributes) or [name for name in categories if name not in declared]
    if not wanted:
        raise ConfigurationError(
            "attributes: found no quasi-identifier of text without order and hierarchy; name those "
            "to be arranged: --attribute"
        )
    return [categories[name] for name in wanted]


def _count(
    table: Table, plans: Sequence[PlannedColumn], target: Target
) -> Mapping[int, Mapping[str, Mapping[str, int]]]:
    """Return the records of each value and class, by the place of the attribute."""
    names = [plan.column.name for plan in plans]
    values = read_values(table, [target.reading(table)], names)
    task = _CountPairs(tuple(plans), target.missing_markers)
    counted = values.map_batches(task, _COUNTS).add_up(["place", "value", LABEL], sums=["records"])
    most = MOST_VALUES * len(plans)
    found = counted.gather(most + 1)
    if len(found) > most:
        raise DataError(
            f"attributes: found more than {most:,} different values with their classes; expected "
            "fewer; name attributes with fewer values: --attribute"
        )
    counts: dict[int, dict[str, dict[str, int]]] = {}
    for place, value, label, records in zip(
        *(found[name].to_pylist() for name in _COUNTS.names), strict=True
    ):
        counts.setdefault(place, {}).setdefault(value, {})[label] = records
    classes = {label for own in counts.values() for of_value in own.values() for label in of_value}
    if len(classes) < 2 or len(classes) > MOST_CLASSES:
        number = len(classes) if len(classes) <= MOST_CLASSES else f"more than {MOST_CLASSES}"
        raise DataError(
            f"--target: column {target.name!r} has {number} different values beside those of the "
            f"attributes; expected 2 to {MOST_CLASSES}; choose another column"
        )
    return counts


@dataclass(frozen=True)
class _CountPairs:
    """Counts a task's records of each value and class."""

    plans: tuple[PlannedColumn, ...]
    markers: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            labels = batch.column(LABEL)
            for place, plan in enumerate(self.plans):
                judged = judge(plan, batch.column(plan.column.name), self.markers)
                values = judged.values.cast(pa.string())
                values = pa.compute.if_else(pa.array(judged.missing), None, values)
                pairs = pa.table({"value": values, LABEL: labels}).drop_null()
                found = pairs.group_by(["value", LABEL]).aggregate([([], "count_all")])
                places = pa.array(np.full(len(found), place, np.int32))
                columns = [
                    places,
                    found["value"].combine_chunks(),
                    found[LABEL].combine_chunks(),
                    found["count_all"].combine_chunks(),
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=_COUNTS)


def _arranged(
    name: str, counts: Mapping[str, Mapping[str, int]], form: Form, least: int
) -> Arranged:
    if form == "hierarchy":
        counts = _without_blanks(counts)
    values = sorted(counts)
    classes = sorted({label for own in counts.values() for label in own})
    matrix = np.array(
        [[counts[value].get(label, 0) for label in classes] for value in values], np.int64
    ).reshape(len(values), len(classes))
    rare = int((matrix.sum(axis=1) < least).sum())
    if not values:
        raise DataError(
            f"attributes.{name}: found no record with both a value and a target; expected some; "
            "choose another attribute or target"
        )
    if len(values) > MOST_VALUES:
        raise DataError(
            f"attributes.{name}: found more than {MOST_VALUES:,} different values; expected fewer; "
            "leave it out: --attribute"
        )
    if len(values) > 1 and rare == len(values):
        raise DataError(
            f"attributes.{name}: all of {len(values):,} values have fewer than {least:,} records, "
            "so that none may tell anything; expected some that are more frequent; lower "
            "--min-records"
        )
    order = (
        learned_order(values, matrix, classes, least) if len(classes) > 1 else range(len(values))
    )
    matrix = matrix[list(order)]
    found = Arranged(name, tuple(values[one] for one in order), rare, _association(matrix))
    if form == "order":
        return found
    hierarchy = learned_hierarchy(matrix, least)
    told = _bits(matrix)
    kept = [1 - _lost(matrix, level) / told if told > 0 else 1.0 for level in hierarchy.levels]
    return Arranged(found.name, found.values, found.rare, found.association, hierarchy.levels, kept)


def _without_blanks(counts: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Return counts of values without blanks around them, as hierarchy files have them."""
    found: dict[str, dict[str, int]] = {}
    for value, own in counts.items():
        together = found.setdefault(value.strip(" "), {})
        for label, records in own.items():
            together[label] = together.get(label, 0) + records
    return found


def _bits(counts: Integers) -> float:
    """Return the bits of the target that rows tell: records times the entropy they remove."""
    whole = counts.sum(axis=0)
    rows = [int(own.sum()) * entropy(own) for own in counts if own.sum()]
    return int(whole.sum()) * entropy(whole) - math.fsum(rows)


def _association(counts: Integers) -> float:
    uncertainty = int(counts.sum()) * entropy(counts.sum(axis=0))
    return _bits(counts) / uncertainty if uncertainty > 0 else 0.0


def _lost(counts: Integers, groups: Sequence[Sequence[int]]) -> float:
    together = np.array([counts[list(group)].sum(axis=0) for group in groups])
    return _bits(counts) - _bits(together)


def _paths(out: str, form: Form, names: Sequence[str]) -> dict[str, str]:
    """Return what is written where; an order has the name of nothing."""
    directory = out.rstrip("/")
    if form == "order":
        return {"": f"{directory}/{_ORDERS}"}
    odd = [name for name in names if set(name) & set("/\\:")]
    if odd:
        raise ConfigurationError(
            f"--attribute: found {', '.join(map(repr, odd))}, which can be no name of a file; "
            "expected others; rename the columns, or arrange an order"
        )
    return {name: f"{directory}/{name}.csv" for name in names}


def _as_yaml(found: Sequence[Arranged], target: str, least: int) -> str:
    head = (
        f"# Orders by {target}, values with fewer than {least} records where they tell nothing.\n"
        "# Read and correct them, then put them into a configuration. The order tells which\n"
        "# values go with which class; test models on records that were not in this table.\n"
    )
    orders = {"attributes": {one.name: {"order": list(one.values)} for one in found}}
    return head + yaml.safe_dump(orders, sort_keys=False, allow_unicode=True)


def _as_csv(one: Arranged) -> str:
    """Return a hierarchy file: a line for each value, its groups from fine to coarse."""
    columns = [
        {
            place: group_label([one.values[own] for own in group])
            for group in level
            for place in group
        }
        for level in one.levels
    ]
    text = io.StringIO()
    writer = csv.writer(text, delimiter=";", lineterminator="\n")
    for place, value in enumerate(one.values):
        writer.writerow([value, *(column[place] for column in columns), TOP])
    return text.getvalue()
