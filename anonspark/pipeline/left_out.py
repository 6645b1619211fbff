"""What a release tells of the records that it leaves out: how often each sensitive value occurs.

Distances are measured against the whole input. Where records are left out, a release no longer
shows what their sensitive values were, and so not what it was measured against.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from anonspark.core.criteria import Criteria
from anonspark.engine.files import PublishedFile
from anonspark.engine.spark.arrow import spark_schema
from anonspark.engine.spark.plain_values import plain_values
from anonspark.engine.spark.published_files import write_table
from anonspark.engine.spark.table import frame_of
from anonspark.layers.publish.staging import Staging
from anonspark.pipeline.basis import Basis
from anonspark.verification.left_out import LEFT_OUT


def write_left_out(basis: Basis, criteria: Criteria, staging: Staging) -> list[PublishedFile]:
    """Write how often each sensitive value of a distance occurs among the records left out.

    Parameters
    ----------
    basis : Basis
        Tells whether any are left out, and whether their values may be told.
    criteria : Criteria
        Of the whole input.
    staging : Staging
        Of the release.

    Returns
    -------
    list of PublishedFile
        None where a release needs no such table.

    Notes
    -----
    One job with one shuffle of counts for each sensitive attribute, and two small ones that read
    what was written.
    """
    residual = basis.rounds.residual
    named = {one.attribute for one in criteria.criteria if one.is_distance}
    if residual is None or not named or not basis.left_out or not basis.values_told:
        return []
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
    return write_table(table, "parquet", staging.release, LEFT_OUT, staging.written)
