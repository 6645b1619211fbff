"""The files of a release, and a job that publishes every night."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from cases import cases, data_beside
from commands import Cli
from helpers import configuration_file, contents, metrics, summary, write_table

from anonspark.config import load_configuration
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.engine.spark.parquet_files import encoding_of
from anonspark.errors import ConfigurationError, PublishingError
from anonspark.layers.publish import file_assignment, writing
from anonspark.layers.publish.history import append_to_history, last_comparable_run, require_history
from anonspark.layers.publish.paths import require_usable_metrics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = pytest.mark.usefixtures("spark")


def people(rows: int) -> pa.Table:
    random = np.random.default_rng(11)
    return pa.table(
        {
            "age": random.integers(18, 90, rows),
            "income": random.lognormal(10, 1, rows).astype(np.int64),
            "disease": random.choice(["asthma", "fracture", "influenza", "migraine"], rows),
        }
    )


def write_parts(path: Path, table: pa.Table, parts: int) -> Path:
    """Write a table as so many files, its records in another order for each number of files."""
    rows = np.random.default_rng(parts).permutation(table.num_rows)
    for number, own in enumerate(np.array_split(rows, parts)):
        write_table(path / f"{number}.parquet", table.take(own))
    return path


def data_files(release: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((release / "data").glob("*.parquet"))}


def require_listed(release: Path) -> list[dict[str, Any]]:
    """Compare the manifest's list with what is there; hidden checksums are the file system's."""
    listed: list[dict[str, Any]] = json.loads((release / "manifest.json").read_text())["files"]
    expected = []
    for path in sorted(release.rglob("*")):
        name = str(path.relative_to(release))
        if path.is_dir() or path.suffix == ".crc" or name == "manifest.json":
            continue
        table = path.suffix in (".parquet", ".orc")
        reading = pq.read_table if path.suffix == ".parquet" else pyarrow.orc.read_table
        expected.append(
            {
                "path": name,
                "bytes": path.stat().st_size,
                "rows": reading(path).num_rows if table else None,
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
        )
    assert listed == sorted(expected, key=lambda one: one["path"])
    return listed


ATTRIBUTES = {"age": "quasi_identifier", "income": "quasi_identifier", "disease": "sensitive"}


def deviations(counts: np.ndarray) -> float:
    """Return how far a table of counts is from independence: chi-square, standardized."""
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    freedom = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    found = ((counts - expected) ** 2 / expected).sum()
    return float((found - freedom) / np.sqrt(2 * freedom))


def test_files_and_rounds_are_independent(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a file nor a place in it tells the round; and another division of the work, by one
    process, makes the same files, byte by byte.
    """
    monkeypatch.setattr(file_assignment, "_FILE_ROWS", 500)
    table = people(5_000)
    for name, engine, parts, task_rows in (
        ("release", "spark", 6, 400),
        ("again", "local", 2, 10**9),
    ):
        configuration = configuration_file(
            tmp_path,
            input={"path": str(write_parts(tmp_path / f"input-{name}", table, parts))},
            attributes=ATTRIBUTES,
            model={"name": "su-mondrian", "rho": 4, "separation": "always"},
            output={"path": str(tmp_path / name), "style": "bounds"},
            execution={"engine": engine, "task_rows": task_rows, "seed": 29},
        )
        cli.ends(0, "run", configuration, "--no-progress")
    release = tmp_path / "release"
    files = data_files(release)
    assert list(files) == [f"part-{number:05d}.parquet" for number in range(10)]
    assert files == data_files(tmp_path / "again")
    require_listed(release)

    bounds = ("age_min", "age_max", "income_min", "income_max")
    classes = metrics(release, "classes")
    round_of = {tuple(row[name] for name in bounds): row["round"] for row in classes}
    rounds = len(set(round_of.values()))
    # Almost all are told apart by their bounds.
    assert rounds >= 3
    assert len(round_of) > 0.95 * len(classes)
    in_order: list[list[int]] = []
    for name in files:
        rows = pq.read_table(release / "data" / name).select(bounds).to_pylist()
        tuples = [tuple(row.values()) for row in rows]
        # Records of a class stand together.
        own = [one for one, before in zip(tuples, [None, *tuples], strict=False) if one != before]
        assert len(own) < 1.05 * len(set(own))
        in_order.append([round_of[one] for one in own])
    counts = np.array([np.bincount(own, minlength=rounds + 1)[1:] for own in in_order])
    assert deviations(counts) < 4
    assert (counts[:, 1:] > 0).any(axis=1).all()
    # The place in a file, in tenths, and the class before tell nothing either.
    tenths = np.zeros((10, rounds))
    pairs = np.zeros((rounds, rounds))
    for own in in_order:
        for place, number in enumerate(own):
            tenths[10 * place // len(own), number - 1] += 1
        for number, following in pairwise(own):
            pairs[number - 1, following - 1] += 1
    assert deviations(tenths) < 4
    assert deviations(pairs) < 4
    identifiers = [row["class_id"] for row in classes]
    assert identifiers == sorted(identifiers)


def test_large_classes_are_shared_out(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few classes of many records that are equal in everything published; suppressed ones, too."""
    monkeypatch.setattr(file_assignment, "_FILE_ROWS", 500)
    random = np.random.default_rng(3)
    table = pa.table(
        {
            "age": random.integers(0, 100, 6_000),
            "sex": random.choice(["f", "m"], 6_000, p=[0.9, 0.1]),
            "disease": random.choice(["asthma", "fracture", "rare"], 6_000, p=[0.9, 0.09, 0.01]),
        }
    )
    intervals = {"intervals": [20, 100], "origin": 0}
    sexes = tmp_path / "sexes.csv"
    sexes.write_text("f,*\nm,*\n")
    for name, parts in (("release", 6), ("again", 2)):
        configuration = configuration_file(
            tmp_path,
            input={"path": str(write_parts(tmp_path / f"input-{name}", table, parts))},
            attributes={
                "age": {"role": "quasi_identifier", "hierarchy": intervals},
                "sex": {"role": "quasi_identifier", "hierarchy": str(sexes)},
                "disease": "sensitive",
            },
            privacy={"k": 150},
            model={
                "name": "full-domain",
                "levels": [{"age": 1, "sex": 0}],
                "suppression_limit": 1.0,
                "residual": "suppress",
            },
            output={"path": str(tmp_path / name)},
            execution={"engine": "local"},
        )
        cli.ends(0, "run", configuration, "--no-progress")
    assert summary(tmp_path / "release")["rows_suppressed"] > 500
    sizes = [
        one["rows"]
        for one in require_listed(tmp_path / "release")
        if one["path"].startswith("data/")
    ]
    assert len(sizes) == 12
    assert 0.5 < min(sizes) / 500 < max(sizes) / 500 < 1.5
    assert data_files(tmp_path / "release") == data_files(tmp_path / "again")


EVERY_TYPE = data_beside(__file__)["EVERY_TYPE"]


def parquet_schema(data: Path) -> list[tuple[Any, ...]]:
    """Return how each column is stored."""
    schema = pq.ParquetFile(data / "part-00000.parquet").schema
    leaves = [schema.column(place) for place in range(len(schema.names))]
    return [
        (
            leaf.path,
            leaf.physical_type,
            str(leaf.logical_type),
            leaf.max_definition_level,
            leaf.max_repetition_level,
            leaf.length,
        )
        for leaf in leaves
    ]


def test_every_type_as_spark_writes_it(
    spark: SparkSession, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Encoded by tasks, and by Spark from what it reads there: equal for every reader."""
    monkeypatch.setattr(writing, "_ROW_GROUP_BYTES", 10_000)
    columns = [f"if(id % 10 = 9, null, {made}) AS {name}" for name, made in EVERY_TYPE.items()]
    source = tmp_path / "input"
    table = spark.range(120).selectExpr("id AS age", "concat('t', id % 4) AS town", *columns)
    table.coalesce(2).write.parquet(str(source))
    attributes = {"age": "quasi_identifier", "town": "quasi_identifier"}
    attributes |= dict.fromkeys(EVERY_TYPE, "insensitive")
    release = tmp_path / "by tasks"
    configuration = configuration_file(
        tmp_path,
        input={"path": str(source)},
        attributes=attributes,
        output={"path": str(release), "style": "bounds"},
    )
    cli.ends(0, "run", configuration)
    require_listed(release)
    cli.ends(0, "verify", release, "--original", source)
    by_tasks, by_spark = release / "data", tmp_path / "by Spark" / "data"
    frame = spark.read.parquet(str(by_tasks))
    frame.coalesce(1).write.parquet(str(by_spark))
    (path,) = by_spark.glob("*.parquet")
    path.rename(by_spark / "part-00000.parquet")
    assert parquet_schema(by_tasks) == parquet_schema(by_spark)
    # In words: numbers may be none.
    assert str(pq.read_table(by_tasks).to_pylist()) == str(pq.read_table(by_spark).to_pylist())
    assert frame.schema == spark.read.parquet(str(by_spark)).schema
    files = [pq.ParquetFile(one / "part-00000.parquet").metadata for one in (by_tasks, by_spark)]
    assert files[0].num_row_groups > 1
    told = [dict(file.metadata) for file in files]
    described = [one.pop(b"org.apache.spark.sql.parquet.row.metadata") for one in told]
    assert told[0].keys() == told[1].keys()
    assert json.loads(described[0]) == json.loads(described[1])


@pytest.mark.usefixtures("settings_come_back")
def test_the_codec_of_the_session(spark: SparkSession) -> None:
    schema = pa.schema([("name", pa.string())])
    assert encoding_of(spark, schema).codec == "snappy"
    spark.conf.set("spark.sql.parquet.compression.codec", "ZSTD")
    assert encoding_of(spark, schema).codec == "zstd"


@cases(__file__, "key", "value")
@pytest.mark.usefixtures("settings_come_back")
def test_settings_that_the_encoder_does_not_know_are_refused_before_any_work(
    engine: SparkEngine, key: str, value: str
) -> None:
    engine.require_format("parquet")
    engine.session.conf.set(key, value)
    with pytest.raises(ConfigurationError, match=f"{key}: releases are encoded"):
        engine.require_format("orc")


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


def test_a_job_of_two_nights(spark: SparkSession, tmp_path: Path, cli: Cli) -> None:
    write_patients(tmp_path / "input.parquet", 200)
    path = job(tmp_path)
    before = spark.sparkContext.getLocalProperty("spark.job.description")
    outcome = cli.ends(0, "run", path, "--run-id", "monday", "--log-format", "json")
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
    outcome = cli.ends(4, "run", path, *arguments, "--set", "execution.task_rows=1000")
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


def test_a_usage_error_is_json_too(cli: Cli) -> None:
    outcome = cli("run", "--log-format", "json", "--no-such-option")
    assert outcome.code == json.loads(outcome.err)["exit_code"] == 2
    outcome = cli("run", "c.yaml", "--log-format", "xml")
    assert (outcome.code, outcome.err.startswith("error: --log-format: found 'xml'")) == (2, True)
