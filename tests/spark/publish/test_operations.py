"""A job that runs every night: tables of all runs, drift, logs, names of jobs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from cases import cases
from helpers import command, configuration_file, contents, summary, write_table

from anonspark.config import load_configuration
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.errors import ConfigurationError, PublishingError
from anonspark.layers.publish.history import (
    append_to_history,
    last_comparable_run,
    require_history,
)
from anonspark.layers.publish.metrics_paths import require_usable_metrics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")


def write_patients(path: Path, rows: int) -> None:
    ages = [17 + number * 7 % 61 for number in range(rows)]
    write_table(path, pa.table({"age": ages, "name": ["Zebediah"] * rows}))


def job(tmp_path: Path, **metrics: Any) -> Path:
    """Write the configuration of the job."""
    return configuration_file(
        tmp_path,
        attributes={"age": "quasi_identifier", "name": "sensitive"},
        model={"name": "su-mondrian", "rho": 2, "separation": "always"},
        # A quiet night is one without a warning.
        execution={"task_rows": 150, "seed": 2**60},
        output={"mode": "overwrite"},
        metrics={
            "job": "patients",
            "append_to": str(tmp_path / "history"),
            "drift": {"rows_in": 0.2, "gcp": 0.9},
        }
        | metrics,
    )


def descriptions(spark: SparkSession, run_id: str) -> list[str]:
    """Return the descriptions of the jobs of a run, as Spark's own interface shows them."""
    jobs = spark._jsc.sc().statusStore().jobsList(None)  # type: ignore[attr-defined]
    found = (jobs.apply(place) for place in range(jobs.size()))
    return [
        str(one.description().get())
        for one in found
        if one.jobGroup().isDefined() and one.jobGroup().get() == f"anonspark-{run_id}"
    ]


def tables(spark: SparkSession, tmp_path: Path, name: str) -> list[dict[str, Any]]:
    """Read a table of all runs."""
    table = spark.read.parquet(f"{tmp_path}/history/{name}")
    return [row.asDict() for row in table.orderBy("date", "run_id").collect()]


