"""What it takes to apply an earlier release's mapping, beside a run of smondrian.

    python benchmarks/mapping.py --rows 10000000 --regions 100000

An earlier release of generated people is made with so many classes, and applied to other people, on
Spark with two cores. Printed are the seconds of both runs of the new people, from this process.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from generated_people import generate_people

from anonspark.config import parse_configuration
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.session import open_session
from anonspark.pipeline.run import run
from anonspark.progress import Progress

QUASI_IDENTIFIERS = ("birth_date", "postal_code", "income", "capital_gain", "hours_per_week")
K = 10
# Median cuts make classes of about this many times k records.
SIZE_OF_CLASSES = 1.6


def main() -> None:
    """Measure both runs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--regions", type=int, default=10_000)
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="anonspark-mapping-") as name,
        open_session("local[2]") as session,
    ):
        folder, engine = Path(name), SparkEngine(session)
        before = int(arguments.regions * K * SIZE_OF_CLASSES)
        for part, rows, seed in (("old", before, 1), ("new", arguments.rows, 2)):
            table = generate_people(session, rows, seed=seed)
            table.select(*QUASI_IDENTIFIERS, "diagnosis").write.parquet(str(folder / part))
        old = anonymize(engine, folder, "old", "release", {"name": "smondrian"})
        mapping = {"name": "mapping", "release": str(folder / "release")}
        for model in ({"name": "smondrian"}, mapping):
            # Kernels are loaded, and Spark is warm.
            anonymize(engine, folder, "old", "warm", model)
            shutil.rmtree(folder / "warm")
        print(f"{arguments.rows:,} new records, {old['classes']:,} regions", flush=True)
        seconds = {}
        for model in ({"name": "smondrian"}, mapping):
            start = time.monotonic()
            summary = anonymize(engine, folder, "new", "out", model)
            took = seconds[model["name"]] = time.monotonic() - start
            print(
                f"{model['name']}: {took:.1f} s, {summary['classes']:,} classes, "
                f"gcp {summary['gcp']:.4f}",
                flush=True,
            )
            for stage, part in summary["stages"].items():
                print(f"... {stage}: {part:.1f} s", flush=True)
            shutil.rmtree(folder / "out")
        print(f"mapping: {seconds['mapping'] / seconds['smondrian']:.2f} times smondrian")


def anonymize(
    engine: SparkEngine, folder: Path, source: str, out: str, model: dict[str, Any]
) -> dict[str, Any]:
    """Anonymize a table; return its summary, with the seconds of the stages."""
    document = {
        "input": {"path": str(folder / source)},
        "attributes": {
            **{name: {"role": "quasi_identifier"} for name in QUASI_IDENTIFIERS},
            "diagnosis": {"role": "sensitive"},
        },
        "privacy": {"k": K},
        "model": model,
        "output": {"path": str(folder / out)},
        "execution": {"seed": 2**40 + 1},
    }
    progress = Progress()
    release = run(engine, parse_configuration(document), progress=progress, purpose="demonstration")
    return release.summary | {"stages": dict(progress.seconds)}


if __name__ == "__main__":
    main()
