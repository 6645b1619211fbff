"""What gives quasi-identifiers away, on Spark: the same warnings and figures as without it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers import command, configuration_file, write_table
from pyspark.sql import SparkSession

from anonspark.config.loading import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.pipeline.plan import check_input
from anonspark.verification.audit import audit_release


def test_both_engines_say_the_same(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = np.random.default_rng(7)
    town, age = draw.integers(0, 30, 400), draw.integers(18, 90, 400)
    columns = {
        "age": age,
        "town": [f"t{own:02d}" for own in town],
        "group": [("0-4", "5-9", "10-14", "85+")[own % 4] for own in age],
        "seen": [f"{own % 28 + 1:02d}.01.{2000 + own % 9}" for own in age],
        "district": [None if own == 0 else f"d{own * 7 % 30}" for own in town],
        "months": age * 12 + draw.integers(0, 12, 400),
        "illness": draw.choice(["flu", "cold", "none"], 400),
    }
    write_table(tmp_path / "input.parquet", columns)
    roles = dict.fromkeys(("age", "town", "group", "seen"), "quasi_identifier")
    roles |= dict.fromkeys(("district", "months"), "insensitive") | {"illness": "sensitive"}
    path = configuration_file(tmp_path, attributes=roles)
    configuration = load_configuration(path)
    engines = LocalEngine(), SparkEngine(spark)
    said = [
        [one.as_dict() for one in check_input(engine, configuration).warnings] for engine in engines
    ]
    assert said[0] == said[1]
    codes = {(one["code"], one["attribute"]) for one in said[0]}
    assert codes >= {
        *(("gives_away", "district"), ("gives_away", "months")),
        *(("order_of_letters", "group"), ("text_days", "seen")),
    }
    assert (
        command(capsys, "run", path, "--no-progress", "--set", "execution.engine=local").code == 0
    )
    found = [
        audit_release(
            engine, str(tmp_path / "release"), original=str(tmp_path / "input.parquet")
        ).linkage_with_values
        for engine in engines
    ]
    assert found[0] == found[1]
    assert found[0]["insensitive"] is not None
    assert found[0]["insensitive"].fewer_than_k > 0
