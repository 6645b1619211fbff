"""A model and a criterion of another package, in the tasks of Spark."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
from example_extension import PACKAGE, install, on_the_path
from helpers import configuration_file, of_any_run, write_files
from pyspark.sql import SparkSession

from anonspark.config import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.pipeline.run import run
from anonspark.verification.audit import audit_release


def test_both_engines_make_and_prove_the_same(spark: SparkSession, tmp_path: Path) -> None:
    installed = install(tmp_path / "example")
    archive = shutil.make_archive(str(tmp_path / "anonspark_example"), "zip", installed)
    random = np.random.default_rng(3)
    table = {
        "age": random.integers(0, 90, 2000),
        "income": random.integers(0, 500, 2000),
        "disease": random.choice(list("abcdef"), 2000, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05]),
    }
    path = write_files(pa.table(table), tmp_path / "input.parquet", 3)
    engines: list[Engine] = [LocalEngine(), SparkEngine(spark)]
    releases, proofs = [], []
    with on_the_path(installed):
        # It lies on the path of Python's workers alone when they are asked for it.
        spark.sparkContext.addPyFile(archive)
        for engine in engines:
            folder = tmp_path / type(engine).__name__
            folder.mkdir()
            sections = {
                "input": {"path": str(path)},
                "attributes": {
                    "age": "quasi_identifier",
                    "income": "quasi_identifier",
                    "disease": "sensitive",
                },
                "privacy": {"k": 5, "two_largest": 0.7},
                "model": {"name": "sorted", "attribute": 1},
                # Fewer than there are: the tree begins on the cluster.
                "execution": {"task_rows": 400},
            }
            run(engine, load_configuration(str(configuration_file(folder, **sections))))
            releases.append(folder / "release")
            manifest = json.loads((releases[-1] / "manifest.json").read_text())
            assert set(manifest["versions"]["extensions"].values()) == {PACKAGE}
        for engine in engines:
            found = audit_release(engine, str(releases[1]), original=str(path))
            assert found.holds
            # Sums of the loss are rounded in another order.
            proofs.append(found.as_dict() | {"loss": None})
    assert of_any_run(releases[0]) == of_any_run(releases[1])
    assert proofs[0] == proofs[1]
