"""Runs that fail late or are ended: what was published before stays, and nothing else is left."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from commands import Cli
from helpers import configuration_file, contents, disk, table_of, write_earlier_release, write_table
from pyspark.errors import PythonException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from anonspark.core.columns import CLASS_ID
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Table
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.engine.spark.jobs import stoppable_jobs
from anonspark.engine.spark.table import frame_of
from anonspark.layers.publish.staging import open_staging
from anonspark.pipeline import writing
from anonspark.staged.records import PACKED, PackRecords, Records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ATTRIBUTES = {"age": "quasi_identifier", "income": "quasi_identifier", "disease": "sensitive"}

# For a machine that is busy with other things.
PATIENCE = 300


def write_people(path: Path, rows: int) -> Path:
    random = np.random.default_rng(7)
    columns = {
        "age": random.integers(0, 100, rows),
        "income": random.lognormal(10, 1, rows),
        "disease": [f"Kryptonitis {number}" for number in random.integers(0, 50, rows)],
    }
    return write_table(path, columns)


@pytest.fixture
def execution(request: pytest.FixtureRequest) -> dict[str, str]:
    """Name the engine that the parameter says, with a session where that is Spark's."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    return {"engine": request.param}


on_both = pytest.mark.parametrize("execution", ["local", "spark"], indirect=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of one mebibyte with an earlier release at `release`."""
    with disk(tmp_path / "disk", "1m") as folder:
        write_earlier_release(folder / "release")
        yield folder


def replacing(folder: Path, execution: dict[str, str]) -> Path:
    """Write an input, an earlier release, and the configuration that replaces it."""
    write_people(folder / "input.parquet", 100)
    write_earlier_release(folder / "release")
    return configuration_file(
        folder,
        attributes=ATTRIBUTES,
        model={"name": "smondrian"},
        execution=execution,
        output={"mode": "overwrite"},
    )


def fill(folder: Path) -> None:
    """Leave no room on a disk."""
    with (folder / "ballast").open("wb", buffering=0) as file:
        for size in (65_536, 1024, 1):
            try:
                while True:
                    file.write(b"0" * size)
            except OSError:
                continue


# On Spark where tasks write, and where the driver does.
@pytest.mark.parametrize(
    ("execution", "stage"),
    [
        *(("local", stage) for stage in ("prepare", "publish", "metrics", "manifest")),
        ("spark", "publish"),
        *(
            pytest.param("spark", stage, marks=pytest.mark.night)
            for stage in ("prepare", "manifest")
        ),
    ],
    indirect=["execution"],
)
def test_full_disk_at_any_stage_leaves_the_earlier_release(
    execution: dict[str, str],
    small_disk: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
    stage: str,
) -> None:
    """Wherever the disk fills up: exit code 5, the earlier release unchanged, nothing left."""
    rows = 200_000 if stage == "prepare" else 2_000
    write_people(tmp_path / "input.parquet", rows)
    name = {"publish": "write_records", "metrics": "write_rows", "manifest": "write_manifest"}
    if stage != "prepare":
        works = getattr(writing, name[stage])

        def write_on_a_full_disk(*arguments: Any) -> None:
            if not (small_disk / "ballast").exists():
                fill(small_disk)
            works(*arguments)

        monkeypatch.setattr(writing, name[stage], write_on_a_full_disk)
    path = configuration_file(
        tmp_path,
        attributes=ATTRIBUTES,
        model={"name": "smondrian"},
        execution=execution,
        output={"path": str(small_disk / "release"), "mode": "overwrite"},
    )
    before = contents(small_disk)
    outcome = cli.ends(5, "run", path, says="output.path: no space left on the device")
    assert "Free space" in outcome.err
    assert "Kryptonitis" not in outcome.err
    # Spark's daemon of Python workers says so when a task that it served was ended.
    of_spark = r"Traceback.*\n(  File .*/pyspark/daemon.py.*\n(    .*\n)*)*BrokenPipeError"
    said = re.sub(of_spark, "", outcome.err)
    assert "Traceback" not in said
    after = contents(small_disk)
    after.pop("ballast", None)
    assert after == before


@on_both
def test_disk_full_before_the_first_byte(
    execution: dict[str, str], small_disk: Path, tmp_path: Path, cli: Cli
) -> None:
    """A staging directory that cannot be made names the place."""
    write_people(tmp_path / "input.parquet", 100)
    path = configuration_file(
        tmp_path,
        attributes=ATTRIBUTES,
        execution=execution,
        output={"path": str(small_disk / "release"), "mode": "overwrite"},
    )
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    before = contents(small_disk)
    outcome = cli.ends(5, "run", path, says="output.path: cannot create the staging directory")
    assert str(small_disk) in outcome.err
    assert contents(small_disk) == before


def _one_class_too_small(rows: pa.Table) -> pa.Table:
    """Leave one record in a class, and give the others to another one."""
    places = rows.column_names.index(CLASS_ID)
    names = rows[CLASS_ID].to_pylist()
    first, second = sorted(set(names))[:2]
    kept = names.index(first)
    changed = [
        second if name == first and place != kept else name for place, name in enumerate(names)
    ]
    ids = pa.array(changed, rows.schema.field(places).type)
    return rows.set_column(places, rows.schema.field(places), ids)


def _one_class_too_small_on_spark(rows: DataFrame) -> DataFrame:
    first, second = (row[0] for row in rows.select(CLASS_ID).distinct().take(2))
    of_first = sf.col(CLASS_ID) == first
    own = rows.where(of_first)
    moved = own.offset(1).withColumn(CLASS_ID, sf.lit(second))
    return own.limit(1).unionByName(moved).unionByName(rows.where(~of_first))


def _spoil(spoil: Callable[[pa.Table], pa.Table]) -> Callable[[Table], Table]:
    return lambda rows: LocalEngine().wrap(spoil(rows.collect()))


def _spoil_on_spark(rows: Table) -> Table:
    return table_of(_one_class_too_small_on_spark(frame_of(rows)))


TOO_SMALL = "the smallest class of the release has 1 record,"


@pytest.mark.parametrize(
    ("execution", "spoil", "told"),
    [
        pytest.param("spark", _spoil_on_spark, TOO_SMALL, id="spark-small-class"),
        pytest.param("local", _spoil(_one_class_too_small), TOO_SMALL, id="small-class"),
        pytest.param(
            "local", _spoil(lambda rows: rows.slice(1)), "99 records, expected 100", id="lost"
        ),
        pytest.param(
            "local",
            _spoil(lambda rows: pa.concat_tables([rows, rows.slice(0, 1)])),
            "101 records, expected 100",
            id="twice",
        ),
    ],
    indirect=["execution"],
)
def test_release_that_fails_its_verification_is_not_published(
    execution: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
    spoil: Callable[[Table], Table],
    told: str,
) -> None:
    works = writing.write_records

    def write_spoilt(finished: Records, *arguments: Any) -> None:
        spoilt = spoil(finished.rows()).map_batches(PackRecords(), PACKED)
        works(Records(spoilt, finished.schema), *arguments)

    monkeypatch.setattr(writing, "write_records", write_spoilt)
    path = replacing(tmp_path, execution)
    before = contents(tmp_path)
    cli.ends(4, "run", path, says=told)
    assert contents(tmp_path) == before


@on_both
def test_output_that_appears_during_the_run_stays(
    execution: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    works = writing.write_manifest

    def write_late(*arguments: Any) -> None:
        works(*arguments)
        write_earlier_release(tmp_path / "release")

    monkeypatch.setattr(writing, "write_manifest", write_late)
    write_people(tmp_path / "input.parquet", 100)
    path = configuration_file(
        tmp_path, attributes=ATTRIBUTES, model={"name": "smondrian"}, execution=execution
    )
    before = set(contents(tmp_path))
    cli.ends(5, "run", path, says="appeared while the run was going on")
    write_earlier_release(tmp_path / "expected")
    assert contents(tmp_path / "release") == contents(tmp_path / "expected")
    after = {name for name in contents(tmp_path) if not name.startswith(("release", "expected"))}
    assert after == before


def test_staging_outlives_no_task_that_writes_into_it(spark: SparkSession, tmp_path: Path) -> None:
    """A job fails with its first task, while others go on writing for a while."""

    def fail_or_take_long(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            if batch.column(0)[0].as_py() == 0:
                raise ValueError("this task fails at once")
            for place in range(batch.num_rows):
                time.sleep(0.05)
                yield batch.slice(place, 1)

    numbers = spark.range(0, 200, numPartitions=2).mapInArrow(fail_or_take_long, "id long")
    files = FileSystem(spark)
    with (
        pytest.raises(PythonException, match="fails at once"),
        open_staging(files, str(tmp_path / "release"), "run") as staging,
        stoppable_jobs(spark.sparkContext, "anonspark-run"),
    ):
        numbers.write.parquet(staging.records)
    tracker = spark.sparkContext.statusTracker()
    stages = [
        tracker.getStageInfo(stage)
        for job in tracker.getJobIdsForGroup("anonspark-run")
        for stage in tracker.getJobInfo(job).stageIds
    ]
    assert [stage.numActiveTasks for stage in stages] == [0]
    assert contents(tmp_path) == {}
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None


# Two commands, for which Java is started once; the second one ends the process with its code.
TWO_COMMANDS = """
import json, sys
from anonspark.cli.application import main

arguments = json.loads(sys.stdin.readline())
print(main(arguments), flush=True)
sys.stdin.readline()
sys.exit(main(arguments))
"""


@pytest.mark.system
def test_signals_end_a_job_of_spark_and_leave_the_earlier_release(
    quick_start: dict[str, str], tmp_path: Path
) -> None:
    """A process that is told to end in the middle of a Spark job cleans up and says so."""
    write_people(tmp_path / "input.parquet", 8_000)
    write_earlier_release(tmp_path / "release")
    path = configuration_file(
        tmp_path,
        attributes=ATTRIBUTES,
        model={"name": "su-mondrian", "rho": 200},
        execution={"task_rows": 3_000},
        output={"mode": "overwrite"},
    )
    before = contents(tmp_path)
    # A group of its own, for a terminal sends Ctrl-C to Java and the workers, too.
    process = subprocess.Popen(
        [sys.executable, "-c", TWO_COMMANDS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=quick_start,
        start_new_session=True,
    )
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    assert stdin is not None
    assert stdout is not None
    assert stderr is not None
    said: list[str] = []

    def read_until(told: str) -> None:
        for line in stderr:
            said.append(line)
            if told in line:
                return
        pytest.fail(f"{told!r} was not said: {''.join(said)}")

    patience = threading.Timer(PATIENCE, os.killpg, (process.pid, signal.SIGKILL))
    patience.start()
    try:
        print(json.dumps(["run", str(path), "--master", "local[2]"]), file=stdin, flush=True)
        read_until(": prepare")
        process.send_signal(signal.SIGTERM)
        read_until("error: terminated. No release was published")
        assert stdout.readline() == "143\n"
        assert contents(tmp_path) == before
        print(file=stdin, flush=True)
        read_until(": round 2")
        os.killpg(process.pid, signal.SIGINT)
        read_until("error: interrupted. No release was published")
        out, err = process.communicate()
    finally:
        patience.cancel()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    everything = "".join(said) + err
    assert process.returncode == 130, everything
    # Spark's worker daemon complains on its own when the task that it forks for was cancelled.
    files = re.findall(r'File "([^"]+)"', everything)
    assert all("pyspark" in file for file in files), everything
    assert "Kryptonitis" not in everything
    assert out == ""
    assert contents(tmp_path) == before


def _java_of_group(group: int) -> bool:
    """Tell whether a process group has a Java that has come as far as running its program."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, fields = status.read_text().partition(" (")[2].rpartition(") ")
        except OSError:  # it has ended meanwhile
            continue
        if name == "java" and int(fields.split()[2]) == group:
            return True
    return False


@pytest.mark.system
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
def test_ctrl_c_while_spark_starts_leaves_no_java(
    quick_start: dict[str, str], tmp_path: Path
) -> None:
    write_people(tmp_path / "input.parquet", 100)
    path = configuration_file(tmp_path, attributes=ATTRIBUTES)
    before = contents(tmp_path)
    process = subprocess.Popen(
        [Path(sys.executable).with_name("anonspark"), "run", path, "--master", "local[1]"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=quick_start,
        start_new_session=True,
    )
    end = time.monotonic() + PATIENCE
    try:
        while not _java_of_group(process.pid) and time.monotonic() < end:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
        while _java_of_group(process.pid) and time.monotonic() < end:
            time.sleep(0.1)
        assert not _java_of_group(process.pid)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130, err
    assert "error: interrupted" in err
    assert "Traceback" not in err
    assert contents(tmp_path) == before
