"""What a plan costs: the frozen source, each release, the joint check, beside the identity job.

    python benchmarks/recipients.py --rows 10000000

Four recipients get columns of generated people, by independent releases and by nested ones, on
Spark with two cores. Printed are the seconds of the stages of each plan, of separate runs of the
same columns, and what both are as multiples of the identity job (read, shuffle, write), all from
this process.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from generated_people import generate_people
from pyspark.sql import SparkSession

from anonspark.config import parse_configuration
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.session import open_session
from anonspark.pipeline.run import run
from anonspark.progress import Progress
from anonspark.sharing.recipients.distribute import distribute
from anonspark.sharing.recipients.plan import parse_plan

QUASI_IDENTIFIERS = ("birth_date", "postal_code", "income", "capital_gain", "hours_per_week")
RECIPIENTS = {
    "a": ("birth_date", "postal_code", "income"),
    "b": ("birth_date", "income", "hours_per_week"),
    "c": ("postal_code", "income", "capital_gain"),
    "d": ("birth_date", "postal_code", "capital_gain", "hours_per_week"),
}
K, K_OF_ALL = 10, 5


def main() -> None:
    """Measure both strategies, and what they are compared with."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="anonspark-recipients-") as name,
        open_session("local[2]") as session,
    ):
        measure(session, Path(name), arguments.rows)


def measure(session: SparkSession, folder: Path, rows: int) -> None:
    """Print the seconds of everything."""
    table = generate_people(session, rows)
    table.select("person_id", *QUASI_IDENTIFIERS, "diagnosis", "sex", "city").write.parquet(
        str(folder / "people")
    )
    engine = SparkEngine(session)
    warm_up = generate_people(session, 20_000)
    warm_up.select("person_id", *QUASI_IDENTIFIERS, "diagnosis", "sex", "city").write.parquet(
        str(folder / "warm")
    )
    for strategy in ("independent", "nested"):
        carry_out(engine, folder, "warm", strategy, list(RECIPIENTS))
    identity = seconds(lambda: identity_job(session, folder))
    print(f"{rows:,} rows; identity job {identity:.1f} s", flush=True)

    def told(what: str, took: float) -> None:
        print(f"{what}: {took:.1f} s, {took / identity:.2f} times the identity job", flush=True)

    alone = {one: seconds(partial(run_alone, engine, folder, one)) for one in RECIPIENTS}
    for one, took in alone.items():
        told(f"smondrian alone, columns of {one}", took)
    whole, stages = carry_out(engine, folder, "people", "independent", list(RECIPIENTS))
    frozen = stages["freeze the source"]
    told("frozen source", frozen)
    told("independent, four recipients", whole)
    print(f"... without the frozen source, beside separate runs: "
          f"{(whole - frozen) / sum(alone.values()):.2f} times their sum", flush=True)  # fmt: skip
    whole, stages = carry_out(engine, folder, "people", "nested", list(RECIPIENTS))
    told("nested, four recipients", whole)
    for stage, took in stages.items():
        told(f"... {stage}", took)
    ratio = sum(took for stage, took in stages.items() if stage.startswith("release ")) / sum(
        alone.values()
    )
    print(f"nested releases beside separate runs: {ratio:.2f} times their sum", flush=True)


def identity_job(session: SparkSession, folder: Path) -> None:
    """Read, shuffle and write the same rows."""
    source = session.read.parquet(str(folder / "people"))
    source.repartition(16, "person_id").write.mode("overwrite").parquet(str(folder / "identity"))


def seconds(function: Callable[[], Any]) -> float:
    """Return how long a function takes."""
    start = time.monotonic()
    function()
    return time.monotonic() - start


def base_of(folder: Path, source: str, columns: tuple[str, ...]) -> dict[str, Any]:
    """Return a configuration of some quasi-identifiers."""
    return {
        "input": {"path": str(folder / source)},
        "attributes": {
            "person_id": {"role": "identifier"},
            **{name: {"role": "quasi_identifier"} for name in columns},
            "diagnosis": {"role": "sensitive"},
        },
        # For the strategy that nothing is required of recipients together.
        "privacy": {"k": K, "allow_k_1": True},
        "model": {"name": "smondrian"},
        "execution": {"seed": 2**40 + 1},
    }


def run_alone(engine: SparkEngine, folder: Path, name: str) -> None:
    """Anonymize the columns of one recipient by a run of their own."""
    document = base_of(folder, "people", RECIPIENTS[name])
    del document["attributes"]["person_id"]
    document["output"] = {"path": str(folder / "alone")}
    run(engine, parse_configuration(document), purpose="demonstration")
    shutil.rmtree(folder / "alone")


def carry_out(
    engine: SparkEngine, folder: Path, source: str, strategy: str, names: list[str]
) -> tuple[float, dict[str, float]]:
    """Carry out a plan, and return its seconds, as a whole and of its stages."""
    out = folder / "releases"
    plan = {
        "base": base_of(folder, source, QUASI_IDENTIFIERS),
        "subject": "person_id",
        "strategy": strategy,
        "collusion": {"k": 1 if strategy == "independent" else K_OF_ALL},
        "output": str(out),
        "recipients": {
            name: {"approved": "a benchmark", "columns": [*RECIPIENTS[name], "diagnosis"]}
            for name in names
        },
    }
    progress = Progress()
    took = seconds(lambda: distribute(engine, parse_plan(plan), progress=progress))
    shutil.rmtree(out)
    return took, dict(progress.seconds)


if __name__ == "__main__":
    main()