def test_a_job_of_two_nights(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_patients(tmp_path / "input.parquet", 200)
    path = job(tmp_path)
    before = spark.sparkContext.getLocalProperty("spark.job.description")
    outcome = command(capsys, "run", path, "--run-id", "monday", "--log-format", "json")
    assert outcome.code == 0, outcome.err
    release = summary(tmp_path / "release")

    lines = [json.loads(line) for line in outcome.err.splitlines()]
    assert {line["run_id"] for line in lines} == {"monday"}
    assert {"prepare", "round 1 of 2", "publish", "verify", "metrics"} <= {
        line["stage"] for line in lines
    }
    rounds = [line["round"] for line in lines if line["message"].startswith("round 2 of 2: ")]
    # A round that takes 2 seconds has a line where it begins, too.
    assert set(rounds) == {2}

    names = descriptions(spark, "monday")
    staging = "prepare, checking and staging records"
    for moment in (staging, "round 1 of 2, counting", "round 2 of 2, forming classes", "verify"):
        assert f"anonspark monday: {moment}" in names
    # Spark names the jobs itself that broadcast a table or list many files.
    own = ("broadcast exchange", "Listing leaf files")
    assert all(name.startswith(("anonspark monday: ", *own)) for name in names)
    assert spark.sparkContext.getLocalProperty("spark.job.description") == before

    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert list(manifest["seconds"]) == [
        *("prepare", "drift", "round 1 of 2", "round 2 of 2", "evaluate", "publish", "verify"),
        "warnings",
    ]
    assert [(one["metric"], one["before"]) for one in manifest["drift"]] == [
        ("rows_in", None),
        ("gcp", None),
    ]

    (row,) = tables(spark, tmp_path, "summary")
    row["started"] = row["started"].replace(tzinfo=UTC)
    assert {name: row[name] for name in release} == release
    assert (row["job"], row["date"]) == ("patients", release["started"].date())
    assert [one["round"] for one in tables(spark, tmp_path, "rounds")] == [1, 2]

    # More patients than usual: nothing is published, and what was told before stays.
    write_patients(tmp_path / "input.parquet", 300)
    there = contents(tmp_path)
    arguments = ("--run-id", "tuesday", "--log-format=json", "--no-progress")
    outcome = command(capsys, "run", path, *arguments, "--set", "execution.task_rows=1000")
    assert outcome.code == 4
    *_, line = [json.loads(line) for line in outcome.err.splitlines()]
    assert (line["level"], line["exit_code"], line["run_id"]) == ("ERROR", 4, "tuesday")
    assert line["message"].startswith(
        "metrics.drift.rows_in: found 300 after 200 in run monday, a relative change of 0.5, "
        "expected at most 0.2\n"
    )
    assert contents(tmp_path) == there


def test_rows_of_a_run_id_are_replaced_whatever_the_date(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_patients(tmp_path / "input.parquet", 10)
    files = FileSystem(spark)
    configuration = load_configuration(job(tmp_path))
    require_history(files, f"{tmp_path}/history")
    started = datetime(2026, 11, 20, 23, 59, tzinfo=UTC)

    def append(run_id: str, rows_in: int, days: int) -> None:
        row = {"run_id": run_id, "started": started + timedelta(days=days), "rows_in": rows_in}
        append_to_history(files, configuration, row, [{"run_id": run_id, "round": 1}])

    def last(run_id: str, days: int, **sections: Any) -> Any:
        chosen = configuration.model_copy(update=sections)
        found = last_comparable_run(
            SparkEngine(spark), chosen, run_id, started + timedelta(days=days)
        )
        return found and (found["run_id"], found["rows_in"])

    assert last("a", 0) is None
    append("a", 1, 0)
    append("b", 2, 1)
    append("b", 3, 1)
    append("a", 4, 2)
    found = [
        (str(row["date"]), row["run_id"], row["rows_in"])
        for row in tables(spark, tmp_path, "summary")
    ]
    assert found == [("2026-11-21", "b", 3), ("2026-11-22", "a", 4)]
    assert [row["run_id"] for row in tables(spark, tmp_path, "rounds")] == ["b", "a"]

    assert last("c", 3) == ("a", 4)
    assert last("a", 3) == ("b", 3), "an earlier attempt of the same run is not compared with"
    assert last("c", 2) == ("b", 3)
    assert last("c", 90) == ("a", 4), "months later the whole table is searched"
    other_job = configuration.metrics.model_copy(update={"job": "staff"})
    assert last("c", 3, metrics=other_job) is None
    assert last("c", 3, missing="category") is None

    def refuse(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PublishingError, match=r"is complete, only its rows .* --run-id d$"):
        append("d", 5, 4)
    monkeypatch.undo()
    assert not [name for name in contents(tmp_path) if "writing" in name or "d.parquet" in name]


@cases(__file__, "metrics", "told")
def test_places_that_are_refused(
    spark: SparkSession, tmp_path: Path, metrics: dict[str, str], told: str
) -> None:
    places = {key: place.format(tmp_path) for key, place in metrics.items()}
    configuration = load_configuration(job(tmp_path, **places))
    with pytest.raises(ConfigurationError, match=told):
        require_usable_metrics(FileSystem(spark), configuration)


def test_tables_of_all_runs_that_cannot_be_written(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigurationError, match="cannot create the tables below"):
        require_history(FileSystem(spark), f"{tmp_path}/file")


def test_a_usage_error_is_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = command(capsys, "run", "--log-format", "json", "--no-such-option")
    assert outcome.code == json.loads(outcome.err)["exit_code"] == 2
    outcome = command(capsys, "run", "c.yaml", "--log-format", "xml")
    assert (outcome.code, outcome.err.startswith("error: --log-format: found 'xml'")) == (2, True)
