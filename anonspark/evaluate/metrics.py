"""Figures of a release, summed up from its classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from anonspark.columns import CLASS_ID, CLASS_SUMMARY
from anonspark.prepare.encoding import QuasiIdentifier

__all__ = [
    "RoundResult",
    "Totals",
    "class_table",
    "exact",
    "penalty_of_class",
    "round_rows",
    "sum_up",
]


def exact(column: Column) -> Column:
    """Return a number with 15 decimal places.

    Sums of decimals do not depend on the order of the tasks; sums of floating-point numbers would.
    """
    return column.cast("decimal(38,15)")


def penalty_of_class(weights: Sequence[float]) -> Column:
    """Return a class's records times the weighted sum of its certainty penalties."""
    size = sf.col(f"{CLASS_SUMMARY}.size")
    return size * _weighted_sum(weights)


def _weighted_sum(weights: Sequence[float]) -> Column:
    penalties = [
        sf.col(f"{CLASS_SUMMARY}.penalty_{index}") * sf.lit(weight)
        for index, weight in enumerate(weights)
    ]
    return reduce(Column.__add__, penalties)


@dataclass(frozen=True)
class RoundResult:
    """What a round made.

    Parameters
    ----------
    number : int
        1, 2, ...
    rows : int
        Records of its table.
    left_over : int
        Records that went to the next round.
    penalty : Decimal
        ``gcp_total`` of the round's classes.
    penalty_if_last : Decimal
        ``gcp_total`` of the release, had the run ended with this round and its groups whole.
    """

    number: int
    rows: int
    left_over: int
    penalty: Decimal
    penalty_if_last: Decimal


@dataclass(frozen=True)
class Totals:
    """Sums over classes, of one round or of several.

    Parameters
    ----------
    rows : int
        Records in the classes.
    classes : int
        Groups that the model formed.
    discernibility : int
        Sum of squared class sizes.
    smallest, largest : int
        Extremes of the class sizes.
    weights : tuple of Decimal
        Weight of each quasi-identifier.
    penalties : tuple of Decimal
        Sum of size times certainty penalty, for each quasi-identifier, without its weight.
    losses : tuple of Decimal
        Sum of size times ILoss, for each quasi-identifier.
    generalized : tuple of int
        Records whose value was replaced by a wider one, for each quasi-identifier.
    """

    rows: int
    classes: int
    discernibility: int
    smallest: int
    largest: int
    weights: tuple[Decimal, ...]
    penalties: tuple[Decimal, ...]
    losses: tuple[Decimal, ...]
    generalized: tuple[int, ...]

    @property
    def certainty_penalty(self) -> float:
        """``gcp_total``: the weighted sum of size times penalty over classes and attributes."""
        pairs = zip(self.weights, self.penalties, strict=True)
        return float(sum(weight * penalty for weight, penalty in pairs))

    @property
    def global_certainty_penalty(self) -> float:
        """``gcp``: the same per value, in [0, 1]."""
        return self.certainty_penalty / (float(sum(self.weights)) * self.rows)

    @property
    def information_loss(self) -> float:
        """``iloss``: the weighted mean of ILoss per value, in [0, 1]."""
        pairs = zip(self.weights, self.losses, strict=True)
        total = float(sum(weight * loss for weight, loss in pairs))
        return total / (float(sum(self.weights)) * self.rows)

    @property
    def mean_class_size(self) -> float:
        """Records per class."""
        return self.rows / self.classes

    def __add__(self, other: Totals) -> Totals:
        def add(ours: Sequence[Decimal], theirs: Sequence[Decimal]) -> tuple[Decimal, ...]:
            return tuple(a + b for a, b in zip(ours, theirs, strict=True))

        return Totals(
            self.rows + other.rows,
            self.classes + other.classes,
            self.discernibility + other.discernibility,
            min(self.smallest, other.smallest),
            max(self.largest, other.largest),
            self.weights,
            add(self.penalties, other.penalties),
            add(self.losses, other.losses),
            tuple(a + b for a, b in zip(self.generalized, other.generalized, strict=True)),
        )


