"""A real standalone cluster on the loopback interface, and jobs that are submitted to it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from anonspark.engine.spark.java import find_java

REPOSITORY = Path(__file__).resolve().parents[1]
SCRIPTS = Path(sys.executable).parent
GENERATE = [sys.executable, str(REPOSITORY / "benchmarks" / "generated_people.py")]
"""Writes generated people."""
# Java gives the light compiler alone a fifth of the usual room for what it compiles, and goes
# through it over and over for what it could drop: a seventh of what the suite's Spark computed.
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
# For queries over some hundred rows it does not pay to write and compile a class.
QUICK_QUERIES = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

# For a machine that is busy with other things.
PATIENCE = 300

_DEPLOY = "org.apache.spark.deploy"


def write_spark_defaults(folder: Path, settings: Mapping[str, object]) -> None:
    """Write the spark-defaults.conf of whoever is told to look for it in a folder."""
    lines = "".join(f"{key} {value}\n" for key, value in settings.items())
    (folder / "spark-defaults.conf").write_text(lines, encoding="utf-8")


def children_of(process: int) -> list[int]:
    """Return the direct children of a process, by whichever of its threads they were started."""
    children: list[int] = []
    with suppress(OSError):  # it has ended
        for task in Path(f"/proc/{process}/task").glob("*/children"):
            children += map(int, task.read_text(encoding="ascii").split())
    return children


def descendants_of(process: int) -> list[int]:
    """Return all that a process has started, directly or not."""
    children = children_of(process)
    return children + [one for child in children for one in descendants_of(child)]


def command_line_of(process: int) -> bytes:
    """Return what a process was called with; nothing once it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def spark_environment() -> dict[str, str]:
    """Return an environment for Spark's scripts that takes nothing from the one around."""
    environment = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    java = find_java()
    if java.home is not None:
        environment["JAVA_HOME"] = str(java.home)
    return environment | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
    }


def kill_first(running: Callable[[], Sequence[int]]) -> None:
    """Wait until one of some processes runs, and kill it with all that it has started."""
    deadline = time.monotonic() + PATIENCE
    while not (found := running()):
        if time.monotonic() > deadline:
            raise ClusterError("none is running")
        time.sleep(0.05)
    for process in (found[0], *descendants_of(found[0])):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


class ClusterError(Exception):
    """A process of the cluster, or a job, does not do what is waited for."""


