"""What can be wrong with the values, counted in one pass, and the ranges from the same pass."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from anonspark.config import Configuration
from anonspark.core.columns import quasi_identifier_column
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.spark.instants import microseconds
from anonspark.errors import DataError
from anonspark.layers.prepare.hierarchies import match_hierarchy
from anonspark.layers.prepare.reading import ColumnPlan

__all__ = [
    "KEPT",
    "describe_quasi_identifier",
    "inspection_columns",
    "judge_rows",
    "require_enough_rows",
    "require_sound_values",
]

KEPT = "kept"
"""Whether a row stays under the policy for missing values."""

_LOGGER = logging.getLogger("anonspark")

_MOST_DIGITS = 18
_MOST_CATEGORIES = 1_000_000


def judge_rows(
    selected: DataFrame, plans: Sequence[ColumnPlan], configuration: Configuration
) -> tuple[DataFrame, list[ColumnPlan]]:
    """Read every value, and tell what is to be told of it, once for all who ask.

    Parameters
    ----------
    selected : DataFrame
        See :func:`anonspark.layers.prepare.reading.select_attributes`.
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
    """Return the aggregates that tell everything :func:`require_sound_values` asks.

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
        if plan.kind == "category":
            columns += [
                sf.count_if(kept & plan.numeric_text).alias(f"numeric_{index}"),
                sf.approx_count_distinct(value).alias(f"distinct_{index}"),
            ]
            continue
        plain = _plain(value, plan)
        extremes = [sf.min(plain), sf.max(plain)]
        if plan.kind == "decimal":
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
    match plan.kind:
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


def require_sound_values(
    found: Mapping[str, Any], plans: Sequence[ColumnPlan], configuration: Configuration
) -> None:
    """Check the counts of a pass over the input.

    Parameters
    ----------
    found : mapping
        Results of :func:`inspection_columns`.
    plans : sequence of ColumnPlan
    configuration : Configuration

    Raises
    ------
    DataError
        With all problems at once: names and counts, never a value.
    """
    rows, kept, k = found["rows"], found["kept"], configuration.privacy.k
    problems = []
    if rows == 0:
        raise DataError(f"input.path: the table is empty; expected at least k = {k} rows")
    for index, plan in enumerate(plans):
        where = f"attributes.{plan.name}"
        if configuration.missing == "error" and found[f"missing_{index}"]:
            problems.append(
                f"{where}: {found[f'missing_{index}']:,} of {rows:,} values are missing; complete "
                "them, or set missing to drop or category"
            )
        if found[f"invalid_{index}"]:
            problems.append(
                f"{where}: {found[f'invalid_{index}']:,} of {rows:,} values are not of the "
                f"declared type {plan.declared}; correct them, list what means missing in "
                "input.missing_markers, or change the type"
            )
        if found[f"infinite_{index}"]:
            problems.append(
                f"{where}: {found[f'infinite_{index}']:,} of {rows:,} values are infinite; replace "
                "them by numbers or by missing values"
            )
        if plan.kind == "category":
            numeric = found[f"numeric_{index}"]
            present = kept - (found[f"missing_{index}"] if configuration.missing != "drop" else 0)
            if plan.undeclared_text and 0 < present == numeric:
                _LOGGER.warning(
                    "%s: a text column with nothing but numbers; its values are ordered as text. "
                    "Set its type to number, or to text to confirm",
                    where,
                )
            if plan.undeclared_text and present / 2 <= numeric < present:
                problems.append(
                    f"{where}: a text column in which {numeric:,} of {present:,} values are "
                    "numbers; for a number set its type to number and correct the others or list "
                    "them in input.missing_markers, for a code set its type to text"
                )
            if found[f"distinct_{index}"] > _MOST_CATEGORIES and plan.attribute.hierarchy:
                problems.append(
                    f"{where}: more than {_MOST_CATEGORIES:,} different values, too many for a "
                    "hierarchy; is it an identifier? Make it coarser, or remove the hierarchy"
                )
            elif found[f"distinct_{index}"] > _MOST_CATEGORIES:
                problems.append(
                    f"{where}: a text quasi-identifier with more than {_MOST_CATEGORIES:,} "
                    "different values; is it an identifier? Declare its type (number, date), or "
                    "make it coarser"
                )
    if problems:
        raise DataError(*problems)
    require_enough_rows(rows, kept, k)


def require_enough_rows(rows: int, kept: int, k: int) -> None:
    """Check that the rows that stay could be one class.

    Raises
    ------
    DataError
        If they are fewer than k.
    """
    if kept < k:
        dropped = f", {rows - kept:,} more were dropped for missing values" if kept < rows else ""
        raise DataError(
            f"privacy.k: {k} needs at least {k} rows, the input has {kept:,}{dropped}; "
            "nothing can be published"
        )


def describe_quasi_identifier(
    index: int,
    plan: ColumnPlan,
    arrow_type: pa.DataType,
    found: Mapping[str, Any],
    configuration: Configuration,
    categories: Sequence[str] | None,
) -> QuasiIdentifier:
    """Return a quasi-identifier with its global range.

    Parameters
    ----------
    index : int
        Its place in configuration order.
    plan : ColumnPlan
    arrow_type : pyarrow.DataType
        Type of its staged column.
    found : mapping
        Results of :func:`inspection_columns`.
    configuration : Configuration
    categories : sequence of str or None
        Its different values, in any order (kind ``category`` only).

    Raises
    ------
    DataError
        If decimals need more digits than 64-bit integers hold, or values lack from the declared
        order or from the hierarchy.
    """
    has_missing = configuration.missing == "category" and found[f"missing_{index}"] > 0
    if plan.kind == "category":
        described = _describe_categories(plan, arrow_type, sorted(categories or ()))
    else:
        described = _describe_numbers(index, plan, arrow_type, found)
        if has_missing and described.highest == np.iinfo(np.int64).max:
            raise DataError(
                f"attributes.{plan.name}: holds the largest 64-bit integer, which leaves no code "
                "for missing values; drop them or cast the column to double"
            )
    return replace(described, has_missing=has_missing)


def _describe_categories(
    plan: ColumnPlan, arrow_type: pa.DataType, present: Sequence[str]
) -> QuasiIdentifier:
    """Return a quasi-identifier of texts: the order says which of them are near each other."""
    order: Sequence[str] | None = plan.attribute.order
    hierarchy = match_hierarchy(plan, present)
    if hierarchy is not None:
        order = hierarchy.leaves
        codes_of = {leaf: code for code, leaf in enumerate(order)}
        codes = sorted(codes_of[value] for value in present)
    elif order is not None:
        unknown = set(present) - set(order)
        if unknown:
            raise DataError(
                f"attributes.{plan.name}.order: lacks {len(unknown)} of the column's "
                f"{len(present)} values; list all of them, or name those that mean missing in "
                "input.missing_markers"
            )
        codes = sorted(order.index(value) for value in present)
    else:
        order, codes = present, list(range(len(present)))
    lowest, highest = (codes[0], codes[-1]) if codes else (0, -1)
    return QuasiIdentifier(
        plan.name,
        plan.kind,
        arrow_type,
        lowest,
        highest,
        categories=tuple(order),
        weight=plan.attribute.weight,
        hierarchy=hierarchy,
    )


def _describe_numbers(
    index: int, plan: ColumnPlan, arrow_type: pa.DataType, found: Mapping[str, Any]
) -> QuasiIdentifier:
    """Return a quasi-identifier whose values have an order of their own."""
    scale = arrow_type.scale if plan.kind == "decimal" else 0
    low, high = found[f"lowest_{index}"], found[f"highest_{index}"]
    if low is None:
        lowest, highest = 0, -1
    elif plan.kind == "float":
        reader = QuasiIdentifier(plan.name, "float", pa.float64(), 0, 0)
        codes = reader.encode(pa.array([low, high], pa.float64()))
        lowest, highest = (int(code) for code in codes)
    elif plan.kind == "decimal":
        # The places that the values use, which may be fewer than the column's type offers.
        scale = found[f"places_{index}"]
        lowest, highest = (int(Decimal(value).scaleb(scale)) for value in (low, high))
        if max(abs(lowest), abs(highest)) >= 10**_MOST_DIGITS:
            raise DataError(
                f"attributes.{plan.name}: its decimals need more than {_MOST_DIGITS} digits; cast "
                "the column to double, or round it to fewer decimal places"
            )
    else:
        lowest, highest = int(low), int(high)
    return QuasiIdentifier(
        plan.name,
        plan.kind,
        arrow_type,
        lowest,
        highest,
        scale=scale,
        weight=plan.attribute.weight,
    )
