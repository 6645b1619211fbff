"""YARN: jobs submitted as docs/clusters.md tells, and what only YARN can break."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hadoop import Hdfs
from packed import packed_environment
from places import REPOSITORY
from standalone import PATIENCE, QUICK_START, SCRIPTS, Process, free_port, spark_environment
from test_hdfs import configure, names, put_people, require_golden
from yarn import Yarn, application_of

JOB = REPOSITORY / "jobs" / "anonymize.py"
ENVIRONMENT = "./environment/bin/python"


@pytest.fixture(scope="module")
def archive(yarn: Yarn) -> str:
    """Put the packed environment on HDFS once, and return what ``--archives`` takes."""
    packed = packed_environment()
    assert yarn.hdfs.shell("-mkdir", "-p", "/apps").returncode == 0
    assert yarn.hdfs.shell("-put", str(packed.archive), "/apps/environment.tar.gz").returncode == 0
    return "hdfs:///apps/environment.tar.gz#environment"


@pytest.fixture
def folder(yarn: Yarn, golden_people: Path, tmp_path: Path) -> str:
    """Put the people and the configuration into a folder of their own."""
    folder = f"/data/{tmp_path.name}"
    put_people(yarn.hdfs, golden_people, folder)
    put_configuration(yarn.hdfs, tmp_path, folder)
    return folder


@pytest.fixture
def submit(yarn: Yarn, archive: str, tmp_path: Path) -> Callable[..., Process]:
    """Submit in cluster mode."""
    packages = ["--py-files", packed_environment().package, "--archives", archive]
    python = {
        "spark.pyspark.python": ENVIRONMENT,
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": ENVIRONMENT,
        "spark.yarn.maxAppAttempts": "1",
    }

    def submit(*arguments: object, **settings: str) -> Process:
        return yarn.submit(
            tmp_path, "cluster", JOB, *arguments, options=packages, settings=python | settings
        )

    return submit


def wait_until(true: Callable[[], Any], why: str) -> Any:
    """Wait for something, and return it."""
    deadline = time.monotonic() + PATIENCE
    while not (found := true()):
        assert time.monotonic() < deadline, why
        time.sleep(0.2)
    return found


def put_configuration(hdfs: Hdfs, local: Path, folder: str) -> None:
    path = configure(local, f"{hdfs.address}{folder}")
    done = hdfs.shell("-put", "-f", str(path), f"{folder}/configuration.yaml")
    assert done.returncode == 0, done.stderr


def test_client_mode(yarn: Yarn, archive: str, folder: str, tmp_path: Path) -> None:
    """With zip and packed environment, a queue, an event log, and exit codes."""
    packed = packed_environment()
    # The driver's packages lie where it is submitted, under the path that executors know.
    (tmp_path / "environment").mkdir()
    unpack = ["tar", "xzf", str(packed.archive), "-C", str(tmp_path / "environment")]
    subprocess.run(unpack, check=True)
    assert yarn.hdfs.shell("-mkdir", "-p", "/events").returncode == 0
    events = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "hdfs:///events"}

    def submit(*arguments: str) -> Process:
        return yarn.submit(
            tmp_path,
            "client",
            JOB,
            f"{yarn.hdfs.address}{folder}/configuration.yaml",
            *arguments,
            options=["--py-files", packed.package, "--archives", archive, "--queue", "nightly"],
            settings=events,
            environment={"PYSPARK_PYTHON": ENVIRONMENT},
        )

    job = submit()
    assert job.wait() == 0, job.said
    require_golden(yarn.hdfs, folder)
    run = application_of(job)
    status = yarn.status(run)
    assert "Queue : root.nightly" in status
    assert "Final-State : SUCCEEDED" in status

    job = submit("--set", f"input.path={folder}/gone", "--set", "output.mode=overwrite")
    assert job.wait() == 3, job.said
    assert f"error: input.path: {folder}/gone is not there" in job.said
    require_golden(yarn.hdfs, folder)
    assert run in applications_in_history(yarn, tmp_path)


def applications_in_history(yarn: Yarn, local: Path) -> list[str]:
    """Ask a history server which runs it knows."""
    port = free_port()
    with (local / "history.log").open("wb") as output:
        handle = subprocess.Popen(
            [SCRIPTS / "spark-class", "org.apache.spark.deploy.history.HistoryServer"],
            env=spark_environment()
            | {
                "HADOOP_CONF_DIR": str(yarn.hdfs.configuration),
                "SPARK_HISTORY_OPTS": "-Dspark.history.fs.logDirectory=hdfs:///events "
                f"-Dspark.history.ui.port={port}",
            },
            stdout=output,
            stderr=output,
        )
    server = Process(handle, local / "history.log")

    def ask() -> list[str]:
        address = f"http://127.0.0.1:{port}/api/v1/applications"
        with suppress(OSError), urllib.request.urlopen(address, timeout=10) as answer:
            return [one["id"] for one in json.load(answer)]
        return []

    try:
        found: list[str] = wait_until(ask, "the history server knows no run")
    finally:
        server.kill()
    return found


def test_cluster_mode(yarn: Yarn, submit: Callable[..., Process], folder: str) -> None:
    """The release is the same; of exit codes only success or failure arrives."""
    address = f"{yarn.hdfs.address}{folder}/configuration.yaml"
    job = submit(address)
    assert job.wait() == 0, job.said
    require_golden(yarn.hdfs, folder)

    job = submit(address, "--set", f"input.path={folder}/gone", "--set", "output.mode=overwrite")
    assert job.wait() == 1, job.said
    reason = f"error: input.path: {folder}/gone is not there"
    assert reason not in job.said
    status = yarn.status(application_of(job))
    assert "Final-State : FAILED" in status
    assert "User application exited with status 3" in status
    assert reason in yarn.said(application_of(job))
    require_golden(yarn.hdfs, folder)


def test_a_container_killed_for_its_memory(
    yarn: Yarn, submit: Callable[..., Process], folder: str
) -> None:
    address = f"{yarn.hdfs.address}{folder}/configuration.yaml"
    job = submit(
        address,
        **{
            "spark.executor.memory": "512m",
            "spark.executor.memoryOverhead": "1m",
            # It starts, and leaves no room for workers of Python.
            "spark.executor.extraJavaOptions": f"{QUICK_START} -Xms300m -XX:+AlwaysPreTouch",
            "spark.executor.maxNumFailures": "20",
        },
    )
    assert job.wait() == 1, job.said
    assert "User application exited with status 6" in yarn.status(application_of(job))
    reason = "an executor was killed for its memory: raise spark.executor.memoryOverhead"
    assert reason in yarn.said(application_of(job))
    assert names(yarn.hdfs, folder) == {"people", "configuration.yaml"}


def test_a_second_attempt_goes_on(yarn: Yarn, submit: Callable[..., Process], folder: str) -> None:
    """The driver is killed after a round; YARN starts it again, and it takes that round."""
    address = f"{yarn.hdfs.address}{folder}/configuration.yaml"
    job = submit(address, "--resume", "--run-id", "night", **{"spark.yarn.maxAppAttempts": "2"})
    state = f"{folder}/.release.anonspark-night/state"

    def a_round_is_noted() -> bool:
        listed = yarn.hdfs.shell("-ls", "-C", state).stdout
        # Not the hidden file that it is before it is there as a whole.
        return f"{state}/round-1.json" in listed.splitlines()

    wait_until(a_round_is_noted, "no round was finished")
    yarn.kill_driver()
    assert job.wait() == 0, job.said
    require_golden(yarn.hdfs, folder)
    assert "Final-State : SUCCEEDED" in yarn.status(application_of(job))
    assert "round 1 of 2: 600 rows: finished before" in yarn.said(application_of(job))
