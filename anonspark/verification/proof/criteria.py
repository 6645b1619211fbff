"""Measuring the criteria beyond k in published files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Figures, Flags, Integers
from anonspark.core.columns import published_column
from anonspark.core.criterion import Criterion
from anonspark.engine.protocol import OnBatches, Table
from anonspark.engine.tasks import Batches
from anonspark.engine.values.batches import conform
from anonspark.engine.values.grouping import find_groups
from anonspark.verification.proof.measures import (
    SensitiveValues,
    Uncertainty,
    ValueCounts,
    measure_of,
)

_TOLERANCE = 1e-9

_HOLDER = "holder"

_CLASSES_AT_ONCE = 1 << 16

MEASURED = pa.schema(
    [
        ("criterion", pa.int32()),
        ("smallest", pa.float64()),
        ("largest", pa.float64()),
        ("violating", pa.int64()),
        ("records", pa.int64()),
    ]
)


@dataclass(frozen=True)
class MeasuredCriterion:
    """The figure of a release for a criterion.

    Parameters
    ----------
    criterion : Criterion
    measured : float
        The figure of the worst class: its different values, the exponential of its entropy, its
        c (which has to be smaller than the criterion's), its largest share, or its distance.
    violating_classes, violating_records : int
        Classes that violate the criterion, and their records.
    """

    criterion: Criterion
    measured: float
    violating_classes: int
    violating_records: int

    def as_dict(self) -> dict[str, str | float | None]:
        """Return plain values. A figure without bounds is None."""
        return {
            "attribute": self.criterion.attribute,
            "criterion": self.criterion.kind,
            "required": self.criterion.bound,
            "c": self.criterion.told_c,
            "measured": finite(self.measured),
            "violating_classes": self.violating_classes,
            "violating_records": self.violating_records,
        }


def finite(figure: float | None) -> float | None:
    """Return a figure, None where it is infinite: JSON has no number for it."""
    return None if figure is None or math.isinf(figure) else figure


Asked = tuple[Criterion, SensitiveValues]
"""A criterion, and the values that it is measured with."""


def asked_of(criteria: Iterable[Criterion], sensitive: Iterable[SensitiveValues]) -> list[Asked]:
    """Return each criterion with the values of its attribute."""
    values = {one.name: one for one in sensitive}
    return [(one, values[one.attribute]) for one in criteria]


@dataclass(frozen=True)
class MeasureClasses:
    """Measures the classes of one partition in a Python worker.

    Parameters
    ----------
    asked : tuple of (Criterion, SensitiveValues)
    read : callable
        Returns the table of the classes that a batch lists, in the places of these values.
    uncertainty : Uncertainty or None
        Of values as they are published.
    """

    asked: tuple[Asked, ...]
    read: Callable[[pa.RecordBatch, SensitiveValues], ValueCounts]
    uncertainty: Uncertainty | None = None

    def __call__(self, batches: Batches) -> Batches:
        """Yield a row a criterion of each batch, see :func:`worst_classes`."""
        for batch in batches:
            if not batch.num_rows:
                continue
            views = {id(values): values for _, values in self.asked}
            tables = {key: self.read(batch, values) for key, values in views.items()}
            figures = []
            for criterion, values in self.asked:
                table = tables[id(values)]
                figures.append(measure_classes(criterion, table, values, self.uncertainty))
            yield worst_classes([one for one, _ in self.asked], figures, table.records)

    def beside(self, described: SensitiveValues) -> MeasureClasses:
        """Return the same for classes of a holder, who has other shares of published values."""
        return replace(self, asked=tuple((criterion, described) for criterion, _ in self.asked))


def worst_classes(
    criteria: Sequence[Criterion], measured: Sequence[tuple[Figures, Flags]], records: Integers
) -> pa.RecordBatch:
    """Return of each criterion the worst of some classes, and those that violate it.

    Parameters
    ----------
    criteria : sequence of Criterion
    measured : sequence of (float64 ndarray, bool ndarray) of shape (classes,)
        Of each criterion, see :func:`measure_classes`.
    records : int64 ndarray of shape (classes,)
    """
    worst = [
        float(figures.min() if one.type.worst_is_smallest else figures.max())
        for one, (figures, _) in zip(criteria, measured, strict=True)
    ]
    return pa.RecordBatch.from_pydict(
        {
            "criterion": range(len(worst)),
            "smallest": worst,
            "largest": worst,
            "violating": [int((~holds).sum()) for _, holds in measured],
            "records": [int(records[~holds].sum()) for _, holds in measured],
        },
        MEASURED,
    )


def collect_worst(measured: Table, criteria: Sequence[Criterion]) -> list[MeasuredCriterion]:
    """Return what the worst of all classes have. One job.

    Parameters
    ----------
    measured : Table
        Rows of :func:`worst_classes`.
    criteria : sequence of Criterion
    """
    found = measured.aggregate(
        ["criterion"], sums=["violating", "records"], least=["smallest"], most=["largest"]
    ).collect()
    return [
        MeasuredCriterion(
            one,
            row["smallest" if one.type.worst_is_smallest else "largest"],
            row["violating"],
            row["records"],
        )
        for one, row in zip(criteria, found.sort_by("criterion").to_pylist(), strict=True)
    ]


@dataclass(frozen=True)
class Holders:
    """The holders of a union, whose column says of each record who held it.

    Parameters
    ----------
    column : str
    values : mapping of (str or None) to SensitiveValues
        Of one attribute, the values that each holder has.
    """

    column: str
    values: Mapping[str | None, SensitiveValues]


@dataclass(frozen=True)
class _MeasureByHolder:
    """Measures each class beside the distribution of its own holder."""

    names: tuple[str | None, ...]
    measures: tuple[MeasureClasses, ...]

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            places = pc.index_in(batch.column(_HOLDER), value_set=pa.array(self.names, pa.string()))
            if places.null_count:
                raise ValueError("a holder appeared while the release was read")
            for place, measure in enumerate(self.measures):
                yield from measure(iter([batch.filter(pc.equal(places, place))]))


def read_values(batch: pa.RecordBatch, attribute: SensitiveValues) -> ValueCounts:
    """Return the classes that a batch of :func:`values_of_classes` lists."""
    values, counts = (batch.column(name).flatten() for name in ("value", "count"))
    parents = batch.column("value").value_parent_indices().to_numpy()
    owners = np.repeat(parents, values.value_lengths().to_numpy())
    codes, counts = attribute.encode(values.flatten()), counts.flatten().to_numpy()
    # Of several batches, or written in several ways, a value is there several times.
    order = np.lexsort((codes, owners))
    owners, codes = owners[order], codes[order]
    first = np.ones(len(codes), bool)
    first[1:] = (owners[1:] != owners[:-1]) | (codes[1:] != codes[:-1])
    starts = np.flatnonzero(first)
    return ValueCounts(owners[starts], codes[starts], np.add.reduceat(counts[order], starts))


def measure_classes(
    criterion: Criterion,
    table: ValueCounts,
    attribute: SensitiveValues,
    uncertainty: Uncertainty | None,
) -> tuple[Figures, Flags]:
    """Return each class's figure, and whether it satisfies the criterion.

    Parameters
    ----------
    criterion : Criterion
    table : ValueCounts
    attribute : SensitiveValues
    uncertainty : Uncertainty or None
        A class then satisfies what the release does not show it to violate.
    """
    figures = measure_of(criterion)(table, attribute, criterion, uncertainty)
    # A distance may differ by so much from what it would be with the whole input.
    is_distance = criterion.type.key == "t_closeness"
    shifted = uncertainty.share if uncertainty is not None and is_distance else 0.0
    return figures, satisfies(criterion, figures, shifted)


def satisfies(criterion: Criterion, figures: Figures, shifted: float = 0.0) -> Flags:
    """Return which figures satisfy a criterion, those of distances shifted by so much at most."""
    # A bound that is met exactly may be missed by the rounding of sums.
    slack = _TOLERANCE * (1 + abs(criterion.bound)) + shifted
    match criterion.type.bound:
        case "at least":
            return figures >= criterion.limit - slack
        case "below":
            return figures < criterion.limit
        case "at most":
            return figures <= criterion.limit + slack


def values_of_classes(
    data: Table, quasi_identifiers: Sequence[str], attribute: str, holder: str | None = None
) -> Table:
    """Return the values of a sensitive attribute in each class, and how often each occurs.

    Parameters
    ----------
    data : Table
        Published records.
    quasi_identifiers : sequence of str
        Published columns that form the classes.
    attribute : str
        Published column of the sensitive attribute.
    holder : str or None
        One of the columns that form the classes, which is kept.

    Returns
    -------
    Table
        A row a class: the lists ``value`` and ``count``, which hold a list of each batch that has
        records of the class, and ``holder`` where that is kept. Lazy. One shuffle of a row a class
        and batch.
    """
    by = {published_column(index): name for index, name in enumerate(quasi_identifiers)}
    records = data.select({**by, "value": attribute})
    own = pa.list_(records.schema.field("value").type)
    labels = [records.schema.field(name) for name in by]
    schema = pa.schema([*labels, ("value", own), ("count", pa.list_(pa.int64()))])
    listed = records.map_batches(_ListValues(tuple(by), schema), schema)
    chosen = {"value": "value", "count": "count"}
    if holder is not None:
        chosen[_HOLDER] = published_column(list(quasi_identifiers).index(holder))
    classes = listed.aggregate(list(by), lists=["value", "count"]).select(chosen)
    return classes.map_batches(_divide, classes.schema)


def _divide(batches: Batches) -> Batches:
    """Yield some classes at a time, whose values take much more than they do while measured."""
    for batch in batches:
        for start in range(0, batch.num_rows, _CLASSES_AT_ONCE):
            yield batch.slice(start, _CLASSES_AT_ONCE)


@dataclass(frozen=True)
class _ListValues:
    """Lists the values of each class of a batch, and how often each occurs."""

    by: tuple[str, ...]
    schema: pa.Schema
    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            if not batch.num_rows:
                continue
            groups = find_groups([pa.chunked_array([batch.column(name)]) for name in self.by])
            value = batch.column("value")
            encoded = value if pa.types.is_dictionary(value.type) else value.dictionary_encode()
            entries = pa.concat_arrays([encoded.dictionary, pa.nulls(1, encoded.dictionary.type)])
            codes = encoded.indices.cast(pa.int64()).fill_null(len(entries) - 1).to_numpy()
            pairs, counts = np.unique(groups.numbers * len(entries) + codes, return_counts=True)
            owners, codes = np.divmod(pairs, len(entries))
            ends = pa.array(np.searchsorted(owners, np.arange(len(groups.first) + 1)), pa.int32())
            listed = (entries.take(pa.array(codes)), pa.array(counts))
            first = pa.array(groups.first)
            columns = [batch.column(name).take(first) for name in self.by]
            columns += [pa.ListArray.from_arrays(ends, one) for one in listed]
            found = pa.RecordBatch.from_arrays(columns, self.schema.names)
            yield conform(found, self.schema, dictionaries=True)


def measure_criteria(
    data: Table,
    quasi_identifiers: Sequence[str],
    asked: Sequence[Asked],
    uncertainty: Mapping[str, Uncertainty] | None = None,
    holders: Holders | None = None,
) -> list[MeasuredCriterion]:
    """Measure what a release has of criteria beyond k.

    Parameters
    ----------
    data : Table
        Published records, read from their files.
    quasi_identifiers : sequence of str
        Published columns of quasi-identifiers. They form the classes.
    asked : sequence of (Criterion, SensitiveValues)
        With the values that the whole input has.
    uncertainty : mapping of str to Uncertainty or None
        Of the attributes whose distribution in the whole input is not known: a distance then holds
        where the release does not show the opposite.
    holders : Holders or None
        Those of a union, of one attribute: each class is then measured beside the distribution of
        its holder.

    Returns
    -------
    list of MeasuredCriterion
        In this order.

    Notes
    -----
    One job for each sensitive attribute, see :func:`values_of_classes`. One row a criterion and
    task is collected. Every class is measured. Nothing but the files is trusted.
    """
    found: dict[int, MeasuredCriterion] = {}
    for name in dict.fromkeys(values.name for _, values in asked):
        own = {place: pair for place, pair in enumerate(asked) if pair[1].name == name}
        of_all = MeasureClasses(tuple(own.values()), read_values, (uncertainty or {}).get(name))
        measure: OnBatches = of_all
        if holders is not None:
            each = {holder: of_all.beside(one) for holder, one in holders.values.items()}
            measure = _MeasureByHolder(tuple(each), tuple(each.values()))
        column = None if holders is None else holders.column
        classes = values_of_classes(data, quasi_identifiers, name, column)
        measured = classes.map_batches(measure, MEASURED)
        found |= zip(own, collect_worst(measured, [one for one, _ in own.values()]), strict=True)
    return [found[place] for place in range(len(asked))]
