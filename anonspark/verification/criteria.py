"""Measuring the criteria beyond k in published files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Figures, Integers
from anonspark.core.columns import published_column
from anonspark.core.criterion import Criterion
from anonspark.engine.protocol import OnBatches, Table
from anonspark.engine.tasks import Batches
from anonspark.verification import measures
from anonspark.verification.measures import Uncertainty, ValueCounts
from anonspark.verification.sensitive_values import SensitiveValues

_TOLERANCE = 1e-9

_HOLDER = "holder"

_MEASURED = pa.schema(
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
    """What a release has of a criterion.

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


@dataclass(frozen=True)
class _MeasureClasses:
    """Measures the classes of one partition in a Python worker."""

    criteria: tuple[Criterion, ...]
    attribute: SensitiveValues
    uncertainty: Uncertainty | None

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            if not batch.num_rows:
                continue
            table = joined(*encoded_values(batch, self.attribute))
            worst, violating, records = [], [], []
            for criterion in self.criteria:
                figures, holds = measure_classes(criterion, table, self.attribute, self.uncertainty)
                worst.append(worst_of(criterion, figures))
                violating.append(int((~holds).sum()))
                records.append(int(table.sizes[~holds].sum()))
            yield pa.RecordBatch.from_pydict(
                {
                    "criterion": range(len(self.criteria)),
                    "smallest": worst,
                    "largest": worst,
                    "violating": violating,
                    "records": records,
                },
                _MEASURED,
            )


@dataclass(frozen=True)
class Holders:
    """The holders of a union, whose column says of each record who held it.

    Parameters
    ----------
    column : str
    names : tuple of str or None
        What stands there.
    values : mapping of str to tuple of SensitiveValues
        Of every attribute that a criterion is about, the values that each holder has.
    """

    column: str
    names: tuple[str | None, ...]
    values: Mapping[str, tuple[SensitiveValues, ...]]


@dataclass(frozen=True)
class _MeasureByHolder:
    """Measures each class beside the distribution of its own holder."""

    names: tuple[str | None, ...]
    measures: tuple[_MeasureClasses, ...]

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            places = pc.index_in(batch.column(_HOLDER), value_set=pa.array(self.names, pa.string()))
            if places.null_count:
                raise ValueError("a holder appeared while the release was read")
            for place, measure in enumerate(self.measures):
                yield from measure(iter([batch.filter(pc.equal(places, place))]))


def encoded_values(
    batch: pa.RecordBatch, attribute: SensitiveValues
) -> tuple[Integers, Integers, Integers]:
    """Return class, value and count of each pair that a batch of classes lists.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Of :func:`values_of_classes`.
    attribute : SensitiveValues

    Returns
    -------
    tuple of three int64 ndarrays of shape (pairs,)
        By class; the values of a class are in no order, and one that was written in several ways is
        there several times.
    """
    values, counts = batch.column("value"), batch.column("count")
    owners = np.repeat(np.arange(batch.num_rows), values.value_lengths().to_numpy())
    return owners, attribute.encode(values.flatten()), counts.flatten().to_numpy()


def joined(owners: Integers, codes: Integers, counts: Integers) -> ValueCounts:
    """Return a table in which each value of a class is once; parameters as they are encoded."""
    order = np.lexsort((codes, owners))
    owners, codes, counts = owners[order], codes[order], counts[order]
    first = np.ones(len(codes), bool)
    first[1:] = (owners[1:] != owners[:-1]) | (codes[1:] != codes[:-1])
    starts = np.flatnonzero(first)
    return ValueCounts(owners[starts], codes[starts], np.add.reduceat(counts, starts))


def measure_classes(
    criterion: Criterion,
    table: ValueCounts,
    attribute: SensitiveValues,
    uncertainty: Uncertainty | None,
) -> tuple[Figures, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return each class's figure, and whether it satisfies the criterion.

    Parameters
    ----------
    criterion : Criterion
    table : ValueCounts
    attribute : SensitiveValues
    uncertainty : Uncertainty or None
        A class then satisfies what the release does not show it to violate.
    """
    measure = measures.measure_of(criterion)
    figures = measure.figures(table, attribute, criterion, uncertainty)
    shifted = uncertainty.share if uncertainty is not None and measure.is_shifted else 0.0
    return figures, satisfies(criterion, figures, shifted)


def satisfies(
    criterion: Criterion, figures: Figures, shifted: float = 0.0
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
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


def worst_of(criterion: Criterion, figures: Figures) -> float:
    """Return the figure of the worst class."""
    return float(figures.min() if criterion.type.worst_is_smallest else figures.max())


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
        A row a class: the lists ``value`` and ``count``, and ``holder`` where that is kept. Lazy;
        one shuffle of counts, two where an engine cannot spare the second.
    """
    by = {published_column(index): name for index, name in enumerate(quasi_identifiers)}
    counted = data.select({**by, "value": attribute}).aggregate(
        [*by, "value"], count="count", together=list(by)
    )
    chosen = {"value": "value", "count": "count"}
    if holder is not None:
        chosen[_HOLDER] = published_column(list(quasi_identifiers).index(holder))
    return counted.aggregate(list(by), lists=["value", "count"]).select(chosen)


def measure_criteria(
    data: Table,
    quasi_identifiers: Sequence[str],
    criteria: Sequence[Criterion],
    sensitive: Sequence[SensitiveValues],
    uncertainty: Mapping[str, Uncertainty] | None = None,
    holders: Holders | None = None,
) -> list[MeasuredCriterion]:
    """Measure what a release has of criteria beyond k.

    Parameters
    ----------
    data : Table
        Published records, read from their files.
    quasi_identifiers : sequence of str
        Published columns that tell of quasi-identifiers; they form the classes.
    criteria : sequence of Criterion
    sensitive : sequence of SensitiveValues
        Of every attribute that a criterion is about, the values that the whole input has.
    uncertainty : mapping of str to Uncertainty or None
        Of the attributes whose distribution in the whole input is not known: a distance then holds
        where the release does not show the opposite.
    holders : Holders or None
        Those of a union: each class is then measured beside the distribution of its holder.

    Returns
    -------
    list of MeasuredCriterion
        In the order of the criteria.

    Notes
    -----
    One job for each sensitive attribute, see :func:`values_of_classes`; one row a criterion and
    task is collected. Every class is measured; nothing but the files is trusted.
    """
    found: dict[Criterion, MeasuredCriterion] = {}
    for attribute in sensitive:
        own = tuple(one for one in criteria if one.attribute == attribute.name)
        if not own:
            continue
        unknown = (uncertainty or {}).get(attribute.name)
        measure: OnBatches = _MeasureClasses(own, attribute, unknown)
        if holders is not None:
            described = holders.values[attribute.name]
            each = tuple(_MeasureClasses(own, one, unknown) for one in described)
            measure = _MeasureByHolder(holders.names, each)
        column = None if holders is None else holders.column
        classes = values_of_classes(data, quasi_identifiers, attribute.name, column)
        rows = (
            classes.map_batches(measure, _MEASURED)
            .aggregate(
                ["criterion"],
                sums=["violating", "records"],
                least=["smallest"],
                most=["largest"],
            )
            .collect()
        )
        for row in rows.to_pylist():
            criterion = own[row["criterion"]]
            worst = "smallest" if criterion.type.worst_is_smallest else "largest"
            found[criterion] = MeasuredCriterion(
                criterion, row[worst], row["violating"], row["records"]
            )
    return [found[criterion] for criterion in criteria]
