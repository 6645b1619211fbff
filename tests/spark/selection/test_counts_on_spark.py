"""Counts of a selection on Spark are those of one process, for any partitions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import anonspark
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.table import frame_of
from anonspark.selection.counting import count_tables
from anonspark.selection.domains import Domain

DOMAINS = (Domain.of_values("job", ["a", "b"]), Domain.of_edges("age", [30, 40.5]))
TARGET = Domain.of_values("ill", ["no", "yes"])


def people() -> pa.Table:
    draw = np.random.default_rng(3)
    rows = 700
    job = draw.choice(["a", "b", " b", "other", "?"], rows).astype(object)
    job[draw.random(rows) < 0.1] = None
    age = draw.normal(35, 10, rows).round(1)
    age[draw.random(rows) < 0.1] = np.nan
    ill = draw.choice(["no", "yes", "perhaps"], rows)
    return pa.table({"job": pa.array(job), "age": age, "ill": ill, "more": np.arange(rows)})


@pytest.mark.parametrize("drop", [False, True])
def test_any_partitions(engine: SparkEngine, drop: bool) -> None:
    local = LocalEngine()
    expected = count_tables(local.wrap(people()), DOMAINS, TARGET, ["?"], drop_missing=drop)
    assert expected[0].sum() > 200
    frame = frame_of(engine.table(people()))
    for partitions in (1, 7):
        table = engine.wrap(frame.repartition(partitions))
        found = count_tables(table, DOMAINS, TARGET, ["?"], drop_missing=drop)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_dataframe_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(20_000).selectExpr(
        "id % 4 AS job", "id % 7 AS town", "CASE WHEN id % 4 > 1 THEN 'yes' ELSE 'no' END AS ill"
    )
    config = {
        "attributes": {
            "job": "quasi_identifier",
            "town": "quasi_identifier",
            "ill": "sensitive",
        },
        "selection": {
            "target": "ill",
            "count": 1,
            "epsilon": 1,
            "domains": {
                "ill": {"values": ["no", "yes"]},
                "job": {"values": ["0", "1", "2", "3"]},
                "town": {"bins": [1, 2, 3]},
            },
            "output": str(tmp_path / "out"),
        },
        "ledger": {"path": str(tmp_path / "ledger"), "dataset": "people", "limit": 1},
    }
    found = anonspark.select(frame, config)
    assert found.attributes == ["job"]
    assert (tmp_path / "out" / "selection.json").exists()
