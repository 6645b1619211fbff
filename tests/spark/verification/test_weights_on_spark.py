"""Risk by sampling weights on Spark is that of one process, in a run and of its release."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from cases import one_by_day
from helpers import metrics, write_files

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.pipeline.run import run
from anonspark.verification.audit import audit_release


@pytest.mark.parametrize("role", one_by_day("identifier", "insensitive"))
def test_figures_are_those_of_one_process(engine: SparkEngine, tmp_path: Path, role: str) -> None:
    random = np.random.default_rng(3)
    people = {"age": random.integers(18, 80, 600), "w": random.lognormal(3, 1, 600)}
    document = {
        "input": {"path": str(write_files(pa.table(people), tmp_path / "people", 3))},
        "attributes": {"age": "quasi_identifier", "w": role},
        "privacy": {"k": 5},
        "evaluate": {"risk": {"weights": "w"}},
        "execution": {"seed": 2**40 + 1},
    }
    engines: dict[str, Engine] = {"local": LocalEngine(), "spark": engine}
    found = {}
    for name, own in engines.items():
        run(own, parse_configuration(document | {"output": {"path": str(tmp_path / name)}}))
        found[name] = [row | {"run_id": ""} for row in metrics(tmp_path / name, "risk")]
    assert found["spark"] == found["local"]
    assert found["local"][-1]["expected"] > 0
    assert audit_release(engine, str(tmp_path / "local")).failures == []
