"""Measure runs beside copies of the same rows: by Spark, by DuckDB and by polars.

    make bench                              # a million rows, all models of the bars
    .venv/bin/python benchmarks/bench.py --rows 10000000 --models smondrian --k 10 --runs 3
    .venv/bin/python benchmarks/bench.py --rows 1000000 --table adult --whole

DuckDB orders the rows by a hash and writes them, polars writes them in any order, each in a process
of its own (``copies.py``). The identity job reads the table, repartitions it by a key into as many
partitions as a run has tasks, writes Parquet, and does nothing else. It and the models take turns
in one session, after a run of each over a table of 20,000 rows that warms Java, Numba and the
Python workers up. Memory is the most that a process had resident while the job at hand ran. Java
gives back little of what it once took, so its figure is that of all jobs so far; "heap in use" is
what was left of its objects after a full collection at the end. With ``--cluster`` tasks run in an
executor of a standalone cluster on this machine, so that memory is that of the driver alone.
``--whole`` measures ``anonspark run`` in processes of their own instead, from a cold start to the
finished release, on Spark or, with ``--engine local``, without it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from copies import COPIES
from measuring import DRIVER, JVM, WORKER, MemoryWatch, SparkCounts, machine, measured
from standalone import Cluster
from tables import TABLES

from anonspark.config.output import ExecutionOptions
from anonspark.engine.spark.engine import SparkEngine

IDENTITY = "identity"
COPY_NAMES = {
    IDENTITY: "the identity job",
    "duckdb": "DuckDB's ordered copy",
    "polars": "polars' copy",
}
WARM_UP_ROWS = 20_000
EXECUTOR_MEMORY = "6g"
MODELS = ("smondrian", "su-mondrian", "canon", "u-canon", "microaggregation")


def main() -> None:
    """Parse the arguments, measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--k", type=int, nargs="+", default=[10])
    parser.add_argument("--table", choices=TABLES, default="people")
    parser.add_argument("--runs", type=int, default=3, help="of which the median counts")
    parser.add_argument("--task-rows", type=int, default=ExecutionOptions().task_rows)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument(
        "--cluster", action="store_true", help="start a standalone cluster of one worker"
    )
    parser.add_argument("--whole", action="store_true", help="measure whole processes")
    parser.add_argument(
        "--engine", choices=("spark", "local"), default="spark", help="of whole processes"
    )
    parser.add_argument(
        "--directory", type=Path, default=Path(tempfile.gettempdir()) / "anonspark-bench"
    )
    parser.add_argument("--json", type=Path, help="where to write what was measured")
    # Used by this program itself: measures in a session of its own.
    parser.add_argument("--in-session", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_session:
        measure_in_session(options, options.rows[0])
        return
    options.directory.mkdir(parents=True, exist_ok=True)
    if options.cluster:
        with small_cluster(options.directory) as options.master:
            measure_tables(options)
    else:
        measure_tables(options)


@contextmanager
def small_cluster(directory: Path) -> Iterator[str]:
    """Run a master and a worker with two cores; yield where the master is."""
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        cluster = Cluster(Path(folder))
        try:
            cluster.add_worker(cores=2, memory=EXECUTOR_MEMORY)
            cluster.wait_for_workers()
            yield cluster.url
        finally:
            cluster.stop()


def measure_copies(options: argparse.Namespace, rows: int) -> list[dict[str, Any]]:
    """Measure what DuckDB and polars take to copy a table, each in a process of its own."""
    script, copy = str(Path(__file__).with_name("copies.py")), Path(options.directory) / "copy"
    cases = []
    for name in COPIES:
        command = [sys.executable, script, name, str(table_path(options, rows)), str(copy)]
        runs = []
        for _ in range(options.runs):
            seconds, peaks, _ = measured(command)
            runs.append({"seconds": seconds, "stages": {}, "peaks": peaks})
        cases.append(summed_up(options, rows, name, 0, runs) | {"engine": name})
    copy.unlink()
    return cases


def measure_tables(options: argparse.Namespace) -> None:
    """Measure tables of all sizes, print and write what was found."""
    if not options.whole:
        make_table(options, WARM_UP_ROWS)
    found: list[dict[str, Any]] = []
    for rows in options.rows:
        make_table(options, rows)
        measure = measure_whole if options.whole else measure_session
        cases = with_ratios([*measure_copies(options, rows), *measure(options, rows)])
        found += cases
        print_table(options, rows, cases)
    master = "a standalone cluster" if options.cluster else options.master
    described = {**machine(), "master": master, "cases": found}
    print(f"\n{described['machine']}, {master}; {described['versions']}")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")


def with_ratios(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the figures with their ratios to the seconds of each copy."""
    copies = {one["model"]: one["seconds"] for one in cases if one["model"] in (*COPIES, IDENTITY)}
    return [
        one | {"ratios": {name: round(one["seconds"] / each, 2) for name, each in copies.items()}}
        for one in cases
    ]


def table_path(options: argparse.Namespace, rows: int) -> Path:
    """Return where a table is, which later calls find again."""
    return Path(options.directory) / f"{options.table}-{rows}"


def make_table(options: argparse.Namespace, rows: int) -> None:
    """Make a table, unless it is there."""
    path = table_path(options, rows)
    if not (path / "_SUCCESS").exists():
        # What was left when making it was stopped.
        shutil.rmtree(path, ignore_errors=True)
        script = str(Path(__file__).with_name("tables.py"))
        subprocess.run([sys.executable, script, options.table, str(rows), str(path)], check=True)


def configuration(
    options: argparse.Namespace, rows: int, model: str, k: int, output: str
) -> dict[str, Any]:
    """Return the configuration of a run."""
    return {
        "input": {"path": str(table_path(options, rows))},
        "attributes": dict(TABLES[options.table].attributes),
        "privacy": {"k": k},
        "model": {"name": model},
        "output": {"path": output, "mode": "overwrite"},
        "execution": {"task_rows": options.task_rows},
    }


def cases_of(options: argparse.Namespace) -> list[tuple[str, int]]:
    """Return every model with every k."""
    return [(model, k) for model in options.models for k in options.k]


def measure_in_session(options: argparse.Namespace, rows: int) -> None:
    """Run all jobs in turns and print one line of JSON for each."""
    from anonspark.config import parse_configuration
    from anonspark.engine.spark.session import open_session
    from anonspark.pipeline.run import run as run_pipeline
    from anonspark.progress import Progress

    directory = Path(options.directory)
    with open_session(options.master) as spark:
        counts = SparkCounts(spark)

        def identity(rows: int) -> dict[str, float]:
            table = spark.read.parquet(str(table_path(options, rows)))
            tasks = max(-(-rows // options.task_rows), 2)
            # Equal quasi-identifiers do not keep rows together, so the partitions are of one size.
            spread = table.repartition(tasks, *table.columns[:10])
            spread.write.mode("overwrite").parquet(str(directory / "identity"))
            return {}

        def model(rows: int, name: str, k: int) -> dict[str, float]:
            document = configuration(options, rows, name, k, str(directory / "release"))
            progress = Progress()
            run_pipeline(SparkEngine(spark), parse_configuration(document), progress=progress)
            return progress.seconds

        identity(WARM_UP_ROWS)
        for name, k in cases_of(options):
            model(WARM_UP_ROWS, name, k)
        counts.take()
        print(json.dumps({"job": "warm-up"}), flush=True)
        for _ in range(options.runs):
            for name, k in [(IDENTITY, 0), *cases_of(options)]:
                start = time.monotonic()
                stages = identity(rows) if name == IDENTITY else model(rows, name, k)
                seconds = time.monotonic() - start
                done = {
                    "job": name,
                    "k": k,
                    "seconds": seconds,
                    "stages": stages,
                    "spark": counts.take(),
                    "heap_in_use": heap_in_use(spark),
                }
                print(json.dumps(done), flush=True)


def heap_in_use(spark: Any) -> int:
    """Return the MiB of Java's objects that are still referred to."""
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    runtime.gc()
    used: int = runtime.totalMemory() - runtime.freeMemory()
    return round(used / 2**20)


def measure_session(options: argparse.Namespace, rows: int) -> list[dict[str, Any]]:
    """Measure all jobs in one session."""
    command = [sys.executable, __file__, "--in-session", "--rows", str(rows)]
    for name in ("models", "k"):
        command += [f"--{name}", *map(str, getattr(options, name))]
    for name in ("table", "runs", "task-rows", "master", "directory"):
        command += [f"--{name}", str(getattr(options, name.replace("-", "_")))]
    jobs: dict[tuple[str, int], list[dict[str, Any]]] = {}
    # Of executors of a cluster; without one it is left alone.
    environment = os.environ | {
        "SPARK_EXECUTOR_MEMORY": EXECUTOR_MEMORY, "PYSPARK_PYTHON": sys.executable
    }  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        watch = MemoryWatch(process.pid)
        watch.start()
        for line in process.stdout or ():
            done = json.loads(line)
            peaks = watch.take()
            if done["job"] != "warm-up":
                jobs.setdefault((done["job"], done["k"]), []).append({**done, "peaks": peaks})
                print(f"{done['job']} k={done['k']}: {done['seconds']:.1f} s", file=sys.stderr)
        watch.stop()
    if process.returncode:
        sys.exit(f"{command} ended with {process.returncode}")
    return [summed_up(options, rows, name, k, runs) for (name, k), runs in jobs.items()]


def measure_whole(options: argparse.Namespace, rows: int) -> list[dict[str, Any]]:
    """Measure whole processes, one run of each model in turn."""
    anonspark = str(Path(sys.executable).with_name("anonspark"))
    jobs: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for _ in range(options.runs):
        for name, k in cases_of(options):
            path = Path(options.directory) / "run.yaml"
            document = configuration(options, rows, name, k, f"{options.directory}/release")
            path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
            local = options.engine == "local"
            of_engine = (
                ["--set", "execution.engine=local"] if local else ["--master", options.master]
            )
            run = [anonspark, "run", str(path), *of_engine, "--json", "--quiet"]
            seconds, peaks, output = measured(run)
            stages = json.loads(output)["seconds"]
            done = {"seconds": seconds, "stages": stages, "peaks": peaks}
            jobs.setdefault((name, k), []).append(done)
    return [summed_up(options, rows, name, k, runs) for (name, k), runs in jobs.items()]


def median_seconds(runs: Sequence[dict[str, Any]]) -> float:
    """Return the median of several runs."""
    return float(statistics.median(run["seconds"] for run in runs))


def summed_up(
    options: argparse.Namespace, rows: int, name: str, k: int, runs: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return the figures of several runs of a job: medians of times, maxima of memory."""
    seconds = median_seconds(runs)
    stages = {
        stage: round(statistics.median(run["stages"].get(stage, 0.0) for run in runs), 2)
        for stage in runs[0]["stages"]
    }
    kinds = sorted({kind for run in runs for kind in run["peaks"]})
    summed: dict[str, Any] = {
        "table": options.table,
        "rows": rows,
        "model": name,
        "k": k or None,
        "whole_process": options.whole,
        "engine": options.engine if options.whole else "spark",
        "seconds": round(seconds, 2),
        "all_seconds": [round(run["seconds"], 2) for run in runs],
        "rows_per_second": round(rows / seconds),
        "peak_mebibytes": {kind: max(run["peaks"].get(kind, 0) for run in runs) for kind in kinds},
        "seconds_of_stages": stages,
    }
    if "spark" in runs[0]:
        summed |= runs[-1]["spark"]
        summed["counting_seconds"] = round(
            statistics.median(run["spark"]["counting_seconds"] for run in runs), 2
        )
        summed["heap_in_use_mebibytes"] = max(run["heap_in_use"] for run in runs)
    return summed


def print_table(options: argparse.Namespace, rows: int, cases: Sequence[dict[str, Any]]) -> None:
    """Print the figures as Markdown, one column a job."""
    what = f"whole processes, engine {options.engine}" if options.whole else "one session"
    print(f"\nTable {options.table}, {rows:,} rows, {options.runs} runs, {what}\n")
    names = [case["model"] + (f", k={case['k']}" if case["k"] else "") for case in cases]
    print("| | " + " | ".join(names) + " |\n| --- |" + " ---: |" * len(cases))
    columns = [dict(figures(case)) for case in cases]
    for name in dict.fromkeys(name for column in columns for name in column):
        print(f"| {name} | " + " | ".join(column.get(name, "") for column in columns) + " |")


def figures(case: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the lines of one job."""
    yield "seconds", f"{case['seconds']:.1f}"
    for name, ratio in case["ratios"].items():
        yield f"times {COPY_NAMES[name]}", f"{ratio:.2f}"
    yield "rows per second", f"{case['rows_per_second']:,}"
    for kind in (JVM, DRIVER, WORKER):
        if kind in case["peak_mebibytes"]:
            yield f"MiB at most, {kind}", f"{case['peak_mebibytes'][kind]:,}"
    if "jobs" in case:
        yield "heap in use, MiB", f"{case['heap_in_use_mebibytes']:,}"
        yield "MB shuffled", f"{case['shuffled_bytes'] / 1e6:,.1f}"
        yield "jobs, stages, tasks", f"{case['jobs']}, {case['stages']}, {case['tasks']}"
        if case["counting_passes"]:
            passes = f"{case['counting_passes']}, {case['counting_seconds']:.1f}"
            yield "counting passes, their seconds", passes
    for stage, seconds in case["seconds_of_stages"].items():
        yield f"seconds of {stage}", f"{seconds:.1f}"


if __name__ == "__main__":
    main()
