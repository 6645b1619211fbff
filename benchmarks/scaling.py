"""How the time of a run grows: the cost model of docs/performance.md and what it predicts.

    make bench ROWS=1000000         # and the same for 10 and 50 million rows
    .venv/bin/python benchmarks/scaling.py build/bench-*000000.json

The constants are those of the first and the last file; what the model says of the files between
them stands beside what was measured. Then the sizes that nobody measured.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anonspark.config.output import ExecutionOptions
from anonspark.layers.partition.packing import MOST_SAMPLED
from anonspark.layers.partition.predicting import MOST_HANDED_BACK

# Stages of the pipeline that make up each step of the model.
PUBLISHING = ("evaluate", "publish", "verify", "warnings", "metrics")
STEPS = ("prepare", "counting", "forming classes", "publishing")

# Rows and cores of a cluster, to predict.
PREDICTED = ((10**9, 100), (10**9, 200), (10**11, 1_000))

# See anonspark/layers/partition/counting.py: rows of one pass that reach the driver.
COUNT_ROWS = 2**17
FEWEST_BINS = 2**4
COUNT_BYTES = 40

# Of more rows one cut's bracket, 4 / sqrt(sampled) of them, is more than a pass hands back.
MOST_PREDICTED = int(MOST_HANDED_BACK * math.sqrt(MOST_SAMPLED) / 4)


@dataclass(frozen=True)
class Run:
    """A measured run.

    Parameters
    ----------
    rows : int
    cores : int
    passes : int
        Counting passes.
    seconds : dict of str to float
        Of each step.
    shuffled_bytes : int
    """

    rows: int
    cores: int
    passes: int
    seconds: dict[str, float]
    shuffled_bytes: int


@dataclass(frozen=True)
class Line:
    """Seconds as a fixed part and one that grows with the rows of a core."""

    fixed: float
    per_row: float

    @classmethod
    def through(cls, first: tuple[float, float], last: tuple[float, float]) -> Line:
        """Return the line through two points of rows of a core and seconds."""
        slope = (last[1] - first[1]) / (last[0] - first[0])
        return cls(first[1] - slope * first[0], slope)

    def at(self, rows: float) -> float:
        """Return the seconds for so many rows of a core."""
        return self.fixed + self.per_row * rows


def main() -> None:
    """Print the model beside the measurements, and its predictions."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("files", type=Path, nargs="+", help="JSON of bench.py, one a size")
    parser.add_argument("--model", default="smondrian")
    parser.add_argument("--task-rows", type=int, default=ExecutionOptions().task_rows)
    options = parser.parse_args()
    runs = sorted((read_run(path, options.model) for path in options.files), key=rows_of)
    model = fitted(runs)
    print_constants(model, runs)
    print_check(model, runs, options.task_rows)
    print_predictions(model, runs, options.task_rows)


def rows_of(run: Run) -> int:
    """Return the rows of a run, to sort by."""
    return run.rows


def read_run(path: Path, model: str) -> Run:
    """Return a model's run with one round from a file of bench.py."""
    document = json.loads(path.read_text(encoding="utf-8"))
    (case,) = (one for one in document["cases"] if one["model"] == model)
    stages = case["seconds_of_stages"]
    counting = case["counting_seconds"]
    return Run(
        rows=case["rows"],
        cores=int(document["master"].removeprefix("local[").removesuffix("]")),
        passes=case["counting_passes"],
        seconds={
            "prepare": stages["prepare"],
            "counting": counting,
            "forming classes": stages["round 1 of 1"] - counting,
            "publishing": sum(stages[name] for name in PUBLISHING),
        },
        shuffled_bytes=case["shuffled_bytes"],
    )


def fitted(runs: Sequence[Run]) -> dict[str, Line]:
    """Return each step's line through the smallest and the largest run; of counting, a pass's."""

    def point(run: Run, step: str) -> tuple[float, float]:
        parts = max(run.passes, 1) if step == "counting" else 1
        return run.rows / run.cores, run.seconds[step] / parts

    return {step: Line.through(point(runs[0], step), point(runs[-1], step)) for step in STEPS}


