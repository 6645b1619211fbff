"""How good private choices of attributes are: the tables of docs/algorithms.md.

    .venv/bin/python benchmarks/quality/selection.py --data ../shared/data

Prints Markdown: the exact scores of Adult's attributes, without noise; how much of the true best
attributes is chosen under noise, on Adult, on thirds of it and on Car Evaluation, by each mechanism
and score. Draws are seeded, so that the same figures come out each time.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pc

from anonspark.core.association import chi_square, gini_score, information_gain
from anonspark.engine.local.engine import LocalEngine
from anonspark.sharing.selection.counting import count_tables
from anonspark.sharing.selection.domains import Domain
from anonspark.sharing.selection.mechanisms import (
    Neighbors,
    Score,
    choose,
    draw_cuts,
    loss_of_a_record,
    rank,
    scale_of,
    with_noise,
)

Counts = npt.NDArray[np.int64]

RECORDS_AT_MOST = 100_000
RUNS = 300
CHOSEN = 7

BINS: dict[str, list[int]] = {
    "age": list(range(20, 91, 5)),
    "fnlwgt": list(range(50_000, 800_001, 50_000)),
    "education-num": list(range(2, 17)),
    "capital-gain": [1, *range(2_500, 30_001, 2_500), 99_999],
    "capital-loss": [1, *range(500, 4_001, 500)],
    "hours-per-week": list(range(10, 91, 10)),
}
QUANTILES = 8
# File, target, column, end of the range from 0, width of the grid.
GRIDS: tuple[tuple[str, str, str, float, float], ...] = (
    ("adult.csv", "income", "age", 120, 1),
    ("adult.csv", "income", "hours-per-week", 120, 1),
    ("adult.csv", "income", "capital-gain", 100_000, 100),
    ("california_housing.csv", "ocean_proximity", "median_income", 20, 0.1),
    ("california_housing.csv", "ocean_proximity", "population", 50_000, 50),
    ("fars.csv", "iinjury", "iage", 120, 1),
    ("diabetic_data.csv.gz", "readmitted", "num_medications", 150, 1),
    ("diabetic_data.csv.gz", "readmitted", "num_lab_procedures", 200, 1),
)
COLUMNS: tuple[tuple[str, Score], ...] = (
    ("top", "gini"),
    ("top", "information_gain"),
    ("tables", "chi_square"),
    ("tables", "information_gain"),
)


@dataclass(frozen=True)
class Tables:
    """Exact tables of counts of some candidates.

    Parameters
    ----------
    names : list of str
    counts : list of int64 ndarray
    """

    names: list[str]
    counts: list[Counts]

    def best(self, number: int) -> set[int]:
        """Return the places of the true best ones by chi-square."""
        scores = [chi_square(one) for one in self.counts]
        return set(sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:number])


def read(path: Path) -> pa.Table:
    """Read a file of texts."""
    texts = pc.ConvertOptions(strings_can_be_null=False)
    return pc.read_csv(path, convert_options=texts)


def adult(path: Path, rows: int | None = None) -> Tables:
    """Return the tables of Adult, or of its first rows, for the income."""
    table = read(path)
    return count(table.slice(0, rows), domains_of(table, "income"), income())


def income() -> Domain:
    """Return the classes of Adult."""
    return Domain.of_values("income", ["<=50K", ">50K"])


def cars(path: Path) -> Tables:
    """Return the tables of Car Evaluation, for whether a car is acceptable."""
    table = read(path)
    classes = sorted(set(table["class"].to_pylist()))
    grouped = {one: "unacceptable" if one == "unacc" else "acceptable" for one in classes}
    return count(table, domains_of(table, "class"), Domain.of_groups("class", grouped))


def domains_of(table: pa.Table, target: str) -> list[Domain]:
    """Return the domains of all columns but the target: bins, or the values that occur."""
    return [
        Domain.of_edges(name, BINS[name])
        if name in BINS
        else Domain.of_values(name, sorted(set(table[name].to_pylist())))
        for name in table.column_names
        if name != target
    ]


def count(table: pa.Table, domains: Sequence[Domain], target: Domain) -> Tables:
    """Return the tables of the records of some columns, for a target."""
    wrapped = LocalEngine().wrap(table)
    names = [one.name for one in domains]
    return Tables(names, count_tables(wrapped, domains, target, ["?"], drop_missing=True))


def simulate(
    tables: Tables,
    mechanism: str,
    score: Score,
    epsilon: str,
    *,
    chosen: int = CHOSEN,
    runs: int = RUNS,
    neighbors: Neighbors = "add_remove",
) -> tuple[float, float]:
    """Return the mean share of the true best among the chosen, and of runs with exactly these."""
    best = tables.best(chosen)
    case = f"{mechanism} {score} {epsilon} {chosen} {neighbors} {len(tables.names)}"
    below = random.Random(case).randrange  # noqa: S311 - figures that come out each time
    loss = loss_of_a_record(Fraction(epsilon), neighbors)
    scale = scale_of(len(tables.counts), loss)
    shares = []
    for _ in range(runs):
        if mechanism == "top":
            found = choose(tables.counts, chosen, loss, score, below, RECORDS_AT_MOST)
        else:
            ranked = rank(with_noise(tables.counts, scale, below), scale, score)
            found = [one.index for one in ranked[:chosen]]
        shares.append(len(best.intersection(found)) / chosen)
    return float(np.mean(shares)), float(np.mean([one == 1 for one in shares]))


def exact_rows(tables: Tables) -> Iterator[list[str]]:
    """Yield what the tables tell without noise, the best attribute first."""
    order = sorted(
        tables.best(len(tables.names)), key=lambda place: -chi_square(tables.counts[place])
    )
    for place in order:
        counts = tables.counts[place]
        squares = sum((row**2).sum() / row.sum() for row in counts if row.sum())
        yield [
            tables.names[place],
            str(len(counts) - 2),
            f"{chi_square(counts):.4f}",
            f"{information_gain(counts):.8f}",
            f"{squares:.4f}",
            f"{gini_score(counts)}",
        ]


def rows_with_noise(
    tables: Tables, epsilons: Sequence[str], chosen: int, runs: int
) -> Iterator[list[str]]:
    """Yield how much of the best is chosen, a row for each loss."""
    for epsilon in epsilons:
        found = (simulate(tables, *one, epsilon, chosen=chosen, runs=runs) for one in COLUMNS)
        yield [epsilon, *(f"{overlap:.3f} / {exact:.2f}" for overlap, exact in found)]


def quantile_rows(directory: Path, runs: int) -> Iterator[list[str]]:
    """Yield the information gain of eight bins, in percent of that of the whole grid.

    A row for each column: even bins over the range, exact quantiles, and drawn bins for each loss.
    """
    targets = np.arange(1, QUANTILES) / QUANTILES
    for file, target, column, last, width in GRIDS:
        table = read(directory / file)
        classes = Domain.of_values(target, sorted(set(table[target].to_pylist())))
        grid = Domain.of_edges(column, [step * width for step in range(round(last / width) + 1)])
        (counts,) = count(table, [grid], classes).counts
        records = counts[: grid.other].sum(axis=1)
        shares = records.cumsum()[:-1] / records.sum()
        below = random.Random(f"{file} {column}").randrange  # noqa: S311 - the same each time
        even = [len(grid.edges) * step // QUANTILES for step in range(1, QUANTILES)]
        exact = sorted({1 + int(np.abs(shares - share).argmin()) for share in targets})
        cuts = [[even], [exact]]
        for epsilon in ("0.01", "0.1", "1"):
            loss = Fraction(epsilon)
            cuts.append([draw_cuts(records, QUANTILES, loss, below) for _ in range(runs)])
        gains = [
            np.mean([information_gain(grid.merged(one, counts)[1]) for one in drawn])
            for drawn in cuts
        ]
        # Of one class nothing is to be learned.
        whole = information_gain(counts) or 1.0
        kept = [f"{100 * gain / whole:.1f}" for gain in gains]
        yield [file.partition(".")[0], column, f"{records.sum():,}", str(grid.rows - 2), *kept]


def print_table(title: str, columns: Sequence[str], rows: Iterator[list[str]]) -> None:
    """Print a Markdown table as its rows come in."""
    print(f"\n{title}\n\n| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def main() -> None:
    """Read the data and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data sets")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    whole, runs = adult(options.data / "adult.csv"), options.runs
    columns = ["attribute", "rows", "chi-square", "information gain", "sum n_vs^2/n_v", "q (gini)"]
    print_table("Adult, exact", columns, exact_rows(whole))
    noisy = ["epsilon", *(f"{mechanism}, {score}" for mechanism, score in COLUMNS)]
    epsilons = ("0.1", "0.25", "0.5")
    print_table("Adult, 7 of 14", noisy, rows_with_noise(whole, epsilons, CHOSEN, runs))
    records = int(whole.counts[0].sum())
    for part in (1, 2, 3):
        third = adult(options.data / "adult.csv", records * part // 3)
        title = f"{part} thirds of Adult, 7 of 14"
        print_table(title, noisy, rows_with_noise(third, ("0.1",), CHOSEN, runs))
    car = cars(options.data / "car.csv")
    print_table("Car Evaluation, exact", columns, exact_rows(car))
    columns = ["table", "column", "records", "grid", "even", "quantiles", "0.01", "0.1", "1"]
    print_table("Eight bins, drawn", columns, quantile_rows(options.data, min(runs, 100)))
    print_table("Car Evaluation, 3 of 6", noisy, rows_with_noise(car, ("0.25", "1"), 3, runs))


if __name__ == "__main__":
    main()
