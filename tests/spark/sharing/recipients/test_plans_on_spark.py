"""Plans on Spark: the releases, and who is withheld later, are those of the local engine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from recipients import with_ledger

import anonspark
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.progress import Progress
from anonspark.sharing.ledger.chain import Key
from anonspark.sharing.ledger.check import check_ledger, demand_of, required_coalitions
from anonspark.sharing.recipients.distribute import distribute
from anonspark.sharing.recipients.plan import parse_plan
from anonspark.sharing.recipients.source import OpenFrozen, read_source

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


def second_month() -> pa.Table:
    return people().filter(pc.not_equal(people()["age"], 40))


def told_of(summaries: dict[str, Mapping[str, Any]], coalitions: Iterable[Any]) -> list[Any]:
    """Return what is told of the releases of a month."""
    found = [(name, one["rows_published"], one["rows_withheld"]) for name, one in summaries.items()]
    found += [(row["persons"], row["joint_classes"], row["smallest"]) for row in coalitions]
    return found


def carried_out(engine: Engine, plan: dict[str, Any], run_id: str) -> list[Any]:
    """Carry a plan out for files, and return what is told of its releases."""
    given = distribute(engine, parse_plan(plan), run_id=run_id)
    summaries = {name: one.summary for name, one in given.releases.items()}
    return told_of(summaries, given.coalitions)


def require_sound(engine: Engine, plan: dict[str, Any], folder: Path) -> None:
    """Ask the ledger whether something is wrong with all releases."""
    ledger = with_ledger(plan, folder)
    coalitions = required_coalitions(ledger)
    found = check_ledger(engine, ledger, coalitions, demand_of(ledger), with_files=True)
    assert found.problems == []


# 130 jobs: a minute on Spark.
@pytest.mark.system
def test_two_months(spark: SparkSession, tmp_path: Path) -> None:
    """A DataFrame, and files later."""
    engines: dict[str, Engine] = {"local": LocalEngine(), "spark": SparkEngine(spark)}
    plans = {}
    for name in engines:
        folder = tmp_path / name
        folder.mkdir()
        plans[name] = plan_of(folder) | {"output": str(folder / "first")}
        with_ledger(plans[name], folder)
    pq.write_table(people(), tmp_path / "local" / "people.parquet")
    of_files = distribute(engines["local"], parse_plan(plans["local"]), run_id="first")

    columns = people().to_pandas().to_dict("list")
    rows = list(zip(*columns.values(), strict=True))
    frame = spark.createDataFrame(rows, list(columns)).withColumn("more", sf.lit("never asked for"))
    # So that the table has to be computed before our settings hold.
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        given = anonspark.distribute(
            frame, plans["spark"], staging=(tmp_path / "work").as_uri(), run_id="first"
        )
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
    with given:
        assert given.releases["press"].data.count() == ROWS
        summaries = {name: one.figures.summary for name, one in given.releases.items()}
        expected = {name: one.summary for name, one in of_files.releases.items()}
        coalitions = given.coalitions.collect()
        assert told_of(summaries, coalitions) == told_of(expected, of_files.coalitions)
        fingerprints = [
            [one["output_fingerprint"] for one in by_name.values()]
            for by_name in (summaries, expected)
        ]
        assert fingerprints[0] == fingerprints[1]

        # Who is withheld depends on what the ledger tells of the first month.
        told = {}
        for name, engine in engines.items():
            pq.write_table(second_month(), tmp_path / name / "people.parquet")
            plans[name]["output"] = str(tmp_path / name / "second")
            told[name] = carried_out(engine, plans[name], "second")
            require_sound(engine, plans[name], tmp_path / name)
        assert told["spark"] == told["local"]
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize("data_format", ["csv", "json"])
def test_types_come_from_what_is_given(
    spark: SparkSession, tmp_path: Path, data_format: str
) -> None:
    """A record that conditions exclude decides no type, and both engines read the same."""
    rows = people().to_pylist()
    excluded = {"person": "x", "age": "old", "zone": 3, "illness": 2.5}
    path = tmp_path / f"people.{data_format}"
    if data_format == "csv":
        pd.DataFrame([*rows, excluded]).to_csv(path, index=False)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in [excluded, *rows]))
    document = plan_of(tmp_path) | {"output": str(tmp_path / "out")}
    document["base"]["input"] = {"path": str(path)}
    plan = parse_plan(document)
    found = []
    for name, engine in {"local": LocalEngine(), "spark": SparkEngine(spark)}.items():
        with engine.running(name, Progress()):
            frozen = read_source(engine, plan, Key(b"k" * 32), str(tmp_path / name))
            opened = OpenFrozen(frozen, 0)(plan.recipients[0].configuration, {})
            given = opened.rows(["age", "illness"]).collect()
        found.append((given.schema, sorted(map(str, given.to_pylist()))))
    assert found[0] == found[1]
    assert pa.types.is_integer(found[0][0].field("age").type)
    assert len(found[0][1]) == sum(row["zone"] >= 10 for row in rows)
