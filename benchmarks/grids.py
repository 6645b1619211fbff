"""What a grid costs, and what the ends of ranges give away with and without one.

    .venv/bin/python benchmarks/grids.py --data ../shared/data

Six public tables, two models, k = 5, 10 and 50, exact ends beside the default grid. Prints what the
grid adds to ``gcp`` in per cent, both measured by the ranges of the table itself, and the shares of
ends that isolate one record of the table, exact and on the grid: by value (no other record has the
value and lies in the class otherwise), and by the strip of a step of the grid at the end. Ends of
numbers and days count, those of the classes that are drawn. The median error of the counting
queries of ``anonspark evaluate`` stands behind them. Then the geometric mean of what it adds, and
the means of the shares and of the errors.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from data_sets import DATA_SETS, DataSet

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from anonspark.utility.evaluation import open_evaluation

TABLES = {name: DATA_SETS[name] for name in ("Adult", "Diabetes", "FARS", "Poker")} | {
    "California": DataSet(
        "california_housing.csv",
        (
            "longitude", "latitude", "housing_median_age", "total_rooms", "total_bedrooms",
            "population", "households", "median_income",
        ),
    ),
    "people": DataSet("people.csv", ("birth_date", "income", "capital_gain", "hours_per_week")),
}  # fmt: skip
KS = (5, 10, 50)
MODELS: dict[str, dict[str, int]] = {"su-mondrian": {"refine": 0}, "microaggregation": {}}
REPOSITORY = Path(__file__).parents[1]


class Measured(NamedTuple):
    """The loss of a release, shares of its ends that isolate a record, and errors of counts."""

    gcp: float
    by_value: float
    by_strip: float
    error: float


def read(path: Path, names: Sequence[str]) -> pa.Table:
    """Return the records that have all values, days as days."""
    found = pd.read_csv(path, usecols=list(names))[list(names)].dropna()
    if "birth_date" in found:
        found["birth_date"] = pd.to_datetime(found["birth_date"]).dt.date
    return pa.Table.from_pandas(found, preserve_index=False)


def numbers(column: pa.ChunkedArray) -> np.ndarray:
    """Return numbers, days as their number."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    values: np.ndarray = column.to_numpy().astype(float)
    return values


def release(folder: Path, table: pa.Table, model: str, k: int, grid: str) -> tuple[Path, Any]:
    """Anonymize a table."""
    attributes = {
        name: {
            "role": "quasi_identifier",
            "grid": None if pa.types.is_string(table.schema.field(name).type) else grid,
        }
        for name in table.schema.names
    }
    document = {
        "input": {"path": str(folder / "table.parquet")},
        "attributes": attributes,
        "privacy": {"k": k},
        "model": {"name": model, **MODELS[model]},
        "output": {"path": str(folder / "out"), "style": "bounds", "mode": "overwrite"},
    }
    return folder / "out", run(LocalEngine(), parse_configuration(document))


