"""Ranges on a grid, made on Spark: the release of the local engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import of_any_run, write_table
from read_releases import GRIDS, people

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
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
