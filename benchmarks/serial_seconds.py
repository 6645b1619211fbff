"""CPU seconds of a run on Spark: of the driver, which more cores make no fewer, and of tasks.

    .venv/bin/python benchmarks/serial_seconds.py --rows 1000000 10000000

Seconds of a processor and not of a clock, so that a busy machine may measure them. The driver's are
those of its Python alone: in local mode tasks run in the driver's Java, and so all of Java's count
as those of tasks. The session is warm after runs of few rows.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from standalone import descendants_of
from tables import TABLES

from anonspark.config import parse_configuration
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.session import open_session
from anonspark.pipeline.run import run

WARM_UP_ROWS = 20_000
MODELS = ("su-mondrian", "smondrian")


def main() -> None:
    """Print a line of JSON for each run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()) / "serial")
    options = parser.parse_args()
    with open_session("local[2]") as spark:
        engine = SparkEngine(spark)
        table = TABLES["people"]
        for rows in (WARM_UP_ROWS, *options.rows):
            path = options.directory / f"people-{rows}"
            if not path.exists():
                table.make(spark, rows).write.parquet(str(path))
            for model in options.models:
                document = {
                    "input": {"path": str(path)},
                    "attributes": dict(table.attributes),
                    "privacy": {"k": 10},
                    "model": {"name": model},
                    "output": {"path": str(options.directory / "release"), "mode": "overwrite"},
                    "execution": {"seed": 2**40},
                }
                before, start = cpu_seconds(), time.monotonic()
                run(engine, parse_configuration(document))
                found = [after - first for after, first in zip(cpu_seconds(), before, strict=True)]
                names = ("driver", "tasks")
                measured = {name: round(one, 2) for name, one in zip(names, found, strict=True)}
                clock = round(time.monotonic() - start, 1)
                print(
                    json.dumps({"rows": rows, "model": model, **measured, "clock": clock}),
                    flush=True,
                )


def cpu_seconds() -> Sequence[float]:
    """Return what this process has used of processors, and what Java and its workers have."""
    started = descendants_of(os.getpid())
    return sum(os.times()[:2]), sum(map(_seconds_of, started))


def _seconds_of(process: int) -> float:
    """Return the seconds of a process, and of its children that have ended."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="ascii")
    except OSError:  # it has ended: its parent has its seconds
        return 0.0
    fields = text.rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
