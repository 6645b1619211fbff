"""Each task of each stage fails once, loses its executor, or is copied: the same release.

``make systems`` disturbs two thirds of the tasks of a plan. Those marked ``night`` are all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pyspark
import pytest
from counted_tasks import SCENES, Wanted
from places import REPOSITORY
from spark_client import run_client
from standalone import QUICK_QUERIES, Cluster

from anonspark.engine.spark.java import find_java

pytestmark = pytest.mark.system

SUPPORT = REPOSITORY / "tests" / "support"

# A copy of a task starts as soon as it has run for half a second, also where it is the only one.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "500ms",
    "spark.speculation.task.duration.threshold": "500ms",
    "spark.speculation.efficiency.enabled": "false",
    "spark.locality.wait": "0s",
}

# Kinds of faults that are gone through together, and what the cluster is told that they need.
KINDS: dict[tuple[str, ...], dict[str, str] | None] = {
    ("middle", "late"): None,
    ("lost",): {"spark.executor.cores": "1", "spark.cores.max": "2"},
    ("copied", "copied late"): SPECULATION,
}


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the plugin with the compiler that Spark comes with."""
    classes = tmp_path_factory.mktemp("plugin")
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    java = (find_java().executable, "-XX:TieredStopAtLevel=1", "-cp", jars)
    options = ("-usejavacp", "-nowarn", "-d", classes, SUPPORT / "TaskFaults.scala")
    subprocess.run([str(one) for one in (*java, "scala.tools.nsc.Main", *options)], check=True)
    return classes


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start two workers. Spark copies no task on the host of the first, and needs room for it."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        for host in ("127.0.0.1", "127.0.0.2"):
            cluster.add_worker(cores=4, host=host)
        cluster.wait_for_workers()
        yield cluster
    finally:
        cluster.stop()


def go_through(request: pytest.FixtureRequest, wanted: Wanted) -> None:
    """Go through points of a command, and check that nothing broke."""
    plugin: Path = request.getfixturevalue("plugin")
    faults = Path(wanted.folder)
    faults.mkdir()
    path = os.pathsep.join(map(str, (REPOSITORY, SUPPORT, REPOSITORY / "benchmarks")))
    environment = {"PYTHONPATH": path, "TASK_FAULTS": str(faults)}
    settings: dict[str, str] = {
        **QUICK_QUERIES,
        "spark.plugins": "anonspark.faults.TaskFaults",
        "spark.driver.extraClassPath": str(plugin),
        "spark.python.daemon.module": "faulty_daemon",
        "spark.anonspark.faults": str(faults),
    }
    program = (SUPPORT / "counted_tasks.py", json.dumps(asdict(wanted)))
    of_cluster = KINDS[wanted.kinds]
    if of_cluster is None:
        settings |= {"spark.master": "local[2,4]"}
        run_client(faults.parent, settings, *program, environment=environment)
    else:
        settings |= of_cluster | {"spark.executor.extraClassPath": str(plugin)}
        settings |= {f"spark.executorEnv.{name}": value for name, value in environment.items()}
        cluster: Cluster = request.getfixturevalue("cluster")
        driver = cluster.submit(faults.parent, *program, settings=settings, environment=environment)
        assert driver.wait(24 * 3600) == 0, driver.said
    found = json.loads((faults / "found.json").read_text())
    sys.stdout.write(f"{wanted.command}: {found}\n")
    assert not found["broken"], found["broken"]
    assert sum(one["disturbed"] for one in found["points"].values())
    for name, one in found["points"].items():
        assert one["more attempts"] >= one["disturbed"], name


def test_drawn_tasks(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Two of the six thirds of a plan, the same each time, in a minute. The rest takes hours."""
    wanted = Wanted(str(tmp_path / "faults"), "distribute", ("middle", "late"), 2)
    go_through(request, wanted)


@pytest.mark.night
@pytest.mark.timeout(0)
@pytest.mark.parametrize("kinds", KINDS, ids=" and ".join)
@pytest.mark.parametrize("command", SCENES)
def test_all_tasks(
    request: pytest.FixtureRequest, tmp_path: Path, command: str, kinds: tuple[str, ...]
) -> None:
    go_through(request, Wanted(str(tmp_path / "faults"), command, kinds))
