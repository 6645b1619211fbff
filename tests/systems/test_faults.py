"""A real cluster whose machines fail while a job runs: the same release, or none."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
import yaml
from helpers import disk, document_file
from packed import packed_environment
from recipients import with_ledger
from standalone import PATIENCE, REPOSITORY, Cluster, Process

from anonspark.config import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.pipeline.run import run
from anonspark.sharing.ledger.check import check_ledger, demand_of, required_coalitions
from anonspark.sharing.recipients.distribute import distribute
from anonspark.sharing.recipients.plan import parse_plan
from anonspark.verification.audit import audit_release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.system

ROWS = 20_000
WORKERS = 2


JOB = REPOSITORY / "jobs" / "anonymize.py"
STAGES = ("prepare", "round 1 of 2", "round 2 of 2", "publish", "verify", "metrics")

# A second copy of a task starts as soon as it takes a little longer than half of the others.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
}

# Stages are named when they begin, and not only if they take two seconds.
NAMING_JOB = f"""
import runpy
from anonspark import progress

progress._SECONDS_BEFORE_A_LINE = 0.0
runpy.run_path({str(JOB)!r}, run_name="__main__")
"""

# Tasks fail for every reason that a task has, again and again.
FAILING_JOB = """
import sys
from anonspark.cli.application import main
from anonspark.models import blockwise

class Failing(blockwise.FinishBlocks):
    def __call__(self, batches):
        for batch in batches:
            raise ValueError(f"Kryptonitis {batch.column(0)[0]}")
        yield from super().__call__([])

blockwise.FinishBlocks = Failing
sys.exit(main(["run", *sys.argv[1:]]))
"""


# Of every second stage each second task fails in the middle of its work when it runs first; of each
# fourth one the others take so long that a second copy of them starts. Each attempt leaves a file.
UNRELIABLE_JOB = """
import sys, time
from pathlib import Path
from pyspark import TaskContext
from anonspark.cli.application import main
from anonspark.engine.spark import tasks

ATTEMPTS = Path(sys.argv.pop())

class Unreliable:
    def __init__(self, function, names=()):
        self.function, self.names = function, names

    def __call__(self, batches):
        from anonspark.engine.spark.tasks import _Guarded
        context = TaskContext.get()
        stage, task = context.stageId(), context.partitionId()
        attempt = context.attemptNumber()
        (ATTEMPTS / f"{stage} {task} {attempt}").touch()
        if attempt == 0 and task % 2 and stage % 4 == 0:
            time.sleep(20)
        for batch in _Guarded(self.function, self.names)(batches):
            yield batch
            if attempt == 0 and task % 2 == 0 and stage % 2:
                raise OSError("a disk")

