"""Counts of a selection on Spark are those of one process, for any partitions."""

from __future__ import annotations

import logging
import random
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import contents
from pyspark.sql import SparkSession

import anonspark
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.python_stage import PythonStage
from anonspark.engine.spark.table import frame_of
from anonspark.sharing.selection.counting import Person, count_tables
from anonspark.sharing.selection.domains import Domain
from anonspark.sharing.selection.request import open_query
from anonspark.sharing.selection.selecting import select
from anonspark.sharing.selection.settings import parse_selection

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


def test_drawn_bins_are_those_of_one_process(engine: SparkEngine, tmp_path: Path) -> None:
    drawn = []
    for name, own in (("spark", engine), ("local", LocalEngine())):
        bins = {"from": 0, "to": 80, "width": 0.5, "quantiles": 5, "epsilon": "0.5"}
        document = {
            "attributes": dict.fromkeys(["job", "age"], "quasi_identifier") | {"ill": "sensitive"},
            "selection": {
                "target": "ill",
                "count": 1,
                "mechanism": "tables",
                "epsilon": 1,
                "domains": {
                    "ill": {"values": ["no", "yes"]},
                    "job": {"values": ["a", "b"]},
                    "age": {"bins": bins},
                },
                "output": str(tmp_path / name),
            },
            "ledger": {"path": str(tmp_path / f"{name} ledger"), "dataset": "people", "limit": 2},
            "input": {"path": str(tmp_path / "none.parquet")},
        }
        below = random.Random(5).randrange  # noqa: S311 - the same chance for both
        table = own.wrap(people())
        if own is engine:
            table = own.wrap(frame_of(engine.table(people())).repartition(3))
        selection = select(own, parse_selection(document), run_id="one", below=below, table=table)
        tables = pq.read_table(tmp_path / name / "tables").to_pylist()
        drawn.append((selection.content["bins"], selection.attributes, tables))
    assert drawn[0] == drawn[1]
    assert len(drawn[0][0]["age"]) == 4


def test_files_of_which_tasks_read_some_columns(
    engine: SparkEngine,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What was planted in the data is in no file, no log line and no description of a job."""
    planted, rows, value = 5_347, 9_173, "Okapi in no domain"
    draw = np.random.default_rng(4)
    job = draw.choice(["a", "b", value], rows).astype(object)
    town = np.full(rows, "far", object)
    town[:planted] = "near"
    table = pa.table(
        {
            "job": job,
            "town": town,
            "age": np.where(draw.random(rows) < 0.1, np.nan, draw.normal(35, 10, rows)),
            "ill": draw.choice(["no", "yes"], rows),
            "poison": draw.integers(0, 2**60, rows),
        }
    )
    (tmp_path / "people").mkdir()
    for number in range(2):
        path = tmp_path / "people" / f"{number}.parquet"
        part = table.slice(number * 4_000, 4_000 if number == 0 else rows)
        pq.write_table(part, path, compression=None, use_dictionary=False)
        column = pq.read_metadata(path).row_group(0).column(4)
        content = bytearray(path.read_bytes())
        content[column.data_page_offset : column.data_page_offset + 64] = b"\xff" * 64
        path.write_bytes(content)
    document = {
        "input": {"path": str(tmp_path / "people")},
        "attributes": dict.fromkeys(["job", "town", "age", "poison"], "quasi_identifier")
        | {"ill": "sensitive"},
        "selection": {
            "target": "ill",
            "candidates": ["job", "town", "age"],
            "mechanism": "tables",
            "count": 1,
            "epsilon": 1,
            "domains": {
                "ill": {"values": ["no", "yes"]},
                "job": {"values": ["a", "b"]},
                "town": {"values": ["near", "far"]},
                "age": {"bins": [30, 40.5]},
            },
            "output": str(tmp_path / "out"),
        },
        "ledger": {"path": str(tmp_path / "ledger"), "dataset": "people", "limit": 9},
    }
    settings = parse_selection(document)
    with caplog.at_level(logging.DEBUG, logger="anonspark"):
        opened, wanted = open_query(engine, settings)
        select(engine, settings, run_id="one")
    markers = settings.configuration.input.missing_markers
    given = (wanted.candidates, wanted.target, markers)
    assert isinstance(opened.select(["job", "age"]).content, PythonStage)
    local = LocalEngine().wrap(table)
    for key in (None, Person("age", 2, 7)):
        candidates = wanted.candidates[:2] if key else wanted.candidates
        for one, other in zip(
            count_tables(opened, candidates, *given[1:], drop_missing=False, person=key),
            count_tables(local, candidates, *given[1:], drop_missing=False, person=key),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other)
    store = engine.session._jsc.sc().statusStore()
    jobs = store.jobsList(None)
    described = " ".join(
        f"{jobs.apply(i).name()} {jobs.apply(i).description()}" for i in range(jobs.size())
    )
    files = contents(tmp_path / "out") | contents(tmp_path / "ledger")
    told = "".join(own.decode("latin-1") for own in files.values() if own is not None)
    # Digits of hashes may be any.
    told = re.sub(r"[0-9a-f]{32,}", "", told)
    for secret in (str(planted), f"{planted:,}", str(rows), f"{rows:,}", value):
        assert secret not in told + caplog.text + described


def test_a_person_of_a_dataframe(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(200).selectExpr(
        "id % 50 AS who", "id % 4 AS job", "CASE WHEN id % 4 > 1 THEN 'yes' ELSE 'no' END AS ill"
    )
    config = {
        "attributes": {"who": "identifier", "job": "quasi_identifier", "ill": "sensitive"},
        "selection": {
            "target": "ill",
            "person": "who",
            "rows_per_person": 2,
            "count": 1,
            "epsilon": 100,
            "mechanism": "tables",
            "domains": {"ill": {"values": ["no", "yes"]}, "job": {"values": ["0", "1", "2", "3"]}},
            "output": str(tmp_path / "out"),
        },
        "execution": {"seed": 6834927109572938475},
        "ledger": {"path": str(tmp_path / "ledger"), "dataset": "people", "limit": 100},
    }
    assert anonspark.select(frame, config).attributes == ["job"]
    rows = pq.read_table(tmp_path / "out" / "tables").to_pylist()
    assert sum(row["records"] for row in rows) == 100


def test_lines_that_are_no_record_are_no_error(engine: SparkEngine, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    document = {
        "input": {"path": str(path), "options": {"header": True, "mode": "FAILFAST"}},
        "attributes": {"job": "quasi_identifier", "ill": "sensitive"},
        "selection": {
            "target": "ill",
            "count": 1,
            "epsilon": 1,
            "domains": {"ill": {"values": ["no", "yes"]}, "job": {"values": ["a", "b"]}},
            "output": str(tmp_path / "out"),
        },
        "ledger": {"path": str(tmp_path / "ledger"), "dataset": "people", "limit": 1},
    }
    settings = parse_selection(document)
    for more in ("", 'b,"no\n', "b\n", "b,no,x\n", '"b\nc",no\n'):
        path.write_text("job,ill\n" + "a,yes\n" * 30 + more)
        for own in (engine, LocalEngine()):
            table, wanted = open_query(own, settings)
            (found,) = count_tables(table, wanted.candidates, wanted.target, [], drop_missing=False)
            assert found.sum() - found[0, 1] <= 1, more
            assert found[0, 1] == 30, more
