"""The generator of invented people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from chispa import assert_df_equality
from places import REPOSITORY
from pyspark.sql import functions as F  # noqa: N812

from anonspark.demo.people import generate_people, write_people
from anonspark.errors import ConfigurationError

if TYPE_CHECKING:
    import pandas as pd
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


def test_the_table_that_comes_with_the_project(spark: SparkSession, tmp_path: Path) -> None:
    session_zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        write_people(spark, 2000, tmp_path / "people", format="csv")
    finally:
        spark.conf.set("spark.sql.session.timeZone", session_zone)
    (part,) = (tmp_path / "people").glob("part-*.csv")
    assert (
        part.read_text().splitlines() == (REPOSITORY / "data/people.csv").read_text().splitlines()
    )


def test_written_people_are_the_generated_ones(spark: SparkSession, tmp_path: Path) -> None:
    expected = generate_people(spark, 50, 5)
    for format in ("parquet", "orc"):
        path = tmp_path / format
        write_people(spark, 50, path, 5, format=format, partitions=2)
        assert len(list(path.glob(f"part-*.{format}"))) == 2
        written = spark.read.format(format).load(str(path))
        assert_df_equality(written, expected, ignore_row_order=True, ignore_nullable=True)


def test_an_existing_path_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "keep").write_text("something")
    with pytest.raises(ConfigurationError, match="exists already"):
        write_people(spark, 10, tmp_path, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["keep"]


def test_wrong_arguments(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "people"
    with pytest.raises(ConfigurationError) as caught:
        generate_people(spark, 0, partitions=-1)
    assert len(caught.value.problems) == 2
    with pytest.raises(ConfigurationError, match="rows: is 0"):
        write_people(spark, 0, path, 0)
    with pytest.raises(ConfigurationError, match="format: is 'excel'"):
        write_people(spark, 10, path, 0, format="excel")
    assert not path.exists()


def test_large_tables_are_described_at_once(spark: SparkSession) -> None:
    people = generate_people(spark, 300_000_000)
    assert people.rdd.getNumPartitions() == 600
    assert len(people.select(F.lit(1)).take(1)) == 1
