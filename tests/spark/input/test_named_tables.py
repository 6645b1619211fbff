"""Tables and views that Spark's catalog knows by their names are read as files are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from commands import Cli
from helpers import document_file, published
from pyspark.sql import DataFrame, SparkSession

from anonspark.api.arguments import reading_table
from anonspark.config.loading import load_configuration
from anonspark.engine.spark.reading import open_input
from anonspark.errors import ConfigurationError


@pytest.fixture
def visits(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Create a partitioned table of Parquet files, and views of it."""
    days = "date'2026-11-27' + cast(id % 3 as int) day"
    rows = spark.range(300).selectExpr("cast(id % 90 as int) age", days)
    folder = tmp_path / "lake" / "visits"
    spark.sql(
        "CREATE TABLE visits (age int, day date) USING parquet PARTITIONED BY (day) "
        f"LOCATION '{folder}'"
    )
    rows.write.insertInto("visits")
    spark.sql("CREATE VIEW seen AS SELECT * FROM visits")
    spark.table("visits").createOrReplaceTempView("today")
    yield folder
    spark.sql("DROP VIEW seen")
    spark.sql("DROP TABLE visits")


def configured(tmp_path: Path, source: Mapping[str, object], engine: str = "spark") -> Path:
    """Write a configuration that reads a source."""
    document = {
        "input": source,
        "attributes": {"age": "quasi_identifier", "day": "insensitive"},
        "privacy": {"k": 5},
        "model": "mondrian",
        "output": {"path": str(tmp_path / "release"), "mode": "overwrite"},
        "execution": {"engine": engine, "seed": 7},
    }
    return document_file(tmp_path, document)


@pytest.mark.timeout(600)
def test_a_table_is_read_as_its_files(visits: Path, tmp_path: Path, cli: Cli) -> None:
    sources: list[dict[str, object]] = [{"path": str(visits)}]
    sources += [{"table": name} for name in ("`spark_catalog`.default.visits", "seen", "today")]
    releases = []
    for source in sources:
        cli.ends(0, "run", configured(tmp_path, source))
        assert "input_version" not in json.loads((tmp_path / "release/manifest.json").read_text())
        releases.append(published(tmp_path / "release"))
    cli.ends(0, "verify", tmp_path / "release", "--original", "visits")
    assert len(releases[0]) == 300
    assert all(release.equals(releases[0]) for release in releases)


@pytest.mark.usefixtures("visits")
@pytest.mark.parametrize(
    ("source", "engine", "code", "message"),
    [
        ({"table": "absent"}, "spark", 3, "TABLE_OR_VIEW_NOT_FOUND"),
        ({"table": "visits; DROP TABLE visits"}, "spark", 3, "is no name of a table"),
        ({"table": "parquet.`/etc`"}, "spark", 3, "cannot read parquet.`/etc` as table"),
        (
            {"table": "visits", "options": {"branch": "a"}},
            "spark",
            2,
            "Expected versionAsOf or timestampAsOf",
        ),
        ({"table": "visits", "options": {"versionAsOf": "1"}}, "spark", 3, "TIME_TRAVEL"),
        ({"table": "visits"}, "local", 2, "a table is named, which only a catalog of Spark knows"),
    ],
)
def test_what_cannot_be_read_by_name(
    tmp_path: Path, cli: Cli, source: dict[str, object], engine: str, code: int, message: str
) -> None:
    cli.ends(code, "check", configured(tmp_path, source, engine), says=message)


CONDITION = "day = '2026-11-28' AND `age` < 80"


@pytest.mark.timeout(600)
def test_a_condition_reads_one_partition(
    spark: SparkSession, visits: Path, tmp_path: Path, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a table, and of a folder, whose days are read by our grammar."""
    expected = spark.table("visits").where(CONDITION).count()
    sources: list[dict[str, object]] = [{"path": str(visits)}, {"table": "visits"}]
    for source in sources:
        path = configured(tmp_path, source | {"where": CONDITION})
        content = open_input(spark, load_configuration(path)).content
        assert isinstance(content, DataFrame)
        content.explain()
        plan = capsys.readouterr().out
        (filters,) = re.findall(r"PartitionFilters: \[(.*?)\], PushedFilters: \[(.*?)\],", plan)
        assert "day" in filters[0]
        assert "LessThan(age,80)" in filters[1]
        cli.ends(0, "run", path)
        release = published(tmp_path / "release")
        assert (len(release), set(map(str, release["day"].to_pylist()))) == (
            expected,
            {"2026-11-28"},
        )
        original = source.get("table", visits)
        cli.ends(0, "verify", tmp_path / "release", "--original", original)


@pytest.mark.parametrize(
    ("where", "engine", "code", "message"),
    [
        ("week = 1", "spark", 2, "input.where: the table has no column 'week'"),
        (
            "day = '2026-11-28'",
            "local",
            2,
            "input.where: found a condition on text files, or without",
        ),
        ("day = '2026' OR 1 = 1", "spark", 2, "Expected comparisons of columns with texts"),
        ("age = (SELECT 1)", "spark", 2, "Expected comparisons of columns with texts"),
        ("day = 'a\\\\' AND age = ' OR 1 = 1'", "spark", 2, "Expected comparisons of columns"),
        ("town = 'Rize'", "spark", 2, "shows its values"),
    ],
)
def test_conditions_that_are_refused(
    spark: SparkSession, tmp_path: Path, cli: Cli, where: str, engine: str, code: int, message: str
) -> None:
    folder = tmp_path / "visits.parquet"
    spark.range(9).selectExpr("id age", "'Rize' town", "id day").write.parquet(str(folder))
    path = configured(tmp_path, {"path": str(folder), "where": where}, engine)
    path.write_text(path.read_text() + "sensitive: [town]\n")
    cli.ends(code, "check", path, says=message)


def test_a_condition_on_csv_is_refused(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "visits.csv").write_text("age,day\n" + "4,2026-11-28\n" * 9)
    path = configured(tmp_path, {"path": str(tmp_path / "visits.csv"), "where": "age = 4"})
    refused = cli("check", path)
    assert refused.code == 2
    assert "input.where: found a condition on text files, or without Spark" in refused.err


def test_a_given_table_is_not_restricted() -> None:
    with pytest.raises(ConfigurationError, match="found together with a DataFrame"):
        reading_table({"input": {"where": "day = 1"}})
