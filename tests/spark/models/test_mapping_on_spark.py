"""The mapping of an earlier release on Spark: the release of the local engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.pipeline.run import run

ROWS = 500


def write_people(path: Path, rows: int, seed: int) -> None:
    """Write a table whose people are older with every seed."""
    draw = np.random.default_rng(seed)
    towns = draw.choice(["north", "south", "east", "west"], rows).tolist()
    columns = {
        "age": draw.integers(18 + seed, 90 + seed, rows),
        "income": np.round(draw.normal(3000, 900, rows), 2),
        "town": [None if place % 9 == 0 else town for place, town in enumerate(towns)],
        "illness": draw.choice(["flu", "cold", "gout"], rows),
    }
    pq.write_table(pa.table(columns), path)


def release(engine: Engine, folder: Path, source: str, out: str, model: dict[str, Any]) -> Any:
    """Anonymize a table."""
    document = {
        "input": {"path": str(folder / source)},
        "attributes": {
            **{name: {"role": "quasi_identifier"} for name in ("age", "income", "town")},
            "illness": {"role": "sensitive"},
        },
        "missing": "category",
        "privacy": {"k": 5},
        "model": model,
        "output": {"path": str(folder / out)},
        # Several blocks, of a tree that is grown on the cluster.
        "execution": {"seed": 2**40, "task_rows": 150},
    }
    return run(engine, parse_configuration(document))


def test_both_engines_apply_the_same_mapping(engine: SparkEngine, tmp_path: Path) -> None:
    write_people(tmp_path / "then.parquet", ROWS, 0)
    write_people(tmp_path / "now.parquet", ROWS, 9)
    # Boxes that overlap.
    old = {"name": "su-mondrian", "rho": 2}
    release(LocalEngine(), tmp_path, "then.parquet", "old", old)
    mapping = {"name": "mapping", "release": str(tmp_path / "old"), "unfit": "suppress"}
    on_spark, at_home = (
        release(engine_, tmp_path, "now.parquet", out, mapping)
        for engine_, out in ((engine, "spark"), (LocalEngine(), "local"))
    )
    assert on_spark.summary["output_fingerprint"] == at_home.summary["output_fingerprint"]
    assert on_spark.summary["gcp"] == at_home.summary["gcp"]
    assert on_spark.summary["rows_published"] == at_home.summary["rows_published"]
    assert on_spark.summary["rows_published"] < ROWS
