"""The generator of invented people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from chispa import assert_df_equality
from places import REPOSITORY
from pyspark.sql import functions as F  # noqa: N812

from anonspark.demo.people import EDUCATION_ORDER, generate_people, write_people
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


def test_identifiers(people: pd.DataFrame) -> None:
    identifiers = people["person_id"]
    assert identifiers.is_unique
    assert identifiers.str.fullmatch("P[0-9A-F]{16}").all()
    assert abs(identifiers.rank().corr(identifiers.index.to_series())) < 0.05
    assert people["full_name"].str.fullmatch(r"\w+ \w+").all()
    assert people["full_name"].nunique() > 3000


def test_missing_values(people: pd.DataFrame) -> None:
    shares = people.isna().mean()
    assert shares["education"] == pytest.approx(0.01, abs=0.004)
    assert shares["body_mass_index"] == pytest.approx(0.03, abs=0.007)
    assert shares.drop(["education", "body_mass_index"]).eq(0).all()


def test_numbers(people: pd.DataFrame) -> None:
    gain = people["capital_gain"]
    assert gain.eq(0).mean() == pytest.approx(0.92, abs=0.01)
    assert gain[gain > 0].min() >= 500
    assert gain.max() > 50 * gain[gain > 0].median()

    hours = people["hours_per_week"]
    assert hours.between(1, 99).all()
    assert hours.eq(40).mean() == pytest.approx(0.47, abs=0.02)

    income = people["income"]
    assert income.min() > 0
    assert (income.mean() / income.median()) > 1.1
    assert (income * 100).round().div(100).eq(income).all()

    index = people["body_mass_index"].dropna()
    assert index.between(10, 70).all()
    assert index.median() == pytest.approx(25.5, abs=0.5)
    assert people["visits"].between(0, 150).all()


def test_dates(people: pd.DataFrame) -> None:
    birth = people["birth_date"].map(lambda date: date.isoformat())
    assert birth.min() >= "1926-12-31"
    assert birth.max() <= "2006-12-31"
    assert birth.max() >= "2006-06"
    visit = people["last_visit"]
    assert visit.min().year >= 2020
    assert visit.max().date().isoformat() == "2024-12-31"
    assert visit.nunique() > 0.99 * ROWS


def test_categories(people: pd.DataFrame) -> None:
    assert set(people["education"].dropna()) == set(EDUCATION_ORDER)
    assert set(people["sex"]) == {"female", "male", "other"}
    assert set(people["marital_status"]) == {"single", "married", "divorced", "widowed"}
    assert people["diagnosis"].nunique() == 25
    assert not people[["sex", "city", "diagnosis", "marital_status"]].eq("").any(axis=None)


def test_cities_have_a_long_tail_and_their_own_postal_codes(people: pd.DataFrame) -> None:
    sizes = people["city"].value_counts()
    assert len(sizes) == 120
    assert sizes.iloc[0] == pytest.approx(0.145 * ROWS, rel=0.1)
    assert sizes.iloc[-1] < 0.005 * ROWS
    assert people.groupby("postal_code")["city"].nunique().max() == 1
    codes = people.groupby("city")["postal_code"].agg(["nunique", "min", "max"])
    assert (codes["max"] - codes["min"]).max() < 740
    assert codes["nunique"].idxmax() == sizes.idxmax()
    assert people["postal_code"].between(10_000, 99_999).all()


def test_income_depends_on_education_and_age(people: pd.DataFrame) -> None:
    median = people.groupby("education")["income"].median()
    assert median["lower secondary"] < median["bachelor"] < median["doctorate"]
    age = 2024 - people["birth_date"].map(lambda date: date.year)
    assert (
        people["income"][age < 25].median() < 0.85 * people["income"][age.between(45, 60)].median()
    )


def test_diagnosis_depends_on_age(people: pd.DataFrame) -> None:
    old = 2024 - people["birth_date"].map(lambda date: date.year) >= 70
    young = ~old & (people["birth_date"].map(lambda date: date.year) > 1991)
    shares = {
        name: (people["diagnosis"][old].eq(name).mean(), people["diagnosis"][young].eq(name).mean())
        for name in ("hypertension", "dementia", "migraine")
    }
    assert shares["hypertension"][0] > 4 * shares["hypertension"][1]
    assert shares["dementia"][0] > 0
    assert shares["dementia"][1] == 0
    assert shares["migraine"][1] > 2 * shares["migraine"][0]


def test_columns_are_drawn_independently(people: pd.DataFrame) -> None:
    numbers = people[["hours_per_week", "capital_gain", "postal_code"]].rank()
    numbers["second"] = people["last_visit"].dt.second
    numbers["income"] = people["income"]
    assert (numbers.corr().abs() - 0.05).gt(0).sum().sum() == len(numbers.columns)


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
