"""Measured runs: seconds of each stage and the peak memory of driver, JVM and Python workers.

    .venv/bin/python benchmarks/run_once.py --rows 1000000 --models smondrian microaggregation

Generates the people once (kept below --directory), anonymizes five numeric quasi-identifiers with
``anonspark run`` in a process of its own for each model, and prints what it measured as Markdown.
Beside them stands the identity job from the same minutes: the same session settings read the same
rows, shuffle them once and write them, and do nothing else.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PAGE_MEBIBYTES = 4096 / 2**20

CONFIGURATION = """\
input: {{path: {people}}}
attributes:
  birth_date: quasi_identifier
  postal_code: quasi_identifier
  income: quasi_identifier
  capital_gain: quasi_identifier
  hours_per_week: quasi_identifier
  diagnosis: sensitive
  sex: insensitive
  city: insensitive
  marital_status: insensitive
  visits: insensitive
privacy: {{k: {k}}}
model: {{name: {model}}}
output: {{path: {output}, mode: overwrite}}
execution: {{task_rows: {task_rows}}}
"""

IDENTITY = """\
import sys
from anonspark.session import open_session
people, output, master = sys.argv[1:]
with open_session(master) as spark:
    table = spark.read.parquet(people)
    partitions = max(table.rdd.getNumPartitions(), 2)
    table.repartition(partitions, "person_id").write.mode("overwrite").parquet(output)
"""


class MemoryWatch(threading.Thread):
    """Samples the resident memory of a process and its descendants, by what they are."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.process = process
        self.peaks: dict[str, float] = {}
        self.stopped = threading.Event()

    def run(self) -> None:
        """Sample until stopped; a child that ends meanwhile is passed over."""
        while not self.stopped.wait(0.1):
            for process in descendants(self.process):
                try:
                    command = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
                    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
                except OSError:
                    continue
                if command[0].endswith(b"java"):
                    kind = "JVM (driver and executor)"
                elif b"pyspark.daemon" in command:
                    kind = "largest Python worker"
                else:
                    kind = "Python driver"
                self.peaks[kind] = max(self.peaks.get(kind, 0.0), pages * PAGE_MEBIBYTES)


def descendants(process: int) -> list[int]:
    """Return a process and all below it."""
    found, waiting = [], [process]
    while waiting:
        current = waiting.pop()
        found.append(current)
        for children in Path("/proc").glob(f"{current}/task/*/children"):
            try:
                waiting += map(int, children.read_text().split())
            except OSError:
                continue
    return found


def measured(command: list[str]) -> tuple[float, dict[str, float], str]:
    """Run a command; return its seconds, peak memory in MiB by kind of process, and output."""
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        watch = MemoryWatch(process.pid)
        watch.start()
        output, _ = process.communicate()
        watch.stopped.set()
    if process.returncode:
        sys.exit(f"{command} ended with {process.returncode}")
    return time.monotonic() - start, watch.peaks, output


def main() -> None:
    """Parse the arguments, run both jobs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--models", nargs="+", default=["su-mondrian"])
    parser.add_argument("--task-rows", type=int, default=250_000)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument(
        "--directory", type=Path, default=Path(tempfile.gettempdir()) / "anonspark-bench"
    )
    options = parser.parse_args()
    anonspark = str(Path(sys.executable).with_name("anonspark"))
    options.directory.mkdir(parents=True, exist_ok=True)
    people = options.directory / f"people-{options.rows}"
    if not (people / "_SUCCESS").exists():
        generate = [anonspark, "generate", "--rows", str(options.rows), "--out", str(people)]
        subprocess.run([*generate, "--master", options.master], check=True)
    identity_output = str(options.directory / "identity")
    identity, _, _ = measured(
        [sys.executable, "-c", IDENTITY, str(people), identity_output, options.master]
    )
    columns: dict[str, dict[str, str]] = {}
    for model in options.models:
        configuration = options.directory / "run.yaml"
        configuration.write_text(
            CONFIGURATION.format(
                people=people,
                k=options.k,
                model=model,
                task_rows=options.task_rows,
                output=options.directory / "release",
            )
        )
        run = [anonspark, "run", str(configuration), "--master", options.master]
        seconds, peaks, output = measured([*run, "--json", "--quiet"])
        report = json.loads(output)
        columns[model] = {
            **{stage: f"{taken:.1f} s" for stage, taken in report["seconds"].items()},
            "whole process": f"{seconds:.1f} s",
            "identity job, whole process": f"{identity:.1f} s",
            "ratio": f"{seconds / identity:.2f}",
            **{f"peak memory, {kind}": f"{peak:,.0f} MiB" for kind, peak in sorted(peaks.items())},
            **{name: f"{report['summary'][name]:,}" for name in ("classes", "dm", "gcp")},
        }
    print(f"{options.rows:,} rows, k={options.k}, {options.master}\n")
    print("| what | " + " | ".join(columns) + " |\n| --- |" + " --- |" * len(columns))
    for what in dict.fromkeys(what for column in columns.values() for what in column):
        print(f"| {what} | " + " | ".join(column.get(what, "") for column in columns.values()), "|")


if __name__ == "__main__":
    main()