def measure(
    table: pa.Table, out: Path, result: Any, drawn: int, steps: dict[str, np.ndarray]
) -> Measured:
    """Measure a release beside its table; the lines of grids by attribute are in ``steps``."""
    data = pq.read_table(out / "data")
    ordered = [name for name in table.schema.names if f"{name}_min" in data.schema.names]
    original = {name: numbers(table[name]) for name in ordered}
    ends = {name: [numbers(data[f"{name}_{end}"]) for end in ("min", "max")] for name in ordered}
    total = 0.0
    for row in result.attributes:
        name, ncp = row["attribute"], row["ncp"]
        if name in ordered:
            width = np.ptp(original[name])
            ncp = float((ends[name][1] - ends[name][0]).sum() / (width * len(table)))
        total += ncp
    sets = [name for name in table.schema.names if name not in ordered]
    of_sets = {name: data[name].to_pylist() for name in sets}
    texts = {name: np.array(table[name].to_pylist()) for name in sets}
    keys = pd.DataFrame(
        {f"{name}{place}": own for name, pair in ends.items() for place, own in enumerate(pair)}
        | {name: list(map(str, own)) for name, own in of_sets.items()}
    )
    first = np.flatnonzero(~keys.duplicated().to_numpy())
    draw = np.random.default_rng(0)
    counts = [0, 0, 0]
    for row in draw.choice(first, min(drawn, len(first)), replace=False):
        inside = {
            name: (original[name] >= ends[name][0][row]) & (original[name] <= ends[name][1][row])
            for name in ordered
        } | {name: np.isin(texts[name], of_sets[name][row]) for name in sets}
        for name in ordered:
            others = np.ones(len(table), bool)
            for other, own in inside.items():
                if other != name:
                    others &= own
            values = original[name][others]
            lines = steps[name][others]
            for place in (0, 1):
                end = ends[name][place][row]
                within = values[(values >= ends[name][0][row]) & (values <= ends[name][1][row])]
                own = lines[(values >= ends[name][0][row]) & (values <= ends[name][1][row])]
                outermost = own.min() if place == 0 else own.max()
                counts[0] += 1
                counts[1] += int((within == end).sum() == 1)
                counts[2] += int((own == outermost).sum() == 1)
    by_value, by_strip = (count / counts[0] for count in counts[1:])
    input_path = str(out.parent / "table.parquet")
    error = open_evaluation(LocalEngine(), str(out), input_path).workload().median
    return Measured(total / len(result.attributes), by_value, by_strip, error)


def main() -> None:
    """Parse the arguments, compute everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data sets")
    parser.add_argument("--classes", type=int, default=200, help="classes whose ends are counted")
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    options = parser.parse_args()
    print("table, model, k: gcp added, ends by value, ends by strip, error of counts")
    added, shares = [], []
    for title in options.tables:
        data_set = TABLES[title]
        own = REPOSITORY / "data" / data_set.file
        table = read(
            own if own.exists() else options.data / data_set.file, data_set.quasi_identifiers
        )
        for model in MODELS:
            for k in KS:
                with tempfile.TemporaryDirectory() as folder:
                    pq.write_table(table, Path(folder) / "table.parquet")
                    # Of both, so that the strips of exact ends are those of the grid.
                    out, on_grid = release(Path(folder), table, model, k, "auto")
                    described = on_grid_lines(out, table)
                    coarse = measure(table, out, on_grid, options.classes, described)
                    out, exact_run = release(Path(folder), table, model, k, "none")
                    exact = measure(table, out, exact_run, options.classes, described)
                added.append(coarse.gcp / exact.gcp)
                shares.append([*exact[1:], *coarse[1:]])
                print(
                    f"{title}, {model}, {k}: {exact.gcp:.4f} {100 * (added[-1] - 1):+.1f} %, "
                    f"{exact.by_value:.2f} to {coarse.by_value:.2f}, "
                    f"{exact.by_strip:.2f} to {coarse.by_strip:.2f}, "
                    f"{exact.error:.4f} to {coarse.error:.4f}",
                    flush=True,
                )
    mean = float(np.exp(np.mean(np.log(added))))
    value, strip, error, value_after, strip_after, error_after = np.mean(shares, axis=0)
    print(
        f"all: {100 * (mean - 1):+.1f} %, {value:.2f} to {value_after:.2f}, "
        f"{strip:.2f} to {strip_after:.2f}, {error:.4f} to {error_after:.4f}"
    )


def on_grid_lines(out: Path, table: pa.Table) -> dict[str, np.ndarray]:
    """Return the line of each value of a table, of the grids of a release."""
    from fractions import Fraction

    from anonspark.labels.regions import published_attributes
    from anonspark.release.manifest import read_manifest

    lines = {}
    for one in published_attributes(read_manifest(LocalEngine().files, str(out))):
        if not one.is_category:
            values = numbers(table[one.name])
            kind = "float" if one.kind == "float" else one.kind
            own = one.encoding(kind, pa.float64())
            codes = np.array([own.code_of(Fraction(value)) for value in values.tolist()])
            lines[one.name] = own.coarsened(codes)
    return lines


if __name__ == "__main__":
    main()