tasks._Guarded = Unreliable
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="session")
def running_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a master, and stop it with all its workers."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def cluster(running_cluster: Cluster) -> Cluster:
    """Return the cluster, which tests damage, with two workers."""
    while len(running_cluster.workers) < WORKERS:
        running_cluster.add_worker()
    running_cluster.wait_for_workers()
    return running_cluster


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write people in four files."""
    path = tmp_path_factory.mktemp("input") / "people"
    path.mkdir()
    random = np.random.default_rng(3)
    people = pa.table(
        {
            "age": random.integers(18, 99, ROWS).astype(np.int32),
            "income": random.lognormal(10, 0.6, ROWS).round(2),
            "gain": np.where(random.random(ROWS) < 0.9, 0, random.integers(1, 9_999, ROWS)),
            "diagnosis": random.choice(["asthma", "fracture", "migraine"], ROWS),
        }
    )
    for number in range(4):
        part = people.slice(number * ROWS // 4, ROWS // 4)
        pq.write_table(part, path / f"part-{number}.parquet")
    return path


def write_configuration(table: Path, folder: Path, **execution: Any) -> Path:
    """Write the configuration of a run that publishes in the folder."""
    document = {
        "input": {"path": str(table)},
        "attributes": {
            "age": "quasi_identifier",
            "income": "quasi_identifier",
            "gain": "quasi_identifier",
            "diagnosis": "sensitive",
        },
        "privacy": {"k": 5},
        "model": {"name": "su-mondrian", "rho": 2},
        "output": {"path": str(folder / "release")},
        "execution": {"task_rows": 5_000, **execution},
    }
    return document_file(folder, document)


def read_release(path: Path) -> tuple[str, pa.Table]:
    """Return the fingerprint of a release and its records, sorted by all columns."""
    (summary,) = pq.read_table(path / "metrics" / "summary").to_pylist()
    data = pq.read_table(path / "data")
    order = [(name, "ascending") for name in data.column_names]
    return summary["output_fingerprint"], data.sort_by(order).combine_chunks()


@pytest.fixture(scope="session")
def embedded(
    spark_session: SparkSession, table: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, pa.Table]:
    """Return the release that the embedded Spark makes."""
    folder = tmp_path_factory.mktemp("embedded")
    run(SparkEngine(spark_session), load_configuration(write_configuration(table, folder)))
    return read_release(folder / "release")


def assert_release(folder: Path, expected: tuple[str, pa.Table]) -> None:
    """Check the release of a folder, and that nothing else is left there."""
    fingerprint, data = read_release(folder / "release")
    assert fingerprint == expected[0]
    assert data.equals(expected[1])
    assert not list(folder.glob(".*")), "staging was left behind"


def is_done(driver: Process, stage: str) -> bool:
    """Tell whether a job has left a stage that it was in."""
    return "done in" in driver.said.partition(f": {stage}")[2]


def test_executors_and_workers_killed_in_every_stage(
    cluster: Cluster, table: Path, embedded: tuple[str, pa.Table], tmp_path: Path
) -> None:
    """Kill an executor, then a worker with its executor, both in each stage of one run."""
    for _ in STAGES:
        cluster.add_worker()
    cluster.wait_for_workers()
    before = cluster.executors_started()
    # Two of the workers are used, the others stand by.
    settings = SPECULATION | {"spark.cores.max": "2"}
    job = tmp_path / "job.py"
    job.write_text(NAMING_JOB, encoding="utf-8")
    driver = cluster.submit(tmp_path, job, write_configuration(table, tmp_path), settings=settings)
    for stage in STAGES:
        driver.wait_for(f": {stage}")
        with cluster.paused_executors():
            assert not is_done(driver, stage), driver.said
            cluster.kill_executor()
            cluster.kill_worker()
    assert driver.wait() == 0, driver.said
    # Another one for each that was killed in a stage.
    assert cluster.executors_started() - before > len(STAGES)
    assert_release(tmp_path, embedded)


def test_driver_killed_and_resumed_with_the_packed_environment(
    cluster: Cluster, table: Path, embedded: tuple[str, pa.Table], tmp_path: Path
) -> None:
    """The second time driver and executors get zip and archive, and have nothing of us besides."""
    packed = packed_environment()
    environment = tmp_path / "environment"
    environment.mkdir()
    subprocess.run(["tar", "-xzf", packed.archive, "-C", environment], check=True)
    staging = tmp_path / "private"
    staging.mkdir()
    configuration = write_configuration(table, tmp_path, staging_path=str(staging))
    arguments = (configuration, "--run-id", "night")
    job = tmp_path / "job.py"
    job.write_text(NAMING_JOB, encoding="utf-8")
    driver = cluster.submit(tmp_path, job, *arguments)
    driver.wait_for(": round 2 of 2")
    assert not is_done(driver, "round 2 of 2"), driver.said
    driver.kill()
    (kept,) = staging.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    assert not (tmp_path / "release").exists()
    again = cluster.submit(
        tmp_path,
        JOB,
        *(*arguments, "--resume"),
        options=packed.arguments,
        environment={
            # Which the script else asks the driver's Python for, that has no pyspark.
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "PYSPARK_PYTHON": "./environment/bin/python",
            "PYSPARK_DRIVER_PYTHON": str(environment / "bin" / "python"),
        },
    )
    assert again.wait() == 0, again.said
    assert "round 1 of 2: 20,000 rows: finished before" in again.said
    assert ": round 2 of 2" in again.said
    assert_release(tmp_path, embedded)
    assert list(staging.iterdir()) == []


def test_task_that_fails_four_times(cluster: Cluster, table: Path, tmp_path: Path) -> None:
    job = tmp_path / "failing.py"
    job.write_text(FAILING_JOB, encoding="utf-8")
    driver = cluster.submit(tmp_path, job, write_configuration(table, tmp_path))
    assert driver.wait() == 1, driver.said
    message = next(line for line in driver.said.splitlines() if line.startswith("error: "))
    assert message.startswith(
        "error: round 1 of 2: a task failed each time that Spark ran it (spark.task.maxFailures), "
        "at last with ValueError in Python. Nothing was published"
    )
    assert "Kryptonitis" not in message
    assert not (tmp_path / "release").exists()
    assert not list(tmp_path.glob(".*")), "staging was left behind"


@pytest.mark.night
def test_a_plan_whose_tasks_fail_and_are_run_twice_at_a_time(
    cluster: Cluster, table: Path, tmp_path: Path
) -> None:
    """The releases of a plan, and its ledger, are those of the engine that has no tasks."""
    people = pq.read_table(table).slice(0, 600)
    names = pa.array(f"p{number:05}" for number in range(len(people)))
    people = people.append_column("person", names)
    (tmp_path / "people").mkdir()
    for number in range(3):
        part = people.slice(number * 200, 200)
        pq.write_table(part, tmp_path / "people" / f"part-{number}.parquet")
    plan: dict[str, Any] = {
        "base": {
            "input": {"path": str(tmp_path / "people")},
            "attributes": {
                "person": "identifier",
                **dict.fromkeys(("age", "gain"), "quasi_identifier"),
                "diagnosis": "sensitive",
            },
            "privacy": {"k": 5},
            "model": {"name": "smondrian"},
            "execution": {"seed": 2**40, "task_rows": 300},
        },
        "subject": "person",
        "recipients": {
            "labour": {"approved": "yes", "columns": ["age", "diagnosis"]},
            "press": {"approved": "yes", "columns": ["age", "gain"]},
        },
    }
    plans = {}
    for name in ("without", "with"):
        (tmp_path / name).mkdir()
        plans[name] = plan | {"output": str(tmp_path / name / "releases")}
        with_ledger(plans[name], tmp_path / name)
    expected = distribute(LocalEngine(), parse_plan(plans["without"]), run_id="night")

    job, attempts, path = (tmp_path / name for name in ("job.py", "attempts", "plan.yaml"))
    job.write_text(UNRELIABLE_JOB, encoding="utf-8")
    attempts.mkdir()
    path.write_text(yaml.safe_dump(plans["with"], sort_keys=False), encoding="utf-8")
    elsewhere = cluster.add_worker(host="127.0.0.2")
    cluster.wait_for_workers()
    try:
        driver = cluster.submit(
            tmp_path,
            job,
            *("distribute", path, "--run-id", "night", attempts),
            settings=SPECULATION | {"spark.sql.adaptive.coalescePartitions.enabled": "false"},
        )
        assert driver.wait(3 * PATIENCE) == 0, driver.said
    finally:
        cluster.workers.remove(elsewhere)
        elsewhere.kill()
    again = [tuple(map(int, one.name.split())) for one in attempts.iterdir()]
    again = [(stage, task) for stage, task, attempt in again if attempt == 1]
    failed = [one for one in again if one[1] % 2 == 0]
    doubled = [one for one in again if one[1] % 2 == 1]
    assert len(failed) > 5
    assert len(doubled) > 2
    releases = tmp_path / "with" / "releases"
    for name, release in expected.releases.items():
        (made,) = releases.glob(f"**/{name}/**/manifest.json")
        summary = pq.read_table(made.parent / "metrics" / "summary").to_pylist()[0]
        assert summary["output_fingerprint"] == release.summary["output_fingerprint"]
        assert audit_release(LocalEngine(), str(made.parent)).failures == []
    ledger = with_ledger(plans["with"], tmp_path / "with")
    coalitions = required_coalitions(ledger)
    found = check_ledger(LocalEngine(), ledger, coalitions, demand_of(ledger), with_files=True)
    assert found.problems == []
    assert not list((tmp_path / "with").glob("**/.*anonspark-*")), "staging was left behind"


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system that has no room for a byte."""
    with disk(tmp_path / "full", "64k") as folder:
        with suppress(OSError), (folder / "ballast").open("wb", buffering=0) as file:
            while True:
                file.write(b"0" * 4096)
        yield folder


def test_disk_full_on_one_worker(
    cluster: Cluster, table: Path, embedded: tuple[str, pa.Table], tmp_path: Path, full_disk: Path
) -> None:
    """Its tasks fail; Spark is told to give them to another one."""
    while len(cluster.workers) > 1:
        cluster.kill_worker()
    sick = cluster.add_worker(SPARK_LOCAL_DIRS=str(full_disk))
    cluster.wait_for_workers()
    folder = tmp_path / "run"
    folder.mkdir()
    settings = {
        "spark.excludeOnFailure.enabled": "true",
        # Here all workers are on one machine.
        "spark.excludeOnFailure.task.maxTaskAttemptsPerNode": "3",
    }
    driver = cluster.submit(folder, JOB, write_configuration(table, folder), settings=settings)
    assert driver.wait() == 0, driver.said
    cluster.workers.remove(sick)
    sick.kill()
    logs = cluster.folder.glob(f"{sick.log.stem}/app-*/*/stderr")
    assert any("No space left on device" in log.read_text(errors="replace") for log in logs)
    assert_release(folder, embedded)
