"""One release on every version of Spark: the golden figures of a run that uses most of it.

The suite runs this on the locked Spark, and ``make smoke`` on the oldest and on the newest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers import command, configuration_file

from anonspark.config import load_configuration
from anonspark.demo.people import EDUCATION_ORDER, generate_people
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECTIONS: Mapping[str, Any] = {
    "attributes": {
        "birth_date": "quasi_identifier",
        "postal_code": {"role": "quasi_identifier", "hierarchy": {"prefix": [1, 3]}},
        "education": {"role": "quasi_identifier", "order": list(EDUCATION_ORDER)},
        "body_mass_index": "quasi_identifier",
        "marital_status": "quasi_identifier",
        "diagnosis": "sensitive",
        "last_visit": "insensitive",
        "income": "insensitive",
    },
    "missing": "category",
    "privacy": {"k": 5, "l_diversity": {"attribute": "diagnosis", "l": 3}},
    "model": {"name": "su-mondrian", "rho": 2, "separation": "always"},
    # Fewer than there are: the tree begins on the cluster.
    "execution": {"task_rows": 400},
}

FINGERPRINTS = {
    "input": "59fe159b0cb1e7f331bc062b754fbc0dad771c9807d3c0e62198e9361b53e138",
    "output": "5a4841d7e5349d0debece7696a9c47562c78060cd894fe8105dbcd6381fe946e",
}


def test_the_release_is_that_of_every_other_version(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generate_people(spark, 600).write.parquet(str(tmp_path / "input.parquet"))
    configuration = configuration_file(tmp_path, **SECTIONS)
    outcome = command(capsys, "run", configuration)
    assert outcome.code == 0, outcome.err
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    found = {name: manifest["fingerprints"][name] for name in FINGERPRINTS}
    assert found == FINGERPRINTS, spark.version
    outcome = command(
        capsys,
        *("verify", tmp_path / "release", "--json"),
        *("--original", tmp_path / "input.parquet"),
    )
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["holds"]
    run(LocalEngine(), load_configuration(str(configuration), ["output.mode=overwrite"]))
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert {name: manifest["fingerprints"][name] for name in FINGERPRINTS} == FINGERPRINTS
