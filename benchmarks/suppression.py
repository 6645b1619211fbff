"""What leaving out a few records saves on five tables: the tables of docs/models.md about it.

    .venv/bin/python benchmarks/suppression.py --data ../shared/data

Prints Markdown. ``gcp at`` a limit is that of the published records, ``gcp, all`` counts those that
are left out as lost. The last three columns have a figure for each limit. With ``--spark`` each
release is also made by Spark, and has to have the same fingerprint.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from data_sets import DATA_SETS
from defaults import document_of

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.session import open_session
from anonspark.pipeline.run import run
from anonspark.utility.evaluation import open_evaluation

K = 10
LIMITS = (0.0, 0.01, 0.05)
MODELS: dict[str, dict[str, int]] = {"su-mondrian": {"refine": 0}, "microaggregation": {}}


class Measured(NamedTuple):
    """Figures of a release: gcp of the published records and of all, and the query error."""

    left_out: int
    lost: float
    all: float
    error: float


def released(engine: Engine, document: dict[str, Any], model: str, limit: float) -> dict[str, Any]:
    """Publish a release over the one before, and return its summary."""
    options = {"name": model, **MODELS.get(model, {}), "suppression_limit": limit}
    sections = {"privacy": {"k": K}, "model": options}
    return dict(run(engine, parse_configuration({**document, **sections})).summary)


def measured(
    engines: list[Engine], table: str, data: Path, model: str, limits: list[float], output: str
) -> Iterator[Measured]:
    """Yield the figures of a release of each limit."""
    document = document_of(table, data, "")
    document["output"] = {"path": output, "mode": "overwrite"}
    weights = len(DATA_SETS[table].quasi_identifiers)
    for limit in limits:
        found = [released(engine, document, model, limit) for engine in engines]
        if len({one["output_fingerprint"] for one in found}) > 1:
            raise SystemExit(f"{table}, {model}, {limit}: found another fingerprint by Spark")
        figures = found[0]
        left_out, published = figures["rows_left_out"], figures["rows_published"]
        lost = (figures["gcp_total"] - weights * left_out) / (weights * published)
        error = open_evaluation(engines[0], output, document["input"]["path"]).workload()
        yield Measured(left_out, lost, figures["gcp"], error.median)


def printed(model: str, table: str, limits: list[float], found: list[Measured]) -> dict[str, str]:
    """Return a row of the printed table."""
    row = {"model": model, "table": table}
    for limit, one in zip(limits, found, strict=True):
        saved = f" ({one.lost / found[0].lost - 1:+.0%})" if one is not found[0] else ""
        row[f"gcp at {limit:g}"] = f"{one.lost:.5f}{saved}"
    row["left out"] = ", ".join(f"{one.left_out:,}" for one in found)
    row["gcp, all"] = ", ".join(f"{one.all:.5f}" for one in found)
    row["median query error"] = ", ".join(f"{one.error:.2%}" for one in found)
    return row


def main() -> None:
    """Parse the arguments, run everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data sets")
    parser.add_argument("--spark", action="store_true", help="compare fingerprints with Spark's")
    parser.add_argument("--tables", nargs="+", choices=DATA_SETS, default=tuple(DATA_SETS))
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--limits", nargs="+", type=float, default=LIMITS)
    options = parser.parse_args()
    limits = list(options.limits)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        engines: list[Engine] = [LocalEngine()]
        if options.spark:
            engines.append(SparkEngine(stack.enter_context(open_session("local[2]"))))
        is_first = True
        for model in options.models:
            for table in options.tables:
                data, output = options.data.resolve(), f"{folder}/release"
                found = list(measured(engines, table, data, model, limits, output))
                row = printed(model, table, limits, found)
                if is_first:
                    print("| " + " | ".join(row) + " |\n|" + " --- |" * len(row))
                is_first = False
                print("| " + " | ".join(row.values()) + " |", flush=True)


if __name__ == "__main__":
    main()
