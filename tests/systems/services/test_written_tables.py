"""Releases are written to tables of Delta Lake, Iceberg and Hive's metastore, once, and proven."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from spark_client import outcomes_of_table_formats
from standalone import QUICK_START


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the client, whose metastore is Derby's."""
    folder = tmp_path_factory.mktemp("tables")
    settings = {
        "spark.driver.extraJavaOptions": f"{QUICK_START} -Dderby.system.home={folder}",
        "spark.sql.catalogImplementation": "hive",
    }
    return outcomes_of_table_formats(folder, "written_tables_client.py", settings=settings)


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
