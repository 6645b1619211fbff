"""Both engines make the same union of the same releases, to the last byte of its records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from holders import anonymize, write_coding
from pyspark.sql import SparkSession

from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.layers.publish import file_assignment
from anonspark.sharing.holders.union import unite
from anonspark.verification.audit import audit_release


def files_of(release: Path) -> list[dict[str, Any]]:
    manifest = json.loads((release / "manifest.json").read_text())
    return [file for file in manifest["files"] if file["path"].startswith("data/part-")]


def test_both_engines_make_the_same_union(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Several files, and a class that is shared out among them.
    monkeypatch.setattr(file_assignment, "_FILE_ROWS", 150)
    coding = write_coding(
        tmp_path,
        {
            "k": 5,
            "l_diversity": {"attribute": "illness", "l": 2},
            "t_closeness": {"attribute": "illness", "t": 0.9, "distance": "equal"},
        },
    )
    draw = np.random.default_rng(3)
    for name, rows in (("north", 200), ("south", 150)):
        table = {
            "age": np.where(draw.random(rows) < 0.6, 30, draw.integers(20, 60, rows)),
            "sex": draw.choice(["female", "male"], rows, p=[0.9, 0.1]),
            "illness": draw.choice(["flu", "gout"], rows),
        }
        anonymize(tmp_path, name, pa.table(table), coding)
    engines = {"local": LocalEngine(), "spark": SparkEngine(spark)}
    paths = [str(tmp_path / name) for name in ("north", "south")]
    made = {
        name: unite(engine, paths, str(tmp_path / name), holder_column="clinic", seed=11)
        for name, engine in engines.items()
    }
    one, other = made.values()
    assert one.summary["output_fingerprint"] == other.summary["output_fingerprint"]
    assert [row | {"run_id": None} for row in one.privacy] == [
        row | {"run_id": None} for row in other.privacy
    ]
    assert files_of(tmp_path / "local") == files_of(tmp_path / "spark")
    assert len(files_of(tmp_path / "local")) == 3
    assert audit_release(engines["spark"], str(tmp_path / "local")).failures == []
