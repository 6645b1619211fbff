"""spark-privacy-preserver: Mondrian over pandas, in one task of Spark."""

from __future__ import annotations

import pandas as pd

from peers.tool import COUNT, Job, Tool, repeated, serve


def anonymize(job: Job) -> None:
    """Write the rows that it returns: one for each class and sensitive value."""
    from pyspark.sql import SparkSession
    from pyspark.sql import types as st
    from spark_privacy_preserver.mondrian_preserver import Preserver

    # The whole table goes through one Python worker as one batch.
    spark = (
        SparkSession.builder.master(f"local[{job.cores}]")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    table = spark.read.csv(job.table, header=True, inferSchema=True)
    labels = [st.StructField(name, st.StringType()) for name in job.quasi_identifiers]
    others = [
        st.StructField(job.sensitive, st.StringType()),
        st.StructField(COUNT, st.LongType()),
    ]
    classes = Preserver.k_anonymize(
        table,
        job.k,
        job.quasi_identifiers,
        job.sensitive,
        [job.sensitive],
        st.StructType(labels + others),
    )
    classes.toPandas().to_csv(job.output, index=False)
    spark.stop()


def read(returned: pd.DataFrame, _table: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each record; labels are `17` or `15-25`."""
    return repeated(returned)


TOOL = Tool(
    name="spark-privacy-preserver",
    distribution="spark-privacy-preserver",
    module="peers.adapters.spark_privacy_preserver",
    python="3.11",
    about="Mondrian, pandas in one task of Spark",
    read=read,
    conversion="rows with a count are repeated; its labels are made of the tens digits of the "
    "bounds alone, which is wrong for numbers of three digits and more",
    without_dependencies=True,
)

if __name__ == "__main__":
    serve(anonymize)
