"""Measure association and arranging beside the identity job, in turns, in one warm session.

    .venv/bin/python benchmarks/learning.py --rows 1000000
    .venv/bin/python benchmarks/learning.py --rows 10000000 --runs 3

The table is that of ``bench.py``: five numeric quasi-identifiers and five other columns, of which
the diagnosis is the target. ``association`` is what a run of smondrian takes for it (its stage of
that name); ``evaluate`` is ``anonspark evaluate`` without models, with its part of association
told apart; ``arrange`` orders city, sex and marital status by the diagnosis.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import WARM_UP_ROWS, configuration, make_table, table_path
from measuring import machine

TARGET = "diagnosis"
ARRANGED = ("city", "sex", "marital_status")
IDENTITY = "identity"
JOBS = ("run", "evaluate", "arrange")
BARS = {"association": 0.5, "arrange": 0.5}
"""Times the identity job."""

SHARE_OF_EVALUATE = 0.25
"""What association may add to ``evaluate`` without models."""


def main() -> None:
    """Parse the arguments, measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--warm-up", type=int, default=WARM_UP_ROWS, help="rows before measuring")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3, help="of which the median counts")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--master", default="local[2]")
    parser.add_argument(
        "--directory", type=Path, default=Path(tempfile.gettempdir()) / "anonspark-bench"
    )
    parser.add_argument("--json", type=Path, help="where to write what was measured")
    options = parser.parse_args()
    options.table, options.task_rows = "people", 500_000
    options.directory.mkdir(parents=True, exist_ok=True)
    for rows in (options.warm_up, options.rows):
        make_table(options, rows)
    found = measure(options)
    told = print_table(options, found)
    if options.json:
        options.json.write_text(json.dumps({**machine(), **told}, indent=2) + "\n")


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Return the median seconds of each job."""
    from anonspark.engine.spark.session import open_session

    with open_session(options.master) as spark:
        every = jobs_of(options, spark)
        # What is evaluated was made by the run.
        jobs = {
            name: every[name] for name in (IDENTITY, *JOBS) if name in (IDENTITY, *options.jobs)
        }
        for name, job in jobs.items():
            job(options.warm_up)
            print(f"warmed up: {name}", flush=True)
        seconds: dict[str, list[float]] = {}
        for _ in range(options.runs):
            for name, job in jobs.items():
                start = time.monotonic()
                told = job(options.rows)
                whole = {name: time.monotonic() - start, **told}
                for own, took in whole.items():
                    seconds.setdefault(own, []).append(took)
                print(", ".join(f"{own}: {took:.2f} s" for own, took in whole.items()), flush=True)
    return {name: statistics.median(own) for name, own in seconds.items()}


def jobs_of(
    options: argparse.Namespace, spark: Any
) -> dict[str, Callable[[int], dict[str, float]]]:
    """Return what is measured, by name; a job tells seconds of its parts."""
    from anonspark.config import parse_configuration
    from anonspark.engine.spark.engine import SparkEngine
    from anonspark.pipeline.run import run
    from anonspark.progress import Progress
    from anonspark.utility.evaluation import open_evaluation
    from anonspark.utility.learned_hierarchies import arrange

    engine = SparkEngine(spark)
    release, arranged = options.directory / "learning-release", options.directory / "arranged"

    def document(rows: int) -> dict[str, Any]:
        own = configuration(options, rows, "smondrian", options.k, str(release))
        return own | {"evaluate": {"association": {"target": TARGET}}}

    def identity(rows: int) -> dict[str, float]:
        table = spark.read.parquet(str(table_path(options, rows)))
        tasks = max(-(-rows // options.task_rows), 2)
        spread = table.repartition(tasks, *table.columns[:10])
        spread.write.mode("overwrite").parquet(str(options.directory / "identity"))
        return {}

    def anonymize(rows: int) -> dict[str, float]:
        progress = Progress()
        run(engine, parse_configuration(document(rows)), progress=progress)
        return {"association": progress.seconds["association"]}

    def evaluate(rows: int) -> dict[str, float]:
        path = str(table_path(options, rows))
        start = time.monotonic()
        with engine.reading((path,), key=""):
            opened = open_evaluation(engine, str(release), path, TARGET)
            opened.workload()
            counted = time.monotonic()
            opened.association()
        end = time.monotonic()
        return {"counts": counted - start, "association afterwards": end - counted}

    def learn(rows: int) -> dict[str, float]:
        shutil.rmtree(arranged, ignore_errors=True)
        own = document(rows)
        own["attributes"] = own["attributes"] | dict.fromkeys(ARRANGED, "quasi_identifier")
        own["output"] = {"path": str(options.directory / "nowhere")}
        arrange(engine, parse_configuration(own), TARGET, str(arranged), attributes=ARRANGED)
        return {}

    return {IDENTITY: identity, "run": anonymize, "evaluate": evaluate, "arrange": learn}


def print_table(options: argparse.Namespace, found: dict[str, float]) -> dict[str, Any]:
    """Print the figures as Markdown, and return them."""
    print(f"\nTable people, {options.rows:,} rows, {options.runs} runs, one session\n")
    print("| job | seconds | times the identity job | bar |\n| --- | ---: | ---: | ---: |")
    ratios = {name: took / found[IDENTITY] for name, took in found.items()}
    for name, took in found.items():
        bar = f"{BARS[name]:.2f}" if name in BARS else ""
        print(f"| {name} | {took:.2f} | {ratios[name]:.2f} | {bar} |")
    added = None
    if "counts" in found:
        added = found["association afterwards"] / found["counts"]
        bar = f"bar {SHARE_OF_EVALUATE:.0%}"
        print(f"\nassociation adds {added:.0%} to evaluate without models ({bar})")
    described = machine()
    print(f"{described['machine']}, {options.master}; {described['versions']}")
    return {"seconds": found, "ratios": ratios, "added_to_evaluate": added}


if __name__ == "__main__":
    main()
