"""``check`` says which column of people repeats, how often, and what k then means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import command, configuration_file, write_table

from anonspark.engine.protocol import Table
from anonspark.pipeline import preparing, repeats
from anonspark.pipeline.warnings.value_sizes import CountedColumn, count_value_sizes

ROWS = 120


@pytest.fixture(scope="module")
def table() -> dict[str, Any]:
    """Return visits: 100 people, of whom one came 5 times and 16 twice, in one of 3 wards."""
    random = np.random.default_rng(4)
    people = [*range(100), *[0] * 4, *range(1, 17)]
    return {
        "visit_id": list(range(ROWS)),
        "patient_nbr": [f"P{person:03}" for person in people],
        "ward_id": [place % 2 for place in range(ROWS)],
        "age": random.integers(20, 80, ROWS).tolist(),
        "ill": random.choice(["yes", "no"], ROWS).tolist(),
    }


def checked(
    folder: Path, table: dict[str, Any], capsys: pytest.CaptureFixture[str], **sections: Any
) -> tuple[str, list[dict[str, Any]]]:
    """Return what ``check`` prints, and what it says of repeats in JSON."""
    write_table(folder / "input.parquet", table)
    roles = {"age": "quasi_identifier", "ill": "sensitive", **sections.pop("attributes", {})}
    path = configuration_file(folder, attributes=roles, **sections)
    printed = command(capsys, "check", path, "--quiet")
    assert printed.code == 0, printed.err
    assert "P000" not in printed.out + printed.err
    told = json.loads(command(capsys, "check", path, "--quiet", "--json").out)
    return printed.out, told["repeats"]


def test_an_identifier_that_repeats(
    tmp_path: Path, table: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    roles = {"patient_nbr": "identifier"}
    printed, repeats = checked(tmp_path, table, capsys, attributes=roles, privacy={"k": 4})
    assert printed.splitlines()[-1] == (
        "patient_nbr repeats: 120 records of 100 people, at most 5 of one. k = 4 counts records, "
        "so a class may hold fewer than 4 people: --set privacy.unit=patient_nbr"
    )
    assert repeats == [
        {
            "column": "patient_nbr", "records": 120, "people": 100, "most": 5,
            "is_identifier": True, "exact": True, "unit": "person",
            "remedy": "--set privacy.unit=patient_nbr",
        }
    ]  # fmt: skip


@pytest.mark.parametrize("roles", [{}, {"patient_nbr": "insensitive"}])
def test_a_column_that_looks_like_an_identifier(
    tmp_path: Path,
    table: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    roles: dict[str, str],
) -> None:
    printed, repeats = checked(tmp_path, table, capsys, attributes=roles)
    remedy = "--set attributes.patient_nbr=identifier --set privacy.unit=patient_nbr"
    # Neither the number of the visit, which does not repeat, nor that of the ward of many people.
    assert [(one["column"], one["remedy"]) for one in repeats] == [("patient_nbr", remedy)]
    assert printed.splitlines()[-1].endswith(remedy)
    # And what it says can be done.
    done = {"attributes": {"patient_nbr": "identifier"}, "privacy": {"k": 3, "unit": "patient_nbr"}}
    printed, repeats = checked(tmp_path, table, capsys, **done)
    assert repeats == []
    assert "repeats" not in printed


def test_missing_identifiers_are_nobody(
    tmp_path: Path, table: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    some = [*table["patient_nbr"][:100], *["?"] * 20]
    other = {**table, "patient_nbr": some}
    roles = {"patient_nbr": "identifier"}
    given = {"missing_markers": ["?"]}
    _, repeats = checked(tmp_path, other, capsys, attributes=roles, input=given)
    assert repeats == []


def panel() -> dict[str, Any]:
    """Return 150 people of eight years each, whose number no name tells."""
    random = np.random.default_rng(8)
    person = np.repeat(np.arange(150), 8)
    return {
        "nr": (person * 37 + 13).tolist(),
        "educ": random.integers(8, 18, 150)[person].tolist(),
        "race": random.integers(0, 4, 150)[person].tolist(),
        "age": random.integers(20, 60, len(person)).tolist(),
        "longitude": np.round(random.uniform(5, 15, len(person)), 2).tolist(),
        "ill": random.choice(["yes", "no"], len(person)).tolist(),
    }


@pytest.mark.parametrize("role", ["quasi_identifier", None])
def test_a_number_of_people_under_any_name_and_role(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], role: str | None
) -> None:
    roles = {"race": "quasi_identifier"} | ({"nr": role} if role else {})
    printed, repeats = checked(tmp_path, panel(), capsys, attributes=roles)
    assert "usable, with" in printed
    assert [one["column"] for one in repeats] == ["nr"]
    assert repeats[0]["remedy"] == "--set attributes.nr=identifier --set privacy.unit=nr"
    ran = command(capsys, "run", tmp_path / "configuration.yaml", "--quiet")
    assert ran.code == 0, ran.err
    assert "nr repeats: 1,200 records of 150 different values" in ran.err
    assert "if each value is a person" in ran.err
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    (warning,) = [one for one in manifest["warnings"] if one["code"] == "people_repeat"]
    # A release names no column that it does not have.
    assert warning["attribute"] == (role and "nr")
    assert "150" not in warning["text"]
    assert command(capsys, "verify", tmp_path / "release", "--quiet").code == 0


def test_a_large_input_is_not_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "SAMPLE_ROWS", 500)
    write_table(tmp_path / "input.parquet", panel())
    roles = {"race": "quasi_identifier", "age": "quasi_identifier", "educ": "insensitive"}
    listed = configuration_file(tmp_path, attributes={**roles, "nr": "quasi_identifier"})
    ran = command(capsys, "run", listed, "--quiet")
    assert ran.code == 0, ran.err
    # All records count, not those of the sample.
    assert "nr repeats: 1,200 records of 150 different values" in ran.err
    assert "age repeats" not in ran.err + ran.out
    assert "educ repeats" not in ran.err + ran.out
    # A column that is not listed would take another pass.
    place = {"path": str(tmp_path / "other")}
    ran = command(
        capsys, "run", configuration_file(tmp_path, attributes=roles, output=place), "--quiet"
    )
    assert ran.code == 0, ran.err
    assert "nr repeats" not in ran.err


def test_a_large_input_is_not_read_for_amounts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[str] = []

    def count(table: Table, columns: Mapping[str, CountedColumn], records: int) -> Any:
        counted.extend(columns)
        return count_value_sizes(table, columns, records)

    monkeypatch.setattr(preparing, "SAMPLE_ROWS", 500)
    monkeypatch.setattr(repeats, "count_value_sizes", count)
    table = panel()
    # Whole numbers that are floats number people, too; cents do not.
    table["nr"] = [float(number) for number in table["nr"]]
    table["bill"] = [number / 100 + 0.5 for number in range(len(table["nr"]))]
    write_table(tmp_path / "input.parquet", table)
    roles = {"race": "quasi_identifier", "nr": "insensitive", "bill": "sensitive"}
    ran = command(capsys, "run", configuration_file(tmp_path, attributes=roles), "--quiet")
    assert ran.code == 0, ran.err
    assert "nr repeats" in ran.err
    assert counted == ["nr"]


def test_a_wrong_identifier_hides_no_other(
    tmp_path: Path, table: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    roles = {"ward_id": "identifier"}
    _, repeats = checked(tmp_path, table, capsys, attributes=roles)
    assert [(one["column"], one["unit"]) for one in repeats] == [
        ("ward_id", None), ("patient_nbr", "person"),
    ]  # fmt: skip
    ran = command(capsys, "run", tmp_path / "configuration.yaml", "--quiet")
    assert "patient_nbr repeats" in ran.err


def test_an_identifier_that_is_a_measurement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = {name: values for name, values in panel().items() if name != "nr"}
    printed, repeats = checked(tmp_path, table, capsys, attributes={"longitude": "identifier"})
    assert repeats == []
    assert "longitude" not in printed
