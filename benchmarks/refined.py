"""What passes over the groups of su-mondrian save and cost: the table of docs/models.md.

    .venv/bin/python benchmarks/refined.py --data ../shared/data

Prints Markdown: of each table and k, ``gcp`` beside that of microaggregation, the median error of
``anonspark evaluate``'s counting queries and the seconds beside those of su-mondrian without
passes, and their geometric means. One process without Java, at most 60,000 records of a table.
With ``--criteria`` people and l are counted on Diabetes and FARS instead.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from data_sets import ADULT_BY_HIERARCHIES, DATA_SETS, DataSet
from defaults import CSV, KS

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from anonspark.utility.evaluation import open_evaluation

PEOPLE = Path(__file__).resolve().parents[1] / "data" / "people.csv"
ROWS = 60_000
PASSES = (0, 1, 2, 4, 8)
LEAST = 1e-4
"""Added to both figures of a ratio, so that errors near 0 count for little."""
TABLES = {
    **DATA_SETS,
    "Adult, categories": ADULT_BY_HIERARCHIES,
    "California housing": DataSet(
        "california_housing.csv",
        (
            "longitude", "latitude", "housing_median_age", "total_rooms", "total_bedrooms",
            "population", "households", "median_income",
        ),
    ),
    "people.csv": DataSet(
        str(PEOPLE),
        ("birth_date", "sex", "postal_code", "education", "income", "hours_per_week"),
        "diagnosis",
    ),
}  # fmt: skip
CRITERIA: dict[str, tuple[str, dict[str, Any]]] = {
    "FARS, l = 3": ("FARS", {"l_diversity": 3}),
    "Diabetes, people": ("Diabetes", {"unit": "patient_nbr"}),
}
MODELS: dict[str, dict[str, Any]] = {
    **{f"{passes} passes": {"name": "su-mondrian", "refine": passes} for passes in PASSES},
    "microaggregation": {"name": "microaggregation"},
}


class Figures(NamedTuple):
    """Figures of a release."""

    gcp: float
    error: float
    seconds: float


def document_of(name: str, data: Path, folder: Path, rows: int) -> dict[str, Any]:
    """Return the sections of a table, of which the first records are copied."""
    table, privacy = CRITERIA.get(name, (name, {}))
    data_set = TABLES[table]
    path = folder / "table.csv"
    pd.read_csv(data / data_set.file, nrows=rows, dtype=str, na_filter=False).to_csv(
        path, index=False
    )
    attributes: dict[str, Any] = dict(data_set.roles())
    if "unit" in privacy:
        attributes[privacy["unit"]] = "identifier"
    return {"input": {"path": str(path), **CSV}, "attributes": attributes, "privacy": privacy}


def released(document: Mapping[str, Any], k: int, model: str, output: str, runs: int) -> Figures:
    """Anonymize, and measure the release."""
    configuration = parse_configuration(
        {
            **document,
            "privacy": {**document["privacy"], "k": k},
            "model": MODELS[model],
            "output": {"path": output, "mode": "overwrite"},
        }
    )
    seconds = []
    for _ in range(runs):
        start = time.monotonic()
        gcp = run(LocalEngine(), configuration).summary["gcp"]
        seconds.append(time.monotonic() - start)
    error = open_evaluation(LocalEngine(), output, document["input"]["path"]).workload().median
    return Figures(gcp, error, statistics.median(seconds))


def ratios(figures: Mapping[str, Figures]) -> Iterator[tuple[float, float, float]]:
    """Yield the ratios of each model."""
    first, least = figures["0 passes"], figures["microaggregation"]
    for own in figures.values():
        pairs = (own.gcp, least.gcp), (own.error, first.error), (own.seconds, first.seconds)
        loss, error, seconds = ((a + LEAST) / (b + LEAST) for a, b in pairs)
        yield loss, error, seconds


def printed(table: str, k: str, rows: np.ndarray[Any, Any]) -> str:
    """Return a row of the printed table."""
    cells = [", ".join(f"{figure:.2f}" for figure in column) for column in rows.T]
    return f"| {' | '.join([table, k, *cells])} |"


def main() -> None:
    """Parse the arguments, run everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data sets")
    parser.add_argument("--criteria", action="store_true", help="l and people, on one table each")
    parser.add_argument("--tables", nargs="+", choices=TABLES)
    parser.add_argument("--ks", nargs="+", type=int, default=list(KS))
    parser.add_argument("--rows", type=int, default=ROWS, help="records of a table at most")
    parser.add_argument("--runs", type=int, default=3, help="of which the median is printed")
    options = parser.parse_args()
    print(f"Each cell: {', '.join(MODELS)}\n")
    print("| table | k | loss | query error | seconds |\n| --- | --- | --- | --- | --- |")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        output = f"{folder}/release"
        for table in options.tables or (CRITERIA if options.criteria else TABLES):
            document = document_of(table, options.data.resolve(), Path(folder), options.rows)
            # The first run would wait for compiled kernels.
            released(document, options.ks[0], "1 passes", output, 1)
            for k in options.ks:
                figures = {
                    model: released(document, k, model, output, options.runs) for model in MODELS
                }
                found.append(np.array(list(ratios(figures))))
                print(printed(table, str(k), found[-1]), flush=True)
    print(printed("geometric mean", "", np.exp(np.log(found).mean(axis=0))), flush=True)


if __name__ == "__main__":
    main()
