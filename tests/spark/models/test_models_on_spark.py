"""Grids, lattices and mappings on Spark: the release of the local engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import of_any_run, write_table
from read_releases import GRIDS, people

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.pipeline.run import run

FINER = {name: {"grid": "auto"} for name in GRIDS}


@pytest.mark.parametrize(("grids", "model"), [(GRIDS, "su-mondrian"), (FINER, "microaggregation")])
def test_both_engines_make_the_same_ranges(
    engine: SparkEngine, tmp_path: Path, grids: dict[str, dict[str, object]], model: str
) -> None:
    write_table(tmp_path / "people.parquet", people())
    found = []
    for name, own in (("spark", engine), ("local", LocalEngine())):
        document = {
            "input": {"path": str(tmp_path / "people.parquet")},
            "attributes": {
                key: {"role": "quasi_identifier", **keys} for key, keys in grids.items()
            },
            "missing": "category",
            "privacy": {"k": 5},
            "model": {"name": model},
            "output": {"path": str(tmp_path / name)},
            "gates": {"isolating_ends": {"max": 1}},
            # A tree that is grown on the cluster.
            "execution": {"seed": 2**40, "task_rows": 150},
        }
        run(own, parse_configuration(document))
        found.append(of_any_run(tmp_path / name))
    assert found[0] == found[1]


@pytest.mark.parametrize("search", ["exhaustive", pytest.param("pruned", marks=pytest.mark.system)])
def test_tuples_on_the_cluster(engine: SparkEngine, tmp_path: Path, search: str) -> None:
    rows = range(60)
    columns = {
        "age": [20 + 7 * row % 31 for row in rows],
        "zone": [f"{row % 3}{row % 7}" for row in rows],
        "disease": [("asthma", "fracture", "migraine")[row % 3] for row in rows],
    }
    write_table(tmp_path / "input.parquet", columns)
    document: dict[str, Any] = {
        "input": {"path": str(tmp_path / "input.parquet")},
        "attributes": {
            "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [10, 20]}},
            "zone": {"role": "quasi_identifier", "hierarchy": {"prefix": [1]}},
            "disease": "sensitive",
        },
        "privacy": {"k": 4, "l_diversity": {"attribute": "disease", "l": 2}},
        "model": {"name": "rho-gain", "rho": 1, "search": search, "suppression_limit": 0.3},
        "output": {"path": str(tmp_path / "process")},
    }
    run(LocalEngine(), parse_configuration(document))
    kept = engine.session.sparkContext._jsc.getPersistentRDDs
    # What others have left there goes when Java collects its garbage.
    before = set(kept().keySet())
    document["output"]["path"] = str(tmp_path / "cluster")
    document["model"]["driver_tuples"] = 7
    run(engine, parse_configuration(document))
    assert of_any_run(tmp_path / "cluster") == of_any_run(tmp_path / "process")
    # Nothing stays on the cluster.
    assert set(kept().keySet()) <= before


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
