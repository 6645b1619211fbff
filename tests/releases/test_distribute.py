"""Plans carried out: what is published, written down, refused, and left by killed processes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import cases
from commands import Cli
from recipients import carry_out, plan_about, with_ledger

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError, DataError, GuaranteeError, PublishingError
from anonspark.pipeline.run import StagedRelease
from anonspark.pipeline.run import run as run_pipeline
from anonspark.reporting.build_report import report_release
from anonspark.reporting.nights import read_nights
from anonspark.sharing.ledger.check import check_ledger, demand_of, required_coalitions
from anonspark.sharing.recipients.card import preview_plan
from anonspark.sharing.recipients.plan import parse_plan
from anonspark.utility.evaluation import open_evaluation
from anonspark.verification.audit import audit_release

ROWS = 600


def people(rows: int = ROWS, seed: int = 0) -> pa.Table:
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "person": pa.array([f"p{number:05}" for number in range(rows)]),
            "age": pa.array(draw.integers(18, 90, rows)),
            "zone": pa.array(draw.integers(0, 30, rows)),
            "sex": pa.array(draw.choice(["f", "m"], rows)),
            "illness": pa.array(draw.choice(["flu", "cold", "gout", "none"], rows)),
            "year": pa.array(draw.integers(2020, 2026, rows)),
        }
    )


def plan_of(folder: Path, table: pa.Table | None = None, **sections: Any) -> dict[str, Any]:
    source = folder / "people.parquet"
    pq.write_table(people() if table is None else table, source)
    roles = {"person": "identifier"} | dict.fromkeys(("age", "zone", "sex"), "quasi_identifier")
    recipients = {
        "labour": {
            "purpose": "work",
            "columns": ["age", "sex", "illness"],
            "where": {"year": {"min": 2022}},
        },
        "press": {"public": True, "columns": ["zone", "sex"]},
    }
    roles |= {"illness": "sensitive", "year": "insensitive"}
    sections = {"output": str(folder / "releases")} | sections
    return plan_about(source, roles, recipients, **sections)


def published(folder: Path, name: str) -> Mapping[str, Any]:
    manifest = json.loads((folder / "releases" / name / "manifest.json").read_text())
    return dict(manifest)


def left_in(folder: Path) -> list[str]:
    """Return directories of staging that are there still."""
    return [str(path) for path in folder.rglob(".*anonspark-*") if path.is_dir()]


def test_releases_and_their_ledger(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    with_ledger(plan, tmp_path)
    given = carry_out(plan, "first")
    assert set(given.releases) == {"labour", "press"}
    for name in ("labour", "press"):
        assert audit_release(LocalEngine(), str(tmp_path / "releases" / name)).require().holds
    ledger = with_ledger(plan, tmp_path)
    types = [one.type for one in ledger.events.events]
    assert types == ["created", "prepared", "base", *["planned"] * 2, *["published"] * 2]
    labour = ledger.releases["labour-first"].content
    assert labour["where"] == {"year": {"min": 2022}}
    assert labour["rows"] + labour["rows_withheld"] == labour["rows_requested"]
    assert left_in(tmp_path) == []
    found = check_ledger(
        LocalEngine(), ledger, required_coalitions(ledger), demand_of(ledger), with_files=True
    )
    assert found.problems == []
    assert found.coalitions[0]["holds"]


@pytest.mark.parametrize("ledger", [False, True])
@cases(__file__, "where")
def test_the_original_of_a_recipient_is_what_its_conditions_select(
    tmp_path: Path, where: dict[str, Any], ledger: bool
) -> None:
    moments = [datetime(2026, 1, 1) + timedelta(hours=7 * row) for row in range(ROWS)]
    days = [None if row % 9 == 0 else f"{one:%Y-%m-%d}" for row, one in enumerate(moments)]
    table = people().append_column("seen", pa.array(moments)).append_column("day", pa.array(days))
    table = table.append_column("code", pa.array([str(row % 7) for row in range(ROWS)]))
    plan = plan_of(tmp_path, table)
    attributes = plan["base"]["attributes"]
    attributes |= {"seen": {"role": "insensitive"}}
    attributes |= {"day": {"role": "quasi_identifier", "type": "date"}}
    attributes |= {"code": {"role": "quasi_identifier", "type": "number"}}
    plan["recipients"]["labour"]["where"] = where
    plan["recipients"]["press"]["columns"] += ["day", "code"]
    if ledger:
        with_ledger(plan, tmp_path)
    carry_out(plan)
    engine, original = LocalEngine(), plan["base"]["input"]["path"]
    for name in ("press", "labour"):
        release = str(tmp_path / "releases" / name)
        found = audit_release(engine, release, original=original).require()
        assert found.truthfulness is not None
        assert found.truthfulness.originals == found.published.rows
        assert report_release(engine, release, original, str(tmp_path / f"{name}.html")).holds
    assert open_evaluation(engine, release, original).records == found.published.rows < ROWS
    lacking = tmp_path / "lacking.parquet"
    pq.write_table(table.drop_columns(list(where)[:1]), lacking)
    with pytest.raises(DataError, match=f"original: .*'{next(iter(where))}'"):
        audit_release(engine, release, original=str(lacking))


def test_withheld_records_are_no_false_alarm(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    with_ledger(plan, tmp_path)
    carry_out(plan)
    newcomers = people(ROWS + 3, seed=1)[-3:]
    plan = plan_of(tmp_path, pa.concat_tables([people(), newcomers]))
    with_ledger(plan, tmp_path)
    plan["output"] = str(tmp_path / "second")
    carry_out(plan)
    release = str(tmp_path / "second" / "press")
    found = audit_release(LocalEngine(), release, original=plan["base"]["input"]["path"]).require()
    assert found.published.rows == ROWS
    (warning,) = [one for one in found.warnings if one.startswith("truthfulness")]
    assert "3 of 603 originals that the recipient asked for" in warning


def test_tables_of_all_runs_are_those_of_each_recipient(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    for name, request in plan["recipients"].items():
        request["metrics"] = {"job": name, "append_to": str(tmp_path / "history" / name)}
    carry_out(plan, "first")
    with pytest.raises(GuaranteeError):
        carry_out(plan | {"strategy": "independent", "output": str(tmp_path / "again")}, "second")
    nights = read_nights(LocalEngine(), str(tmp_path / "history"))
    assert sorted((night.run_id, night.job) for night in nights) == [
        ("first", "labour"), ("first", "press"),
    ]  # fmt: skip
    for key in ("job", "append_to"):
        own = plan["recipients"]["labour"]["metrics"]
        plan["recipients"]["press"]["metrics"] = {"job": "x", "append_to": "x", key: own[key]}
        with pytest.raises(ConfigurationError, match=r"recipients\.labour\.metrics: .* press"):
            parse_plan(plan)


def test_nothing_about_other_recipients_is_published(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    with_ledger(plan, tmp_path)
    carry_out(plan, "first")
    for own, other in (("labour", "press"), ("press", "labour")):
        told = (tmp_path / "releases" / own / "manifest.json").read_text()
        assert f'"{other}"' not in told
        assert "ledger" not in told
        assert "frozen" not in told
        assert "person" not in json.loads(told)["configuration"]["attributes"]
    manifest = published(tmp_path, "press")
    assert "year" not in json.dumps(manifest)
    assert manifest["recipient"]["name"] == "press"
    assert published(tmp_path, "labour")["recipient"]["where"] == {"year": {"min": 2022}}


def test_independent_releases_are_those_of_separate_runs(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, strategy="independent", collusion={"k": 1})
    plan["base"]["privacy"]["allow_k_1"] = True
    plan["base"]["model"] = {"name": "su-mondrian", "rho": 2}
    given = carry_out(plan)
    table = people()
    chosen = table.filter(pa.compute.greater_equal(table["year"], 2022))
    pq.write_table(chosen, tmp_path / "labour.parquet")
    for name, path in (("labour", "labour.parquet"), ("press", "people.parquet")):
        base = plan["base"]
        columns = plan["recipients"][name]["columns"]
        attributes = {one: base["attributes"][one] for one in base["attributes"] if one in columns}
        document = base | {
            "attributes": attributes,
            "input": {"path": str(tmp_path / path)},
            "output": {"path": str(tmp_path / "alone" / name)},
        }
        alone = run_pipeline(LocalEngine(), parse_configuration(document)).summary
        together = given.releases[name].summary
        assert together["output_fingerprint"] == alone["output_fingerprint"]
        assert together["gcp"] == alone["gcp"]


def test_a_ledger_changes_no_release(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    without = carry_out(plan)
    plan["output"] = str(tmp_path / "again")
    with_ledger(plan, tmp_path)
    beside = carry_out(plan)
    for name, release in without.releases.items():
        own = release.summary["output_fingerprint"]
        assert beside.releases[name].summary["output_fingerprint"] == own


@pytest.mark.parametrize("strategy", ["nested", "independent"])
def test_the_order_of_rows_changes_nothing(tmp_path: Path, strategy: str) -> None:
    found = []
    for number, order in enumerate((np.arange(ROWS), np.random.default_rng(1).permutation(ROWS))):
        folder = tmp_path / str(number)
        folder.mkdir()
        plan = plan_of(
            folder, people().take(pa.array(order)), strategy=strategy, collusion={"k": 1}
        )
        plan["base"]["privacy"]["allow_k_1"] = True
        plan["base"]["execution"]["task_rows"] = [1_000_000, 100][number]
        given = carry_out(plan)
        found.append({n: one.summary["output_fingerprint"] for n, one in given.releases.items()})
    assert found[0] == found[1]


def test_rows_requested_are_told_where_many_are_withheld(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    carry_out(plan)
    summary = published(tmp_path, "press")["summary"]
    assert (summary["rows_requested"], summary["rows_withheld"]) == (ROWS, 0)


def test_refused_plans_publish_nothing(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, strategy="independent")
    with_ledger(plan, tmp_path)
    with pytest.raises(GuaranteeError, match=r"joint check: 542 of 600 persons"):
        carry_out(plan, "first")
    assert not (tmp_path / "releases").exists()
    assert left_in(tmp_path) == []
    ledger = with_ledger(plan, tmp_path)
    assert ledger.events.events[-1].type == "refused"
    assert ledger.releases == {}


def test_data_that_tell_nobody_apart(tmp_path: Path) -> None:
    table = people()
    twice = pa.concat_tables([table, table.slice(0, 3)])
    with pytest.raises(DataError, match="3 people have several records"):
        carry_out(plan_of(tmp_path, twice))
    nobody = table.set_column(0, "person", pa.array([None, *table["person"].to_pylist()[1:]]))
    with pytest.raises(DataError, match="1 records have no person"):
        carry_out(plan_of(tmp_path, nobody))
    with pytest.raises(DataError, match=r"attributes\.person: the input has no such column"):
        carry_out(plan_of(tmp_path, table.drop_columns(["person"])))


def test_nothing_left_of_a_request(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    plan["recipients"]["labour"]["where"] = {"year": {"min": 2030}}
    with pytest.raises(DataError, match=r"recipients\.labour: "):
        carry_out(plan)
    plan["recipients"]["labour"]["where"] = {"year": "2022"}
    with pytest.raises(DataError, match=r"recipients\.labour\.where\.year: found the text '2022'"):
        carry_out(plan)
    assert left_in(tmp_path) == []


def test_places_lie_apart(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    plan["recipients"]["press"]["output"] = {"path": str(tmp_path / "releases" / "labour" / "x")}
    with pytest.raises(ConfigurationError, match="found one inside the other"):
        carry_out(plan)
    plan["recipients"]["press"]["output"] = {"path": str(tmp_path / "releases" / "labour")}
    with pytest.raises(ConfigurationError, match="found the same place"):
        carry_out(plan)


def test_the_same_people_in_ledger_and_plan(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    with_ledger(plan, tmp_path, subject=("number",))
    with pytest.raises(ConfigurationError, match="The ledger has number"):
        carry_out(plan)


def test_another_type_of_subject(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    with_ledger(plan, tmp_path)
    carry_out(plan, "first")
    numbers = people().set_column(0, "person", pa.array(range(ROWS)))
    again = plan_of(tmp_path, numbers)
    again["output"] = str(tmp_path / "second")
    with_ledger(again, tmp_path)
    with pytest.raises(DataError, match="In the ledger they are string"):
        carry_out(again, "second")


class KilledError(BaseException):
    """Stands for the end of a process."""


def test_an_unfinished_run_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    plan = plan_of(tmp_path)
    with_ledger(plan, tmp_path)

    def killed(*_: Any) -> Any:
        raise KilledError

    monkeypatch.setattr(StagedRelease, "publish", killed)
    with pytest.raises(KilledError):
        carry_out(plan, "first", resume=True)
    monkeypatch.undo()
    with pytest.raises(PublishingError, match="Go on with distribute --resume --run-id first"):
        carry_out(plan, "second")
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps(plan))
    cli.ends(0, "clean", path)
    states = {one.state for one in with_ledger(plan, tmp_path).releases.values()}
    assert states == {"failed"}
    carry_out(plan, "second")
    assert left_in(tmp_path) == []


def test_a_run_that_is_done_is_not_done_again(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    with_ledger(plan, tmp_path)
    first = carry_out(plan, "first")
    events = len(with_ledger(plan, tmp_path).events.events)
    again = carry_out(plan, "first")
    assert len(with_ledger(plan, tmp_path).events.events) == events
    for name, release in first.releases.items():
        own = again.releases[name].summary
        assert own["output_fingerprint"] == release.summary["output_fingerprint"]


def test_only_some_recipients(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps(plan_of(tmp_path)))
    done = cli.ends(0, "distribute", path, "--only", "press", "--json")
    assert list(json.loads(done.out)["releases"]) == ["press"]
    assert not (tmp_path / "releases" / "labour").exists()


@pytest.mark.parametrize("strategy", ["nested", "independent"])
def test_the_other_strategy_is_measured(tmp_path: Path, cli: Cli, strategy: str) -> None:
    plan = plan_of(tmp_path, strategy=strategy, evaluate={"compare_strategies": True})
    plan["collusion"] = {"k": 5 if strategy == "nested" else 1}
    plan["base"]["privacy"]["allow_k_1"] = True
    plan["base"]["model"] = {"name": "smondrian"}
    with_ledger(plan, tmp_path)
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps(plan))
    done = cli.ends(0, "distribute", path, "--json")
    told = json.loads(done.out)
    other = {"nested": "independent", "independent": "nested"}[strategy]
    plan |= {"strategy": other, "output": str(tmp_path / "other"), "evaluate": {}}
    plan["collusion"] = {"k": 5 if other == "nested" else 1}
    del plan["ledger"]
    expected = {name: one.summary["gcp"] for name, one in carry_out(plan).releases.items()}
    assert told["other_strategy_gcp"] == pytest.approx(expected)
    released = with_ledger(plan, tmp_path).releases.values()
    assert {one.recipient: one.content["other_strategy_gcp"] for one in released} == expected
    assert left_in(tmp_path) == []


def test_a_look_at_a_plan(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    look = preview_plan(LocalEngine(), parse_plan(plan))
    assert look.rows == ROWS
    assert look.coalitions == [("labour", "press")]
    assert [one["recipient"] for one in look.requests] == ["labour", "press"]
    assert not (tmp_path / "releases").exists()
    assert left_in(tmp_path) == []


def test_commands_of_the_ledger(tmp_path: Path, cli: Cli) -> None:
    plan = plan_of(tmp_path)
    ledger, key = str(tmp_path / "ledger"), str(tmp_path / "key")
    plan["ledger"] = {"path": ledger, "key_file": key}
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps(plan))
    cli.ends(0, "ledger", "init", ledger, "--key-file", key, "--subject", "person")
    cli.ends(0, "distribute", path, "--run-id", "first")
    shown = json.loads(cli("ledger", "show", ledger, "--json").out)
    assert [one["release"] for one in shown] == ["labour-first", "press-first"]
    cli.ends(0, "ledger", "check", ledger, "--files")
    cli.ends(4, "ledger", "check", ledger, "--k", "500")
    arguments = ("--reason", "destroyed", "--by", "the officer")
    cli.ends(0, "ledger", "withdraw", ledger, "labour-first", *arguments)
    listed = cli("ledger", "show", ledger).out.split()
    assert "withdrawn by the officer: destroyed" in " ".join(listed)
    cli.ends(2, "ledger", "withdraw", ledger, "labour-first", *arguments)
    assert "No process holds" in cli("ledger", "unlock", ledger).out
