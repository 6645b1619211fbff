"""Full-domain recoding of more tuples than the driver takes: the release of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers import of_any_run, write_table

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.pipeline.run import run


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
