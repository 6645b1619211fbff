"""The records of a release are written to a table of Spark's catalog, once, and compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Cli
from helpers import document_file, published, write_table
from pyspark.sql import SparkSession

from anonspark.engine.spark import named_tables
from anonspark.engine.spark.named_tables import SparkNamedTable, table_kind


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Create a schema ``lake`` of tables of Parquet files."""
    spark.sql(f"CREATE DATABASE lake LOCATION '{tmp_path / 'lake'}'")
    ages = [number % 90 for number in range(300)]
    write_table(tmp_path / "input.parquet", {"age": ages, "visits": [n % 7 for n in ages]})
    yield tmp_path
    spark.sql("DROP DATABASE lake CASCADE")


def run(
    folder: Path,
    cli: Cli,
    night: str,
    *,
    ends: int = 0,
    says: str | tuple[str, ...] = (),
    **output: Any,
) -> None:
    """Publish a night, write it to ``lake.visits``, and require how that ends."""
    document = {
        "input": {"path": str(folder / "input.parquet")},
        "attributes": {"age": "quasi_identifier", "visits": "insensitive"},
        "privacy": {"k": 5},
        "model": "mondrian",
        "output": {
            "path": str(folder / night),
            "table": "lake.visits",
            "table_mode": "overwrite",
            "table_partition": {"day": night},
        }
        | output,
        "execution": {"seed": 7},
    }
    words = "run", document_file(folder, document), "--run-id", f"run-{night}"
    cli.ends(ends, *words, says=says)


def of_night(spark: SparkSession, night: str) -> list[tuple[object, ...]]:
    """Return the records of a night in the table, sorted."""
    records = spark.table("lake.visits").where(f"day = '{night}'").drop("day")
    return sorted(map(tuple, records.collect()))


def in_release(release: Path) -> list[tuple[object, ...]]:
    """Return the published records, sorted."""
    return sorted(tuple(row.values()) for row in published(release).to_pylist())


@pytest.mark.timeout(900)
def test_a_night_replaces_its_partition(spark: SparkSession, lake: Path, cli: Cli) -> None:
    for night in ("2026-11-27", "2026-11-28"):
        run(lake, cli, night)
        assert of_night(spark, night) == in_release(lake / night)
    assert spark.table("lake.visits").count() == 600
    release = lake / "2026-11-27"
    cli.ends(0, "verify", release, "--table", "lake.visits")
    # Nothing is published again, and nothing is there twice.
    run(lake, cli, "2026-11-27")
    assert spark.table("lake.visits").count() == 600
    properties = dict(map(tuple, spark.sql("SHOW TBLPROPERTIES lake.visits").collect()))
    assert '"run_id": "run-2026-11-27"' in properties["anonspark.commit"]
    spark.sql("INSERT INTO lake.visits PARTITION (day = '2026-11-27') SELECT '1', 1")
    changed = cli("verify", release, "--table", "lake.visits")
    assert changed.code == 4
    assert "lake.visits: its records are not those of the release" in changed.err
    # A table of other types has the same values, and is no copy.
    spark.sql("CREATE TABLE lake.other AS SELECT age, cast(visits AS string) FROM lake.visits")
    cli.ends(3, "verify", release, "--table", "lake.other")
    cli.ends(3, "verify", release, "--table", "lake.absent", says="TABLE_OR_VIEW_NOT_FOUND")


@pytest.mark.timeout(600)
def test_the_catalog_is_asked_once_before_the_work_and_once_to_write(lake: Path, cli: Cli) -> None:
    asked = []

    def counted(session: SparkSession, name: str, key: str) -> str:
        asked.append(key)
        return table_kind(session, name, key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(named_tables, "table_kind", counted)
        run(lake, cli, "2026-11-27")
        # It was created meanwhile.
        assert asked == ["output.table"]
        run(lake, cli, "2026-11-28")
    assert asked == ["output.table"] * 3


@pytest.mark.timeout(600)
@pytest.mark.parametrize("step", ["before the table", "before the records", "before the note"])
def test_a_killed_run_is_repeated(spark: SparkSession, lake: Path, cli: Cli, step: str) -> None:
    replace_records = SparkNamedTable._replace

    def killed(*_: object) -> None:
        raise OSError("the machine is gone")

    def killed_afterwards(self: SparkNamedTable, *arguments: Any) -> None:
        replace_records(self, *arguments)
        raise OSError("the machine is gone")

    steps = {
        "before the table": ("_create", killed),
        "before the records": ("_replace", killed),
        "before the note": ("_replace", killed_afterwards),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkNamedTable, *steps[step])
        run(lake, cli, "2026-11-27", ends=1)
    assert (lake / "2026-11-27" / "manifest.json").exists()
    assert spark.catalog.tableExists("lake.visits") == (step != "before the table")
    run(lake, cli, "2026-11-27")
    assert of_night(spark, "2026-11-27") == in_release(lake / "2026-11-27")


@pytest.mark.parametrize(
    ("statement", "output", "message"),
    [
        ("SELECT 1", {"table_mode": "append"}, "it is a table of parquet, to which a killed run"),
        ("CREATE TABLE lake.visits (age string)", {}, "no run has created it"),
        ("CREATE VIEW lake.visits AS SELECT 1", {}, "no run has created it"),
        (
            "CREATE VIEW lake.visits AS SELECT 1",
            {"table_mode": "append"},
            "it is a view. Expected Delta Lake",
        ),
        ("SELECT 1", {"table": "visits; DROP TABLE visits"}, "it is no name. Expected catalog"),
    ],
)
def test_tables_that_are_refused_before_the_work(
    spark: SparkSession, lake: Path, cli: Cli, statement: str, output: dict[str, Any], message: str
) -> None:
    spark.sql(statement)
    run(lake, cli, "2026-11-27", ends=2, says=message, **output)
    assert not (lake / "2026-11-27").exists()


@pytest.mark.timeout(600)
def test_a_table_that_fails_leaves_the_release(spark: SparkSession, lake: Path, cli: Cli) -> None:
    """Its columns are other ones. The run is repeated with another table, and publishes nothing."""
    spark.sql(
        "CREATE TABLE lake.visits (age string, day string) PARTITIONED BY (day) "
        "TBLPROPERTIES ('anonspark.output' = 'true')"
    )
    says = (
        "lake.visits cannot be written: it has other columns",
        "is complete. Mend the table, and run again with --run-id run-2026-11-27",
    )
    run(lake, cli, "2026-11-27", ends=5, says=says)
    before = (lake / "2026-11-27" / "manifest.json").stat().st_mtime_ns
    # A table of a catalog may have other names of columns in large letters, and other types.
    spark.sql(
        "CREATE TABLE lake.nights (AGE string, visits bigint, day date) PARTITIONED BY (day) "
        "TBLPROPERTIES ('anonspark.output' = 'true')"
    )
    run(lake, cli, "2026-11-27", table="lake.nights")
    assert (lake / "2026-11-27" / "manifest.json").stat().st_mtime_ns == before
    cli.ends(0, "verify", lake / "2026-11-27", "--table", "lake.nights")


def test_the_engine_without_java_has_no_tables(lake: Path, cli: Cli) -> None:
    run(lake, cli, "2026-11-27", table=None, table_partition={})
    release = lake / "2026-11-27"
    refused = cli("verify", release, "--table", "lake.visits", "--engine", "local")
    assert refused.code == 2
    assert "lake.visits: only a catalog of Spark knows tables by name" in refused.err
    both = cli("verify", release, "--with", release, "--table", "lake.visits")
    assert (both.code, "--table: found with --with" in both.err) == (2, True)
