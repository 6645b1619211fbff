"""Every model on public data, with and without criteria beyond k: the tables of docs/models.md.

    .venv/bin/python benchmarks/compare_models.py --data ../shared/data

Prints Markdown. Every release is verified; what it has of l and t is measured in its files,
whether it was asked for or not. How long the models take: benchmarks/bench.py.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from data_sets import ADULT, ADULT_BY_HIERARCHIES, DATA_SETS
from pyspark.sql import SparkSession

from anonspark.config import parse_configuration
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.session import open_session
from anonspark.pipeline.run import run
from anonspark.verification.audit import audit_release

# With rounds as published; benchmarks/defaults.py has those that have to pay.
MODELS: dict[str, dict[str, Any]] = {
    "smondrian": {},
    "su-mondrian": {"separation": "always"},
    "canon": {},
    "u-canon": {"separation": "always"},
    "microaggregation": {},
}

Row = Mapping[str, object]


def adult(data: Path, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration of Adult without privacy and model."""
    options = {"header": "true", "inferSchema": "true"}
    path = str(data / "adult.csv")
    return {"input": {"path": path, "format": "csv", "options": options}, "attributes": attributes}


def with_hierarchies(data: Path, sensitive: str) -> dict[str, Any]:
    """Return Adult's attributes with hierarchies; one of them may be the sensitive one instead."""
    attributes: dict[str, Any] = {}
    for name in ADULT_BY_HIERARCHIES.quasi_identifiers:
        file = str(data / "hierarchies" / f"adult_hierarchy_{name}.csv")
        role = "sensitive" if name == sensitive else "quasi_identifier"
        attributes[name] = {"role": role, "hierarchy": file}
    return attributes | {"income": "sensitive"}


class Comparison:
    """Runs models in one session and measures their releases."""

    def __init__(self, spark: SparkSession, output: str) -> None:
        self.spark = spark
        self.output = output

    def row(
        self, document: dict[str, Any], privacy: dict[str, Any], model: dict[str, Any]
    ) -> dict[str, object]:
        """Anonymize once; return figures of loss."""
        output = {"path": self.output, "mode": "overwrite"}
        configuration = parse_configuration(
            {**document, "privacy": privacy, "model": model, "output": output}
        )
        summary = run(SparkEngine(self.spark), configuration).summary
        audit_release(SparkEngine(self.spark), self.output).require()
        return {
            "classes": f"{summary['classes']:,}",
            "dm": f"{summary['dm']:,}",
            "gcp_total": f"{summary['gcp_total']:,.2f}",
            "gcp": f"{summary['gcp']:.4f}",
        }

    def measured(self, attribute: str) -> dict[str, object]:
        """Return what the files of the last release show of l and t."""
        release = audit_release(SparkEngine(self.spark), self.output)
        (found,) = (one for one in release.sensitive if one.attribute == attribute)
        return {
            f"smallest l of {attribute}": f"{found.worst['distinct']:.0f}",
            "entropy l": f"{found.worst['entropy']:.2f}",
            f"largest t of {attribute}": f"{found.worst['equal_distance']:.3f}",
        }


def print_table(title: str, rows: Iterator[Row]) -> None:
    """Print a Markdown table as its rows come in."""
    print(f"\n{title}\n")
    first = True
    for row in rows:
        if first:
            print("| " + " | ".join(row) + " |\n|" + " --- |" * len(row))
            first = False
        print("| " + " | ".join(map(str, row.values())) + " |", flush=True)


def numeric(
    comparison: Comparison, document: dict[str, Any], ks: Sequence[int], models: Sequence[Row]
) -> Iterator[Row]:
    """Compare models on numbers, k alone."""
    for k in ks:
        for model in models:
            options = dict(model)
            words = ", ".join(f"{value}" for value in options.values())
            yield {"k": k, "model": words, **comparison.row(document, {"k": k}, options)}


def with_criteria(comparison: Comparison, data: Path, models: Sequence[str]) -> Iterator[Row]:
    """Compare models on Adult with hierarchies, k = 5, with and without criteria."""
    of_occupation = {"attribute": "occupation"}
    cases: list[tuple[str, str, dict[str, Any]]] = [
        ("k alone", "income", {}),
        ("t = 0.2 on income", "income", {"t_closeness": {"attribute": "income", "t": 0.2}}),
        ("k alone", "occupation", {}),
        ("distinct l = 2", "occupation", {"l_diversity": {**of_occupation, "l": 2}}),
        (
            "entropy l = 2",
            "occupation",
            {"l_diversity": {**of_occupation, "kind": "entropy", "l": 2}},
        ),
        (
            "recursive (3, 2)",
            "occupation",
            {"l_diversity": {**of_occupation, "kind": "recursive", "c": 3, "l": 2}},
        ),
    ]
    for words, sensitive, privacy in cases:
        attributes = with_hierarchies(data, sensitive)
        for model in models:
            row = comparison.row(
                adult(data, attributes), {"k": 5, **privacy}, {"name": model, **MODELS[model]}
            )
            measured = comparison.measured(sensitive)
            plain = {key.replace(f" of {sensitive}", ""): value for key, value in measured.items()}
            yield {"sensitive": sensitive, "criterion": words, "model": model, **row, **plain}


def main() -> None:
    """Parse the arguments, run everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data sets")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument(
        "--tables", nargs="+", choices=("adult", "criteria", "diabetes"),
        default=("adult", "criteria", "diabetes"),
    )  # fmt: skip
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    options = parser.parse_args()
    data = options.data.resolve()
    plain: list[Row] = [{"name": name, **MODELS[name]} for name in options.models]
    queries: list[Row] = [{"name": "microaggregation", "objective": "queries"}]
    rounds: list[Row] = [
        {"name": name, **MODELS[name], "reference": "density"}
        for name in ("su-mondrian", "u-canon")
    ]
    relaxed: list[Row] = [
        {"name": "su-mondrian", **MODELS["su-mondrian"], "split": "relaxed"},
        {
            "name": "su-mondrian",
            **MODELS["su-mondrian"],
            "split": "relaxed",
            "reference": "density",
        },
        {"name": "canon", "vantage": "random"},
    ]
    with (
        tempfile.TemporaryDirectory() as directory,
        open_session(options.master) as spark,
    ):
        comparison = Comparison(spark, f"{directory}/release")
        if "adult" in options.tables:
            attributes = ADULT.roles()
            variants = [
                one for one in (*queries, *rounds, *relaxed) if one["name"] in options.models
            ]
            models = [*plain, *variants]
            print_table(
                "Adult, five numbers",
                numeric(comparison, adult(data, attributes), (5, 10, 50), models),
            )
        if "criteria" in options.tables:
            print_table(
                "Adult, age and seven categories with hierarchies, k = 5",
                with_criteria(comparison, data, options.models),
            )
        if "diabetes" in options.tables:
            chosen = [one for one in queries if one["name"] in options.models]
            diabetes = DATA_SETS["Diabetes"]
            roles = dict.fromkeys(diabetes.quasi_identifiers, "quasi_identifier")
            document = adult(data, roles)
            document["input"]["path"] = str(data / diabetes.file)
            print_table(
                "Diabetes, eight counts", numeric(comparison, document, (10, 50), [*plain, *chosen])
            )


if __name__ == "__main__":
    main()
