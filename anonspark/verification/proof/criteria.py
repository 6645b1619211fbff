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
    """The figure of a release for a criterion, and the classes and records that violate it.

    ``measured`` is the figure of the worst class: its different values, the exponential of its
    entropy, its c (to be smaller than the criterion's), its largest share, or its distance.
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
            "c": self.criterion.recursive_c,
            "measured": finite(self.measured),
            "violating_classes": self.violating_classes,
            "violating_records": self.violating_records,
        }


def finite(figure: float | None) -> float | None:
    """Return a figure, or None if it is infinite: JSON has no number for it.

    >>> finite(0.5), finite(math.inf)
    (0.5, None)
    """
    return None if figure is None or math.isinf(figure) else figure


Asked = tuple[Criterion, SensitiveValues]
"""A criterion, and the values that it is measured with."""


def asked_of(criteria: Iterable[Criterion], sensitive: Iterable[SensitiveValues]) -> list[Asked]:
    """Pair each criterion with the values of its attribute."""
    values = {described.name: described for described in sensitive}
    return [(criterion, values[criterion.attribute]) for criterion in criteria]


@dataclass(frozen=True)
class MeasureClasses:
    """Measures the classes of one partition in a Python worker.

    ``asked`` pairs criteria with values, ``read`` returns the table of the classes that a batch
    lists, with the codes of these values. ``uncertainty`` is that of values as they are published.
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
            yield worst_classes([criterion for criterion, _ in self.asked], figures, table.records)

    def with_values(self, described: SensitiveValues) -> MeasureClasses:
        """Return the same for classes of a holder, who has other shares of published values."""
        return replace(self, asked=tuple((criterion, described) for criterion, _ in self.asked))


