"""The verifier of one file, on releases that Spark has written on a local disk."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from cases import one_by_day
from helpers import configuration_file, write_table
from release_folders import write_checksum

from anonspark.config import load_configuration
from anonspark.engine.spark.engine import SparkEngine
from anonspark.pipeline.run import run
from anonspark.verification.audit import audit_release
from anonspark.verifier import VERIFIER


@pytest.mark.parametrize("output_format", one_by_day("orc", "parquet"))
def test_it_agrees(
    output_format: str, engine: SparkEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hadoop's checksums lie beside the files: what they hold is computed again."""
    draw = np.random.default_rng(3)
    table = {
        "age": draw.integers(0, 99, 300),
        "town": draw.choice(["a", "b"], 300),
        "illness": draw.choice(["flu", "gout", "mumps"], 300),
    }
    write_table(tmp_path / "input.parquet", table)
    path = configuration_file(
        tmp_path,
        attributes={"age": "quasi_identifier", "town": "quasi_identifier", "illness": "sensitive"},
        model={"name": "su-mondrian"},
        privacy={"k": 5, "l_diversity": {"attribute": "illness", "l": 2}},
        output={"format": output_format, "style": "bounds"},
    )
    run(engine, load_configuration(path))
    release = tmp_path / "release"
    assert audit_release(engine, str(release)).failures == []
    paths = [path for path in release.rglob("*") if path.is_file()]
    checksums = {path.name: write_checksum(path) for path in paths}
    check = runpy.run_path(str(release / VERIFIER), run_name="check_release")["main"]
    assert check([str(release)]) == 0, capsys.readouterr().out
    assert "0 classes break" in capsys.readouterr().out
    checksum = checksums[VERIFIER]
    content = checksum.read_bytes()
    checksum.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert check([str(release)]) == 1
