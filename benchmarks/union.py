"""What a union of releases takes, beside proving the same rows.

    python benchmarks/union.py --holders 10 --rows 1000000

So many holders anonymize generated people by one coding, on Spark with two cores. Then, in the same
session, their releases are proved one after the other, united, and the union is proved, too. All of
it is done once before with few rows: Java and the kernels are warm.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml
from generated_people import generate_people

from anonspark.config import parse_configuration
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.session import open_session
from anonspark.pipeline.run import run
from anonspark.progress import Progress
from anonspark.sharing.holders.union import unite
from anonspark.verification.audit import audit_release

QUASI_IDENTIFIERS = ("birth_date", "postal_code", "income", "capital_gain", "hours_per_week")
OTHERS = ("diagnosis", "sex", "city", "marital_status", "visits")
CODING = {
    "name": "benchmark",
    "attributes": {
        **dict.fromkeys(QUASI_IDENTIFIERS, "quasi_identifier"),
        **dict.fromkeys(OTHERS, "insensitive"),
        "diagnosis": "sensitive",
    },
    "privacy": {"k": 10, "l_diversity": {"attribute": "diagnosis", "l": 2}},
}
WARM_UP_ROWS = 5_000


def main() -> None:
    """Measure proofs and union."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--holders", type=int, default=10)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of each holder")
    parser.add_argument("--holder-column", help="tell the holders apart by this column")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="anonspark-union-") as name,
        open_session("local[2]") as session,
    ):
        engine = SparkEngine(session)
        for folder, rows in (
            (Path(name, "warm"), WARM_UP_ROWS),
            (Path(name, "own"), arguments.rows),
        ):
            folder.mkdir()
            parts = releases(engine, folder, arguments.holders, rows)
            print(f"{arguments.holders} holders of {rows:,} rows each", flush=True)
            measure(engine, parts, str(folder / "union"), arguments.holder_column)


def releases(engine: SparkEngine, folder: Path, holders: int, rows: int) -> list[str]:
    """Let every holder anonymize people of its own."""
    coding = folder / "coding.yaml"
    coding.write_text(yaml.safe_dump(CODING, sort_keys=False))
    paths = []
    for number in range(holders):
        table = generate_people(engine.session, rows, seed=number)
        source, out = folder / f"people-{number}", folder / f"holder-{number}"
        table.select(*CODING["attributes"]).write.parquet(str(source))
        document = {
            "input": {"path": str(source)},
            "coding": str(coding),
            "model": {"name": "smondrian"},
            "output": {"path": str(out)},
            "execution": {"seed": 2**40 + number},
        }
        run(engine, parse_configuration(document), purpose="demonstration")
        paths.append(str(out))
    return paths


def measure(engine: SparkEngine, parts: Sequence[str], out: str, holder_column: str | None) -> None:
    """Print the seconds of the proofs of all parts, of the union, and of the union's proof."""
    progress = Progress()
    proofs = timed(lambda: [audit_release(engine, part).require() for part in parts])
    union = timed(lambda: unite(engine, parts, out, holder_column=holder_column, progress=progress))
    proof = timed(lambda: audit_release(engine, out).require())
    print(f"verify of the parts: {proofs:.1f} s", flush=True)
    print(f"union: {union:.1f} s, {union / proofs:.2f} times that")
    for stage, seconds in progress.seconds.items():
        print(f"... {stage}: {seconds:.1f} s")
    print(f"verify of the union: {proof:.1f} s; union: {union / proof:.2f} times that", flush=True)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that something takes."""
    start = time.monotonic()
    work()
    return time.monotonic() - start


if __name__ == "__main__":
    main()
