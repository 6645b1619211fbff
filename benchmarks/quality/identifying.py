"""What weights by uniqueness do: the tables of docs/measured.md.

    PYTHONPATH=benchmarks .venv/bin/python -m quality.identifying --data ../shared/data

Releases of ``smondrian`` without hierarchies, with equal weights, with those of ``anonspark init
--weights``, and with weights in the other direction. Prints Markdown: the losses of the columns,
all counted alike, and what attackers find who know the values of 500 records in one to three
quasi-identifiers and match them with the published labels. An attacker's success is the mean of 1 /
candidates, in hundredths of a percent.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.parquet as pq
from data_sets import DATA_SETS, DataSet

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.labels.regions import (
    CategoryRegion,
    PublishedAttribute,
    published_attributes,
    read_label,
)
from anonspark.pipeline.run import run
from anonspark.profiling.counting import LARGEST_SET, measure_sets, weigh_columns
from anonspark.release.manifest import read_manifest

K = 10
TARGETS = 500
TABLES = {
    "Adult": DataSet(
        "adult.csv",
        (
            *("age", "workclass", "education", "marital-status", "occupation", "race", "sex"),
            "hours-per-week",
        ),
    ),
    "California housing": DataSet(
        "california_housing.csv",
        (
            *("longitude", "latitude", "housing_median_age", "population", "median_income"),
            *("median_house_value", "ocean_proximity"),
        ),
    ),
    **{name: DATA_SETS[name] for name in ("Diabetes", "FARS", "KDD Cup 99", "Poker")},
}

Flags = npt.NDArray[np.bool_]
Weights = Mapping[str, float]


def read(data: Path, table: DataSet) -> pd.DataFrame:
    """Read the quasi-identifiers of a table; suits of cards are no numbers."""
    frame = pd.read_csv(data / table.file)[list(table.quasi_identifiers)]
    suits = [name for name in frame.columns if name in {f"S{card}" for card in range(1, 6)}]
    return frame.astype(dict.fromkeys(suits, "category")).astype(dict.fromkeys(suits, "str"))


def weights_of(frame: pd.DataFrame) -> Iterator[tuple[str, Weights]]:
    """Yield the weights that are compared."""
    names = list(frame.columns)
    codes = [pd.factorize(frame[name])[0].astype(np.int64) for name in names]
    weights = weigh_columns(measure_sets(names, codes, K), names, len(frame))
    yield "equal", dict.fromkeys(names, 1.0)
    yield "init --weights", weights
    inverse = {name: 1 / weight for name, weight in weights.items()}
    mean = sum(inverse.values()) / len(names)
    yield "other direction", {name: round(value / mean, 2) for name, value in inverse.items()}


def release(frame: pd.DataFrame, weights: Weights, folder: Path) -> Mapping[str, float]:
    """Make a release in a folder, and return the loss of each column."""
    frame.to_parquet(folder / "table.parquet")
    attributes = {}
    for name, weight in weights.items():
        kind = {"grid": None} if pd.api.types.is_numeric_dtype(frame[name]) else {"type": "text"}
        attributes[name] = {"role": "quasi_identifier", "weight": weight, **kind}
    document = {
        "input": {"path": str(folder / "table.parquet")},
        "attributes": attributes,
        "privacy": {"k": K},
        "model": {"name": "smondrian"},
        "output": {"path": str(folder / "out")},
    }
    run(LocalEngine(), parse_configuration(document), purpose="comparison")
    rows = pq.read_table(folder / "out" / "metrics" / "attributes").to_pylist()
    return {row["attribute"]: row["ncp"] for row in rows}


def allowed(labels: npt.NDArray[np.str_], values: pd.Series, of: PublishedAttribute) -> Flags:
    """Return which values each label may stand for."""
    rows = []
    for label in labels:
        region = read_label(label, of)
        if isinstance(region, CategoryRegion):
            rows.append(
                values.isna() | True if region.values is None else values.isin(region.values)
            )
            continue
        fits = pd.Series(region.intervals is None, index=values.index)
        for interval in region.intervals or ():
            low, high = float(interval.low), float(interval.high)
            above = values >= low if interval.low_included else values > low
            fits |= above & (values <= high if interval.high_included else values < high)
        rows.append(fits)
    return np.array(rows, bool)


def attack(frame: pd.DataFrame, folder: Path) -> tuple[list[float], int]:
    """Return the mean success by one, two and three columns, and the fewest candidates."""
    manifest = read_manifest(LocalEngine().files, str(folder / "out"))
    published = pq.read_table(folder / "out" / "data").to_pandas()
    names = list(frame.columns)
    classes = published.groupby(names).size().reset_index(name="records")
    targets = frame.sample(TARGETS, random_state=1)
    fits = {}
    for attribute in published_attributes(manifest):
        labels, codes = np.unique(classes[attribute.name].astype(str), return_inverse=True)
        fits[attribute.name] = allowed(labels, targets[attribute.name], attribute)[codes]
    successes, fewest = [], len(frame)
    for size in range(1, LARGEST_SET + 1):
        of_sets = []
        for columns in combinations(names, size):
            matching = np.logical_and.reduce([fits[name] for name in columns])
            candidates = classes["records"].to_numpy() @ matching
            fewest = min(fewest, int(candidates.min()))
            of_sets.append((1 / candidates).mean())
        successes.append(float(np.mean(of_sets)))
    return successes, fewest


def compare(data: Path, tables: Sequence[str]) -> Iterator[str]:
    """Yield the lines of both tables."""
    by_column = [
        "",
        "| table | column | weight | loss, equal | loss, weighted |",
        "|" + " --- |" * 5,
    ]
    yield "| table | weights | loss | largest | 1 column | 2 | 3 | fewest candidates |"
    yield "|" + " --- |" * 8
    for table in tables:
        frame = read(data, TABLES[table])
        equal: Mapping[str, float] = {}
        for words, weights in weights_of(frame):
            with tempfile.TemporaryDirectory() as name:
                losses = release(frame, weights, Path(name))
                successes, fewest = attack(frame, Path(name))
            mean = sum(losses.values()) / len(losses)
            cells = [f"{mean:.4f}", f"{max(losses.values()):.3f}"]
            cells += [f"{10_000 * success:.2f}" for success in successes]
            yield f"| {table} | {words} | {' | '.join(cells)} | {fewest} |"
            equal = equal or losses
            if words == "init --weights":
                by_column += [
                    f"| {table} | {name} | {weight:g} | {equal[name]:.3f} | {losses[name]:.3f} |"
                    for name, weight in weights.items()
                ]
    yield from by_column


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data sets")
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    options = parser.parse_args()
    for line in compare(options.data, options.tables):
        print(line, flush=True)


if __name__ == "__main__":
    main()
