"""``anonspark arrange``: orders of data and of noisy tables, as configurations take them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from commands import Cli
from helpers import document_file, write_table

from anonspark.config import parse_configuration
from anonspark.core.arrangement import learned_order
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from anonspark.release.noisy_tables import read_noisy_tables
from anonspark.utility.evaluation import open_evaluation
from anonspark.utility.learned_hierarchies import arrange

ROWS = 900
JOBS = [f"job {letter}" for letter in "qwertyuiopas"]
PLANTED = "Quetzal the only one"


def people() -> pa.Table:
    """Return people whose illness depends on the job, one of whom has a job of his own."""
    draw = np.random.default_rng(2)
    place = draw.integers(0, len(JOBS), ROWS)
    ill = draw.random(ROWS) < place / len(JOBS)
    job = [None if one % 50 == 0 else f" {JOBS[own]}" for one, own in enumerate(place.tolist())]
    job[7] = PLANTED
    return pa.table(
        {
            "job": job,
            "town": draw.choice(["A", "B", "C"], ROWS),
            "age": draw.integers(20, 60, ROWS),
            "ill": np.where(ill, "yes", "no"),
            "grade": draw.choice(["low", "mid", "high"], ROWS),
        }
    )


def document_at(folder: Path, **attributes: Any) -> dict[str, Any]:
    path = write_table(folder / "people.parquet", people())
    return {
        "input": {"path": str(path)},
        "attributes": {
            "job": {"role": "quasi_identifier"},
            "town": {"role": "quasi_identifier"},
            "age": {"role": "quasi_identifier"},
            "ill": {"role": "sensitive"},
        }
        | attributes,
        "missing": "category",
        "privacy": {"k": 10},
        "model": {"name": "smondrian"},
        "output": {"path": str(folder / "release")},
        "execution": {"seed": 2**40 + 1},
    }


def test_an_order_is_what_a_configuration_takes(tmp_path: Path, cli: Cli) -> None:
    document = document_at(tmp_path)
    path = document_file(tmp_path, document)
    out = tmp_path / "arranged"
    shown = cli.ends(0, "arrange", path, "--target", "ill", "--out", out)
    for value in (PLANTED, *JOBS):
        assert value not in shown.out + shown.err
    fragment = yaml.safe_load((out / "orders.yaml").read_text())["attributes"]
    assert set(fragment) == {"job", "town"}
    order = fragment["job"]["order"]
    # An order has values as they are, a hierarchy without the blanks around them.
    assert sorted(order) == sorted([PLANTED, *(f" {job}" for job in JOBS)])
    # About in the order of the shares; the one of whom there is one is not at an end.
    places = [JOBS.index(one.strip()) for one in order if one != PLANTED]
    assert np.corrcoef(places, range(len(places)))[0, 1] > 0.95
    assert order.index(PLANTED) not in (0, len(order) - 1)
    for name, one in fragment.items():
        document["attributes"][name] |= one
    engine = LocalEngine()
    run(engine, parse_configuration(document))
    source = str(tmp_path / "people.parquet")
    learned = open_evaluation(engine, str(tmp_path / "release"), source, "ill").association()
    del document["attributes"]["job"]["order"]
    document["output"] = {"path": str(tmp_path / "other")}
    run(engine, parse_configuration(document))
    chance = open_evaluation(engine, str(tmp_path / "other"), source, "ill").association()
    assert learned is not None
    assert chance is not None
    assert learned.loss is not None
    assert chance.loss is not None
    assert learned.loss < chance.loss


def test_a_hierarchy_is_what_a_configuration_takes(tmp_path: Path, cli: Cli) -> None:
    document = document_at(tmp_path)
    path = document_file(tmp_path, document)
    words = ("arrange", path, "--target", "ill", "--as", "hierarchy", "--out", tmp_path / "out")
    shown = cli.ends(0, *words, "--attribute", "job", "--json")
    (told,) = json.loads(shown.out)["attributes"]
    assert told["values"] == len(JOBS) + 1
    assert told["rare"] == 1
    assert told["groups"][-1] == 2
    assert told["kept"] == sorted(told["kept"], reverse=True)
    file = tmp_path / "out" / "job.csv"
    with file.open(newline="") as lines:
        rows = list(csv.reader(lines, delimiter=";"))
    assert {row[0] for row in rows} == {PLANTED, *JOBS}
    assert {row[-1] for row in rows} == {"*"}
    assert len({row[-2] for row in rows}) == 2
    document["attributes"]["job"]["hierarchy"] = str(file)
    engine = LocalEngine()
    assert run(engine, parse_configuration(document)).summary["classes"] > 1


def test_the_order_of_rows_decides_nothing(tmp_path: Path) -> None:
    document = document_at(tmp_path)
    first = arrange(LocalEngine(), parse_configuration(document), "ill", str(tmp_path / "one"))
    mixed = people().take(np.random.default_rng(9).permutation(ROWS))
    write_table(tmp_path / "people.parquet", mixed)
    again = arrange(LocalEngine(), parse_configuration(document), "ill", str(tmp_path / "two"))
    assert first.attributes == again.attributes


def test_several_classes(tmp_path: Path) -> None:
    document = document_at(tmp_path)
    found = arrange(LocalEngine(), parse_configuration(document), "grade", str(tmp_path / "out"))
    assert [len(one.values) for one in found.attributes] == [len(JOBS) + 1, 3]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--target", "town"), "--target: 'town' is a quasi-identifier"),
        (("--target", "nobody"), "--target: column 'nobody' is not among those"),
        (("--target", "ill", "--attribute", "age"), "--attribute: 'age' is no quasi-identifier"),
        (("--target", "ill", "--min-records", "800"), "fewer than 800 records"),
        (("--target", "ill", "--min-records", "0"), "min-records"),
    ],
)
def test_refused_arrange_writes_nothing_and_shows_no_value(
    tmp_path: Path, cli: Cli, words: tuple[str, ...], expected: str
) -> None:
    path = document_file(tmp_path, document_at(tmp_path))
    out = tmp_path / "arranged"
    shown = cli("arrange", path, *words, "--out", out)
    assert shown.code in (2, 3)
    assert expected in shown.err
    assert PLANTED not in shown.err
    assert not out.exists()


def test_nothing_to_arrange(tmp_path: Path, cli: Cli) -> None:
    document = document_at(tmp_path)
    del document["attributes"]["job"], document["attributes"]["town"]
    shown = cli.ends(2, "arrange", document_file(tmp_path, document), "--target", "ill")
    assert "found no quasi-identifier of text" in shown.err


def test_what_is_there_is_not_replaced(tmp_path: Path, cli: Cli) -> None:
    path = document_file(tmp_path, document_at(tmp_path))
    words = ("arrange", path, "--target", "ill", "--out", tmp_path / "arranged")
    cli.ends(0, *words)
    cli.ends(2, *words, says="orders.yaml already")


def test_a_place_that_cannot_be_written(tmp_path: Path, cli: Cli) -> None:
    path = document_file(tmp_path, document_at(tmp_path))
    shown = cli.ends(5, "arrange", path, "--target", "ill", "--out", path / "arranged")
    assert "--out: nothing can be written to" in shown.err


def test_values_that_no_hierarchy_file_can_hold(tmp_path: Path, cli: Cli) -> None:
    path = document_file(tmp_path, document_at(tmp_path))
    table = people()
    town = ["A" if one < 300 else "B" if one < 600 else "*" for one in range(ROWS)]
    ill = ["yes" if own == "A" and one % 3 else "no" for one, own in enumerate(town)]
    table = table.set_column(1, "town", pa.array(town)).set_column(3, "ill", pa.array(ill))
    write_table(tmp_path / "people.parquet", table)
    words = ("arrange", path, "--target", "ill", "--attribute", "town", "--as", "hierarchy")
    shown = cli.ends(3, *words, "--out", tmp_path / "arranged")
    assert "attributes.town: a value is *, has a line's end in it, or looks" in shown.err
    assert not (tmp_path / "arranged").exists()


SELECTION_ROWS = 3_000
SELECTION_JOBS = [f"job {letter}" for letter in "qwertyuiop"]
DECLARED = [*SELECTION_JOBS, "other", "unknown"]


def people_of_selection() -> pa.Table:
    draw = np.random.default_rng(5)
    place = draw.integers(0, len(SELECTION_JOBS), SELECTION_ROWS)
    job = np.array(SELECTION_JOBS, object)[place]
    job[:40] = PLANTED
    return pa.table(
        {
            "job": job,
            "town": draw.choice(["A", "B", "C"], SELECTION_ROWS),
            "age": draw.integers(20, 60, SELECTION_ROWS),
            "employed": draw.random(SELECTION_ROWS) < 0.5,
            "ill": np.where(draw.random(SELECTION_ROWS) < place / len(SELECTION_JOBS), "yes", "no"),
        }
    )


def selection_at(folder: Path, **selection: Any) -> dict[str, Any]:
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
def selected(tmp_path: Path, cli: Cli) -> Path:
    """Return the configuration of a selection whose data are gone."""
    data = write_table(tmp_path / "people.parquet", people_of_selection())
    path = document_file(tmp_path, selection_at(tmp_path))
    cli.ends(0, "select", path, "--no-progress")
    data.unlink()
    return path


def test_the_order_is_that_of_the_noisy_tables(selected: Path, tmp_path: Path, cli: Cli) -> None:
    entries = sorted((tmp_path / "ledger").rglob("*"))
    words = ("arrange", selected, "--target", "ill", "--from", tmp_path / "selection")
    # No minimum changes it.
    shown = cli.ends(0, *words, "--out", tmp_path / "out", "--min-records", "2000")
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


def test_a_hierarchy(selected: Path, tmp_path: Path, cli: Cli) -> None:
    words = ("arrange", selected, "--target", "ill", "--from", tmp_path / "selection")
    words = (*words, "--as", "hierarchy", "--attribute", "town", "--attribute", "job", "--json")
    shown = cli.ends(0, *words, "--out", tmp_path / "out")
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
    document = selection_at(tmp_path)
    table = people_of_selection().filter(
        pa.compute.not_equal(people_of_selection()["job"], PLANTED)
    )
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
    values = [one for one in noisy.attributes[0].values if one in SELECTION_JOBS]
    assert values == list(of_data.attributes[0].values)


def command_quietly(*words: object) -> int:
    from anonspark.cli.application import main

    return main([*map(str, words), "--no-progress", "--set", "ledger.limit=200"])


def test_refused_selections_write_nothing_and_show_no_value(
    selected: Path, tmp_path: Path, cli: Cli
) -> None:
    selection = tmp_path / "selection"

    def refused(place: Path, target: str = "ill", *words: str) -> str:
        own = ("--target", target, "--from", place, "--out", tmp_path / "out", *words)
        shown = cli.ends(2, "arrange", selected, *own)
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


def test_a_selection_without_tables(tmp_path: Path, cli: Cli) -> None:
    write_table(tmp_path / "people.parquet", people_of_selection())
    path = document_file(tmp_path, selection_at(tmp_path, mechanism="top"))
    cli.ends(0, "select", path, "--no-progress")
    words = ("arrange", path, "--target", "ill", "--from", tmp_path / "selection")
    cli.ends(2, *words, "--out", tmp_path / "out", says="published no tables")


def test_tables_without_any_count(selected: Path, tmp_path: Path, cli: Cli) -> None:
    tables = tmp_path / "selection" / "tables"
    cells = pa.parquet.read_table(tables)
    for file in tables.iterdir():
        file.unlink()
    nothing = pa.array([-1] * len(cells), pa.int64())
    place = cells.schema.get_field_index("records")
    write_table(tables / "part.parquet", cells.set_column(place, "records", nothing))
    words = ("arrange", selected, "--target", "ill", "--from", tmp_path / "selection")
    cli.ends(3, *words, "--out", tmp_path / "out", says="all noisy counts are 0 or less")
    tables = read_noisy_tables(LocalEngine(), str(tmp_path / "selection"))
    assert {own for one in tables.counts["job"].values() for own in one.values()} == {0}
