"""One release on every version of Spark: the golden figures of a run that uses most of it.

``make systems`` runs this on the locked Spark, and ``make smoke`` on the oldest and on the newest.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from commands import Cli
from generated_people import generate_people
from golden_run import FINGERPRINTS, ROWS, SECTIONS
from helpers import configuration_file

from anonspark.config import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.system


def test_the_release_is_that_of_every_other_version(
    spark: SparkSession, tmp_path: Path, cli: Cli
) -> None:
    generate_people(spark, ROWS).write.parquet(str(tmp_path / "input.parquet"))
    configuration = configuration_file(tmp_path, **SECTIONS)
    cli.ends(0, "run", configuration)
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    found = {name: manifest["fingerprints"][name] for name in FINGERPRINTS}
    assert found == FINGERPRINTS, spark.version
    outcome = cli(
        *("verify", tmp_path / "release", "--json"), *("--original", tmp_path / "input.parquet")
    )
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["holds"]
    by_spark = hashes_of_data(manifest)
    run(LocalEngine(), load_configuration(str(configuration), ["output.mode=overwrite"]))
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert {name: manifest["fingerprints"][name] for name in FINGERPRINTS} == FINGERPRINTS
    # To the byte, whatever version of Spark has written the files.
    assert hashes_of_data(manifest) == by_spark


def hashes_of_data(manifest: dict[str, Any]) -> dict[str, str]:
    files = {one["path"]: one["sha256"] for one in manifest["files"]}
    return {path: digest for path, digest in files.items() if path.startswith("data/")}
