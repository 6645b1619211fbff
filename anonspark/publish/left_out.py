"""What a release tells of the records that it leaves out: how often each sensitive value occurs.

t-closeness is measured against the whole input. Where records are left out, a release no longer
shows what their sensitive values were, and so not what it was measured against.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from anonspark.errors import GuaranteeError
from anonspark.filesystem import FileSystem
from anonspark.prepare.sensitive import plain_values
from anonspark.privacy.criteria import Criteria
from anonspark.rounds import Residual
from anonspark.verification.criteria import Uncertainty

__all__ = ["LEFT_OUT", "LeftOut", "may_be_told", "read_left_out", "write_left_out"]

LEFT_OUT = "left_out"
"""Directory of a release: attribute, value as text (null where missing), records."""


@dataclass(frozen=True)
class LeftOut:
    """What is known of the records that a release leaves out.

    Parameters
    ----------
    values : DataFrame or None
        Columns ``attribute``, ``value`` and ``records``.
    uncertainty : mapping of str to Uncertainty
        Of every attribute that they do not tell of: what may be different in the whole input.
    """

    values: DataFrame | None
    uncertainty: Mapping[str, Uncertainty]


def may_be_told(residual: Residual, criteria: Criteria) -> bool:
    """Return whether the sensitive values of the records left out may be published, counted.

    They may where they are one class of at least k records that satisfies every criterion but
    t-closeness, whose attacker knows the distribution of the whole input anyway (Li et al. 2007).
    """
    others = tuple(one for one in criteria.criteria if not one.is_distance)
    return replace(criteria, criteria=others).satisfied_by(residual.rows, residual.counts)


def write_left_out(residual: Residual, criteria: Criteria, path: str) -> None:
    """Write how often each sensitive value of t-closeness occurs among the records left out.

    Parameters
    ----------
    residual : Residual
    criteria : Criteria
    path : str
        Directory to write Parquet to.

    Notes
    -----
    One job with one shuffle of counts for each sensitive attribute.
    """
    named = {one.attribute for one in criteria.criteria if one.is_distance}
    tables = []
    for attribute in criteria.sensitive:
        if attribute.name not in named:
            continue
        data_type = residual.records.schema[attribute.column].dataType
        plain, _ = plain_values(sf.col(attribute.column), data_type)
        counts = residual.records.groupBy(plain.cast("string").alias("value"))
        table = counts.agg(sf.count(sf.lit(1)).alias("records"))
        tables.append(table.select(sf.lit(attribute.name).alias("attribute"), "value", "records"))
    # In one order, so that it tells nothing of the records' own.
    reduce(DataFrame.union, tables).coalesce(1).sort("attribute", "value").write.parquet(path)


def read_left_out(
    spark: SparkSession, files: FileSystem, release: str, manifest: Mapping[str, Any]
) -> LeftOut:
    """Read what a release tells of the records that it leaves out.

    Parameters
    ----------
    spark : SparkSession
    files : FileSystem
    release : str
    manifest : mapping
        Of the release; read are ``published.rows``, ``published.rows_left_out`` and
        ``published.sensitive_values``.

    Raises
    ------
    GuaranteeError
        If it does not tell of as many records as were left out.
    """
    published = manifest["published"]
    rows = int(published.get("rows_left_out", 0))
    path = f"{release}/{LEFT_OUT}"
    values, told = None, frozenset[str]()
    if files.exists(path):
        values = spark.read.parquet(path)
        totals = values.groupBy("attribute").agg(sf.sum("records").alias("records")).collect()
        told = frozenset(row["attribute"] for row in totals)
        if any(row["records"] != rows for row in totals):
            raise GuaranteeError(
                f"{path}: tells of another number of records than the {rows:,} that the manifest "
                "says were left out; restore the release or publish it again"
            )
    # Without their sensitive values, the distribution of the whole input is known but for the
    # share of the records left out, and their own values may be further ones.
    share = rows / max(rows + int(published.get("rows", 0)), 1)
    uncertainty = {
        name: Uncertainty(share, int(number))
        for name, number in published.get("sensitive_values", {}).items()
        if rows and name not in told
    }
    return LeftOut(values, uncertainty)
