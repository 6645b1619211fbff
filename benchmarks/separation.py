"""What a group should give up: the table of docs/algorithms.md, from the kernels alone.

    .venv/bin/python benchmarks/separation.py --data ../shared/data

Su-Mondrian's rounds over five tables, k = 5, 10 and 50, as they would be in one task: as published,
and with prices that are multiples of what a record loses on average without rounds. Prints, for
each, the geometric mean of ``gcp_total`` divided by that without rounds: of the best number of
rounds, and of all five. Categories have no hierarchy here.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from data_sets import DATA_SETS

from anonspark.kernels.canonical_order import sort_groups
from anonspark.kernels.criteria import Requirements
from anonspark.kernels.mondrian import cut_into_groups
from anonspark.kernels.paths import root_path
from anonspark.kernels.paying_separation import Spans, separate_where_paying
from anonspark.kernels.separation import separate_outliers

KS = (5, 10, 50)
PRICES = (0.0, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
ROUNDS = 5

NONE = np.zeros(0, np.int64)


class Columns(NamedTuple):
    """A table of numbers: codes and their positions, as the kernels take them."""

    codes: npt.NDArray[np.int64]
    positions: npt.NDArray[np.float64]
    ranges: npt.NDArray[np.float64]

    @classmethod
    def of(cls, path: Path, names: list[str]) -> Columns:
        """Read columns; categories are numbered in their order."""
        table = pd.read_csv(path, usecols=names)[names]
        codes, positions = [], []
        for name in names:
            values, code = np.unique(table[name].to_numpy(), return_inverse=True)
            is_number = np.issubdtype(values.dtype, np.number)
            codes.append(code)
            positions.append(values[code] if is_number else code)
        own = np.stack(positions, axis=1).astype(np.float64)
        ranges = np.ptp(own, axis=0)
        return cls(
            np.stack(codes, axis=1).astype(np.int64), own, np.where(ranges == 0, 1.0, ranges)
        )


def requirements(k: int) -> Requirements:
    """Return k alone."""
    return Requirements(
        k, NONE, NONE, np.zeros((0, 2)), NONE, np.zeros(1, np.int64), np.zeros(0),
        NONE, NONE, np.zeros(1, np.int64), NONE, np.zeros(0),
    )  # fmt: skip


def spans(d: int) -> Spans:
    """Return what penalties are computed from where nothing is missing and no tree is there."""
    return Spans(
        np.ones(d), np.full(d, np.iinfo(np.int64).max), np.zeros(d, bool),
        np.zeros(d + 1, np.int64), np.zeros(d, np.int64), NONE, np.zeros(0),
    )  # fmt: skip


def penalty(
    normalized: npt.NDArray[np.float64], order: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]
) -> float:
    """Return ``gcp_total`` of groups."""
    own = normalized[order]
    widths = np.maximum.reduceat(own, starts[:-1]) - np.minimum.reduceat(own, starts[:-1])
    return float((widths.sum(axis=1) * np.diff(starts)).sum())


def losses(table: Columns, k: int, price: float | None, *, by_density: bool) -> list[float]:
    """Return ``gcp_total`` if the run ended with each of its rounds; price None: as published."""
    n, d = table.codes.shape
    hashes = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, size=(n,))
    rows = np.arange(n)
    lost, finished, mean = [], 0.0, 0.0
    for number in range(1, ROUNDS + 1):
        codes, positions = table.codes[rows].copy(), table.positions[rows].copy()
        normalized = (positions - table.positions.min(axis=0)) / table.ranges
        values = np.empty((len(rows), 0), np.int64)
        order, starts, _ = cut_into_groups(
            codes, positions, table.ranges, hashes[rows], values, positions.min(axis=0),
            positions.max(axis=0), root_path(0, number), requirements(k), False, True, False,
        )  # fmt: skip
        sort_groups(codes, hashes[rows], order, starts)
        whole = penalty(normalized, order, starts)
        lost.append(finished + whole)
        mean = mean or whole / n
        group = codes, normalized, values, order, starts, requirements(k)
        if price is None:
            kept = separate_outliers(*group, k - 1, by_density)
        else:
            kept = separate_where_paying(*group, spans(d), k - 1, by_density, price * mean)
        if (~kept).sum() < k:
            break
        sizes = np.add.reduceat(kept, starts[:-1], dtype=np.int64)
        finished += penalty(normalized, order[kept], np.concatenate([[0], np.cumsum(sizes)]))
        rows = np.sort(rows[order[~kept]])
    return lost


def main() -> None:
    """Parse the arguments, compute everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data sets")
    options = parser.parse_args()
    tables = [
        Columns.of(options.data / each.file, list(each.quasi_identifiers))
        for each in DATA_SETS.values()
    ]
    print("| price | reference | best round | all five |\n| --- | --- | --- | --- |")
    for price in (None, *PRICES):
        for reference in ("lof", "density"):
            shares = []
            for table in tables:
                for k in KS:
                    found = losses(table, k, price, by_density=reference == "density")
                    shares.append((min(found) / found[0], found[-1] / found[0]))
            best, last = np.exp(np.log(shares).mean(axis=0))
            name = "as published" if price is None else f"{price:g} times the mean"
            print(f"| {name} | {reference} | {best:.3f} | {last:.3f} |", flush=True)


if __name__ == "__main__":
    main()
