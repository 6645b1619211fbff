"""Which value got which label: as the hierarchies say, and nothing that is in the data alone."""

from __future__ import annotations

import csv
import datetime
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Cli
from helpers import metrics, published

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run

Row = dict[str, Any]

# Rome is in no record; one label needs quotes in a release, another one in CSV.
CITIES = {
    "Ulm": "missing", "Bonn": "missing", "Graz": "Alps, east", "Wien": "Alps, east",
    "Rome": "south",
}  # fmt: skip
DAY = datetime.date(2020, 1, 1)
NAMES = ("age", "city", "code", "since")
# Of the first round 6 of 40 find no class; of them the second one places 4.
LEVELS = [
    {"age": 1, "city": 1, "code": 1, "since": 1},
    {"age": 3, "city": 2, "code": 3, "since": 2},
]


def people() -> list[Row]:
    rows: list[Row] = []
    for number in range(34):
        one, other = number % 2, number // 2 % 2
        rows.append(
            {
                "age": 20 + 5 * one + number % 4,
                "city": ("Ulm" if number % 3 else "Bonn") if one else "Graz",
                "code": f"12{other}{number % 9}",
                "since": DAY + datetime.timedelta(days=200 * other + number % 20),
            }
        )
    for number in range(6):
        since = DAY - datetime.timedelta(days=400 * number)
        city = None if number == 4 else "Wien"
        rows.append({"age": 60 + 7 * number, "city": city, "code": f"8{number}07", "since": since})
    return [row | {"record": place} for place, row in enumerate(rows)]


