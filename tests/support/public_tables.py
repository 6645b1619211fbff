"""Five public tables, as the kernels take them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from counted_tables import Records
from data_sets import DATA_SETS

# The sensitive column of FARS cuts groups, too: the figures of these tests are those of eight.
TABLES = {
    each.file: each.quasi_identifiers + (("iinjury",) if name == "FARS" else ())
    for name, each in DATA_SETS.items()
}


@lru_cache(maxsize=1)
def read(path: Path, names: Sequence[str], sensitive: str | None = None) -> Records:
    """Read a table; categories become their places, every record gets a hash of its own."""
    columns = [*names, *([sensitive] if sensitive else [])]
    table = pd.read_csv(path, usecols=columns, keep_default_na=False, low_memory=False)
    coded = [
        column.to_numpy()
        if column.dtype.kind in "iuf"
        else np.unique(column.astype(str), return_inverse=True)[1]
        for column in (table[name] for name in columns)
    ]
    hashes = np.random.default_rng(0).permutation(len(table)).astype(np.int64) << 32
    values = coded.pop()[:, None] if sensitive else None
    return Records(coded, hashes, partitions=2, values=values)