def worst_classes(
    criteria: Sequence[Criterion], measured: Sequence[tuple[Figures, Flags]], records: Integers
) -> pa.RecordBatch:
    """Return the figure of the worst class for each criterion, and the number of violations.

    ``measured`` has the arrays of :func:`measure_classes` for each criterion, and ``records`` is
    int64 of shape (classes,).

    >>> criterion = Criterion("pay", "distinct", 2)
    >>> measured = [(np.array([1.0, 3.0]), np.array([False, True]))]
    >>> worst_classes([criterion], measured, np.array([5, 4])).to_pylist()[0]
    {'criterion': 0, 'smallest': 1.0, 'largest': 1.0, 'violating': 1, 'records': 5}
    """
    worst = [
        float(figures.min() if criterion.type.worst_is_smallest else figures.max())
        for criterion, (figures, _) in zip(criteria, measured, strict=True)
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
    """Return the worst of all classes for each criterion, by :func:`worst_classes`. One job."""
    worst = measured.aggregate(
        ["criterion"], sums=["violating", "records"], least=["smallest"], most=["largest"]
    ).collect()
    return [
        MeasuredCriterion(
            criterion,
            row["smallest" if criterion.type.worst_is_smallest else "largest"],
            row["violating"],
            row["records"],
        )
        for criterion, row in zip(criteria, worst.sort_by("criterion").to_pylist(), strict=True)
    ]


@dataclass(frozen=True)
class Holders:
    """The holders of a union: the column of their names, and each one's values of an attribute."""

    column: str
    values: Mapping[str | None, SensitiveValues]


@dataclass(frozen=True)
class _MeasureByHolder:
    """Measures each class against the distribution of its own holder."""

    names: tuple[str | None, ...]
    measures: tuple[MeasureClasses, ...]

    def __call__(self, batches: Batches) -> Batches:
        """Measure the classes of each holder in each batch."""
        for batch in batches:
            names = pa.array(self.names, pa.string())
            indices = pc.index_in(batch.column(_HOLDER), value_set=names)
            if indices.null_count:
                raise ValueError("a holder appeared while the release was read")
            for index, measure in enumerate(self.measures):
                yield from measure(iter([batch.filter(pc.equal(indices, index))]))


def read_values(batch: pa.RecordBatch, attribute: SensitiveValues) -> ValueCounts:
    """Return the classes that a batch of :func:`values_of_classes` lists."""
    values, counts = (batch.column(name).flatten() for name in ("value", "count"))
    parents = batch.column("value").value_parent_indices().to_numpy()
    owners = np.repeat(parents, values.value_lengths().to_numpy())
    codes, counts = attribute.encode(values.flatten()), counts.flatten().to_numpy()
    # A value occurs several times if batches, or spellings, differ.
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

    With an uncertainty a class satisfies what the release does not show it to violate.
    """
    figures = measure_of(criterion)(table, attribute, criterion, uncertainty)
    # With the whole input the distance may differ by at most so much.
    is_distance = criterion.type.key == "t_closeness"
    shift = uncertainty.share if uncertainty is not None and is_distance else 0.0
    return figures, satisfies(criterion, figures, shift)


def satisfies(criterion: Criterion, figures: Figures, shift: float = 0.0) -> Flags:
    """Return which figures satisfy a criterion, if they may be shifted by at most so much.

    >>> satisfies(Criterion("pay", "distinct", 2), np.array([1.0, 2.0])).tolist()
    [False, True]
    """
    # A bound that is met exactly may be missed by the rounding of sums.
    slack = _TOLERANCE * (1 + abs(criterion.bound)) + shift
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
    """List the values of a sensitive attribute in each class, and how often each occurs. Lazy.

    A row a class has the lists ``value`` and ``count``, with a list for each batch that has records
    of the class, and ``holder`` if given, a column that forms classes. One shuffle of these rows.
    """
    by = {published_column(index): name for index, name in enumerate(quasi_identifiers)}
    records = data.select({**by, "value": attribute})
    lists = pa.list_(records.schema.field("value").type)
    labels = [records.schema.field(name) for name in by]
    schema = pa.schema([*labels, ("value", lists), ("count", pa.list_(pa.int64()))])
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
        """Yield a row for each class of a batch, with lists of its values and their counts."""
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
            columns += [pa.ListArray.from_arrays(ends, values) for values in listed]
            rows = pa.RecordBatch.from_arrays(columns, self.schema.names)
            yield conform(rows, self.schema, dictionaries=True)


def measure_criteria(
    data: Table,
    quasi_identifiers: Sequence[str],
    asked: Sequence[Asked],
    uncertainty: Mapping[str, Uncertainty] | None = None,
    holders: Holders | None = None,
) -> list[MeasuredCriterion]:
    """Measure criteria beyond k on all classes, in the order of ``asked``.

    ``asked`` pairs criteria with the values of the whole input. ``uncertainty`` is that of
    attributes whose distribution in the whole input is unknown: a distance then holds unless the
    release proves the opposite. ``holders`` are those of a union, for one attribute: each class is
    then measured against the distribution of its holder.

    One job for each sensitive attribute, see :func:`values_of_classes`. One row a criterion and
    task is collected. Nothing but the files is trusted.
    """
    measured: dict[Criterion, MeasuredCriterion] = {}
    for name in dict.fromkeys(values.name for _, values in asked):
        pairs = tuple(pair for pair in asked if pair[1].name == name)
        of_all = MeasureClasses(pairs, read_values, (uncertainty or {}).get(name))
        measure: OnBatches = of_all
        if holders is not None:
            by_holder = [of_all.with_values(values) for values in holders.values.values()]
            measure = _MeasureByHolder(tuple(holders.values), tuple(by_holder))
        column = None if holders is None else holders.column
        classes = values_of_classes(data, quasi_identifiers, name, column)
        rows = classes.map_batches(measure, MEASURED)
        worst = collect_worst(rows, [criterion for criterion, _ in pairs])
        measured |= {figure.criterion: figure for figure in worst}
    return [measured[criterion] for criterion, _ in asked]
