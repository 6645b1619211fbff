"""How useful the releases of every model are: the tables of docs/models.md.

    .venv/bin/python benchmarks/utility.py --data ../shared/data

Prints Markdown. ``numbers`` are Adult's five numbers, ``categories`` its age and six categories
with hierarchies, which full-domain recoding needs. Models learn income from a release of adult.csv,
or from adult.csv itself, and are tested on adult_test.csv, which was not anonymized. The scores are
accuracy, F1 and ROC AUC.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from data_sets import ADULT
from pyspark.sql import SparkSession

from anonspark.config import parse_configuration
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.session import open_session
from anonspark.pipeline.run import run
from anonspark.utility.evaluation import open_evaluation
from anonspark.utility.models import Learning

CUTTING = ("smondrian", "su-mondrian", "canon", "u-canon", "microaggregation")
# benchmarks/defaults.py has the errors of rounds that have to pay.
AS_PUBLISHED = {name: {"separation": "always"} for name in ("su-mondrian", "u-canon")}
QUERIES = "microaggregation, queries"
RECODING = ("full-domain", "rho-gain")
KS = (5, 10, 50)

CATEGORIES = ("workclass", "education", "marital-status", "occupation", "race", "sex")

Row = dict[str, str]


def numbers() -> dict[str, Any]:
    """Return the attributes of Adult that papers on Mondrian take."""
    return dict(ADULT.roles())


def categories(data: Path) -> dict[str, Any]:
    """Return attributes of Adult that all have hierarchies."""
    attributes: dict[str, Any] = {
        "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [5, 10, 20]}}
    }
    for name in CATEGORIES:
        file = str(data / "hierarchies" / f"adult_hierarchy_{name}.csv")
        attributes[name] = {"role": "quasi_identifier", "hierarchy": file}
    return attributes | {"income": "sensitive"}


def options_of(model: str) -> dict[str, Any]:
    """Return the options of a row's model."""
    if model == QUERIES:
        return {"name": "microaggregation", "objective": "queries"}
    return {"name": model, **AS_PUBLISHED.get(model, {})}


def rows(
    spark: SparkSession,
    data: Path,
    attributes: dict[str, Any],
    models: Sequence[str],
    ks: Sequence[int],
    output: str,
) -> Iterator[Row]:
    """Anonymize and evaluate; the original comes first, once."""
    engine, original = SparkEngine(spark), str(data / "adult.csv")
    first = True
    for k in ks:
        for model in models:
            configuration = parse_configuration(
                {
                    "input": {
                        "path": original,
                        "format": "csv",
                        "options": {"header": "true", "inferSchema": "true"},
                    },
                    "attributes": attributes,
                    "privacy": {"k": k},
                    "model": options_of(model),
                    "output": {"path": output, "mode": "overwrite"},
                }
            )
            summary = run(engine, configuration).summary
            opened = open_evaluation(
                engine, output, original, "income", str(data / "adult_test.csv")
            )
            if first:
                learned = opened.learning(("original",))
                yield {
                    "k": "1", "model": "the original", "records": f"{opened.records:,}",
                    "gcp": "0", "median error": "0", "mean error": "0", **scores(learned),
                }  # fmt: skip
                first = False
            found = opened.workload()
            learned = opened.learning(("release",))
            yield {
                "k": str(k),
                "model": model,
                "records": f"{summary['rows_published']:,}",
                "gcp": f"{summary['gcp']:.4f}",
                "median error": f"{found.median:.2%}",
                "mean error": f"{found.mean:.2%}",
                **scores(learned),
            }


def scores(learned: Learning | None) -> Row:
    """Return accuracy, F1 and ROC AUC of each learner."""
    return {
        score.learner: f"{score.accuracy:.4f} {score.f1:.4f} {score.roc_auc:.4f}"
        for score in (learned.scores if learned else ())
    }


def print_table(title: str, table: Iterator[Row]) -> None:
    """Print a Markdown table as its rows come in."""
    print(f"\n{title}\n", flush=True)
    first = True
    for row in table:
        if first:
            print("| " + " | ".join(row) + " |\n|" + " --- |" * len(row))
            first = False
        print("| " + " | ".join(row.values()) + " |", flush=True)


def main() -> None:
    """Parse the arguments, run everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data sets")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument(
        "--tables", nargs="+", choices=("numbers", "categories"), default=("numbers", "categories")
    )
    parser.add_argument("--models", nargs="+", help="those of each table if left out")
    parser.add_argument("--ks", nargs="+", type=int, default=list(KS))
    options = parser.parse_args()
    data = options.data.resolve()
    with tempfile.TemporaryDirectory() as folder, open_session(options.master) as spark:
        output = f"{folder}/release"
        if "numbers" in options.tables:
            models = options.models or (*CUTTING, QUERIES)
            print_table(
                "Adult, five numbers", rows(spark, data, numbers(), models, options.ks, output)
            )
        if "categories" in options.tables:
            models = options.models or ("smondrian", "su-mondrian", *RECODING)
            print_table(
                "Adult, age and six categories with hierarchies",
                rows(spark, data, categories(data), models, options.ks, output),
            )


if __name__ == "__main__":
    main()
