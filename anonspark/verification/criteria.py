"""Measuring l-diversity, t-closeness and (alpha, k)-anonymity in published files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from anonspark.core.criterion import Criterion
from anonspark.engine.spark.tasks import map_batches
from anonspark.release.columns import published_column
from anonspark.release.published import value_of
from anonspark.verification import measures
from anonspark.verification.measures import Figures, Integers, ValueCounts
from anonspark.verification.sensitive import SensitiveValues

__all__ = [
    "MeasuredCriterion",
    "Uncertainty",
    "joined",
    "measure_classes",
    "measure_criteria",
    "values_of_classes",
]

# A bound that is met exactly may be missed by the rounding of sums.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Uncertainty:
    """What of an attribute's distribution in the whole input a release does not show.

    Parameters
    ----------
    share : float
        Largest share of the records with other values than thought: no distance differs by more.
    values : int
        Different values of the whole input, of which the release may lack some.
    """

    share: float
    values: int


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

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows:
                continue
            lists = batch.column("values")
            pairs = lists.flatten()
            owners = np.repeat(np.arange(batch.num_rows), lists.value_lengths().to_numpy())
            codes = self.attribute.encode(pairs.field("value"))
            order = np.lexsort((codes, owners))
            counts = pairs.field("count").to_numpy()
            table = joined(owners[order], codes[order], counts[order])
            worst, violating, records = [], [], []
            for criterion in self.criteria:
                figures, holds = measure_classes(criterion, table, self.attribute, self.uncertainty)
                largest = criterion.kind not in ("distinct", "entropy")
                worst.append(float(figures.max() if largest else figures.min()))
                violating.append(int((~holds).sum()))
                records.append(int(table.sizes[~holds].sum()))
            yield pa.RecordBatch.from_pydict(
                {
                    "criterion": pa.array(range(len(self.criteria)), pa.int32()),
                    "measured": pa.array(worst, pa.float64()),
                    "violating": pa.array(violating, pa.int64()),
                    "records": pa.array(records, pa.int64()),
                }
            )


def joined(owners: Integers, codes: Integers, counts: Integers) -> ValueCounts:
    """Return a table in which a value that was written in several ways is one."""
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
    """Return each class's figure, and whether it satisfies the criterion."""
    match criterion.kind:
        case "distinct":
            figures = measures.distinct_values(table).astype(np.float64)
            return figures, figures >= criterion.bound
        case "entropy":
            figures = np.exp(measures.entropy(table))
            return figures, figures >= criterion.bound * (1 - _TOLERANCE)
        case "recursive":
            figures = measures.recursive_c(table, int(criterion.bound))
            return figures, figures < criterion.c
        case "alpha":
            figures = measures.largest_share(table)
            return figures, figures <= criterion.bound + _TOLERANCE
        case "equal distance":
            figures = measures.equal_distance(table, attribute.shares)
        case "ordered distance":
            figures = measures.ordered_distance(table, attribute.shares)
            if uncertainty is not None:
                # Among more values the same steps count less.
                known = len(attribute.values)
                figures = figures * (known - 1) / max(uncertainty.values - 1, known - 1, 1)
        case "hierarchical distance":
            figures = measures.hierarchical_distance(
                table, attribute.shares, attribute.parents, attribute.heights
            )
    slack = uncertainty.share if uncertainty is not None else 0.0
    return figures, figures <= criterion.bound + slack + _TOLERANCE


def values_of_classes(
    data: DataFrame, quasi_identifiers: Sequence[str], attribute: str
) -> DataFrame:
    """Return the values of a sensitive attribute in each class, and how often each occurs.

    Parameters
    ----------
    data : DataFrame
        Published records.
    quasi_identifiers : sequence of str
        Published columns that form the classes.
    attribute : str
        Published column of the sensitive attribute.

    Returns
    -------
    DataFrame
        A row a class; ``values`` is an array of structures of ``value`` and ``count``. Lazy; two
        shuffles of counts.
    """
    tuple_columns = [
        value_of(name, data.schema[name].dataType).alias(published_column(index))
        for index, name in enumerate(quasi_identifiers)
    ]
    names = [published_column(index) for index in range(len(quasi_identifiers))]
    value = value_of(attribute, data.schema[attribute].dataType)
    return (
        data.select(*tuple_columns, value.alias("value"))
        .groupBy(*names, "value")
        .agg(sf.count(sf.lit(1)).alias("count"))
        .groupBy(*names)
        .agg(sf.collect_list(sf.struct("value", "count")).alias("values"))
        .select("values")
    )


def measure_criteria(
    data: DataFrame,
    quasi_identifiers: Sequence[str],
    criteria: Sequence[Criterion],
    sensitive: Sequence[SensitiveValues],
    uncertainty: Mapping[str, Uncertainty] | None = None,
) -> list[MeasuredCriterion]:
    """Measure what a release has of criteria beyond k.

    Parameters
    ----------
    data : DataFrame
        Published records, read from their files.
    quasi_identifiers : sequence of str
        Published columns that tell of quasi-identifiers; they form the classes.
    criteria : sequence of Criterion
    sensitive : sequence of SensitiveValues
        Of every attribute that a criterion is about, the values that the whole input has.
    uncertainty : mapping of str to Uncertainty or None
        Of the attributes whose distribution in the whole input is not known: t-closeness then holds
        where the release does not show the opposite.

    Returns
    -------
    list of MeasuredCriterion
        In the order of the criteria.

    Notes
    -----
    One job with two shuffles of class counts for each sensitive attribute; one row a criterion and
    task is collected. Every class is measured; nothing but the files is trusted.
    """
    found: dict[Criterion, MeasuredCriterion] = {}
    for attribute in sensitive:
        own = tuple(one for one in criteria if one.attribute == attribute.name)
        if not own:
            continue
        rows = (
            map_batches(
                values_of_classes(data, quasi_identifiers, attribute.name),
                _MeasureClasses(own, attribute, (uncertainty or {}).get(attribute.name)),
                "criterion int, measured double, violating long, records long",
            )
            .groupBy("criterion")
            .agg(
                sf.min("measured").alias("smallest"),
                sf.max("measured").alias("largest"),
                sf.sum("violating").alias("violating"),
                sf.sum("records").alias("records"),
            )
            .collect()
        )
        for row in rows:
            criterion = own[row["criterion"]]
            worst = "smallest" if criterion.kind in ("distinct", "entropy") else "largest"
            found[criterion] = MeasuredCriterion(
                criterion, row[worst], row["violating"], row["records"]
            )
    return [found[criterion] for criterion in criteria]
