"""A real standalone cluster on the loopback interface: spark-submit, and an executor that dies."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from anonspark import pipeline
from anonspark.configuration import load_configuration
from anonspark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.cluster

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPTS = Path(sys.executable).parent
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
ROWS = 20_000
WORKERS = 2


@dataclass(frozen=True)
class Cluster:
    """A running master with its workers."""

    url: str
    environment: dict[str, str]
    workers: tuple[subprocess.Popen[bytes], ...]
    folder: Path

    def executors(self) -> list[int]:
        """Return the process ids of the executors that run now."""
        return [
            child
            for worker in self.workers
            for child in children_of(worker.pid)
            if b"CoarseGrainedExecutorBackend" in command_line_of(child)
        ]

    def executors_started(self) -> int:
        """Return how many executors were ever started, the dead ones included."""
        return len(list(self.folder.glob("worker-*/app-*/*")))


def children_of(process: int) -> list[int]:
    """Return the direct children of a process, by whichever of its threads they were started."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text(encoding="ascii").split()]


def command_line_of(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for(text: str, log: Path, process: subprocess.Popen[bytes], seconds: float = 90) -> None:
    """Wait until a process has written a text to its log."""
    deadline = time.monotonic() + seconds
    while text not in log.read_text(encoding="utf-8", errors="replace"):
        assert process.poll() is None, log.read_text(encoding="utf-8", errors="replace")
        assert time.monotonic() < deadline, f"{text!r} is not in {log} after {seconds} s"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    java = find_java()
    environment = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    if java.home is not None:
        environment["JAVA_HOME"] = str(java.home)
    environment |= {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
    }
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> tuple[subprocess.Popen[bytes], Path]:
        log = folder / f"{name}.log"
        command = [str(SCRIPTS / "spark-class"), *arguments]
        with log.open("wb") as output:
            started.append(
                subprocess.Popen(command, env=environment, stdout=output, stderr=output, cwd=folder)
            )
        return started[-1], log

    deploy = "org.apache.spark.deploy"
    address = ("--host", "127.0.0.1")
    ui = "--webui-port"
    try:
        master, log = start(
            "master", f"{deploy}.master.Master", *address, "--port", str(port), ui, "0"
        )
        wait_for("I have been elected leader", log, master)
        waiting = []
        for number in range(WORKERS):
            options = (
                *address,
                ui,
                "0",
                "-c",
                "1",
                "-m",
                "1g",
                "-d",
                str(folder / f"worker-{number}"),
            )
            waiting.append(start(f"worker-{number}", f"{deploy}.worker.Worker", *options, url))
        for worker, log in waiting:
            wait_for("Successfully registered with master", log, worker)
        yield Cluster(url, environment, tuple(worker for worker, _ in waiting), folder)
    finally:
        for process in reversed(started):
            process.terminate()
        for process in reversed(started):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def write_configuration(table: Path, folder: Path) -> Path:
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
        "execution": {"task_rows": 5_000},
    }
    path = folder / "configuration.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def read_release(path: Path) -> tuple[str, pa.Table]:
    """Return the fingerprint of a release and its records, sorted by all columns."""
    (summary,) = pq.read_table(path / "metrics" / "summary").to_pylist()
    data = pq.read_table(path / "data")
    order = [(name, "ascending") for name in data.column_names]
    return summary["output_fingerprint"], data.sort_by(order).combine_chunks()


@pytest.fixture(scope="module")
def embedded(
    spark_session: SparkSession, table: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, pa.Table]:
    """Return the release that the embedded Spark makes."""
    folder = tmp_path_factory.mktemp("embedded")
    pipeline.run(spark_session, load_configuration(write_configuration(table, folder)))
    return read_release(folder / "release")


@pytest.fixture
def submitted(
    cluster: Cluster, table: Path, tmp_path: Path
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Submit the job and return its process and its log; end it afterwards if it still runs."""
    log = tmp_path / "driver.log"
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.executor.extraJavaOptions": QUICK_START,
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    command = [str(SCRIPTS / "spark-submit"), "--master", cluster.url, "--driver-memory", "512m"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    command += [
        str(REPOSITORY / "jobs" / "anonymize.py"),
        str(write_configuration(table, tmp_path)),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=cluster.environment, stdout=output, stderr=output, cwd=tmp_path
        )
    try:
        yield process, log
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_release_of_a_cluster_is_that_of_the_embedded_spark(
    submitted: tuple[subprocess.Popen[bytes], Path],
    embedded: tuple[str, pa.Table],
    tmp_path: Path,
) -> None:
    process, log = submitted
    assert process.wait(180) == 0, log.read_text(encoding="utf-8", errors="replace")
    fingerprint, data = read_release(tmp_path / "release")
    assert fingerprint == embedded[0]
    assert data.equals(embedded[1])


def test_executor_killed_in_round_1(
    cluster: Cluster,
    submitted: tuple[subprocess.Popen[bytes], Path],
    embedded: tuple[str, pa.Table],
    tmp_path: Path,
) -> None:
    process, log = submitted
    before = cluster.executors_started()
    wait_for("round 1 of 2", log, process)
    # The first counting job of the round is on its way now.
    time.sleep(1.0)
    text = log.read_text(encoding="utf-8", errors="replace")
    assert "done" not in text.partition("round 1 of 2")[2]
    os.kill(cluster.executors()[0], signal.SIGKILL)
    assert process.wait(180) == 0, log.read_text(encoding="utf-8", errors="replace")
    assert cluster.executors_started() - before > WORKERS, "the lost executor was not replaced"
    fingerprint, data = read_release(tmp_path / "release")
    assert fingerprint == embedded[0]
    assert data.equals(embedded[1])
    assert not list(tmp_path.glob(".*")), "staging was left behind"
