"""Five public tables, as the kernels take them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from counted_tables import Records

ADULT = ("age", "fnlwgt", "capital-gain", "capital-loss", "hours-per-week")
DIABETES = (
    "time_in_hospital",
    "num_lab_procedures",
    "num_procedures",
    "num_medications",
    "number_outpatient",
    "number_emergency",
    "number_inpatient",
    "number_diagnoses",
)
FARS = (
    "iage",
    "irace",
    "ideathmon",
    "ideathday",
    "isex",
    "ihispanic",
    "istatenum",
    "iinjury",
)
KDD_CUP = (
    "duration",
    "protocol_type",
    "service",
    "flag",
    "src_bytes",
    "dst_bytes",
    "count",
    "srv_count",
    "same_srv_rate",
    "dst_host_count",
)
POKER = tuple(f"{kind}{card}" for card in range(1, 6) for kind in "SC")

TABLES = {
    "adult.csv": ADULT,
    "diabetic_data.csv.gz": DIABETES,
    "fars.csv": FARS,
    "kddcup99_10_percent.csv.gz": KDD_CUP,
    "poker_hand_train.csv": POKER,
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