def document(folder: Path, release: str, **model: Any) -> Row:
    rules = {
        "age": {"intervals": [5, 20]},
        "city": str(folder / "cities.csv"),
        "code": {"prefix": [1, 2]},
        "since": {"calendar": ["quarter"]},
    }
    attributes: Row = {
        name: {"role": "quasi_identifier", "hierarchy": rules[name]} for name in NAMES
    }
    return {
        "input": {"path": str(folder / "people.parquet")},
        "attributes": attributes | {"record": "insensitive"},
        "missing": "category",
        "privacy": {"k": 2},
        "model": model,
        "output": {"path": str(folder / release)},
        "execution": {"seed": 2**40},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a directory with people, a hierarchy and a release of two rounds; for reading only."""
    folder = tmp_path_factory.mktemp("mapping")
    pq.write_table(pa.Table.from_pylist(people()), folder / "people.parquet")
    lines = "".join(f"{city};{area};*\n" for city, area in CITIES.items())
    (folder / "cities.csv").write_text(lines)
    described = document(folder, "release", name="rho-gain", rho=1, levels=LEVELS)
    run(LocalEngine(), parse_configuration(described))
    return folder


def read(cli: Cli, *arguments: object) -> list[Row]:
    outcome = cli.ends(0, "mapping", *arguments)
    return list(csv.DictReader(io.StringIO(outcome.out)))


def label_of(rows: list[Row], value: Any) -> str:
    """Find the one label of a value, as a person would who reads the table."""
    found = []
    for row in rows:
        label = row["label"]
        if row["value"]:
            fits = row["value"] == value
        elif row["low"]:
            low, high = row["low"], row["high"]
            given = value.isoformat() if isinstance(value, datetime.date) else float(value)
            if not isinstance(value, datetime.date):
                low, high = float(low), float(high)
            fits = low <= given < high or (row["high_included"] == "true" and given == high)
        else:
            fits = label in ("*", "* or missing") or (
                len(label) == len(value) and value.startswith(label.rstrip("*"))
            )
        if fits:
            found.append(label)
    (label,) = found
    return label


def test_the_mapping_makes_the_labels_of_the_release(folder: Path, cli: Cli) -> None:
    mapping = read(cli, folder / "release")
    raw = {row["record"]: row for row in people()}
    rounds = metrics(folder / "release", "rounds")
    assert rounds[0]["outlier_rows"] > 0
    second = {"age": "*", "code": "*", "since": "*", "city": "* or missing"}
    rounds_seen = set()
    for record in published(folder / "release").to_pylist():
        number = "2" if all(record[name] == second[name] for name in NAMES) else "1"
        rounds_seen.add(number)
        for name in NAMES:
            own = [row for row in mapping if (row["attribute"], row["round"]) == (name, number)]
            value = raw[record["record"]][name]
            if value is not None:
                assert record[name] == label_of(own, value)
    assert rounds_seen == {"1", "2"}


def test_values_are_those_of_the_file(folder: Path, cli: Cli) -> None:
    """All of the file, whoever is in the data; of rules published labels alone."""
    mapping = read(cli, folder / "release")
    own = {(row["value"], row["label"]) for row in mapping if row["attribute"] == "city"}
    assert own == {
        *((city, '"missing"' if area == "missing" else area) for city, area in CITIES.items()),
        *((city, "* or missing") for city in CITIES),
    }
    assert [row["level"] for row in mapping if row["attribute"] == "city"] == ["1"] * 5 + ["2"] * 5
    labels = {one["age_min"] for one in metrics(folder / "release", "classes")}  # of both rounds
    assert {row["label"] for row in mapping if row["attribute"] == "age"} == labels
    assert {row["value"] for row in mapping if row["attribute"] != "city"} == {""}


def test_the_ends_of_rules(folder: Path, cli: Cli) -> None:
    rows = {(row["attribute"], row["label"]): row for row in read(cli, folder / "release")}
    age = rows["age", "[20-25["]
    assert (age["low"], age["high"], age["high_included"]) == ("20", "25", "false")
    since = rows["since", "2020-Q1"]
    assert (since["low"], since["high"], since["high_included"]) == (
        "2020-01-01", "2020-03-31", "true",
    )  # fmt: skip
    code = rows["code", "120*"]
    assert (code["low"], code["high"], code["high_included"]) == ("", "", "")


def test_as_json(folder: Path, cli: Cli) -> None:
    outcome = cli("mapping", folder / "release", "--json")
    first, *_ = json.loads(outcome.out)
    assert first == {
        "attribute": "age", "round": 1, "level": 1, "value": None, "low": "20", "high": "25",
        "high_included": False, "label": "[20-25[",
    }  # fmt: skip


def test_values_as_they_are(folder: Path, cli: Cli) -> None:
    """At level 0 a label is the value; the values of who is left out are not told."""
    levels = [{"age": 0, "city": 2, "code": 3, "since": 2}]
    described = document(folder, "exact", name="full-domain", suppression_limit=1, levels=levels)
    run(LocalEngine(), parse_configuration(described))
    ages = [row for row in read(cli, folder / "exact") if row["attribute"] == "age"]
    assert [(row["value"], row["label"]) for row in ages] == [
        (str(age), str(age)) for age in (20, 22, 26, 28)
    ]
    assert {row["low"] for row in ages} == {""}


def test_who_has_another_file(folder: Path, tmp_path: Path, cli: Cli) -> None:
    """It is named, or refused; no label of it is told."""
    other = tmp_path / "moved.csv"
    shutil.copy(folder / "cities.csv", other)
    given = f"city={other}"
    assert read(cli, folder / "release", "--hierarchy", given) == read(cli, folder / "release")
    other.write_text("Ulm;Germany;*\nGraz;Austria;*\n")
    outcome = cli.ends(3, "mapping", folder / "release", "--hierarchy", given)
    assert "2 of the release's 2 labels are not in it" in outcome.err.replace("\n", " ")
    assert "Alps" not in outcome.err
    other.write_text("Ulm;*\n")
    cli.ends(3, "mapping", folder / "release", "--hierarchy", given, says="labels are not in it")
    outcome = cli("mapping", folder / "release", "--hierarchy", f"age={other}")
    assert (outcome.code, "--hierarchy: found 'age'" in outcome.err) == (2, True)


def test_what_has_no_levels(folder: Path, tmp_path: Path, cli: Cli) -> None:
    described = document(folder, "local", name="smondrian")
    run(LocalEngine(), parse_configuration(described))
    cli.ends(2, "mapping", folder / "local", says="its classes were made one by one")
    cli.ends(3, "mapping", tmp_path)
    bare = tmp_path / "bare"
    shutil.copytree(folder / "release", bare)
    shutil.rmtree(bare / "metrics" / "classes")
    cli.ends(3, "mapping", bare, says="lacks metrics/classes")
