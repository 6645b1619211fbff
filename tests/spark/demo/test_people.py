"""The generator of invented people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pytest
from chispa import assert_df_equality
from generated_people import generate_people
from places import REPOSITORY
from pyspark.sql import functions as F  # noqa: N812

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 10_000


@pytest.fixture(scope="module")
def people(spark_session: SparkSession) -> pd.DataFrame:
    return generate_people(spark_session, ROWS).toPandas()


def test_same_people_for_any_number_of_partitions(spark: SparkSession) -> None:
    tables = [generate_people(spark, 200, 3, partitions) for partitions in (1, 7, None)]
    assert [table.rdd.getNumPartitions() for table in tables] == [1, 7, 1]
    assert_df_equality(tables[0], tables[1])
    assert_df_equality(tables[0], tables[2])


def test_fewer_rows_are_a_part_of_more(spark: SparkSession, people: pd.DataFrame) -> None:
    fewer = generate_people(spark, 100, partitions=3).toPandas()
    assert fewer.equals(people.head(100))


def test_every_column_depends_on_the_seed(spark: SparkSession, people: pd.DataFrame) -> None:
    other = generate_people(spark, 500, seed=1).toPandas()
    for name in people:
        assert not other[name].equals(people[name].head(500)), name
    assert set(other["person_id"]).isdisjoint(people["person_id"])


def test_schema(spark: SparkSession) -> None:
    assert dict(generate_people(spark, 1).dtypes) == {
        "person_id": "string",
        "full_name": "string",
        "birth_date": "date",
        "sex": "string",
        "postal_code": "int",
        "city": "string",
        "education": "string",
        "marital_status": "string",
        "income": "double",
        "capital_gain": "bigint",
        "hours_per_week": "int",
        "body_mass_index": "double",
        "last_visit": "timestamp",
        "diagnosis": "string",
        "visits": "int",
    }


def test_the_table_that_comes_with_the_project(spark: SparkSession) -> None:
    given = pd.read_csv(REPOSITORY / "data/people.csv", dtype=str, keep_default_na=False)
    people = generate_people(spark, 2000).toPandas()
    for name in ("person_id", "full_name", "city", "diagnosis", "postal_code", "visits"):
        assert list(people[name].astype(str)) == list(given[name]), name


def test_large_tables_are_described_at_once(spark: SparkSession) -> None:
    people = generate_people(spark, 300_000_000)
    assert people.rdd.getNumPartitions() == 600
    assert len(people.select(F.lit(1)).take(1)) == 1