@dataclass
class Process:
    """A process that writes to a log.

    Parameters
    ----------
    handle : subprocess.Popen
    log : Path
    """

    handle: subprocess.Popen[bytes]
    log: Path

    @property
    def said(self) -> str:
        """What it has written so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, text: str) -> None:
        """Wait until it has written a text."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.said:
            if self.handle.poll() is not None:
                raise ClusterError(f"it ended before it wrote {text!r}: {self.said}")
            if time.monotonic() > deadline:
                raise ClusterError(f"{text!r} is not in {self.log}: {self.said}")
            time.sleep(0.05)

    def wait(self, seconds: int = PATIENCE) -> int:
        """Wait until it ends, and return its exit code."""
        try:
            return self.handle.wait(seconds)
        except subprocess.TimeoutExpired:
            raise ClusterError(f"it does not end: {self.said}") from None

    def kill(self) -> None:
        """Kill it with everything that it has started; nothing gets a chance to clean up."""
        for process in (self.handle.pid, *descendants_of(self.handle.pid)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.handle.wait()


@dataclass
class Cluster:
    """A master, its workers, and what is submitted to them.

    Parameters
    ----------
    folder : Path
        Logs and work directories.
    environment : dict
        Of all processes.
    """

    folder: Path
    environment: dict[str, str] = field(default_factory=spark_environment)
    workers: list[Process] = field(default_factory=list)
    """Those that run, the oldest first."""

    _started: list[Process] = field(default_factory=list)
    _workers_started: int = 0

    def __post_init__(self) -> None:
        port = free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self._master = self._start(
            "master", f"{_DEPLOY}.master.Master", ("--port", str(port)), self.environment
        )
        try:
            self._master.wait_for("I have been elected leader")
        except BaseException:
            self.stop()
            raise

    def add_worker(
        self, cores: int = 1, memory: str = "1g", host: str = "127.0.0.1", **environment: str
    ) -> Process:
        """Start a worker; :meth:`wait_for_workers` waits until it is registered.

        Parameters
        ----------
        cores : int
        memory : str
            For its executors, as Spark writes it.
        host : str
            An address of the loopback interface. Spark starts no second copy of a task on the host
            of the first one.
        **environment
            Variables of this worker, over those of the cluster.
        """
        number = self._workers_started
        self._workers_started += 1
        folder = str(self.folder / f"worker-{number}")
        options = ("-c", str(cores), "-m", memory, "-d", folder, "--host", host, self.url)
        worker = self._start(
            f"worker-{number}",
            f"{_DEPLOY}.worker.Worker",
            options,
            self.environment | {"SPARK_LOCAL_IP": host} | environment,
        )
        self.workers.append(worker)
        return worker

    def wait_for_workers(self) -> None:
        """Wait until all workers are registered."""
        for worker in self.workers:
            worker.wait_for("Successfully registered with master")

    def _start(
        self, name: str, main: str, options: Sequence[str], environment: Mapping[str, str]
    ) -> Process:
        command = [str(SCRIPTS / "spark-class"), main, "--host", "127.0.0.1", "--webui-port", "0"]
        self._started.append(self._run(name, [*command, *options], environment, self.folder))
        return self._started[-1]

    def _run(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> Process:
        log = folder / f"{name}.log"
        with log.open("wb") as output:
            handle = subprocess.Popen(
                command, env=dict(environment), stdout=output, stderr=output, cwd=folder
            )
        return Process(handle, log)

    def executors(self) -> list[int]:
        """Return the process ids of the executors that run now."""
        return [
            child
            for worker in self.workers
            for child in children_of(worker.handle.pid)
            if b"CoarseGrainedExecutorBackend" in command_line_of(child)
        ]

    def executors_started(self) -> int:
        """Return how many executors were ever started, the dead ones included."""
        return len(list(self.folder.glob("worker-*/app-*/*")))

    @contextmanager
    def paused_executors(self) -> Iterator[None]:
        """Let no executor go on inside the block, so that a job stays in its stage."""
        executors = self.executors()
        for executor in executors:
            with suppress(ProcessLookupError):
                os.kill(executor, signal.SIGSTOP)
        try:
            yield
        finally:
            for executor in executors:
                with suppress(ProcessLookupError):
                    os.kill(executor, signal.SIGCONT)

    def kill_executor(self) -> None:
        """Kill one executor that runs, with its Python workers."""
        kill_first(self.executors)

    def kill_worker(self) -> None:
        """Kill a worker with its executors; one that has none only where all have none."""
        busy = (worker for worker in self.workers if descendants_of(worker.handle.pid))
        worker = next(busy, self.workers[0])
        self.workers.remove(worker)
        worker.kill()

    def submit(
        self,
        folder: Path,
        job: Path,
        *arguments: object,
        settings: Mapping[str, str] | None = None,
        options: Sequence[object] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Submit a job in client mode, with small executors.

        Parameters
        ----------
        folder : Path
            Where it runs, and its log is.
        job : Path
            Entry file.
        *arguments
            Of the job.
        settings : mapping of str to str or None
            Of Spark, over those that all jobs have.
        options : sequence
            Of spark-submit.
        environment : mapping of str to str or None
            Over that of the cluster.
        """
        all_settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.extraJavaOptions": QUICK_START,
            "spark.executor.extraJavaOptions": QUICK_START,
            "spark.executor.memory": "512m",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
        } | dict(settings or {})
        command = [str(SCRIPTS / "spark-submit"), "--master", self.url, "--driver-memory", "512m"]
        for key, value in all_settings.items():
            command += ["--conf", f"{key}={value}"]
        command += [str(one) for one in (*options, job, *arguments)]
        driver = self._run("driver", command, self.environment | dict(environment or {}), folder)
        self._started.append(driver)
        return driver

    def stop(self) -> None:
        """End everything that was started."""
        for process in reversed(self._started):
            process.handle.terminate()
        for process in reversed(self._started):
            try:
                process.handle.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
