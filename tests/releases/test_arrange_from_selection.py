"""``anonspark arrange --from``: orders of noisy tables, for which the data are not opened."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from helpers import command, document_file, write_table

from anonspark.config import parse_configuration
from anonspark.core.arrangement import learned_order
from anonspark.engine.local.engine import LocalEngine
from anonspark.release.noisy_tables import read_noisy_tables
from anonspark.utility.learned_hierarchies import arrange

ROWS = 3_000
JOBS = [f"job {letter}" for letter in "qwertyuiop"]
DECLARED = [*JOBS, "other", "unknown"]
PLANTED = "Quetzal the only one"


def people() -> pa.Table:
    draw = np.random.default_rng(5)
    place = draw.integers(0, len(JOBS), ROWS)
    job = np.array(JOBS, object)[place]
    job[:40] = PLANTED
    return pa.table(
        {
            "job": job,
            "town": draw.choice(["A", "B", "C"], ROWS),
            "age": draw.integers(20, 60, ROWS),
            "employed": draw.random(ROWS) < 0.5,
            "ill": np.where(draw.random(ROWS) < place / len(JOBS), "yes", "no"),
        }
    )


def document_at(folder: Path, **selection: Any) -> dict[str, Any]:
    return {
        "input": {"path": str(folder / "people.parquet")},
        "attributes": {
            "job": "quasi_identifier",
            "town": {"role": "quasi_identifier", "order": ["C", "A", "B"]},
            "age": "quasi_identifier",
            "employed": "quasi_identifier",
            "ill": "sensitive",
        },
        "privacy": {"k": 10},
        "model": {"name": "smondrian"},
        "output": {"path": str(folder / "release")},
        "execution": {"seed": 2**40 + 1},
        "selection": {
            "target": "ill",
            "count": 2,
            "mechanism": "tables",
            "epsilon": 8,
            "domains": {
                "ill": {"values": ["no", "yes", "never"]},
                "job": {"values": DECLARED},
                "age": {"bins": [30, 40, 50]},
            },
            "output": str(folder / "selection"),
        }
        | selection,
        "ledger": {"path": str(folder / "ledger"), "dataset": "people", "limit": 20},
    }


@pytest.fixture
def selected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return the configuration of a selection whose data are gone."""
    data = write_table(tmp_path / "people.parquet", people())
    path = document_file(tmp_path, document_at(tmp_path))
    shown = command(capsys, "select", path, "--no-progress")
    assert shown.code == 0, shown.err
    data.unlink()
    return path


