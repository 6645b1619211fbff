"""Values that take part in a query and stand in no plan.

A literal is part of a plan's text, and so of Spark's logs, its user interface and its event log.
The rows of a small table that is broadcast are in none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf


def small_table(
    spark: SparkSession, columns: Mapping[str, Sequence[object]], schema: str
) -> DataFrame:
    """Return a small table for a join, whose rows no plan shows.

    Parameters
    ----------
    spark : SparkSession
    columns : mapping of str to sequence
        The columns by their names.
    schema : str
        Names and types of the columns, as DDL.

    Returns
    -------
    DataFrame
        Marked to be broadcast; no job.
    """
    # Not by way of pandas, which Spark 3.5 warns of.
    rows = list(zip(*columns.values(), strict=True))
    return sf.broadcast(spark.createDataFrame(rows, schema))


def with_hidden_number(table: DataFrame, name: str, value: int) -> DataFrame:
    """Return a table with one more column that holds one number, which no plan shows.

    Parameters
    ----------
    table : DataFrame
    name : str
        Of the column.
    value : int
        Of 64 bits, signed. A column of 32 bits holds it if it can, as with a literal: Spark's
        hashes of the two are not the same.

    Returns
    -------
    DataFrame
        Lazy; no shuffle. Partitions and the order in them stay.
    """
    data_type = "int" if -(2**31) <= value < 2**31 else "long"
    return table.crossJoin(small_table(table.sparkSession, {name: [value]}, f"{name} {data_type}"))
