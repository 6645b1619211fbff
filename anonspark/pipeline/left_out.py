"""What a release tells of the records that it leaves out: how often each sensitive value occurs.

Distances are measured against the whole input. Where records are left out, a release no longer
shows what their sensitive values were, and so not what it was measured against.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from anonspark.core.criteria import Criteria
from anonspark.engine.files import PublishedFile
from anonspark.engine.spark.arrow import spark_schema
from anonspark.engine.spark.published_files import write_table
from anonspark.engine.spark.table import frame_of
from anonspark.layers.prepare.sensitive import plain_values
from anonspark.layers.publish.staging import Staging
from anonspark.pipeline.rounds import Residual

__all__ = ["may_be_told", "write_left_out"]


def may_be_told(residual: Residual, criteria: Criteria) -> bool:
    """Return whether the sensitive values of the records left out may be published, counted.

    They may where they are one class of at least k records that satisfies every criterion but
    distances, whose attacker knows the distribution of the whole input anyway (Li et al. 2007).
    """
    others = tuple(one for one in criteria.criteria if not one.is_distance)
    return replace(criteria, criteria=others).satisfied_by(residual.rows, residual.counts)


def write_left_out(
    residual: Residual, criteria: Criteria, staging: Staging, directory: str
) -> list[PublishedFile]:
    """Write how often each sensitive value of a distance occurs among the records left out.

    Parameters
    ----------
    residual : Residual
    criteria : Criteria
    staging : Staging
        Of the release.
    directory : str
        To write Parquet to, relative to the release's.

    Returns
    -------
    list of PublishedFile

    Notes
    -----
    One job with one shuffle of counts for each sensitive attribute, and two small ones that read
    what was written.
    """
    named = {one.attribute for one in criteria.criteria if one.is_distance}
    tables = []
    for attribute in criteria.sensitive:
        if attribute.name not in named:
            continue
        data_type = spark_schema(residual.records.schema)[attribute.column].dataType
        plain, _ = plain_values(sf.col(attribute.column), data_type)
        counts = frame_of(residual.records.rows(attribute.column)).groupBy(
            plain.cast("string").alias("value")
        )
        table = counts.agg(sf.count(sf.lit(1)).alias("records"))
        tables.append(table.select(sf.lit(attribute.name).alias("attribute"), "value", "records"))
    # In one order, so that it tells nothing of the records' own.
    table = reduce(DataFrame.union, tables).coalesce(1).sort("attribute", "value")
    return write_table(table, "parquet", staging.release, directory, staging.written)
