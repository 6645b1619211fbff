"""Every model, split and separation on six tables: the evidence for the defaults (docs/models.md).

    .venv/bin/python benchmarks/defaults.py --data ../shared/data

Prints Markdown. ``seconds`` are those of the run in a session that is at work already; ``median
query error`` is that of ``anonspark evaluate``. Smaller is better in all columns. With ``--compare
docs/models.md`` it ends with 1 if the page has other figures, apart from seconds.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from data_sets import DATA_SETS
from tables import PAYLOAD, QUASI_IDENTIFIERS, people

from anonspark.config import parse_configuration
from anonspark.engine.protocol import Engine
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
    "su-mondrian": {"name": "su-mondrian", "refine": 0},
    "su-mondrian, density": {"name": "su-mondrian", "refine": 0, "reference": "density"},
    "su-mondrian, relaxed": {"name": "su-mondrian", "refine": 0, "split": "relaxed"},
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
    engine: Engine,
    document: dict[str, Any],
    ks: list[int],
    models: list[str],
    output: str,
) -> Iterator[dict[str, str]]:
    """Anonymize and measure."""
    # Whoever comes first would wait for compiled kernels and started workers.
    list(measured(engine, document, ks[0], "su-mondrian", output))
    for k in ks:
        for model in models:
            yield from measured(engine, document, k, model, output)


def measured(
    engine: Engine, document: dict[str, Any], k: int, model: str, output: str
) -> Iterator[dict[str, str]]:
    """Anonymize once, and yield the row."""
    configuration = parse_configuration(
        {
            **document,
            "privacy": {"k": k},
            "model": MODELS[model],
            "output": {"path": output, "mode": "overwrite"},
        }
    )
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
    parser.add_argument("--compare", type=Path, help="a page that has these tables")
    options = parser.parse_args()
    data = options.data.resolve()
    with tempfile.TemporaryDirectory() as folder, open_session(options.master) as spark:
        generated = f"{folder}/people"
        if "People" in options.tables:
            people(spark, PEOPLE).write.parquet(generated)
        measured_rows: dict[str, list[dict[str, str]]] = {}
        for table in options.tables:
            print(f"\n{table}\n", flush=True)
            measured_rows[table] = []
            document = document_of(table, data, generated)
            for place, row in enumerate(
                rows(SparkEngine(spark), document, options.ks, options.models, f"{folder}/release")
            ):
                if place == 0:
                    print("| " + " | ".join(row) + " |\n|" + " --- |" * len(row))
                print("| " + " | ".join(row.values()) + " |", flush=True)
                measured_rows[table].append(row)
        if "smondrian" in options.models:
            print_means([table for name, table in measured_rows.items() if name != "People"])
    if options.compare is not None:
        page = printed_rows(options.compare.read_text(encoding="utf-8"))
        sys.exit("\n".join(differences(measured_rows, page)) or 0)


FIGURES = ("gcp", "dm", "median query error", "seconds")


def printed_rows(page: str) -> dict[str, list[dict[str, str]]]:
    """Return the rows of each table of a page, by the first words of its heading."""
    tables: dict[str, list[dict[str, str]]] = {}
    _, _, text = page.partition("\n## Losses on six tables\n")
    for section in re.split(r"\n### ", text.partition("\n## ")[0])[1:]:
        lines = [line.strip("| ").split(" | ") for line in section.split("\n") if line[:1] == "|"]
        tables[section.split(",")[0]] = [
            dict(zip(lines[0], line, strict=True)) for line in lines[2:]
        ]
    return tables


def differences(
    measured: dict[str, list[dict[str, str]]], printed: dict[str, list[dict[str, str]]]
) -> Iterator[str]:
    """Describe the measured rows that are printed otherwise, apart from their seconds."""
    for table, rows_of_table in measured.items():
        by_name = {(row["k"], row["model"]): row for row in printed.get(table, [])}
        for row in rows_of_table:
            other = by_name.get((row["k"], row["model"]), {})
            for name in row.keys() - {"seconds"}:
                if row[name] != other.get(name):
                    where = f"{table}, k = {row['k']}, {row['model']}"
                    yield f"{where}: {name} is {row[name]}, the page has {other.get(name)}"


def geometric_means(tables: list[list[dict[str, str]]]) -> dict[str, list[float]]:
    """Return what models lose and take beside smondrian: geometric means over tables and k."""
    shares: dict[str, list[list[float]]] = {}
    for table in tables:
        without = {row["k"]: row for row in table if row["model"] == "smondrian"}
        for row in table:
            own, other = (
                [float(one[name].rstrip("%").replace(",", "")) for name in FIGURES]
                for one in (row, without[row["k"]])
            )
            shares.setdefault(row["model"], []).append(
                [a / b if a and b else 1.0 for a, b in zip(own, other, strict=True)]
            )
    return {model: np.exp(np.log(ratios).mean(axis=0)).tolist() for model, ratios in shares.items()}


def print_means(tables: list[list[dict[str, str]]]) -> None:
    """Print the geometric means."""
    print(f"\n| model | {' | '.join(FIGURES)} |\n|{' --- |' * (len(FIGURES) + 1)}")
    for model, means in geometric_means(tables).items():
        print(f"| {model} | {' | '.join(f'{mean:.2f}' for mean in means)} |", flush=True)


if __name__ == "__main__":
    main()
