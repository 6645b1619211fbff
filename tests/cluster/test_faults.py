"""Machines that fail while a job runs: the release is the same, or there is none."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import read_release, write_configuration
from standalone import REPOSITORY, Cluster, Process

pytestmark = pytest.mark.cluster

JOB = REPOSITORY / "jobs" / "anonymize.py"
STAGES = ("prepare", "round 1 of 2", "round 2 of 2", "publish", "verify", "metrics")

# A second copy of a task starts as soon as it takes a little longer than half of the others.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
}

# Tasks fail for every reason that a task has, again and again.
FAILING_JOB = """
import sys
from anonspark.command_line.application import main
from anonspark.models import blockwise

class Failing(blockwise._FinishBlocks):
    def __call__(self, batches):
        for batch in batches:
            raise ValueError(f"Kryptonitis {batch.column(0)[0]}")
        yield from super().__call__([])

blockwise._FinishBlocks = Failing
sys.exit(main(["run", *sys.argv[1:]]))
"""


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
    driver = cluster.submit(tmp_path, JOB, write_configuration(table, tmp_path), settings=settings)
    for stage in STAGES:
        driver.wait_for(f": {stage}")
        with cluster.paused_executors():
            assert not is_done(driver, stage), driver.said
            cluster.kill_executor()
            cluster.kill_worker()
    assert driver.wait() == 0, driver.said
    assert cluster.executors_started() - before >= len(STAGES) * 2
    assert_release(tmp_path, embedded)


def test_driver_killed_and_resumed(
    cluster: Cluster, table: Path, embedded: tuple[str, pa.Table], tmp_path: Path
) -> None:
    staging = tmp_path / "private"
    staging.mkdir()
    configuration = write_configuration(table, tmp_path, staging_path=str(staging))
    arguments = (configuration, "--run-id", "night")
    driver = cluster.submit(tmp_path, JOB, *arguments)
    driver.wait_for(": round 2 of 2")
    assert not is_done(driver, "round 2 of 2"), driver.said
    driver.kill()
    (kept,) = staging.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    assert not (tmp_path / "release").exists()
    again = cluster.submit(tmp_path, JOB, *arguments, "--resume")
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
        "at last with ValueError in Python; nothing was published"
    )
    assert "Kryptonitis" not in message
    assert not (tmp_path / "release").exists()
    assert not list(tmp_path.glob(".*")), "staging was left behind"


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system that has no room for a byte."""
    folder = tmp_path / "full"
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "tmpfs", str(folder)]
    try:
        subprocess.run(mounting, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a file system cannot be mounted here: {error}")
    try:
        with suppress(OSError), (folder / "ballast").open("wb", buffering=0) as file:
            while True:
                file.write(b"0" * 4096)
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_disk_full_on_one_worker(
    cluster: Cluster,
    table: Path,
    embedded: tuple[str, pa.Table],
    tmp_path: Path,
    full_disk: Path,
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
