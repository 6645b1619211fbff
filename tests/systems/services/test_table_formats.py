"""Delta Lake and Apache Iceberg: the version that is read is pinned, and a release is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from golden_run import FINGERPRINTS, ROWS
from places import REPOSITORY
from service_jars import locked_jars
from spark_client import run_client

_CATALOG = "spark.sql.catalog.local"


@pytest.fixture(scope="module")
def outcomes(golden_people: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the client."""
    folder = tmp_path_factory.mktemp("formats")
    packages = locked_jars(
        "delta-spark_4.1_2.13", "delta-storage", "iceberg-spark-runtime-4.1_2.13"
    )
    settings = {
        "spark.driver.extraClassPath": ":".join(map(str, packages)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Of the log of a small table, too, 50 tasks are made.
        "spark.databricks.delta.snapshotPartitions": "2",
        _CATALOG: "org.apache.iceberg.spark.SparkCatalog",
        f"{_CATALOG}.type": "hadoop",
        f"{_CATALOG}.warehouse": str(folder / "warehouse"),
        "spark.sql.warehouse.dir": str(folder / "tables"),
    }
    client = REPOSITORY / "tests" / "support" / "table_formats_client.py"
    run_client(folder, settings, client, folder, golden_people)
    found: dict[str, Any] = json.loads((folder / "outcomes.json").read_text())
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("data_format", ["delta", "iceberg", "delta by name", "iceberg by name"])
def test_a_continued_run_reads_the_version_that_it_began_with(
    outcomes: dict[str, Any], data_format: str
) -> None:
    of_format = outcomes[data_format]
    assert of_format["killed"]["code"] == 1
    for name in ("resumed", "verify", "again"):
        assert of_format[name]["code"] == 0, of_format[name]["said"]
    assert "round 1 of 2: 600 rows: finished before" in of_format["resumed"]["said"]
    manifest, later = of_format["manifest"], of_format["manifest of the next run"]
    found = {name: manifest["fingerprints"][name] for name in FINGERPRINTS}
    assert found == FINGERPRINTS
    assert later["published"]["rows"] == ROWS + 100
    assert manifest["input_version"].keys() == {"versionAsOf"}
    assert later["input_version"] != manifest["input_version"]


def test_a_release_as_delta(outcomes: dict[str, Any]) -> None:
    """It has one version, so that nobody travels back to what was refused."""
    delta = outcomes["delta"]
    assert delta["refused"]["code"] == 4, delta["refused"]["said"]
    assert not delta["after it was refused"]
    for name in ("as delta", "verify delta"):
        assert delta[name]["code"] == 0, delta[name]["said"]
    assert (delta["rows of delta"], delta["versions of delta"]) == (ROWS, 1)
    manifest = delta["manifest of delta"]
    assert manifest["fingerprints"]["output"] == FINGERPRINTS["output"]
    # The configuration names the version itself.
    assert "input_version" not in manifest


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("absent", 3, "TABLE_OR_VIEW_NOT_FOUND"),
        ("plain; DROP TABLE plain", 3, "is no name of a table"),
        ("other options", 2, "Expected versionAsOf or timestampAsOf"),
    ],
)
def test_what_cannot_be_read_by_name(
    outcomes: dict[str, Any], name: str, code: int, said: str
) -> None:
    refused = outcomes["refused"][name]
    assert refused["code"] == code
    assert said in refused["said"]
