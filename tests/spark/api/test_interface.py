"""anonspark in somebody's own Spark job: DataFrames in, DataFrames out."""

from __future__ import annotations

import gc
import re
import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from places import REPOSITORY
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import anonspark
from anonspark.config import parse_configuration
from anonspark.errors import ConfigurationError, DataError, EnvironmentProblem, GuaranteeError

CONFIG: dict[str, Any] = {
    "attributes": {"age": "quasi_identifier", "pay": "quasi_identifier", "sickness": "sensitive"},
    "privacy": {"k": 5},
    "model": {"name": "smondrian"},
    "execution": {"seed": 7},
}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Send temporary files to a place that is looked at afterwards."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def people(spark: SparkSession) -> Any:
    columns = {
        "age": sf.col("id") % 50 + 20,
        "pay": sf.col("id") * 37 % 101,
        "sickness": sf.when(sf.col("id") % 3 == 0, "flu").otherwise("gout"),
        "name": sf.concat(sf.lit("N"), sf.col("id")),
    }
    return spark.range(200).select(*(column.alias(name) for name, column in columns.items()))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the release is that tests have in common."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def release(spark_session: SparkSession, place: Path) -> Iterator[anonspark.Release[DataFrame]]:
    # A column that is of no interest may be there as often as it likes.
    table = people(spark_session).withColumn("name", sf.lit("Zebediah"))
    table = table.select("*", sf.lit(1).alias("name"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(place))
        made = anonspark.anonymize(table, CONFIG)
    with made:
        yield made
    for ask in (lambda: made.data, made.to_pandas, made.verify, lambda: made.summary):
        with pytest.raises(ConfigurationError, match="it was closed, which removed its files"):
            ask()
    assert "every record matches at least" in repr(made)
    assert list(place.iterdir()) == []


@pytest.mark.usefixtures("spark")
def test_the_example_of_the_documentation(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (REPOSITORY / "docs" / "api.md").read_text().partition("## In Spark")[2]
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == 1
    monkeypatch.chdir(REPOSITORY)
    exec(compile(blocks[0], "docs/api.md", "exec"), {})  # noqa: S102 - our own page
    assert "utility_score" in capsys.readouterr().out
    assert list(temporary.iterdir()) == []


@pytest.mark.usefixtures("spark")
def test_spark_publishes_what_pandas_does(temporary: Path) -> None:
    page = (REPOSITORY / "docs" / "first-release.md").read_text().partition("## k = 10 in")[2]
    # Java began in another folder than a reader's.
    page = page.replace("people.csv", str(REPOSITORY / "data" / "people.csv"))
    of_pandas, _, of_spark = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    names: dict[str, Any] = {}
    fingerprints = []
    for block in (of_pandas, of_spark):
        exec(compile(block, "docs/first-release.md", "exec"), names)  # noqa: S102 - our own page
        with names["release"] as release:
            fingerprints.append(release.manifest["fingerprints"]["output"])
    assert fingerprints[0] == fingerprints[1]
    assert list(temporary.iterdir()) == []


def test_the_release(
    spark: SparkSession, release: anonspark.Release[DataFrame], place: Path
) -> None:
    table = people(spark)
    assert release.data.columns == ["age", "pay", "sickness"]
    assert release.data.count() == 200
    sizes = release.data.groupBy("age", "pay").count()
    assert sizes.filter("count < 5").count() == 0
    assert release.summary.collect()[0]["rows_published"] == 200
    assert release.classes.agg(sf.sum("size")).collect()[0][0] == 200
    assert release.rounds.count() == 1
    assert {row["attribute"] for row in release.attributes.collect()} == {"age", "pay"}
    assert release.privacy.count() == 1
    assert release.risk.filter("round IS NULL").count() == 3
    proof = release.verify(original=table, population=table)
    assert proof.require() is proof
    assert proof.linkage["original"] == proof.linkage["population"]
    # Nothing but the release is left, and no raw record.
    (directory,) = place.iterdir()
    assert [path.name for path in directory.iterdir()] == [Path(release.path).name]


def test_what_is_asked_of_a_release(
    spark: SparkSession, release: anonspark.Release[DataFrame], temporary: Path
) -> None:
    table = people(spark)
    assert len(repr(release).splitlines()) <= 25
    assert release._repr_html_().count("<svg") == 2
    assert release.to_pandas().shape == (200, 3)
    assert release.to_polars().height == 200
    assert "Class sizes" in release.report(original=table).html
    worth = anonspark.evaluate(release, table)
    assert worth.records == 200
    in_memory = table.toPandas()
    with anonspark.anonymize(in_memory, CONFIG) as local:
        assert anonspark.evaluate(local, in_memory).workload == worth.workload
        assert local.to_arrow().sort_by("pay").num_rows == 200
    with pytest.raises(ConfigurationError, match="DataFrames of Spark together with others"):
        anonspark.verify(table, quasi_identifiers=["age"], original=in_memory)
    assert list(temporary.iterdir()) == []


def test_what_is_asked_of_a_table(spark: SparkSession, temporary: Path) -> None:
    table = people(spark)
    roles = {"quasi_identifiers": ["age", "pay"], "sensitive": ["sickness"]}
    compared = anonspark.compare(table, k=[5], **roles)
    assert [row["k"] for row in compared.best] == [5]
    assert anonspark.profile(table).rows == 200
    assert list(temporary.iterdir()) == []


def test_a_session_that_was_stopped(
    spark: SparkSession,
    release: anonspark.Release[DataFrame],
    temporary: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = people(spark)
    with monkeypatch.context() as stopped:
        # As a stopped session looks; the one of the tests goes on.
        stopped.setattr(spark.sparkContext, "_jsc", None)
        for ask in (
            lambda: release.data,
            release.verify,
            lambda: anonspark.anonymize(table, CONFIG),
        ):
            with pytest.raises(EnvironmentProblem, match="the session of this table was stopped"):
                ask()
    assert list(temporary.iterdir()) == []


def test_a_configuration_that_was_loaded(spark: SparkSession, temporary: Path) -> None:
    """Its data outlive the object of the release."""
    configuration = parse_configuration(
        {**CONFIG, "input": {"path": "elsewhere"}, "output": {"path": "out", "style": "bounds"}}
    )
    table = people(spark)
    release = anonspark.anonymize(table, configuration, staging=str(temporary / "own"))
    assert release.path.startswith(str(temporary / "own"))
    data = release.data
    assert data.columns == ["age_min", "age_max", "pay_min", "pay_max", "sickness"]
    del release
    gc.collect()
    assert anonspark.verify(data, configuration, original=table).holds


def test_nothing_is_left_of_a_failure(spark: SparkSession, temporary: Path) -> None:
    with pytest.raises(GuaranteeError, match=r"gates\.gcp: found 0\..*, expected at most 0\.001"):
        anonspark.anonymize(people(spark), {**CONFIG, "gates": {"gcp": {"max": 0.001}}})
    with pytest.raises(DataError, match="age: the input has no such column"):
        anonspark.anonymize(people(spark).drop("age"), CONFIG)
    with pytest.raises(ConfigurationError, match=r"privacy\.k"):
        anonspark.anonymize(people(spark), {**CONFIG, "privacy": {"k": "five"}})
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("other", ["age", "Age"])
def test_two_columns_of_one_name(spark: SparkSession, temporary: Path, other: str) -> None:
    table = people(spark).withColumn("other", sf.lit(1))
    twice = table.toDF(*(other if name == "other" else name for name in table.columns))
    told = "has 2 columns of one name, 'age'"
    with pytest.raises(DataError, match=f"input: {told}"):
        anonspark.anonymize(twice, CONFIG)
    with pytest.raises(DataError, match=f"the table: {told}"):
        anonspark.verify(twice, quasi_identifiers=["pay"])
    with pytest.raises(DataError, match=f"original: {told}"):
        anonspark.verify(people(spark), quasi_identifiers=["age"], original=twice)
    assert list(temporary.iterdir()) == []


def test_records_that_another_tool_suppressed(spark: SparkSession) -> None:
    """As of tables in memory: what is left out counts in the distribution of the whole table."""
    day = date(2020, 1, 1)
    rows = [("20-30", "cold", day), ("20-30", "flu", day.replace(month=2)), ("*", "flu", day)]
    rows += [(" *", "*", day), ("30-40", "flu", day), ("30-40", "cold", day.replace(month=2))]
    table = spark.createDataFrame(rows, "age string, illness string, seen date")
    roles: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": ["illness", "seen"]}
    found = anonspark.verify(table, **roles, k=2, l=2, t=0.3, suppressed="*")
    assert (found.failures, found.suppressed, found.published.sizes) == ([], 2, {2: 2})
    measured = {one.criterion.attribute: one.measured for one in found.criteria[2:]}
    assert measured == pytest.approx({"illness": 0.1, "seen": 1 / 6})


def test_what_to_require_has_to_be_said(spark: SparkSession) -> None:
    table = people(spark)
    with pytest.raises(ConfigurationError, match="quasi-identifiers: none is named"):
        anonspark.verify(table)
    with pytest.raises(DataError, match="lacks the published columns 'agee'"):
        anonspark.verify(table, quasi_identifiers=["agee"])
    with pytest.raises(DataError, match="lacks the columns 'illness'"):
        anonspark.verify(table, quasi_identifiers=["age"], sensitive=["illness"])
    with pytest.raises(ConfigurationError, match="k: found 0"):
        anonspark.verify(table, quasi_identifiers=["age"], k=0)
    with pytest.raises(ConfigurationError, match="found together with a configuration"):
        anonspark.verify(table, CONFIG, k=7)
    with pytest.raises(DataError, match="holds no records"):
        anonspark.verify(table.limit(0), quasi_identifiers=["age"])
    with pytest.raises(AttributeError, match="no attribute 'anonymise'"):
        anonspark.anonymise  # type: ignore[attr-defined]  # noqa: B018
