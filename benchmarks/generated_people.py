"""Generated people as a table of Spark, of any size: those of `anonspark demo`.

.venv/bin/python benchmarks/generated_people.py --rows 1000000 --out build/people
"""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from anonspark.demo.people import PEOPLE_SCHEMA, people_of
from anonspark.engine.spark.arrow import spark_schema
from anonspark.engine.spark.session import open_session
from anonspark.engine.spark.tasks import map_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from anonspark.engine.tasks import Batches

_ROWS_PER_PARTITION = 500_000  # a Parquet file of some 20 MB


def generate_people(
    spark: SparkSession, rows: int, seed: int = 0, partitions: int | None = None
) -> DataFrame:
    """Describe the table of :func:`anonspark.demo.people.people_of`, the same in any partitions."""

    def people(batches: Batches) -> Batches:
        for batch in batches:
            yield people_of(seed, batch.column(0).to_numpy())

    numbers = spark.range(0, rows, 1, partitions or math.ceil(rows / _ROWS_PER_PARTITION))
    return map_batches(numbers, people, spark_schema(PEOPLE_SCHEMA))


def main() -> None:
    """Write people as Parquet, or as CSV with a header."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--out", required=True, help="a new directory")
    parser.add_argument("--format", default="parquet", choices=("parquet", "csv"))
    parser.add_argument("--master")
    arguments = parser.parse_args()
    with open_session(arguments.master) as spark:
        people = generate_people(spark, arguments.rows)
        writer = people.write.format(arguments.format)
        if arguments.format == "csv":
            writer = writer.options(header=True, timestampFormat="yyyy-MM-dd HH:mm:ss")
        writer.save(arguments.out)


if __name__ == "__main__":
    main()
