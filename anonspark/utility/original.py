"""The original: its columns as axes, and the part of it that models are tested on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from anonspark.core.queries import Domain
from anonspark.engine.spark.names import quoted
from anonspark.errors import DataError
from anonspark.release.regions import Leaves, PublishedAttribute
from anonspark.utility.axes import Axis
from anonspark.utility.values import Scale, scale_of, value_of

# Of the quantiles, between the smallest and the largest value.
_STEPS = 1000

_DRAWN = 100_000
_MOST_TEXTS = 1_000_000
_MOST_FREQUENT = 100

# Of the 64-bit hashes, those below a bound are drawn: as many bits decide.
_BITS = 30


@dataclass(frozen=True)
class _Planned:
    name: str
    scale: Scale
    published: PublishedAttribute | None
    value: Column


def describe_original(
    original: DataFrame,
    quasi_identifiers: Sequence[PublishedAttribute],
    others: Sequence[str],
    hierarchies: Mapping[str, Leaves],
    missing_markers: Sequence[str],
) -> tuple[list[Axis], list[Axis], int]:
    """Look at the original's columns.

    Parameters
    ----------
    original : DataFrame
    quasi_identifiers : sequence of PublishedAttribute
    others : sequence of str
        Columns that are published as they are.
    hierarchies : mapping of str to (mapping of str to collection of str)
        Of attributes generalized by the hierarchy of a file.
    missing_markers : sequence of str
        Texts that mean missing.

    Returns
    -------
    quasi_identifiers : list of Axis
        Sorted by name.
    others : list of Axis
        Sorted by name. Those whose type has no order (arrays) and texts with more than 1,000,000
        different values are left out.
    rows : int
        Records of the original.

    Raises
    ------
    DataError
        If it lacks columns, holds no records, or a quasi-identifier has a type whose values cannot
        be read as the release's, or more than 1,000,000 different texts.

    Notes
    -----
    Two jobs, and one for each column of texts, whose different values are collected. Of each
    column of numbers 1,001 quantiles are: the extremes, and order statistics of about 100,000
    records, drawn by a hash of their content, or of all records where there are fewer.
    """
    planned, problems = [], []
    for attribute in sorted(quasi_identifiers, key=lambda one: one.name):
        plan = _plan(original, attribute.name, attribute, missing_markers)
        if isinstance(plan, _Planned):
            planned.append(plan)
        else:
            problems.append(plan)
    if problems:
        raise DataError(*problems)
    d = len(planned)
    for name in sorted(others):
        plan = _plan(original, name, None, missing_markers)
        if isinstance(plan, _Planned):
            planned.append(plan)
        elif name not in original.columns:
            problems.append(plan)
    if problems:
        raise DataError(*problems)
    table = original.select(
        *(plan.value.alias(f"value_{place}") for place, plan in enumerate(planned))
    )
    rows, axes = _axes(table, planned, hierarchies)
    too_many = [axis.name for axis in axes[:d] if len(axis.texts) > _MOST_TEXTS]
    if too_many:
        raise DataError(
            f"--original: more than {_MOST_TEXTS:,} different texts in the columns "
            f"{', '.join(map(repr, too_many))}"
        )
    return axes[:d], [axis for axis in axes[d:] if len(axis.texts) <= _MOST_TEXTS], rows


def readable_values(
    table: DataFrame, axes: Sequence[Axis], missing_markers: Sequence[str], what: str
) -> list[Column]:
    """Return raw values of a table: columns ``value_<i>``, one an axis.

    Parameters
    ----------
    table : DataFrame
        The original, another table like it, or a release's columns that are published as they are.
    axes : sequence of Axis
    missing_markers : sequence of str
    what : str
        What the table is, for messages.

    Raises
    ------
    DataError
        If it lacks columns, or their types have other values than the original's.
    """
    columns, problems = [], []
    found = {field.name: field.dataType for field in table.schema}
    for place, axis in enumerate(axes):
        if axis.name not in found:
            problems.append(_lacking(what, axis.name, table))
            continue
        value = value_of(axis.name, found[axis.name], axis.scale, axis.published, missing_markers)
        if value is None:
            problems.append(_unreadable(what, axis.name, axis.scale))
        else:
            columns.append(value.alias(f"value_{place}"))
    if problems:
        raise DataError(*problems)
    return columns


def record_hash(columns: Iterable[Column]) -> Column:
    """Return a hash of the values of a record, from 0 to 2**30 - 1."""
    return sf.pmod(sf.xxhash64(*columns), sf.lit(1 << _BITS))


def share_of_hashes(share: float) -> int:
    """Return the bound below which that share of the hashes lies."""
    return math.ceil(share * (1 << _BITS))


def _plan(
    original: DataFrame,
    name: str,
    published: PublishedAttribute | None,
    missing_markers: Sequence[str],
) -> _Planned | str:
    found = {field.name: field.dataType for field in original.schema}
    if name not in found:
        return _lacking("--original", name, original)
    scale = scale_of(found[name], published)
    value = scale and value_of(name, found[name], scale, published, missing_markers)
    if scale is None or value is None:
        return _unreadable("--original", name, scale)
    return _Planned(name, scale, published, value)


def _lacking(what: str, name: str, table: DataFrame) -> str:
    return (
        f"{what}: lacks the column {name!r}, which the release publishes; found "
        f"{', '.join(map(repr, table.columns)) or 'no columns'}"
    )


def _unreadable(what: str, name: str, scale: Scale | None) -> str:
    return (
        f"{what}: the values of column {name!r} cannot be read as a {scale or 'category'}, which "
        "they were when the release was made; give the table with the types that it had"
    )


def _axes(
    table: DataFrame, planned: Sequence[_Planned], hierarchies: Mapping[str, Leaves]
) -> tuple[int, list[Axis]]:
    numbers = [place for place, plan in enumerate(planned) if plan.scale != "text"]
    figures = [sf.count(sf.lit(1)).alias("rows")]
    for place in range(len(planned)):
        figures.append(sf.count(f"value_{place}").alias(f"present_{place}"))
    for place in numbers:
        value = sf.col(f"value_{place}")
        figures += [
            sf.bool_and(value == sf.rint(value)).alias(f"whole_{place}"),
            sf.min(value).alias(f"smallest_{place}"),
            sf.max(value).alias(f"largest_{place}"),
        ]
    row = table.agg(*figures).collect()[0]
    rows = int(row["rows"])
    if not rows:
        raise DataError("--original: the table holds no records")
    ends = {place: (row[f"smallest_{place}"], row[f"largest_{place}"]) for place in numbers}
    domains = _number_domains(table, ends, rows)
    axes = []
    for place, plan in enumerate(planned):
        texts: list[str] = []
        frequent = np.empty(0)
        if plan.scale == "text":
            texts, counts = _texts(table, f"value_{place}", plan.published)
            every = np.arange(len(texts), dtype=np.float64)
            domains[place] = Domain(every, counts / max(1, counts.sum()), evenly=True)
            # Of equally frequent ones the first.
            frequent = np.sort(np.argsort(-counts, kind="stable")[:_MOST_FREQUENT]).astype(float)
        axes.append(
            Axis(
                name=plan.name,
                scale=plan.scale,
                published=plan.published,
                leaves=hierarchies.get(plan.name) if plan.published is not None else None,
                whole=plan.scale == "text" or row[f"whole_{place}"] is not False,
                texts=tuple(texts),
                domain=domains[place],
                frequent=frequent,
                missing=rows - row[f"present_{place}"],
            )
        )
    return rows, axes


def _number_domains(
    table: DataFrame, ends: Mapping[int, tuple[float | None, float | None]], rows: int
) -> dict[int, Domain]:
    """Return the quantiles of some columns, without collecting more than them.

    Their smallest and largest values, which may not be among the records drawn, are given.
    """
    if not ends:
        return {}
    drawn = table
    if rows > _DRAWN:
        everything = [sf.col(quoted(name)) for name in table.columns]
        drawn = table.where(record_hash(everything) < share_of_hashes(_DRAWN / rows))
    in_order = drawn.agg(
        *(
            sf.array_sort(sf.collect_list(f"value_{place}")).alias(f"sorted_{place}")
            for place in ends
        )
    )
    picked = [_pick(f"sorted_{place}").alias(f"quantiles_{place}") for place in ends]
    row = in_order.select(*picked).collect()[0]
    domains = {}
    for place, (smallest, largest) in ends.items():
        quantiles = np.array(row[f"quantiles_{place}"] or (), np.float64)
        if smallest is not None:
            quantiles = np.concatenate([[smallest], quantiles[1:-1], [largest]])
        values, counts = np.unique(quantiles, return_counts=True)
        domains[place] = Domain(values, counts / max(1, len(quantiles)), evenly=False)
    return domains


def _pick(column: str) -> Column:
    """Return the values at even steps through a sorted array, null if that is empty."""
    last = sf.size(column) - 1
    steps = sf.sequence(sf.lit(0), sf.lit(_STEPS))
    picked = sf.transform(
        steps, lambda step: sf.element_at(column, (1 + sf.round(step * last / _STEPS)).cast("int"))
    )
    return sf.when(sf.size(column) > 0, picked)


def _texts(
    table: DataFrame, column: str, published: PublishedAttribute | None
) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Collect the different texts of a column, in order, and how often each occurs."""
    value = sf.col(column)
    keys = [value]
    if published is not None and published.rule == "prefix":
        # The order of code_key.
        keys = [sf.length(value), value]
    counted = (
        table.where(value.isNotNull())
        .groupBy(column)
        .agg(sf.count(sf.lit(1)).alias("records"))
        .limit(_MOST_TEXTS + 1)
        .orderBy(*keys)
    )
    found = counted.collect()
    return [row[0] for row in found], np.array([row[1] for row in found], np.int64)