def sum_up(heads: DataFrame, weights: Sequence[float]) -> list[Totals]:
    """Sum up classes, round by round.

    Parameters
    ----------
    heads : DataFrame
        Records that carry a class's figures, with the round in column ``round``.
    weights : sequence of float
        Weight of each quasi-identifier.

    Returns
    -------
    list of Totals
        In the order of the rounds; rounds without a class are left out.

    Notes
    -----
    One job, one shuffle of one row a task. The result does not depend on the tasks.
    """
    d = len(weights)
    size = sf.col(f"{CLASS_SUMMARY}.size")

    def figure(name: str, index: int) -> Column:
        return sf.col(f"{CLASS_SUMMARY}.{name}_{index}")

    sums = [
        sf.sum(size).alias("rows"),
        sf.count(sf.lit(1)).alias("classes"),
        sf.sum(size.cast("decimal(18,0)") * size.cast("decimal(18,0)")).alias("discernibility"),
        sf.min(size).alias("smallest"),
        sf.max(size).alias("largest"),
    ]
    for index in range(d):
        for name in ("penalty", "loss"):
            sums.append(sf.sum(exact(size * figure(name, index))).alias(f"{name}_{index}"))
        wider = sf.when(figure("penalty", index) > 0, size).otherwise(0)
        sums.append(sf.sum(wider).alias(f"generalized_{index}"))
    rows = heads.groupBy("round").agg(*sums).orderBy("round").collect()
    return [
        Totals(
            row["rows"],
            row["classes"],
            int(row["discernibility"]),
            row["smallest"],
            row["largest"],
            tuple(Decimal(str(weight)) for weight in weights),
            tuple(row[f"penalty_{index}"] for index in range(d)),
            tuple(row[f"loss_{index}"] for index in range(d)),
            tuple(row[f"generalized_{index}"] for index in range(d)),
        )
        for row in rows
    ]


def round_rows(results: Sequence[RoundResult], totals: Sequence[Totals]) -> list[dict[str, object]]:
    """Return the rows of the table ``rounds`` (DESIGN section 7)."""
    rows: list[dict[str, object]] = []
    for place, (result, own) in enumerate(zip(results, totals, strict=True)):
        so_far = reduce(Totals.__add__, totals[: place + 1])
        rows.append(
            {
                "round": result.number,
                "rows": result.rows,
                "normal_rows": result.rows - result.left_over,
                "outlier_rows": result.left_over,
                "classes": own.classes,
                "classes_total": so_far.classes,
                "dm": own.discernibility,
                "dm_total": so_far.discernibility,
                "gcp_total": own.certainty_penalty,
                "gcp_total_cumulative": so_far.certainty_penalty,
                "gcp_total_if_last": float(result.penalty_if_last),
                "mean_class_size": own.mean_class_size,
            }
        )
    return rows


def class_table(
    heads: DataFrame, quasi_identifiers: Sequence[QuasiIdentifier], run_id: str
) -> DataFrame:
    """Return the table ``classes``: one row a class, with its bounds and its penalty.

    Parameters
    ----------
    heads : DataFrame
        Records that carry a class's figures, with the round in column ``round``.
    quasi_identifiers : sequence of QuasiIdentifier
    run_id : str

    Returns
    -------
    DataFrame
        Lazy; no shuffle.
    """
    bounds = [
        sf.col(f"{CLASS_SUMMARY}.{end}_{index}").alias(f"{quasi_identifier.name}_{short}")
        for index, quasi_identifier in enumerate(quasi_identifiers)
        for end, short in (("lowest", "min"), ("highest", "max"))
    ]
    weights = [quasi_identifier.weight for quasi_identifier in quasi_identifiers]
    return heads.select(
        sf.lit(run_id).alias("run_id"),
        sf.format_string("%016x", CLASS_ID).alias("class_id"),
        "round",
        sf.col(f"{CLASS_SUMMARY}.size").alias("size"),
        *bounds,
        _weighted_sum(weights).alias("ncp"),
    )