def seconds(model: dict[str, Line], rows: int, cores: int, passes: int) -> dict[str, float]:
    """Return what the model says each step takes."""
    return {
        step: line.at(rows / cores) * (passes if step == "counting" else 1)
        for step, line in model.items()
    }


def predicted_passes(runs: Sequence[Run], rows: int, task_rows: int) -> int:
    """Return the passes of a table: those of the next larger run, or two a level of the tree.

    Where no level of the tree can be predicted from a sample, histograms are counted.
    """
    if rows > MOST_PREDICTED:
        return 2 * levels(rows, task_rows)
    return next((run.passes for run in runs if run.rows >= rows), runs[-1].passes)


def levels(rows: int, task_rows: int) -> int:
    """Return the levels of a tree whose cuts all halve."""
    return math.ceil(math.log2(max(rows / task_rows, 2)))


def print_constants(model: dict[str, Line], runs: Sequence[Run]) -> None:
    """Print the constants."""
    print(f"From {runs[0].rows:,} and {runs[-1].rows:,} rows:\n")
    print("| step | fixed seconds | core-microseconds a row |\n| --- | ---: | ---: |")
    for step, line in model.items():
        name = "counting, a pass" if step == "counting" else step
        print(f"| {name} | {line.fixed:.2f} | {line.per_row * 1e6:.2f} |")


def print_check(model: dict[str, Line], runs: Sequence[Run], task_rows: int) -> None:
    """Print what was measured beside what the model says."""
    print("\n| rows | passes | what | " + " | ".join(STEPS) + " | all |")
    print("| ---: | ---: | --- |" + " ---: |" * (len(STEPS) + 1))
    for run in runs:
        said = seconds(model, run.rows, run.cores, run.passes)
        for what, found in (("measured", run.seconds), ("model", said)):
            cells = [f"{found[step]:.1f}" for step in STEPS]
            print(
                f"| {run.rows:,} | {run.passes} | {what} | " + " | ".join(cells) + " | "
                f"{sum(found.values()):.1f} |"
            )
    expected = [predicted_passes(runs, run.rows, task_rows) for run in runs]
    print(f"\nPasses as the model predicts them: {', '.join(map(str, expected))}")


def print_predictions(model: dict[str, Line], runs: Sequence[Run], task_rows: int) -> None:
    """Print what the model says of clusters."""
    bytes_of_row = runs[-1].shuffled_bytes / runs[-1].rows
    print()
    rows: list[list[Any]] = []
    for n, cores in PREDICTED:
        tasks = math.ceil(n / task_rows)
        passes = predicted_passes(runs, n, task_rows)
        said = seconds(model, n, cores, passes)
        nodes = tasks // 2
        requests = 5 * nodes
        counted = max(COUNT_ROWS, requests * FEWEST_BINS) * COUNT_BYTES
        maps = math.ceil(n * bytes_of_row / 2**27)
        rows.append(
            [
                f"{n:,}",
                f"{cores:,}",
                f"{tasks:,}",
                passes,
                *(f"{said[step] / 60:,.1f}" for step in STEPS),
                f"{sum(said.values()) / 60:,.1f}",
                f"{n * bytes_of_row / 1e9:,.0f}",
                f"{maps * tasks:,}",
                f"{counted / 2**20:,.0f}",
            ]
        )
    heads = ["rows", "cores", "tasks", "passes", *(f"minutes of {step}" for step in STEPS)]
    heads += ["minutes in all", "GB shuffled", "shuffle blocks", "MiB of counts on the driver"]
    print("| " + " | ".join(heads) + " |\n| " + " | ".join(["---:"] * len(heads)) + " |")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")


if __name__ == "__main__":
    main()
