"""What leaving out a few records saves on five tables: the tables of docs/models.md about it.

    .venv/bin/python benchmarks/suppression.py --data ../shared/data

Prints Markdown. ``gcp`` is that of the published records, ``gcp, all`` counts those that are left
out as lost. With ``--spark`` each release is also made by Spark, and has to have the same
fingerprint.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

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
MODELS = ("su-mondrian", "microaggregation")


def released(engine: Engine, document: dict[str, Any], model: str, limit: float) -> dict[str, Any]:
    """Publish a release over the one before, and return its summary."""
    sections = {"privacy": {"k": K}, "model": {"name": model, "suppression_limit": limit}}
    return dict(run(engine, parse_configuration({**document, **sections})).summary)


def rows(
    engines: list[Engine], table: str, data: Path, model: str, output: str
) -> Iterator[dict[str, str]]:
    """Yield a row of the printed table for each limit."""
    document = document_of(table, data, "")
    document["output"] = {"path": output, "mode": "overwrite"}
    weights = len(DATA_SETS[table].quasi_identifiers)
    before = None
    for limit in LIMITS:
        found = [released(engine, document, model, limit) for engine in engines]
        if len({one["output_fingerprint"] for one in found}) > 1:
            raise SystemExit(f"{table}, {model}, {limit}: found another fingerprint by Spark")
        figures = found[0]
        left_out, published = figures["rows_left_out"], figures["rows_published"]
        lost = (figures["gcp_total"] - weights * left_out) / (weights * published)
        before = lost if before is None else before
        error = open_evaluation(engines[0], output, document["input"]["path"]).workload()
        yield {
            "table": table,
            "model": model,
            "limit": f"{limit:g}",
            "left out": f"{left_out:,}",
            "gcp": f"{lost:.5f}",
            "saved": f"{1 - lost / before:.0%}",
            "gcp, all": f"{figures['gcp']:.5f}",
            "median query error": f"{error.median:.2%}",
        }


def main() -> None:
    """Parse the arguments, run everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data sets")
    parser.add_argument("--spark", action="store_true", help="compare fingerprints with Spark's")
    parser.add_argument("--tables", nargs="+", choices=DATA_SETS, default=tuple(DATA_SETS))
    parser.add_argument("--models", nargs="+", default=MODELS)
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        engines: list[Engine] = [LocalEngine()]
        if options.spark:
            engines.append(SparkEngine(stack.enter_context(open_session("local[2]"))))
        is_first = True
        for model in options.models:
            for table in options.tables:
                data, output = options.data.resolve(), f"{folder}/release"
                for row in rows(engines, table, data, model, output):
                    if is_first:
                        print("| " + " | ".join(row) + " |\n|" + " --- |" * len(row))
                    is_first = False
                    print("| " + " | ".join(row.values()) + " |", flush=True)


if __name__ == "__main__":
    main()
