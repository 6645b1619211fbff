"""Five public tables, as the kernels take them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from counted_tables import Records
from data_sets import DATA_SETS

# The sensitive column of FARS cuts groups, too: the figures of these tests are those of eight.
TABLES = {
    each.file: each.quasi_identifiers + (("iinjury",) if name == "FARS" else ())
    for name, each in DATA_SETS.items()
}


@lru_cache(maxsize=1)
def read(path: Path, names: Sequence[str], sensitive: str | None = None, every: int = 1) -> Records:
    """Read a table, or every so many-th of its records.

    Categories become their places, and every record gets a hash of its own.
    """
    columns = [*names, *([sensitive] if sensitive else [])]
    # Nothing is missing: what looks like it is a category.
    options = pyarrow.csv.ConvertOptions(include_columns=columns, null_values=[])
    table = pyarrow.csv.read_csv(path, convert_options=options)
    coded = [_coded(table[name].combine_chunks())[::every].copy() for name in columns]
    hashes = np.random.default_rng(0).permutation(len(coded[0])).astype(np.int64) << 32
    values = coded.pop()[:, None] if sensitive else None
    return Records(coded, hashes, partitions=2, values=values)


def _coded(column: pa.Array) -> np.ndarray:
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        numbers: np.ndarray = column.to_numpy()
        return numbers
    encoded = column.dictionary_encode()
    names = np.array(encoded.dictionary.to_pylist(), str)
    places: np.ndarray = np.unique(names, return_inverse=True)[1][encoded.indices.to_numpy()]
    return places
