"""``anonspark arrange``: what it writes is what configurations take, and what it refuses."""

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
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
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


def test_an_order_is_what_a_configuration_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = document_at(tmp_path)
    path = document_file(tmp_path, document)
    out = tmp_path / "arranged"
    shown = command(capsys, "arrange", path, "--target", "ill", "--out", out)
    assert shown.code == 0, shown.err
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


def test_a_hierarchy_is_what_a_configuration_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = document_at(tmp_path)
    path = document_file(tmp_path, document)
    words = ("arrange", path, "--target", "ill", "--as", "hierarchy", "--out", tmp_path / "out")
    shown = command(capsys, *words, "--attribute", "job", "--json")
    assert shown.code == 0, shown.err
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
def test_what_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], expected: str
) -> None:
    path = document_file(tmp_path, document_at(tmp_path))
    out = tmp_path / "arranged"
    shown = command(capsys, "arrange", path, *words, "--out", out)
    assert shown.code in (2, 3)
    assert expected in shown.err
    assert PLANTED not in shown.err
    assert not out.exists()


def test_nothing_to_arrange(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = document_at(tmp_path)
    del document["attributes"]["job"], document["attributes"]["town"]
    shown = command(capsys, "arrange", document_file(tmp_path, document), "--target", "ill")
    assert shown.code == 2
    assert "found no quasi-identifier of text" in shown.err


def test_what_is_there_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = document_file(tmp_path, document_at(tmp_path))
    words = ("arrange", path, "--target", "ill", "--out", tmp_path / "arranged")
    assert command(capsys, *words).code == 0
    again = command(capsys, *words)
    assert again.code == 2
    assert "orders.yaml already" in again.err


def test_a_place_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = document_file(tmp_path, document_at(tmp_path))
    shown = command(capsys, "arrange", path, "--target", "ill", "--out", path / "arranged")
    assert shown.code == 5
    assert "--out: nothing can be written to" in shown.err


def test_values_that_no_hierarchy_file_can_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = document_file(tmp_path, document_at(tmp_path))
    table = people()
    town = ["A" if one < 300 else "B" if one < 600 else "*" for one in range(ROWS)]
    ill = ["yes" if own == "A" and one % 3 else "no" for one, own in enumerate(town)]
    table = table.set_column(1, "town", pa.array(town)).set_column(3, "ill", pa.array(ill))
    write_table(tmp_path / "people.parquet", table)
    words = ("arrange", path, "--target", "ill", "--attribute", "town", "--as", "hierarchy")
    shown = command(capsys, *words, "--out", tmp_path / "arranged")
    assert shown.code == 3, shown.out
    assert "attributes.town: a value is *, has a line's end in it, or looks" in shown.err
    assert not (tmp_path / "arranged").exists()
