"""Releases are written to tables of Delta Lake, Iceberg and Hive's metastore, once, and proven."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from places import REPOSITORY
from service_jars import locked_jars
from spark_client import run_client
from standalone import QUICK_START

_CATALOG = "spark.sql.catalog.local"


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the client, whose metastore is Derby's."""
    folder = tmp_path_factory.mktemp("tables")
    packages = locked_jars(
        "delta-spark_4.1_2.13", "delta-storage", "iceberg-spark-runtime-4.1_2.13"
    )
    settings = {
        "spark.driver.extraClassPath": ":".join(map(str, packages)),
        "spark.driver.extraJavaOptions": f"{QUICK_START} -Dderby.system.home={folder}",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        _CATALOG: "org.apache.iceberg.spark.SparkCatalog",
        f"{_CATALOG}.type": "hadoop",
        f"{_CATALOG}.warehouse": str(folder / "warehouse"),
        "spark.sql.warehouse.dir": str(folder / "tables"),
    }
    client = REPOSITORY / "tests" / "support" / "written_tables_client.py"
    run_client(folder, settings, client, folder)
    found: dict[str, Any] = json.loads((folder / "outcomes.json").read_text())
    return found


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("format", ["iceberg", "delta", "parquet", "hive"])
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_night_is_written_once(outcomes: dict[str, Any], format: str, mode: str) -> None:
    if f"{format} {mode}" not in outcomes:
        assert (format, mode) in {("parquet", "append"), ("hive", "append")}
        return
    of_table = outcomes[f"{format} {mode}"]
    for step in ("before the table", "before the commit", "after the commit"):
        assert of_table[step] == 1
    for run in ("again", "once more", "second"):
        assert of_table[run]["code"] == 0, of_table[run]["said"]
    assert of_table["alike"] == [True, True]
    assert of_table["rows"] == 400
    for verified in of_table["verify"]:
        assert verified["code"] == 0, verified["said"]


@pytest.mark.parametrize("format", ["iceberg", "delta", "parquet", "hive"])
def test_another_release_of_the_run(outcomes: dict[str, Any], format: str) -> None:
    """It takes the place of its records, and is not appended to them."""
    replaced = outcomes[f"{format} overwrite"]
    said = replaced["other release of the run"]["said"]
    assert (replaced["other release of the run"]["code"], replaced["rows of it"]) == (0, 400), said
    assert replaced["verify it"] == 0
    if format in ("iceberg", "delta"):
        appended = outcomes[f"{format} append"]
        refused = appended["other release of the run"]
        assert refused["code"] == 5
        assert "this run has appended other records" in refused["said"]
        assert appended["rows of it"] == 400
        assert appended["verify it"] == 4


@pytest.mark.parametrize("format", ["iceberg", "delta"])
def test_commits_say_what_they_are(outcomes: dict[str, Any], format: str) -> None:
    notes = [json.loads(note) for note in outcomes["notes"][format]]
    assert {note["run_id"] for note in notes} == {"run-2026-11-27", "run-2026-11-28"}
    assert len(notes) == 2
    for note in notes:
        assert Path(note["release"].removeprefix("file:")).name == note["run_id"].removeprefix(
            "run-"
        )
        assert len(note["fingerprint"]) == 64
