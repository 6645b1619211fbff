"""Plans on Spark: the releases, and who is withheld later, are those of the local engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from recipients import with_ledger

import anonspark
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.ledger.check import check_ledger, demand_of, required_coalitions
from anonspark.recipients.distribute import distribute
from anonspark.recipients.plan import parse_plan

ROWS = 500


def people() -> pa.Table:
    draw = np.random.default_rng(3)
    return pa.table(
        {
            "person": [f"p{number:05}" for number in range(ROWS)],
            "age": draw.integers(18, 90, ROWS),
            "zone": draw.integers(0, 30, ROWS),
            "illness": draw.choice(["flu", "cold", "gout"], ROWS),
        }
    )


def plan_of(folder: Path) -> dict[str, Any]:
    return {
        "base": {
            "input": {"path": str(folder / "people.parquet")},
            "attributes": {
                "person": {"role": "identifier"},
                "age": {"role": "quasi_identifier"},
                "zone": {"role": "quasi_identifier"},
                "illness": {"role": "sensitive"},
            },
            "privacy": {"k": 5},
            "model": {"name": "smondrian"},
            # Several blocks, so that atoms are merged by a tree that is grown on the cluster.
            "execution": {"seed": 2**40, "task_rows": 150},
        },
        "subject": "person",
        "recipients": {
            "labour": {
                "approved": "yes",
                "columns": ["age", "illness"],
                "where": {"zone": {"min": 10}},
            },
            "press": {"approved": "yes", "columns": ["age", "zone"]},
        },
    }


def two_months(engine: Engine, folder: Path) -> list[Any]:
    """Return what is told of the releases of two months."""
    folder.mkdir()
    plan = plan_of(folder)
    with_ledger(plan, folder)
    found: list[Any] = []
    for month, table in (
        ("first", people()),
        ("second", people().filter(pc.not_equal(people()["age"], 40))),
    ):
        pq.write_table(table, folder / "people.parquet")
        plan["output"] = str(folder / month)
        given = distribute(engine, parse_plan(plan), run_id=month)
        for name, release in given.releases.items():
            told = release.summary
            fingerprint = told["output_fingerprint"] if month == "first" else None
            found.append((name, told["rows_published"], told["rows_withheld"], fingerprint))
        found += [
            (row["persons"], row["joint_classes"], row["smallest"]) for row in given.coalitions
        ]
    ledger = with_ledger(plan, folder)
    checked = check_ledger(
        engine, ledger, required_coalitions(ledger), demand_of(ledger), with_files=True
    )
    return [*found, checked.problems]


def test_two_months(engine: SparkEngine, tmp_path: Path) -> None:
    local = two_months(LocalEngine(), tmp_path / "local")
    assert two_months(engine, tmp_path / "spark") == local
    assert local[-1] == []


def test_a_dataframe_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    pq.write_table(people(), tmp_path / "people.parquet")
    written = parse_plan(plan | {"output": str(tmp_path / "releases")})
    of_files = distribute(LocalEngine(), written)
    columns = people().to_pandas().to_dict("list")
    rows = list(zip(*columns.values(), strict=True))
    frame = spark.createDataFrame(rows, list(columns)).withColumn("more", sf.lit("never asked for"))
    # So that the table has to be computed before our settings hold.
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        with anonspark.distribute(frame, plan, staging=(tmp_path / "work").as_uri()) as given:
            assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
            found = {
                name: one.summary.first()["output_fingerprint"]
                for name, one in given.releases.items()
            }
            told = [row.asDict() for row in given.coalitions.collect()]
            assert given.releases["press"].data.count() == ROWS
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
    assert found == {
        name: one.summary["output_fingerprint"] for name, one in of_files.releases.items()
    }
    assert [row["smallest"] for row in told] == [row["smallest"] for row in of_files.coalitions]
    assert list((tmp_path / "work").iterdir()) == []
