"""Measure spark-submit with the packed environment, on a standalone cluster of this machine.

    make dist
    python benchmarks/submit.py ../shared/data/adult.csv

A master and a worker start on the loopback interface. The Adult job (conf/adult.yaml) is submitted
with ``--py-files`` and ``--archives``; driver and executors use the interpreter of the unpacked
archive, which finds none of our packages but in archive and zip. Three runs: executors with the
processor that the machine code was packed for; executors with another one, for the first time and
once more. (Another one: Numba is told to compile for any x86-64.) Printed are seconds, by the
clock, from the start of spark-submit to the first task and to the end; and the seconds that all
kernels take to import in a fresh process of the packed environment, with and without packed code.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from anonspark import __version__
from anonspark.java import find_java

REPOSITORY = Path(__file__).resolve().parents[1]
SPARK_CLASS = Path(sys.executable).with_name("spark-class")
SPARK_SUBMIT = Path(sys.executable).with_name("spark-submit")
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
OTHER_PROCESSOR = {"NUMBA_CPU_NAME": "generic"}

IMPORT_ALL = """\
import importlib, pkgutil, time
start = time.perf_counter()
import anonspark.kernels
for module in pkgutil.iter_modules(anonspark.kernels.__path__):
    importlib.import_module(f"anonspark.kernels.{module.name}")
print(f"{time.perf_counter() - start:.1f} s, {time.process_time():.1f} s of processor time")
"""


def main() -> None:
    """Start the cluster, run the job three times and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("adult", type=Path, help="adult.csv, as of `anonspark fetch adult`")
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
        shutil.unpack_archive(archive, folder / "environment", filter="fully_trusted")
        print(f"unpacking the archive: {time.monotonic() - start:.1f} s")
        for what, variables in (
            ("all kernels, packed machine code", {}),
            ("all kernels, other processor, first time", OTHER_PROCESSOR),
            ("all kernels, other processor, again", OTHER_PROCESSOR),
        ):
            python = str(folder / "environment" / "bin" / "python")
            paths = {"PYTHONPATH": str(package), "XDG_CACHE_HOME": str(folder / "cache-import")}
            told = subprocess.run(
                [python, "-c", IMPORT_ALL],
                env=environment | paths | variables,
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            print(f"import of {what}: {told.strip()}")
        with cluster(folder, environment) as url:
            for what, variables in (
                ("packed machine code", {}),
                ("other processor, first time", OTHER_PROCESSOR),
                ("other processor, again", OTHER_PROCESSOR),
            ):
                executors = variables | {"XDG_CACHE_HOME": str(folder / "cache-executors")}
                first, whole = submit(
                    url, folder, environment, executors, package, archive, arguments.adult
                )
                print(f"Adult, {what}: first task after {first:.1f} s, end after {whole:.1f} s")


def cluster_environment(folder: Path) -> dict[str, str]:
    """Return environment variables in which nothing but the archive has our packages."""
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "SPARK_HOME": spark_home(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": "./environment/bin/python",
        "PYSPARK_DRIVER_PYTHON": str(folder / "environment" / "bin" / "python"),
    }
    java = find_java()
    if java.home is not None:
        environment["JAVA_HOME"] = str(java.home)
    return environment


def spark_home() -> str:
    """Return where this environment's Spark is."""
    import pyspark

    return str(Path(pyspark.__file__).parent)


@contextmanager
def cluster(folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Start a master and a worker with two cores; yield the master's URL, and stop them."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
    url = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    address = ("--host", "127.0.0.1", "--webui-port", "0")
    worker = ("-c", "2", "-m", "2g", "-d", str(folder / "worker"))
    programs = {
        "I have been elected leader": (f"{deploy}.master.Master", *address, "--port", port),
        "Successfully registered with master": (f"{deploy}.worker.Worker", *address, *worker, url),
    }
    started: list[subprocess.Popen[bytes]] = []
    try:
        for ready, command in programs.items():
            log = folder / f"{len(started)}.log"
            with log.open("wb") as output:
                started.append(
                    subprocess.Popen(
                        [str(SPARK_CLASS), *command],
                        env=dict(environment),
                        stdout=output,
                        stderr=output,
                        cwd=folder,
                    )
                )
            while ready not in log.read_text(encoding="utf-8", errors="replace"):
                if started[-1].poll() is not None:
                    sys.exit(log.read_text(encoding="utf-8", errors="replace"))
                time.sleep(0.1)
        yield url
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def submit(
    url: str,
    folder: Path,
    environment: Mapping[str, str],
    executors: Mapping[str, str],
    package: Path,
    archive: Path,
    adult: Path,
) -> tuple[float, float]:
    """Run the Adult job; return the seconds to its first task and to its end."""
    events = Path(tempfile.mkdtemp(prefix="events-", dir=folder))
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.executor.extraJavaOptions": QUICK_START,
        "spark.executor.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }
    settings |= {f"spark.executorEnv.{name}": value for name, value in executors.items()}
    command = [str(SPARK_SUBMIT), "--master", url, "--driver-memory", "1g"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    command += ["--py-files", str(package), "--archives", f"{archive}#environment"]
    command += [str(REPOSITORY / "jobs" / "anonymize.py"), str(REPOSITORY / "conf" / "adult.yaml")]
    for override in (
        f"input.path={adult.absolute()}",
        f"output.path={folder / 'release'}",
        "output.mode=overwrite",
    ):
        command += ["--set", override]
    start = time.time()
    done = subprocess.run(
        command,
        check=False,
        env=dict(environment),
        capture_output=True,
        text=True,
        cwd=folder,
    )
    end = time.time()
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
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
