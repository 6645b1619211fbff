"""What is to be told of the values of the input, as columns and aggregates of one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from anonspark.config import Configuration
from anonspark.core.columns import quasi_identifier_column
from anonspark.engine.spark.instants import microseconds
from anonspark.engine.spark.reading import ColumnPlan

KEPT = "kept"
"""Whether a row stays under the policy for missing values."""


def judge_rows(
    selected: DataFrame, plans: Sequence[ColumnPlan], configuration: Configuration
) -> tuple[DataFrame, list[ColumnPlan]]:
    """Read every value, and tell what is to be told of it, once for all who ask.

    Parameters
    ----------
    selected : DataFrame
        See :func:`anonspark.engine.spark.reading.select_attributes`.
    plans : sequence of ColumnPlan
    configuration : Configuration

    Returns
    -------
    table : DataFrame
        The same columns, with the quasi-identifiers as they are read, and in :data:`KEPT` whether
        a row stays under the policy for missing values.
    plans : list of ColumnPlan
        The same of this table: their columns name what is there already.
    """
    read: dict[str, Column] = {}
    judged = []
    for index, plan in enumerate(plans):
        name = quasi_identifier_column(index)
        read |= {
            name: plan.value,
            f"missing_{index}": plan.missing,
            f"invalid_{index}": plan.invalid,
            f"infinite_{index}": plan.infinite,
            f"numeric_text_{index}": plan.numeric_text,
        }
        judged.append(
            replace(
                plan,
                value=sf.col(name),
                missing=sf.col(f"missing_{index}"),
                invalid=sf.col(f"invalid_{index}"),
                infinite=sf.col(f"infinite_{index}"),
                numeric_text=sf.col(f"numeric_text_{index}"),
            )
        )
    kept = sf.lit(True)
    if configuration.missing == "drop":
        for plan in plans:
            kept = kept & ~plan.missing
    return selected.withColumns(read | {KEPT: kept}), judged


def inspection_columns(plans: Sequence[ColumnPlan]) -> list[Column]:
    """Return the aggregates that :meth:`anonspark.engine.protocol.Input.inspect` promises.

    Parameters
    ----------
    plans : sequence of ColumnPlan
        Of rows that :func:`judge_rows` has judged.

    Returns
    -------
    list of Column
        For one ``agg`` or one ``Observation``; plain numbers and texts, whatever the types.
    """
    kept = sf.col(KEPT)
    columns = [
        sf.count(sf.lit(1)).alias("rows"),
        sf.count_if(kept).alias("kept"),
    ]
    for index, plan in enumerate(plans):
        value = sf.when(kept, plan.value)
        columns += [
            sf.count_if(plan.missing).alias(f"missing_{index}"),
            sf.count_if(plan.invalid).alias(f"invalid_{index}"),
            sf.count_if(plan.infinite).alias(f"infinite_{index}"),
        ]
        if plan.column.kind == "category":
            columns += [
                sf.count_if(kept & plan.numeric_text).alias(f"numeric_{index}"),
                sf.approx_count_distinct(value).alias(f"distinct_{index}"),
            ]
            continue
        plain = _plain(value, plan)
        extremes = [sf.min(plain), sf.max(plain)]
        if plan.column.kind == "decimal":
            extremes = [extreme.cast("string") for extreme in extremes]
            columns += [sf.max(_places(value)).alias(f"places_{index}")]
        columns += [
            extremes[0].alias(f"lowest_{index}"),
            extremes[1].alias(f"highest_{index}"),
        ]
    return columns


def _places(value: Column) -> Column:
    """Return how many decimal places a decimal needs, however Spark writes its text.

    Without ANSI mode, which the session that runs this query need not have, 0.0000001 is 1E-7.
    """
    text = value.cast("string")
    mantissa, exponent = (sf.split_part(text, sf.lit("E-"), sf.lit(part)) for part in (1, 2))
    digits = sf.regexp_replace(sf.split_part(mantissa, sf.lit("."), sf.lit(2)), "0+$", "")
    more = sf.coalesce(sf.when(exponent != "", exponent).cast("int"), sf.lit(0))
    return sf.when(value == 0, 0).otherwise(sf.length(digits) + more)


def _plain(value: Column, plan: ColumnPlan) -> Column:
    """Return a value as a plain 64-bit number (decimals stay what they are)."""
    match plan.column.kind:
        case "date":
            return sf.unix_date(value).cast("long")
        case "timestamp":
            return microseconds(value, plan.data_type)
        case "boolean":
            return value.cast("int").cast("long")
        case "float":
            return value.cast("double")
        case "integer":
            return value.cast("long")
        case _:
            return value
