"""The candidates of Adult and the income, counted for private selection."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pc

from anonspark.engine.local.engine import LocalEngine
from anonspark.selection.counting import count_tables
from anonspark.selection.domains import Domain

Counts = npt.NDArray[np.int64]

BINS: dict[str, list[int]] = {
    "age": list(range(20, 91, 5)),
    "fnlwgt": list(range(50_000, 800_001, 50_000)),
    "education-num": list(range(2, 17)),
    "capital-gain": [1, *range(2_500, 30_001, 2_500), 99_999],
    "capital-loss": [1, *range(500, 4_001, 500)],
    "hours-per-week": list(range(10, 91, 10)),
}
CLASSES = ["<=50K", ">50K"]


def adult_counts(path: Path, part: slice = slice(None)) -> tuple[list[str], list[Counts]]:
    """Return names and exact tables of the 14 candidates.

    Parameters
    ----------
    path : Path
        Of Adult; categories have the values of the whole file.
    part : slice
        Which of its records are counted.
    """
    texts = pc.ConvertOptions(strings_can_be_null=False)
    table: pa.Table = pc.read_csv(path, convert_options=texts)
    names = [name for name in table.column_names if name != "income"]
    domains = [
        Domain.of_edges(name, BINS[name])
        if name in BINS
        else Domain.of_values(name, sorted(set(table[name].to_pylist())))
        for name in names
    ]
    target = Domain.of_values("income", CLASSES)
    first, last, _ = part.indices(len(table))
    counted = LocalEngine().wrap(table.slice(first, last - first))
    return names, count_tables(counted, domains, target, ["?"], drop_missing=True)
