"""One release, to the byte, whatever a standalone cluster is set to and while it loses an executor.

Settings of a session are tried in one job, one run after the other; those of an application are
jobs of their own. All publish what the engine without Java publishes.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from cases import cases, data_beside
from golden_run import SECTIONS
from helpers import document_file
from places import REPOSITORY
from standalone import PATIENCE, QUICK_QUERIES, Cluster, Process

from anonspark.config import load_configuration
from anonspark.demo.people import people_of
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run

pytestmark = pytest.mark.system

# A task has more than one batch of Arrow where it has 777 rows.
ROWS, FILES, TASK_ROWS = 4_000, 2, 1_500

JOB = f"""
import runpy
from anonspark import progress

# Stages are named when they begin, and not only if they take two seconds.
progress._SECONDS_BEFORE_A_LINE = 0.0
runpy.run_path({str(REPOSITORY / "jobs" / "anonymize.py")!r}, run_name="__main__")
"""

RUNS = """
import json
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from anonspark.cli.application import main

session = SparkSession.builder.getOrCreate()
for configuration, settings in json.loads(sys.argv[1]):
    before = {key: session.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        session.conf.set(key, value)
    code = main(["run", configuration, "--quiet"])
    after = {key: session.conf.get(key) for key in settings}
    Path(configuration).with_name("outcome.json").write_text(json.dumps([code, after]))
    for key, value in before.items():
        session.conf.unset(key) if value is None else session.conf.set(key, value)
session.stop()
"""

Events = list[dict[str, Any]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start two workers of one core, at two addresses: a copy of a task goes to another host."""
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        running.add_worker()
        running.add_worker(host="127.0.0.2")
        running.wait_for_workers()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write people as text, with times without a zone, which readers take for the session's."""
    folder = tmp_path_factory.mktemp("input") / "people"
    folder.mkdir()
    for number in range(FILES):
        rows = range(number * ROWS // FILES, (number + 1) * ROWS // FILES)
        table = pa.Table.from_batches([people_of(0, rows)])
        times = table["last_visit"].cast(pa.timestamp("s"))
        table = table.set_column(table.column_names.index("last_visit"), "last_visit", times)
        pyarrow.csv.write_csv(table, folder / f"part-{number}.csv")
    return folder


def configure(folder: Path, people: Path) -> Path:
    """Write the configuration of a run that publishes in a new folder."""
    folder.mkdir(exist_ok=True)
    options = {"header": "true", "inferSchema": "true"}
    document = {
        **SECTIONS,
        "input": {"path": str(people), "format": "csv", "options": options},
        "output": {"path": str(folder / "release")},
        "execution": {"seed": 2**40, "task_rows": TASK_ROWS},
    }
    return document_file(folder, document)


def published(folder: Path) -> dict[str, str]:
    """Return the fingerprints of a release, and the hashes of its data files."""
    manifest = json.loads((folder / "release" / "manifest.json").read_text())
    files = {file["path"]: file["sha256"] for file in manifest["files"]}
    prints = {name: manifest["fingerprints"][name] for name in ("input", "output")}
    return prints | {path: files[path] for path in files if path.startswith("data/")}


@pytest.fixture(scope="module")
def expected(people: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what the engine without Java publishes."""
    folder = tmp_path_factory.mktemp("without-java")
    run(LocalEngine(), load_configuration(str(configure(folder, people))))
    return published(folder)


def submit(
    cluster: Cluster, folder: Path, program: str, argument: object, settings: Mapping[str, str]
) -> Process:
    """Submit a program, with an event log in its folder."""
    (folder / "events").mkdir()
    job = folder / "job.py"
    job.write_text(program, encoding="utf-8")
    logged = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{folder}/events",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    chosen = QUICK_QUERIES | logged | dict(settings)
    return cluster.submit(folder, job, argument, settings=chosen)


@contextmanager
def ended(driver: Process) -> Iterator[None]:
    """Kill a job that goes on after the block: it would keep the cores from the next one."""
    try:
        yield
    finally:
        if driver.handle.poll() is None:
            driver.kill()


def events_of(folder: Path, kind: str) -> Events:
    """Return the events of a kind from the log of a folder's job."""
    (log,) = (folder / "events").iterdir()
    events = map(json.loads, log.read_text(encoding="utf-8").splitlines())
    return [event for event in events if event["Event"] == f"SparkListener{kind}"]


@pytest.fixture(scope="module")
def session_runs(
    cluster: Cluster, people: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Run once with each row of settings of a session, in one job; return the folders."""
    folder = tmp_path_factory.mktemp("session")
    rows = data_beside(__file__)["test_settings_of_a_session"]
    folders = {name: folder / f"run-{number}" for number, name in enumerate(rows)}
    runs = [(str(configure(folders[name], people)), rows[name][0]) for name in rows]
    driver = submit(cluster, folder, RUNS, json.dumps(runs), {})
    with ended(driver):
        assert driver.wait(4 * PATIENCE) == 0, driver.said
    return folders


def of(settings: Mapping[str, str], stage: Mapping[str, Any]) -> bool:
    """Tell whether a stage was submitted under some settings."""
    return settings.items() <= stage["Properties"].items()


@cases(__file__, "settings", "tasks")
def test_settings_of_a_session(
    session_runs: dict[str, Path],
    expected: dict[str, str],
    request: pytest.FixtureRequest,
    settings: dict[str, str],
    tasks: int | None,
) -> None:
    """The release is that of the other engine, and the settings are there again afterwards."""
    folder = session_runs[request.node.callspec.id]
    stages = events_of(folder.parent, "StageSubmitted")
    parts = {stage["Stage Info"]["Number of Tasks"] for stage in stages if of(settings, stage)}
    assert tasks is None or tasks in parts
    assert json.loads((folder / "outcome.json").read_text()) == [0, settings]
    assert published(folder) == expected
    assert not list(folder.glob(".*")), "staging was left behind"


def nothing(cluster: Cluster, driver: Process) -> None:
    """Leave the cluster alone."""


def pause_an_executor(cluster: Cluster, driver: Process) -> None:
    """Stop an executor in the first round until its work was given to the other one."""
    driver.wait_for(": round 1 of 2")
    slow = cluster.executors()[0]
    os.kill(slow, signal.SIGSTOP)
    try:
        driver.wait_for("speculatable tasks")
        time.sleep(2)
    finally:
        os.kill(slow, signal.SIGCONT)


def decommission_an_executor(cluster: Cluster, driver: Process) -> None:
    """Tell an executor in the first round, as a machine does that is taken away."""
    driver.wait_for(": round 1 of 2")
    with cluster.paused_executors():
        assert "done in" not in driver.said.partition(": round 1 of 2")[2], driver.said
        os.kill(cluster.executors()[0], signal.SIGPWR)


DISTURBANCES: dict[str, Callable[[Cluster, Process], None]] = {
    "nothing": nothing,
    "pause": pause_an_executor,
    "decommission": decommission_an_executor,
}


@cases(__file__, "settings", "disturbance", "kind", "reason")
def test_settings_of_an_application(
    cluster: Cluster,
    people: Path,
    expected: dict[str, str],
    tmp_path: Path,
    settings: dict[str, str],
    disturbance: str,
    kind: str,
    reason: str,
) -> None:
    """The release is the same, and the event log names what the setting has done."""
    driver = submit(cluster, tmp_path, JOB, configure(tmp_path, people), settings)
    with ended(driver):
        DISTURBANCES[disturbance](cluster, driver)
        assert driver.wait(2 * PATIENCE) == 0, driver.said
    assert published(tmp_path) == expected
    assert any(reason in json.dumps(event) for event in events_of(tmp_path, kind))
    assert not list(tmp_path.glob(".*")), "staging was left behind"
