"""Tables to measure with, of any size; the same for the same size, however they are made.

.venv/bin/python benchmarks/tables.py people 1000000 build/people-1000000
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from data_sets import ADULT
from generated_people import generate_people

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["TABLES", "Table"]

DATA = Path(
    os.environ.get("ANONSPARK_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
)

QUASI_IDENTIFIERS = (
    "birth_date", "postal_code", "income", "capital_gain", "hours_per_week"
)  # fmt: skip
PAYLOAD = ("diagnosis", "sex", "city", "marital_status", "visits")
ADULT_ROWS = 30_162

_ROWS_PER_FILE = 500_000


@dataclass(frozen=True)
class Table:
    """A table to measure with.

    Parameters
    ----------
    make : callable
        Describes so many rows.
    attributes : mapping of str to str
        Every column's role.
    """

    make: Callable[[SparkSession, int], DataFrame]
    attributes: Mapping[str, str]


def people(spark: SparkSession, rows: int) -> DataFrame:
    """Five numeric quasi-identifiers (a date is one, too) and five other columns."""
    return generate_people(spark, rows).select(*QUASI_IDENTIFIERS, *PAYLOAD)


def skewed(spark: SparkSession, rows: int) -> DataFrame:
    """People of whom 40% are equal in every quasi-identifier, one of which has two values."""
    from pyspark.sql import functions as sf

    table = generate_people(spark, rows)
    equal = sf.pmod(sf.xxhash64("person_id"), sf.lit(10)) < 4
    usual = {
        "birth_date": sf.lit("1980-01-01").cast("date"),
        "postal_code": sf.lit(30_000),
        "income": sf.lit(40_000.0),
        "capital_gain": sf.lit(0).cast("long"),
        "hours_per_week": sf.lit(1),
    }
    table = table.withColumn("hours_per_week", (sf.col("hours_per_week") >= 40).cast("int"))
    return table.select(
        *(sf.when(equal, value).otherwise(sf.col(name)).alias(name)
          for name, value in usual.items()),
        *PAYLOAD,
    )  # fmt: skip


def many_quasi_identifiers(spark: SparkSession, rows: int) -> DataFrame:
    """Twenty numeric quasi-identifiers: those of people, and fifteen of 10 to 100,000 values."""
    table = generate_people(spark, rows)
    more = [_drawn(name, 10 ** (place % 5 + 1)) for place, name in enumerate(_named("number", 15))]
    return table.select(*QUASI_IDENTIFIERS, *more, *PAYLOAD)


def many_columns(spark: SparkSession, rows: int) -> DataFrame:
    """Two hundred other columns: those of people, and 195 of texts, whole numbers and others."""
    from pyspark.sql import functions as sf

    table = generate_people(spark, rows)
    more = []
    for place, name in enumerate(_named("column", 195)):
        drawn = _drawn(name, 1000)
        as_kind = (
            drawn,
            (drawn / sf.lit(7.0)).alias(name),
            sf.concat(sf.lit("value "), drawn.cast("string")).alias(name),
        )
        more.append(as_kind[place % 3])
    return table.select(*QUASI_IDENTIFIERS, *PAYLOAD, *more)


def adult(spark: SparkSession, rows: int) -> DataFrame:
    """Adult, again and again with noise where it is longer than Adult.

    The noise: age and hours by 2, fnlwgt by 5,000, gains and losses above 0 by 20 at most.
    """
    from pyspark.sql import functions as sf

    table = spark.read.csv(str(DATA / "adult.csv"), header=True, inferSchema=True)
    table = table.select(*ADULT.roles())
    if rows == ADULT_ROWS:
        return table.coalesce(1)
    copies = -(-rows // ADULT_ROWS)
    # One partition, so that the numbers are those of the file.
    numbered = table.coalesce(1).withColumn("row", sf.monotonically_increasing_id())
    copied = numbered.crossJoin(spark.range(0, copies, 1, 1).withColumnRenamed("id", "copy"))
    copied = copied.filter(sf.col("copy") * ADULT_ROWS + sf.col("row") < rows)

    def noisy(name: str, by: int) -> Column:
        bits = sf.xxhash64(sf.lit(name), sf.col("row"), sf.col("copy"))
        moved = sf.greatest(
            sf.col(name) + sf.pmod(bits, sf.lit(2 * by + 1)).cast("int") - by, sf.lit(0)
        )
        return sf.when((sf.col(name) > 0) & (sf.col("copy") > 0), moved).otherwise(sf.col(name))

    noise = {"age": 2, "fnlwgt": 5000, "capital-gain": 20, "capital-loss": 20, "hours-per-week": 2}
    columns = [noisy(name, by).alias(name) for name, by in noise.items()]
    return copied.select(*columns, "income").repartition(max(rows // _ROWS_PER_FILE, 1))


def _named(kind: str, columns: int) -> list[str]:
    return [f"{kind}_{number}" for number in range(columns)]


def _drawn(name: str, values: int) -> Column:
    from pyspark.sql import functions as sf

    bits = sf.xxhash64(sf.lit(name), sf.col("person_id"))
    return sf.pmod(bits, sf.lit(values)).cast("int").alias(name)


def _roles(quasi_identifiers: tuple[str, ...], others: tuple[str, ...]) -> dict[str, str]:
    sensitive, *rest = others
    return {
        **dict.fromkeys(quasi_identifiers, "quasi_identifier"),
        sensitive: "sensitive",
        **dict.fromkeys(rest, "insensitive"),
    }


TABLES = {
    "people": Table(people, _roles(QUASI_IDENTIFIERS, PAYLOAD)),
    "skewed": Table(skewed, _roles(QUASI_IDENTIFIERS, PAYLOAD)),
    "many-quasi-identifiers": Table(
        many_quasi_identifiers, _roles((*QUASI_IDENTIFIERS, *_named("number", 15)), PAYLOAD)
    ),
    "many-columns": Table(
        many_columns, _roles(QUASI_IDENTIFIERS, (*PAYLOAD, *_named("column", 195)))
    ),
    "adult": Table(adult, ADULT.roles()),
}


def main() -> None:
    """Write one of the tables as Parquet or CSV."""
    from anonspark.engine.spark.session import open_session

    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("rows", type=int)
    parser.add_argument("output")
    parser.add_argument("--csv", action="store_true", help="one CSV file with a header instead")
    options = parser.parse_args()
    with open_session("local[2]") as spark:
        table = TABLES[options.table].make(spark, options.rows)
        if options.csv:
            table.coalesce(1).write.csv(options.output, header=True)
        else:
            table.write.parquet(options.output)


if __name__ == "__main__":
    main()
