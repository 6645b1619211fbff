"""Measure spark-submit with the packed environment, on a standalone cluster of this machine.

    make dist
    python benchmarks/submit.py ../shared/data/adult.csv

A master and a worker start on the loopback interface. The Adult job (conf/adult.yaml) is submitted
with ``--py-files`` and ``--archives``; driver and executors use the interpreter of the unpacked
archive, which finds none of our packages but in archive and zip. Printed are seconds by the clock,
from the start of spark-submit to the first task and to the end, and those that a fresh process of
the packed environment takes to import all kernels and to call the first one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyspark
from standalone import REPOSITORY, Cluster, spark_environment

from anonspark import __version__

IMPORT_ALL = """\
import time
start = time.perf_counter()
from anonspark.kernels.compiling import import_all_kernels
import_all_kernels()
import numpy
from anonspark.kernels.selection import select
select(numpy.arange(3), 0, 3, 1)
print(f"{time.perf_counter() - start:.1f} s, {time.process_time():.1f} s of processor time")
"""


def main() -> None:
    """Start the cluster, run the job and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("adult", type=Path, help="adult.csv, as of tools/fetch_adult.py")
    parser.add_argument("--dist", type=Path, default=REPOSITORY / "dist", help="what make built")
    arguments = parser.parse_args()
    package = (arguments.dist / f"anonspark-{__version__}.zip").absolute()
    archive = (arguments.dist / f"anonspark-env-{__version__}.tar.gz").absolute()
    for path in (package, archive, arguments.adult):
        if not path.is_file():
            sys.exit(f"{path} is missing; make dist builds zip and archive")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for path in (package, archive):
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")

    with tempfile.TemporaryDirectory(prefix="anonspark-submit-") as name:
        folder = Path(name)
        environment = cluster_environment(folder)
        start = time.monotonic()
        (folder / "environment").mkdir()
        subprocess.run(["tar", "-xzf", archive, "-C", folder / "environment"], check=True)  # noqa: S607
        print(f"unpacking the archive: {time.monotonic() - start:.1f} s")
        python = str(folder / "environment" / "bin" / "python")
        told = subprocess.run(
            [python, "-c", IMPORT_ALL],
            env=environment | {"PYTHONPATH": str(package)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        print(f"import of all kernels: {told.strip()}")
        running = Cluster(folder, environment)
        try:
            running.add_worker(cores=2, memory="2g")
            running.wait_for_workers()
            first, whole = submit(running, package, archive, arguments.adult)
            print(f"Adult: first task after {first:.1f} s, end after {whole:.1f} s")
        finally:
            running.stop()


def cluster_environment(folder: Path) -> dict[str, str]:
    """Return environment variables in which nothing but the archive has our packages."""
    taken = ("JAVA_HOME", "SPARK_LOCAL_IP", "SPARK_DAEMON_JAVA_OPTS", "SPARK_NO_DAEMONIZE")
    usual = spark_environment()
    return {name: usual[name] for name in taken if name in usual} | {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_PYTHON": "./environment/bin/python",
        # Of the job's folder, where the archive is not unpacked for a driver in client mode.
        "PYSPARK_DRIVER_PYTHON": str(folder / "environment" / "bin" / "python"),
    }


def submit(cluster: Cluster, package: Path, archive: Path, adult: Path) -> tuple[float, float]:
    """Run the Adult job; return the seconds to its first task and to its end."""
    folder = Path(tempfile.mkdtemp(prefix="job-", dir=cluster.folder))
    events = folder / "events"
    events.mkdir()
    settings = {
        "spark.executor.memory": "1g",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }
    start = time.time()
    driver = cluster.submit(
        folder,
        REPOSITORY / "jobs" / "anonymize.py",
        REPOSITORY / "conf" / "adult.yaml",
        "--set",
        f"input.path={adult.absolute()}",
        "--set",
        f"output.path={folder / 'release'}",
        settings=settings,
        options=(
            *("--driver-memory", "1g", "--py-files", package),
            *("--archives", f"{archive}#environment"),
        ),
    )
    code = driver.wait()
    end = time.time()
    if code:
        sys.exit(driver.said)
    return first_task(events) / 1000 - start, end - start


def first_task(events: Path) -> float:
    """Return when the first task was launched, in milliseconds since 1970."""
    launched = []
    for log in events.rglob("*"):
        if log.is_file() and not log.name.startswith("."):
            for line in log.read_text(encoding="utf-8").splitlines():
                event = json.loads(line)
                if event["Event"] == "SparkListenerTaskStart":
                    launched.append(event["Task Info"]["Launch Time"])
    return float(min(launched))


if __name__ == "__main__":
    main()
