"""Unions, pairs, plans and counts of selections on Spark are those of the local engine."""

from __future__ import annotations

import json
import logging
import random
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from helpers import contents, write_people_of_towns
from holders import anonymize, write_coding
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from recipients import plan_about, with_ledger

import anonspark
from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.python_stage import PythonStage
from anonspark.engine.spark.table import frame_of
from anonspark.layers.publish import file_assignment
from anonspark.pipeline.run import run
from anonspark.progress import Progress
from anonspark.sharing.holders.union import unite
from anonspark.sharing.ledger.chain import Key
from anonspark.sharing.ledger.check import check_ledger, demand_of, required_coalitions
from anonspark.sharing.pairs.releases import Attack, audit_releases
from anonspark.sharing.recipients.distribute import distribute
from anonspark.sharing.recipients.plan import parse_plan
from anonspark.sharing.recipients.source import OpenFrozen, read_source
from anonspark.sharing.selection.counting import Person, count_tables
from anonspark.sharing.selection.domains import Domain
from anonspark.sharing.selection.request import open_query
from anonspark.sharing.selection.selecting import select
from anonspark.sharing.selection.settings import parse_selection
from anonspark.verification.audit import audit_release

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
    roles = dict.fromkeys(("age", "zone"), "quasi_identifier")
    # Several blocks, so that atoms are merged by a tree that is grown on the cluster.
    execution = {"seed": 2**40, "task_rows": 150}
    return plan_about(
        folder / "people.parquet",
        {"person": "identifier", **roles, "illness": "sensitive"},
        {
            "labour": {"columns": ["age", "illness"], "where": {"zone": {"min": 10}}},
            "press": {"columns": ["age", "zone"]},
        },
        {"model": {"name": "smondrian"}, "execution": execution},
    )


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
@pytest.mark.usefixtures("settings_come_back")
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
    given = anonspark.distribute(
        frame, plans["spark"], staging=(tmp_path / "work").as_uri(), run_id="first"
    )
    assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
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


def release(folder: Path, name: str, attributes: dict[str, Any], **sections: Any) -> str:
    document = {
        "input": {"path": str(folder / "input.parquet")},
        "attributes": {**attributes, "disease": "sensitive"},
        "privacy": {"k": 3},
        "output": {"path": str(folder / name)},
        **sections,
    }
    run(LocalEngine(), parse_configuration(document))
    return str(folder / name)


def test_both_engines_find_the_same(engine: SparkEngine, tmp_path: Path) -> None:
    write_people_of_towns(tmp_path, 60)
    towns = {"role": "quasi_identifier", "hierarchy": str(tmp_path / "towns.csv")}
    both: dict[str, Any] = {"age": "quasi_identifier", "town": towns}
    paths = [
        release(tmp_path, "first", both),
        release(tmp_path, "second", {"age": "quasi_identifier"}, missing="category"),
    ]
    attack = Attack("same people", original=str(tmp_path / "input.parquet"))
    found = [audit_releases(one, paths, attack=attack) for one in (LocalEngine(), engine)]
    assert found[0].as_dict() == found[1].as_dict()
    figures = found[0].pairs[0].figures
    assert figures.proven > 0
    assert figures.breaches > 0


DOMAINS = (Domain.of_values("job", ["a", "b"]), Domain.of_edges("age", [30, 40.5]))
TARGET = Domain.of_values("ill", ["no", "yes"])


def selection_at(
    folder: Path, roles: dict[str, str], domains: dict[str, Any], **selection: Any
) -> dict[str, Any]:
    """Return a configuration that selects for the illness, with a ledger beside."""
    return {
        "attributes": roles | {"ill": "sensitive"},
        "selection": {
            "target": "ill",
            "count": 1,
            "epsilon": 1,
            "domains": {"ill": {"values": ["no", "yes"]}, **domains},
            "output": str(folder / "out"),
            **selection,
        },
        "ledger": {"path": str(folder / "ledger"), "dataset": "people", "limit": 100},
    }


def people_of_selection() -> pa.Table:
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
    expected = count_tables(
        local.wrap(people_of_selection()), DOMAINS, TARGET, ["?"], drop_missing=drop
    )
    assert expected[0].sum() > 200
    frame = frame_of(engine.table(people_of_selection()))
    for partitions in (1, 7):
        table = engine.wrap(frame.repartition(partitions))
        found = count_tables(table, DOMAINS, TARGET, ["?"], drop_missing=drop)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_drawn_bins_are_those_of_one_process(engine: SparkEngine, tmp_path: Path) -> None:
    drawn = []
    for name, own in (("spark", engine), ("local", LocalEngine())):
        bins = {"from": 0, "to": 80, "width": 0.5, "quantiles": 5, "epsilon": "0.5"}
        domains = {"job": {"values": ["a", "b"]}, "age": {"bins": bins}}
        roles = dict.fromkeys(["job", "age"], "quasi_identifier")
        (tmp_path / name).mkdir()
        document = selection_at(tmp_path / name, roles, domains, mechanism="tables")
        document["input"] = {"path": str(tmp_path / "none.parquet")}
        below = random.Random(5).randrange  # noqa: S311 - the same chance for both
        table = own.wrap(people_of_selection())
        if own is engine:
            table = own.wrap(frame_of(engine.table(people_of_selection())).repartition(3))
        selection = select(own, parse_selection(document), run_id="one", below=below, table=table)
        tables = pq.read_table(tmp_path / name / "out" / "tables").to_pylist()
        drawn.append((selection.content["bins"], selection.attributes, tables))
    assert drawn[0] == drawn[1]
    assert len(drawn[0][0]["age"]) == 4


def test_files_of_which_tasks_read_some_columns(
    engine: SparkEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
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
    roles = dict.fromkeys(["job", "town", "age", "poison"], "quasi_identifier")
    domains = {
        "job": {"values": ["a", "b"]},
        "town": {"values": ["near", "far"]},
        "age": {"bins": [30, 40.5]},
    }
    candidates = ["job", "town", "age"]
    document = selection_at(tmp_path, roles, domains, candidates=candidates, mechanism="tables")
    document["input"] = {"path": str(tmp_path / "people")}
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
    roles = {"who": "identifier", "job": "quasi_identifier"}
    person = {"person": "who", "rows_per_person": 2, "epsilon": 100, "mechanism": "tables"}
    domains = {"job": {"values": ["0", "1", "2", "3"]}}
    config = selection_at(tmp_path, roles, domains, **person)
    config["execution"] = {"seed": 6834927109572938475}
    assert anonspark.select(frame, config).attributes == ["job"]
    rows = pq.read_table(tmp_path / "out" / "tables").to_pylist()
    assert sum(row["records"] for row in rows) == 100


def test_lines_that_are_no_record_are_no_error(engine: SparkEngine, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    domains = {"job": {"values": ["a", "b"]}}
    document = selection_at(tmp_path, {"job": "quasi_identifier"}, domains)
    document["input"] = {"path": str(path), "options": {"header": True, "mode": "FAILFAST"}}
    settings = parse_selection(document)
    for more in ("", 'b,"no\n', "b\n", "b,no,x\n", '"b\nc",no\n'):
        path.write_text("job,ill\n" + "a,yes\n" * 30 + more)
        for own in (engine, LocalEngine()):
            table, wanted = open_query(own, settings)
            (found,) = count_tables(table, wanted.candidates, wanted.target, [], drop_missing=False)
            assert found.sum() - found[0, 1] <= 1, more
            assert found[0, 1] == 30, more
