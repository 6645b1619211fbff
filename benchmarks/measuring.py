"""What a process and Spark used while something ran."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from standalone import command_line_of, descendants_of

__all__ = ["IDENTITY", "MemoryWatch", "SparkCounts", "machine", "measured"]

_PAGE_MEBIBYTES = os.sysconf("SC_PAGE_SIZE") / 2**20

JVM, WORKER, DRIVER = "JVM (driver and executor)", "largest Python worker", "Python driver"


IDENTITY = """\
import sys
from anonspark.session import open_session
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
        self._stopped = threading.Event()

    def run(self) -> None:
        """Sample until stopped; a child that ends meanwhile is passed over."""
        while not self._stopped.wait(0.1):
            for process in (self._process, *descendants_of(self._process)):
                try:
                    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
                except OSError:
                    continue
                command = command_line_of(process).split(b"\0")
                if command[0].endswith(b"java"):
                    kind = JVM
                elif b"pyspark.daemon" in command:
                    kind = WORKER
                else:
                    kind = DRIVER
                self._peaks[kind] = max(self._peaks.get(kind, 0.0), pages * _PAGE_MEBIBYTES)

    def take(self) -> dict[str, float]:
        """Return the peaks in MiB since this was asked last."""
        peaks, self._peaks = self._peaks, {}
        return {kind: round(peak) for kind, peak in sorted(peaks.items())}

    def stop(self) -> None:
        """Sample no more."""
        self._stopped.set()


def measured(command: list[str]) -> tuple[float, dict[str, float], str]:
    """Run a command; return its seconds, peak memory in MiB by kind of process, and output."""
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        watch = MemoryWatch(process.pid)
        watch.start()
        output, _ = process.communicate()
        watch.stop()
    if process.returncode:
        sys.exit(f"{command} ended with {process.returncode}")
    return time.monotonic() - start, watch.take(), output


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

    def take(self) -> dict[str, int]:
        """Return jobs, stages that ran, tasks, and bytes shuffled."""
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
        }


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