def test_the_order_is_that_of_the_noisy_tables(
    selected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = sorted((tmp_path / "ledger").rglob("*"))
    words = ("arrange", selected, "--target", "ill", "--from", tmp_path / "selection")
    # No minimum changes it.
    shown = command(capsys, *words, "--out", tmp_path / "out", "--min-records", "2000")
    assert shown.code == 0, shown.err
    assert "without" in shown.out
    assert "fewer than" not in shown.out
    written_down = (tmp_path / "out" / "orders.yaml").read_text()
    assert "as private as those" in written_down
    orders = yaml.safe_load(written_down)["attributes"]
    # Of text, without an order; booleans have none, and bins are no values.
    assert set(orders) == {"job"}
    order = orders["job"]["order"]
    # Of the rows for other and missing values nothing, of a declared value of that name all.
    assert sorted(order) == sorted(DECLARED)
    assert PLANTED not in written_down + shown.out + shown.err
    cells = pa.parquet.read_table(tmp_path / "selection" / "tables").to_pylist()
    job = [one for one in cells if one["attribute"] == "job" and one["position"] < len(DECLARED)]
    assert any(one["records"] < 0 for one in cells)
    classes = ["no", "yes", "never"]
    counts = np.zeros((len(DECLARED), 3), np.int64)
    for one in job:
        place = one["position"], classes.index(one["class"])
        counts[place] = max(0, one["records"])
    kept = [t for t in range(3) if counts[:, t].any()]
    expected = learned_order(DECLARED, counts[:, kept], [classes[t] for t in kept], 1)
    assert order == [DECLARED[place] for place in expected]
    # Nothing was charged.
    assert sorted((tmp_path / "ledger").rglob("*")) == entries


def test_a_hierarchy(selected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("arrange", selected, "--target", "ill", "--from", tmp_path / "selection")
    words = (*words, "--as", "hierarchy", "--attribute", "town", "--attribute", "job", "--json")
    shown = command(capsys, *words, "--out", tmp_path / "out")
    assert shown.code == 0, shown.err
    told = json.loads(shown.out)
    assert told["min_records"] is None
    assert [one["name"] for one in told["attributes"]] == ["town", "job"]
    # None is joined for being rare: 12 values, then half of them, and so on.
    assert told["attributes"][1]["groups"] == [6, 3, 2]
    with (tmp_path / "out" / "job.csv").open(newline="") as lines:
        rows = list(csv.reader(lines, delimiter=";"))
    assert {row[0] for row in rows} == set(DECLARED)
    assert {row[-1] for row in rows} == {"*"}


def test_the_same_order_as_of_the_data_where_there_is_hardly_any_noise(tmp_path: Path) -> None:
    document = document_at(tmp_path)
    table = people().filter(pa.compute.not_equal(people()["job"], PLANTED))
    write_table(tmp_path / "people.parquet", table)
    path = document_file(
        tmp_path, document | {"selection": document["selection"] | {"epsilon": 100}}
    )
    assert command_quietly("select", path) == 0
    plain = {name: own for name, own in document.items() if name not in ("selection", "ledger")}
    engine, configuration = LocalEngine(), parse_configuration(plain)
    of_data = arrange(engine, configuration, "ill", str(tmp_path / "a"), attributes=["job"])
    noisy = arrange(
        engine, configuration, "ill", str(tmp_path / "b"), selection=str(tmp_path / "selection")
    )
    values = [one for one in noisy.attributes[0].values if one in JOBS]
    assert values == list(of_data.attributes[0].values)


def command_quietly(*words: object) -> int:
    from anonspark.cli.application import main

    return main([*map(str, words), "--no-progress", "--set", "ledger.limit=200"])


def test_what_is_refused(
    selected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    selection = tmp_path / "selection"

    def refused(place: Path, target: str = "ill", *words: str) -> str:
        own = ("--target", target, "--from", place, "--out", tmp_path / "out", *words)
        shown = command(capsys, "arrange", selected, *own)
        assert shown.code == 2, shown.err
        assert not (tmp_path / "out").exists()
        assert PLANTED not in shown.err
        return shown.err

    assert "is about the target 'ill'. Expected 'sick'" in refused(selection, "sick")
    assert "found no selection at" in refused(tmp_path / "nowhere")
    assert "no quasi-identifier of text" in refused(selection, "ill", "--attribute", "age")
    assert "no quasi-identifier of text" in refused(selection, "ill", "--attribute", "employed")
    for content in ("{", "[]", '{"tables_of_values": []}'):
        (selection / "selection.json").write_text(content)
        assert "found no selection at" in refused(selection)


def test_a_selection_without_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_table(tmp_path / "people.parquet", people())
    path = document_file(tmp_path, document_at(tmp_path, mechanism="top"))
    assert command(capsys, "select", path, "--no-progress").code == 0
    words = ("arrange", path, "--target", "ill", "--from", tmp_path / "selection")
    shown = command(capsys, *words, "--out", tmp_path / "out")
    assert shown.code == 2
    assert "published no tables" in shown.err


def test_tables_without_any_count(
    selected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = tmp_path / "selection" / "tables"
    cells = pa.parquet.read_table(tables)
    for file in tables.iterdir():
        file.unlink()
    nothing = pa.array([-1] * len(cells), pa.int64())
    place = cells.schema.get_field_index("records")
    write_table(tables / "part.parquet", cells.set_column(place, "records", nothing))
    words = ("arrange", selected, "--target", "ill", "--from", tmp_path / "selection")
    shown = command(capsys, *words, "--out", tmp_path / "out")
    assert shown.code == 3
    assert "all noisy counts are 0 or less" in shown.err
    tables = read_noisy_tables(LocalEngine(), str(tmp_path / "selection"))
    assert {own for one in tables.counts["job"].values() for own in one.values()} == {0}
