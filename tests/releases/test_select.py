"""``anonspark select``: what is written, what it costs, and what nobody is told."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from helpers import command, contents, write_table

import anonspark
from anonspark.config import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import DataError
from anonspark.selection.selecting import select
from anonspark.selection.settings import parse_selection

# So many records, and so many of one value: numbers that occur nowhere else.
ROWS, PLANTED_RECORDS = 73_129, 51_847
PLANTED_VALUE = "Okapi in no domain"


def people(rows: int = ROWS) -> pa.Table:
    draw = np.random.default_rng(1)
    place = draw.integers(0, 4, rows)
    ill = draw.random(rows) < 0.1 + 0.25 * place
    job = np.array(["a", "b", "c", "d"], object)[place]
    town = np.full(rows, "far", object)
    town[: min(rows, PLANTED_RECORDS)] = "near"
    job[0] = PLANTED_VALUE
    return pa.table(
        {
            "name": [f"N{number}" for number in range(rows)],
            "job": job,
            "town": town,
            "age": draw.integers(20, 60, rows),
            "vaccinated": draw.random(rows) < 0.5,
            "ill": np.where(ill, "yes", "no"),
        }
    )


def document_at(folder: Path, rows: int = ROWS, **selection: Any) -> dict[str, Any]:
    path = write_table(folder / "people.parquet", people(rows))
    return {
        "input": {"path": str(path)},
        "attributes": {
            "name": "identifier",
            "job": "quasi_identifier",
            "town": {"role": "quasi_identifier", "order": ["near", "far"]},
            "age": "quasi_identifier",
            "vaccinated": "insensitive",
            "ill": "sensitive",
        },
        "selection": {
            "target": "ill",
            "count": 2,
            "epsilon": 1,
            "domains": {
                "ill": {"values": ["no", "yes"]},
                "job": {"values": ["a", "b", "c", "d"]},
                "age": {"bins": {"from": 20, "to": 60, "width": 10}},
            },
            "output": str(folder / "selection"),
        }
        | selection,
        "ledger": {"path": str(folder / "ledger"), "dataset": "people", "limit": "2.5"},
    }


def written(folder: Path, document: dict[str, Any]) -> Path:
    path = folder / "configuration.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


@pytest.mark.parametrize("mechanism", ["top", "tables"])
def test_the_best_are_chosen_and_nothing_exact_is_told(
    tmp_path: Path,
    mechanism: str,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = written(tmp_path, document_at(tmp_path, mechanism=mechanism))
    with caplog.at_level(logging.DEBUG):
        shown = command(capsys, "select", path, "--run-id", "one")
    assert shown.code == 0, shown.err
    told = json.loads((tmp_path / "selection" / "selection.json").read_text())
    assert told["attributes"][0] == "job"
    assert len(told["attributes"]) == 2
    assert "1-differentially private for one record added or removed; entry 1" in shown.out
    assert yaml.safe_load((tmp_path / "selection" / "attributes.yaml").read_text()) == {
        "attributes": {
            name: {"vaccinated": "insensitive"}.get(name, "quasi_identifier")
            for name in told["attributes"]
        }
    }
    files = contents(tmp_path / "selection") | contents(tmp_path / "ledger")
    everything = shown.out + shown.err + caplog.text
    everything += "".join(own.decode("latin-1") for own in files.values() if own is not None)
    for planted in (str(ROWS), f"{ROWS:,}", str(PLANTED_RECORDS), PLANTED_VALUE):
        assert planted not in everything
    tables = tmp_path / "selection" / "tables"
    assert tables.exists() == (mechanism == "tables")
    if mechanism == "tables":
        found = pq.read_table(tables).to_pylist()
        assert {row["attribute"] for row in found} == {"job", "town", "age", "vaccinated"}
        # All rows of the domains, those of other and missing values among them, for each class.
        assert len(found) == 2 * ((4 + 2) + (2 + 2) + (6 + 2) + (2 + 2))
        near = sum(row["records"] for row in found if row["value"] == "near")
        assert near != PLANTED_RECORDS
        assert abs(near - PLANTED_RECORDS) < 200


def test_tables_of_the_chosen(tmp_path: Path) -> None:
    settings = parse_selection(document_at(tmp_path, rows=4_000, tables_epsilon="0.5"))
    found = select(LocalEngine(), settings, run_id="one")
    assert found.told["epsilon"] == "3/2"
    rows = pq.read_table(tmp_path / "selection" / "tables").to_pylist()
    assert {row["attribute"] for row in rows} == set(found.attributes)
    # Two tables, half of one.
    assert found.told["scale"] == "4"


def test_two_runs_draw_apart(tmp_path: Path) -> None:
    noisy = []
    for name in ("one", "two"):
        document = document_at(tmp_path, rows=500, mechanism="tables", output=str(tmp_path / name))
        select(LocalEngine(), parse_selection(document), run_id=name)
        noisy.append(pq.read_table(tmp_path / name / "tables")["records"].to_pylist())
    assert noisy[0] != noisy[1]


def test_what_is_spent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, document_at(tmp_path, rows=500))
    words = ("select", path, "--run-id", "one")
    assert command(capsys, *words).code == 0
    before = contents(tmp_path / "selection")
    # The same run again is done already.
    assert command(capsys, *words).code == 0
    assert contents(tmp_path / "selection") == before
    refused = command(capsys, "select", path, "--run-id", "two")
    assert refused.code == 2
    assert "nothing was charged" in refused.err
    set_output = f"selection.output={tmp_path / 'other'}"
    assert command(capsys, "select", path, "--set", set_output).code == 0
    set_output = f"selection.output={tmp_path / 'third'}"
    refused = command(capsys, "select", path, "--set", set_output)
    assert refused.code == 4
    assert "2 of 5/2 are spent, and 1 more would exceed the limit" in refused.err
    assert not (tmp_path / "third").exists()
    shown = command(capsys, "ledger", "budget", tmp_path / "ledger", "--dataset", "people")
    assert shown.code == 0
    assert "2 of 2.5 spent" in shown.out
    told = json.loads(
        command(
            capsys, "ledger", "budget", tmp_path / "ledger", "--dataset", "people", "--json"
        ).out
    )
    assert [entry["number"] for entry in told["entries"]] == [1, 2]
    assert told["left"] == "1/2"


def test_a_run_that_left_nothing_is_charged_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = parse_selection(document_at(tmp_path, rows=200))
    found = select(LocalEngine(), settings, run_id="one")
    for path in Path(found.output.removeprefix("file:")).iterdir():
        path.unlink()
    Path(found.output.removeprefix("file:")).rmdir()
    again = select(LocalEngine(), settings, run_id="one")
    assert again.told["ledger"]["number"] == 2
    assert "was charged before (entry 1 of the ledger)" in caplog.text


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_a_table_in_memory(tmp_path: Path, kind: str) -> None:
    document = document_at(tmp_path, rows=20_000)
    del document["input"]
    table = people(20_000)
    given = {"arrow": table, "pandas": table.to_pandas(), "polars": pl.from_arrow(table)}[kind]
    found = anonspark.select(given, document, run_id="one")
    assert found.attributes[0] == "job"
    assert found.told["ledger"]["number"] == 1


def test_columns_that_have_no_rows(tmp_path: Path) -> None:
    document = document_at(tmp_path, rows=10)
    table = people(10).append_column("list", pa.array([[1]] * 10))
    write_table(tmp_path / "people.parquet", table)
    document["attributes"]["list"] = "insensitive"
    with pytest.raises(DataError, match="column 'list' has type"):
        select(LocalEngine(), parse_selection(document))


def test_a_look_ahead_reads_no_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = document_at(tmp_path, rows=10, epsilon="0.5", neighbors="replace")
    path = written(tmp_path, document)
    shown = command(capsys, "select", path, "--dry-run", "--json")
    assert shown.code == 0, shown.err
    told = json.loads(shown.out)
    assert told["candidates"] == ["job", "town", "age", "vaccinated"]
    assert (told["epsilon"], told["epsilon_of_a_record"], told["left"]) == ("1/2", "1/4", None)
    assert told["resolution"] == pytest.approx(2 * np.log(10) * 2 / 0.25)
    assert not (tmp_path / "ledger").exists()
    assert command(capsys, "select", path, "--dry-run").code == 0


def test_a_table_of_nobody_looks_like_any_other(tmp_path: Path) -> None:
    forms = []
    for rows in (0, 1_000):
        folder = tmp_path / str(rows)
        folder.mkdir()
        document = document_at(folder, mechanism="tables")
        table = people(1_000).slice(0, rows)
        write_table(folder / "people.parquet", table)
        found = select(LocalEngine(), parse_selection(document), run_id="one")
        tables = pq.read_table(folder / "selection" / "tables").drop_columns(["records"])
        forms.append((sorted(found.told), tables.to_pylist(), len(found.attributes)))
    assert forms[0] == forms[1]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"epsilon": 0}, "selection.epsilon: found"),
        ({"epsilon": -1}, "selection.epsilon: found"),
        ({"epsilon": 101}, "selection.epsilon: found"),
        ({"epsilon": "0.0000001"}, "selection.epsilon: found"),
        ({"epsilon": "much"}, "selection.epsilon: found"),
        ({"count": 0}, "selection.count"),
        ({"count": 5}, "selection.count: found 5, but there are 4 candidates"),
        ({"candidates": ["job", "ill"]}, "selection.candidates: found the target among them"),
        ({"candidates": ["jobs"]}, "selection.candidates: 'jobs' are no attributes"),
        ({"target": "name"}, "selection.target: 'name' is an identifier"),
        ({"score": "information_gain"}, "selection.records_at_most: missing"),
        ({"mechanism": "tables", "tables_epsilon": 1}, "selection.tables_epsilon"),
        ({"domains": {"ill": {"values": ["no", "no"]}}}, "selection.domains.ill.values"),
        ({"domains": {"age": {"bins": [3, 2]}}}, "selection.domains.age.bins"),
        ({"domains": {"age": {"bins": [1], "values": ["a"]}}}, "selection.domains.age"),
    ],
)
def test_what_is_wrong_in_the_file(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, Any],
    expected: str,
) -> None:
    shown = command(capsys, "select", written(tmp_path, document_at(tmp_path, 10, **changes)))
    assert shown.code == 2
    assert expected in shown.err
    assert not (tmp_path / "ledger").exists()


def test_what_is_declared_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = document_at(tmp_path, 10)
    del document["selection"]["domains"]["job"]
    shown = command(capsys, "select", written(tmp_path, document))
    assert shown.code == 2
    assert "selection.domains.job: missing; the values of 'job' are declared nowhere" in shown.err
    document = document_at(tmp_path, 10)
    document["selection"]["domains"]["ill"] = {"values": ["yes"]}
    shown = command(capsys, "select", written(tmp_path, document))
    assert shown.code == 2
    assert "selection.target: found 1 declared class" in shown.err
    del document["ledger"]
    assert command(capsys, "select", written(tmp_path, document)).code == 2
    assert not (tmp_path / "ledger").exists()


def test_more_records_than_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changes = {"score": "information_gain", "records_at_most": 100}
    shown = command(capsys, "select", written(tmp_path, document_at(tmp_path, 500, **changes)))
    assert shown.code == 3
    assert "there are more than 100 records" in shown.err
    assert not (tmp_path / "ledger").exists()


def test_other_commands_pass_over_the_sections(tmp_path: Path) -> None:
    document = document_at(tmp_path, 10)
    document |= {"privacy": {"k": 2}, "output": {"path": str(tmp_path / "out")}}
    assert load_configuration(written(tmp_path, document)).privacy.k == 2
