"""What a process and Spark used while something ran."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from standalone import command_line_of, descendants_of

__all__ = [
    "IDENTITY",
    "MemoryWatch",
    "SparkCounts",
    "Watched",
    "machine",
    "measured",
    "stop_tree",
    "watched",
]

_PAGE_MEBIBYTES = os.sysconf("SC_PAGE_SIZE") / 2**20

JVM, WORKER, DRIVER = "JVM of the session", "largest Python worker", "Python driver"


IDENTITY = """\
import sys
from anonspark.engine.spark.session import open_session
people, output, master = sys.argv[1:]
with open_session(master) as spark:
    table = spark.read.parquet(people)
    partitions = max(table.rdd.getNumPartitions(), 2)
    table.repartition(partitions, "person_id").write.mode("overwrite").parquet(output)
"""
"""The job that reads, shuffles and writes the rows of a table, in a process of its own."""


class MemoryWatch(threading.Thread):
    """Samples the resident memory of a process and its descendants, by what they are."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self._process = process
        self._peaks: dict[str, float] = {}
        self._together = 0.0
        self._stopped = threading.Event()

    def run(self) -> None:
        """Sample until stopped; a child that ends meanwhile is passed over."""
        while not self._stopped.wait(0.1):
            together = 0.0
            for process in (self._process, *descendants_of(self._process)):
                try:
                    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
                except OSError:
                    continue
                command = command_line_of(process).split(b"\0")
                if command[0].endswith(b"java"):
                    kind = JVM
                elif b"pyspark.worker" in command:
                    kind = WORKER
                else:
                    kind = DRIVER
                self._peaks[kind] = max(self._peaks.get(kind, 0.0), pages * _PAGE_MEBIBYTES)
                together += pages * _PAGE_MEBIBYTES
            self._together = max(self._together, together)

    def take(self) -> dict[str, float]:
        """Return the peaks in MiB since this was asked last."""
        peaks, self._peaks = self._peaks, {}
        return {kind: round(peak) for kind, peak in sorted(peaks.items())}

    def together(self) -> int:
        """Return the most MiB that all processes had at one time; shared pages count in each."""
        return round(self._together)

    def stop(self) -> None:
        """Sample no more."""
        self._stopped.set()


@dataclass(frozen=True)
class Watched:
    """How a command ended, and what it used.

    Parameters
    ----------
    seconds : float
    exit_code : int or None
        None where it was stopped at its limit; negative where a signal ended it.
    peaks : dict of str to float
        MiB that the largest process of each kind had resident.
    together : int
        MiB that all its processes had resident at one time.
    output : str
        What it wrote to standard output, if that was not sent elsewhere.
    """

    seconds: float
    exit_code: int | None
    peaks: dict[str, float]
    together: int
    output: str


def watched(command: list[str], *, limit: float | None = None, **started: Any) -> Watched:
    """Run a command, for so many seconds at most; ``started`` goes to ``subprocess.Popen``."""
    start = time.monotonic()
    over = False
    with subprocess.Popen(command, text=True, **started) as process:
        watch = MemoryWatch(process.pid)
        watch.start()
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            over = True
            stop_tree(process.pid)
            output, _ = process.communicate()
        except BaseException:
            stop_tree(process.pid)
            raise
        finally:
            watch.stop()
        seconds = time.monotonic() - start
    exit_code = None if over else process.returncode
    return Watched(seconds, exit_code, watch.take(), watch.together(), output or "")


def stop_tree(process: int) -> None:
    """Kill a process that we started, and all that it started, whatever group they are in."""
    found: set[int] = set()
    # Stopped first: what is stopped starts nothing more.
    while new := {process, *descendants_of(process)} - found:
        for one in new:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGSTOP)
        found |= new
    for one in found:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def measured(command: list[str]) -> tuple[float, dict[str, float], str]:
    """Run a command; return its seconds, peak memory in MiB by kind of process, and output."""
    done = watched(command, stdout=subprocess.PIPE)
    if done.exit_code:
        sys.exit(f"{command} ended with {done.exit_code}")
    return done.seconds, done.peaks, done.output


@dataclass
class SparkCounts:
    """What Spark did in a session since it was asked last.

    Parameters
    ----------
    spark : SparkSession
        Keeps what it knows of the last 1,000 jobs and stages.
    """

    spark: Any
    _jobs: int = -1
    _stages: int = -1

    def take(self) -> dict[str, Any]:
        """Return jobs, stages that ran, tasks, bytes shuffled, and the counting passes."""
        gateway = self.spark.sparkContext._gateway
        store = self.spark._jsc.sc().statusStore()
        # Everything that has been noted down so far is to be seen.
        self.spark._jsc.sc().listenerBus().waitUntilEmpty()
        jobs = [job for job in _listed(store.jobsList(None)) if job.jobId() > self._jobs]
        nothing = gateway.new_array(gateway.jvm.double, 0)
        tasks = gateway.jvm.java.util.ArrayList()
        stages = [
            stage
            for stage in _listed(store.stageList(None, False, False, nothing, tasks))
            if stage.stageId() > self._stages and str(stage.status()) == "COMPLETE"
        ]
        self._jobs = max([self._jobs, *(job.jobId() for job in jobs)])
        self._stages = max([self._stages, *(stage.stageId() for stage in stages)])
        return {
            "jobs": len(jobs),
            "stages": len(stages),
            "tasks": sum(stage.numCompleteTasks() for stage in stages),
            "shuffled_bytes": sum(stage.shuffleWriteBytes() for stage in stages),
            # A pass is two stages, one that counts and one that adds up; between them Spark may
            # begin another job. The first one of a round may be a single stage, which draws a
            # sample.
            "counting_passes": (sum(_does(stage, "counting") for stage in stages) + 1) // 2,
            "counting_seconds": sum(map(_seconds, (one for one in jobs if _does(one, "counting")))),
        }


def _does(job_or_stage: Any, step: str) -> bool:
    described = job_or_stage.description()
    return bool(described.isDefined() and described.get().endswith(f", {step}"))


def _seconds(job: Any) -> float:
    return float(job.completionTime().get().getTime() - job.submissionTime().get().getTime()) / 1e3


def _listed(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]


def machine() -> dict[str, str]:
    """Describe where something is measured, and what."""
    import pyspark

    from anonspark import __version__

    processor = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "unknown processor",
    )
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],  # noqa: S607 - whichever is installed
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return {
        "machine": f"{os.cpu_count()} cores of {processor}, {memory:.0f} GiB",
        "versions": f"anonspark {__version__} ({commit or 'no repository'}), Spark "
        f"{pyspark.__version__}, Python {sys.version.split()[0]}",
    }
