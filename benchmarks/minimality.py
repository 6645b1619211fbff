"""What a refused cut shows of sensitive values to an attacker who knows the method.

    .venv/bin/python benchmarks/minimality.py --data ../shared/data

The attacker has the quasi-identifiers of all records, the release of ``smondrian`` and its
configuration, and cuts each class as k alone would: the widest attribute first, at the boundary
next to the median that ``choose_boundaries`` takes. A class that was published whole was not cut
there, so one of the two sides violates the criterion. All ways to give the values of the class to
its records are equally likely before. Those in which both sides satisfy the criterion are excluded.
All numbers of each value on a side are tried, of classes with too many of them a sample.

Prints of each table and criterion: classes, those with a cut that was refused, records in them,
those of which a value became more probable by more than a hundredth, the mean and the largest gain
of these (in hundredths), records whose most probable value exceeds the bound that alpha promises
or that entropy implies, and records of which a value became certain.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from data_sets import DATA_SETS, DataSet

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import AnonsparkError
from anonspark.kernels.mondrian import choose_boundaries
from anonspark.pipeline.run import run

REPOSITORY = Path(__file__).parents[1]
TABLES = {
    "people": DataSet(
        "people.csv", ("birth_date", "income", "capital_gain", "hours_per_week"), "diagnosis"
    ),
    "Adult": DataSet("adult.csv", DATA_SETS["Adult"].quasi_identifiers, "occupation"),
    "Adult, income": DATA_SETS["Adult"],
    "Diabetes": DATA_SETS["Diabetes"],
}
CRITERIA: dict[str, dict[str, Any]] = {
    "l = 2": {"l_diversity": {"l": 2}},
    "l = 3": {"l_diversity": {"l": 3}},
    "l = 5": {"l_diversity": {"l": 5}},
    "entropy l = 2": {"l_diversity": {"l": 2, "kind": "entropy"}},
    "entropy l = 4": {"l_diversity": {"l": 4, "kind": "entropy"}},
    "alpha = 0.5": {"alpha_k_anonymity": {"alpha": 0.5}},
    "alpha = 0.3": {"alpha_k_anonymity": {"alpha": 0.3}},
    "t = 0.3": {"t_closeness": {"t": 0.3}},
}
MOST_WAYS = 300_000
"""Of a class with more numbers of values on a side some ways are drawn, and none is certain."""
DRAWN = 20_000

Matrix = np.ndarray[Any, np.dtype[np.float64]]
Counts = np.ndarray[Any, np.dtype[np.int64]]


class Known(NamedTuple):
    """What a refused cut shows of the two sides of a class."""

    rows: tuple[int, int]
    gain: tuple[float, float]
    largest: tuple[float, float]
    is_certain: tuple[bool, bool]

    @property
    def sides(self) -> Iterator[tuple[int, float, float, bool]]:
        """Return the figures of either side."""
        yield from zip(*self, strict=True)


def satisfied(asked: dict[str, Any], shares: Matrix) -> Callable[[Counts], Any]:
    """Return what judges rows of counts, one a value."""
    ((key, section),) = asked.items()

    def judge(counts: Counts) -> Any:
        own = counts / counts.sum(axis=1, keepdims=True)
        if key == "alpha_k_anonymity":
            return own.max(axis=1) <= section["alpha"] + 1e-12
        if key == "t_closeness":
            return np.abs(own - shares).sum(axis=1) / 2 <= section["t"] + 1e-12
        if section.get("kind") == "entropy":
            logs = np.log(own, where=own > 0, out=np.zeros_like(own))
            return -(own * logs).sum(axis=1) >= math.log(section["l"]) - 1e-12
        return (counts > 0).sum(axis=1) >= section["l"]

    return judge


def first_side(values: Matrix, k: int) -> Any:
    """Return which records of a class a cut by k alone puts left. None without a cut."""
    widths = values.max(axis=0) - values.min(axis=0)
    for attribute in np.argsort(-widths, kind="stable"):
        own = values[:, attribute]
        median = np.sort(own)[(len(own) - 1) // 2]
        below, equal = int((own < median).sum()), int((own == median).sum())
        (left, with_median), _ = choose_boundaries(below, equal, len(own), k, True)
        if widths[attribute] and left:
            return own <= median if with_median else own < median
    return None


def known_of(counts: Counts, left: int, judge: Callable[[Counts], Any]) -> Known | None:
    """Return what is known of a class if a cut with so many records left was refused."""
    are_all = math.prod(int(one) + 1 for one in counts) <= MOST_WAYS
    if are_all:
        grids = np.meshgrid(*(np.arange(one + 1) for one in counts), indexing="ij")
        ways = np.stack([one.ravel() for one in grids], axis=1)
        ways = ways[ways.sum(axis=1) == left]
        logs = np.array([math.lgamma(n + 1) for n in range(int(counts.max()) + 1)])
        weight = np.exp((logs[counts] - logs[ways] - logs[counts - ways]).sum(axis=1))
    else:
        ways = np.random.default_rng(1).multivariate_hypergeometric(counts, left, size=DRAWN)
        weight = np.ones(DRAWN)
    is_refused = ~(judge(ways) & judge(counts - ways))
    ways, weight = ways[is_refused], weight[is_refused] / weight[is_refused].sum()
    if not len(ways):
        return None
    before = counts / counts.sum()
    sides = [(ways, left), (counts - ways, int(counts.sum()) - left)]
    after = [(weight @ own) / size for own, size in sides]
    is_certain = [
        are_all and len(counts) > 1 and bool((own == size).all(axis=0).any()) for own, size in sides
    ]
    return Known(
        (sides[0][1], sides[1][1]),
        (float((after[0] - before).max()), float((after[1] - before).max())),
        (float(after[0].max()), float(after[1].max())),
        (is_certain[0], is_certain[1]),
    )


def classes_of(release: pa.Table, names: Sequence[str]) -> Iterator[Counts]:
    """Return the rows of each class, by the column ``row``."""
    frame = release.to_pandas()
    for _, own in frame.groupby([frame[name].astype(str) for name in names]):
        yield own["row"].to_numpy()


def measure(table: pd.DataFrame, data: DataSet, k: int, asked: dict[str, Any]) -> list[Any]:
    """Anonymize a table, and return the figures of a line."""
    names = list(data.quasi_identifiers)
    section = {key: {"attribute": data.sensitive, **one} for key, one in asked.items()}
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(pa.Table.from_pandas(table), f"{folder}/table.parquet")
        attributes: dict[str, Any] = {
            one: {"role": "quasi_identifier", "grid": None} for one in names
        }
        attributes |= {str(data.sensitive): "sensitive", "row": "insensitive"}
        document = {
            "input": {"path": f"{folder}/table.parquet"},
            "attributes": attributes,
            "privacy": {"k": k, **section},
            "model": {"name": "smondrian"},
            "output": {"path": f"{folder}/out"},
        }
        run(LocalEngine(), parse_configuration(document), purpose="comparison")
        classes = list(classes_of(pq.read_table(f"{folder}/out/data"), names))
    values = table[names].to_numpy(float)
    values = (values - values.min(axis=0)) / np.maximum(np.ptp(values, axis=0), 1e-300)
    codes, texts = pd.factorize(table[data.sensitive], sort=True)
    shares = np.bincount(codes) / len(codes)
    bound = next(iter(asked.values())).get("alpha", 1.0)
    refused: list[Known] = []
    skipped = 0
    for rows in classes:
        counts = np.bincount(codes[rows], minlength=len(texts))
        some = counts > 0
        left = first_side(values[rows], k)
        if left is None:
            continue

        def judge(ways: Counts, some: Any = some) -> Any:
            every = np.zeros((len(ways), len(texts)), np.int64)
            every[:, some] = ways
            return satisfied(asked, shares)(every)

        known = known_of(counts[some], int(left.sum()), judge)
        if known is None:
            skipped += 1
            continue
        refused.append(known)
    sides = [side for one in refused for side in one.sides]
    gained = [(rows, gain) for rows, gain, *_ in sides if gain > 0.01]
    number = sum(rows for rows, _ in gained)
    return [
        len(classes),
        len(refused),
        skipped,
        sum(rows for rows, *_ in sides),
        number,
        round(100 * sum(rows * gain for rows, gain in gained) / max(number, 1), 1),
        round(100 * max((gain for _, gain in gained), default=0.0), 1),
        sum(rows for rows, _, largest, _ in sides if largest > bound + 1e-9),
        sum(rows for rows, *_, certain in sides if certain),
    ]


def read(path: Path, data: DataSet) -> pd.DataFrame:
    """Return the records that have all values, with their numbers."""
    names = [*data.quasi_identifiers, str(data.sensitive)]
    table = pd.read_csv(path, usecols=names)[names].dropna().reset_index(drop=True)
    if "birth_date" in table:
        table["birth_date"] = (
            pd.to_datetime(table["birth_date"]).astype("int64") // 86_400_000_000_000
        )
    return table.assign(row=np.arange(len(table)))


def main() -> None:
    """Print a line a table, k and criterion."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--ks", nargs="*", type=int, default=[5, 10])
    asked = parser.parse_args()
    print("table | k | criterion | classes | refused | not tried | records | gain | mean | largest "
          "| above | certain")  # fmt: skip
    for (name, k), (words, criterion) in product(product(asked.tables, asked.ks), CRITERIA.items()):
        data = TABLES[name]
        own = REPOSITORY / "data" if data.file == "people.csv" else asked.data
        table = read(own / data.file, data)
        try:
            figures = measure(table, data, k, criterion)
        except AnonsparkError:
            # The table as a whole violates it.
            continue
        print(name, k, words, *figures, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
