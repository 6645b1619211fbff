"""Every model, split and separation on six tables: the evidence for the defaults (docs/models.md).

    .venv/bin/python benchmarks/defaults.py --data ../shared/data

Prints Markdown. ``seconds`` are those of the run in a session that is at work already; ``median
query error`` is that of ``anonspark evaluate``. Smaller is better in all columns.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from data_sets import DATA_SETS
from pyspark.sql import SparkSession
from tables import PAYLOAD, QUASI_IDENTIFIERS, people

from anonspark.config import parse_configuration
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.session import open_session
from anonspark.pipeline.run import run
from anonspark.utility.evaluation import open_evaluation

KS = (5, 10, 50)
PEOPLE = 1_000_000

CSV = {"format": "csv", "options": {"header": "true", "inferSchema": "true"}}

MODELS: dict[str, dict[str, Any]] = {
    "smondrian": {"name": "smondrian"},
    "smondrian, relaxed": {"name": "smondrian", "split": "relaxed"},
    "su-mondrian": {"name": "su-mondrian"},
    "su-mondrian, density": {"name": "su-mondrian", "reference": "density"},
    "su-mondrian, relaxed": {"name": "su-mondrian", "split": "relaxed"},
    "su-mondrian, always": {"name": "su-mondrian", "separation": "always"},
    "canon": {"name": "canon"},
    "u-canon": {"name": "u-canon"},
    "u-canon, always": {"name": "u-canon", "separation": "always"},
    "microaggregation": {"name": "microaggregation"},
    "microaggregation, queries": {"name": "microaggregation", "objective": "queries"},
}


def document_of(table: str, data: Path, generated: str) -> dict[str, Any]:
    """Return input and attributes of a table."""
    if table == "People":
        roles = dict.fromkeys(QUASI_IDENTIFIERS, "quasi_identifier")
        roles |= dict.fromkeys(PAYLOAD, "insensitive") | {"diagnosis": "sensitive"}
        return {"input": {"path": generated}, "attributes": roles}
    data_set = DATA_SETS[table]
    return {"input": {"path": str(data / data_set.file), **CSV}, "attributes": data_set.roles()}


def rows(
    spark: SparkSession,
    document: dict[str, Any],
    ks: list[int],
    models: list[str],
    output: str,
) -> Iterator[dict[str, str]]:
    """Anonymize and measure."""
    # Whoever comes first would wait for compiled kernels and started workers.
    list(_measured(spark, document, ks[0], "su-mondrian", output))
    for k in ks:
        for model in models:
            yield from _measured(spark, document, k, model, output)


def _measured(
    spark: SparkSession, document: dict[str, Any], k: int, model: str, output: str
) -> Iterator[dict[str, str]]:
    configuration = parse_configuration(
        {
            **document,
            "privacy": {"k": k},
            "model": MODELS[model],
            "output": {"path": output, "mode": "overwrite"},
        }
    )
    engine = SparkEngine(spark)
    start = time.monotonic()
    release = run(engine, configuration)
    seconds = time.monotonic() - start
    summary = release.summary
    error = open_evaluation(engine, output, document["input"]["path"]).workload()
    yield {
        "k": str(k),
        "model": model,
        "rounds": str(summary["rounds"]),
        "classes": f"{summary['classes']:,}",
        "gcp": f"{summary['gcp']:.5f}",
        "dm": f"{int(summary['dm']):,}",
        "median query error": f"{error.median:.2%}",
        "seconds": f"{seconds:.1f}",
    }


def main() -> None:
    """Parse the arguments, run everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data sets")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--tables", nargs="+", choices=(*DATA_SETS, "People"),
                        default=(*DATA_SETS, "People"))  # fmt: skip
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--ks", nargs="+", type=int, default=list(KS))
    options = parser.parse_args()
    data = options.data.resolve()
    with tempfile.TemporaryDirectory() as folder, open_session(options.master) as spark:
        generated = f"{folder}/people"
        if "People" in options.tables:
            people(spark, PEOPLE).write.parquet(generated)
        measured: dict[str, list[dict[str, str]]] = {}
        for table in options.tables:
            print(f"\n{table}\n", flush=True)
            measured[table] = []
            document = document_of(table, data, generated)
            for place, row in enumerate(
                rows(spark, document, options.ks, options.models, f"{folder}/release")
            ):
                if place == 0:
                    print("| " + " | ".join(row) + " |\n|" + " --- |" * len(row))
                print("| " + " | ".join(row.values()) + " |", flush=True)
                measured[table].append(row)
        if "smondrian" in options.models:
            print_means([table for name, table in measured.items() if name != "People"])


def print_means(tables: list[list[dict[str, str]]]) -> None:
    """Print what models lose and take beside smondrian: geometric means over tables and k."""
    figures = ("gcp", "dm", "median query error", "seconds")
    shares: dict[str, list[list[float]]] = {}
    for table in tables:
        without = {row["k"]: row for row in table if row["model"] == "smondrian"}
        for row in table:
            own, other = (
                [float(one[name].rstrip("%").replace(",", "")) for name in figures]
                for one in (row, without[row["k"]])
            )
            shares.setdefault(row["model"], []).append(
                [a / b if a and b else 1.0 for a, b in zip(own, other, strict=True)]
            )
    print(f"\n| model | {' | '.join(figures)} |\n|{' --- |' * (len(figures) + 1)}")
    for model, found in shares.items():
        means = np.exp(np.log(found).mean(axis=0))
        print(f"| {model} | {' | '.join(f'{mean:.2f}' for mean in means)} |", flush=True)


if __name__ == "__main__":
    main()
