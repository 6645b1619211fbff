"""What a release tells of the records that it leaves out: how often each sensitive value occurs.

t-closeness is measured against the whole input. Where records are left out, a release no longer
shows what their sensitive values were, and so not what it was measured against.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from anonspark.filesystem import FileSystem
from anonspark.prepare.sensitive import plain_values
from anonspark.privacy.criteria import Criteria
from anonspark.rounds import Residual

__all__ = ["LEFT_OUT", "may_be_told", "read_left_out", "write_left_out"]

LEFT_OUT = "left_out"
"""Directory of a release: attribute, value as text (null where missing), records."""


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
        field = residual.records.schema[attribute.column]
        plain, _ = plain_values(sf.col(attribute.column), field.dataType)
        counts = residual.records.groupBy(plain.cast("string").alias("value"))
        table = counts.agg(sf.count(sf.lit(1)).alias("records"))
        tables.append(table.select(sf.lit(attribute.name).alias("attribute"), "value", "records"))
    # In one order, so that it tells nothing of the records' own.
    reduce(DataFrame.union, tables).coalesce(1).sort("attribute", "value").write.parquet(path)


def read_left_out(spark: SparkSession, files: FileSystem, release: str) -> DataFrame | None:
    """Read what :func:`write_left_out` wrote, None where a release has none."""
    path = f"{release}/{LEFT_OUT}"
    return spark.read.parquet(path) if files.exists(path) else None
