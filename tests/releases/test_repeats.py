"""``check`` says which column of people repeats, how often, and what k then means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Cli
from helpers import configuration_file, write_table

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


def checked(folder: Path, table: dict[str, Any], cli: Cli, **sections: Any) -> str:
    """Return the log of ``check``, and make sure that no value is in it."""
    write_table(folder / "input.parquet", table)
    roles = {"age": "quasi_identifier", "ill": "sensitive", **sections.pop("attributes", {})}
    path = configuration_file(folder, attributes=roles, **sections)
    printed = cli.ends(0, "check", path, "--no-progress")
    assert "P000" not in printed.out + printed.err
    return printed.err


def test_an_identifier_that_repeats(tmp_path: Path, table: dict[str, Any], cli: Cli) -> None:
    roles = {"patient_nbr": "identifier"}
    assert (
        "(patient_nbr repeats: 120 records of 100 people, at most 5 of one. k = 4 counts records, "
        "so a class may hold fewer than 4 people: --set privacy.unit=patient_nbr)"
    ) in checked(tmp_path, table, cli, attributes=roles, privacy={"k": 4})


@pytest.mark.parametrize("roles", [{}, {"patient_nbr": "insensitive"}])
def test_a_column_that_looks_like_an_identifier(
    tmp_path: Path, table: dict[str, Any], cli: Cli, roles: dict[str, str]
) -> None:
    log = checked(tmp_path, table, cli, attributes=roles)
    # Neither the number of the visit, which does not repeat, nor that of the ward of many people.
    assert log.count(" repeats: ") == 1
    assert "--set attributes.patient_nbr=identifier --set privacy.unit=patient_nbr" in log
    # And what it says can be done.
    done = {"attributes": {"patient_nbr": "identifier"}, "privacy": {"k": 3, "unit": "patient_nbr"}}
    assert "repeats" not in checked(tmp_path, table, cli, **done)


def test_missing_identifiers_are_nobody(tmp_path: Path, table: dict[str, Any], cli: Cli) -> None:
    other = {**table, "patient_nbr": [*table["patient_nbr"][:100], *["?"] * 20]}
    markers = {"missing_markers": ["?"]}
    roles = {"patient_nbr": "identifier"}
    assert "repeats" not in checked(tmp_path, other, cli, attributes=roles, input=markers)


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
    tmp_path: Path, cli: Cli, role: str | None
) -> None:
    roles = {"race": "quasi_identifier"} | ({"nr": role} if role else {})
    log = checked(tmp_path, panel(), cli, attributes=roles)
    assert "--set attributes.nr=identifier --set privacy.unit=nr" in log
    ran = cli.ends(0, "run", tmp_path / "configuration.yaml", "--no-progress")
    assert "nr repeats: 1,200 records of 150 different values" in ran.err
    assert "if each value is a person" in ran.err
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    (warning,) = [one for one in manifest["warnings"] if one["code"] == "people_repeat"]
    # A release names no column that it does not have.
    assert warning["attribute"] == (role and "nr")
    assert "150" not in warning["text"]
    cli.ends(0, "verify", tmp_path / "release", "--no-progress")


def test_a_release_says_nothing_that_a_dropped_record_decides(tmp_path: Path, cli: Cli) -> None:
    table = panel()
    table["age"][3] = None
    roles = {"age": "quasi_identifier", "nr": "insensitive"}
    write_table(tmp_path / "input.parquet", table)
    ran = cli.ends(
        0, "run", configuration_file(tmp_path, attributes=roles, missing="drop"), "--no-progress"
    )
    assert "nr repeats" in ran.err
    assert "people_repeat" not in (tmp_path / "release" / "manifest.json").read_text()


def test_a_large_input_is_not_read_again(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "SAMPLE_ROWS", 500)
    write_table(tmp_path / "input.parquet", panel())
    roles = {"race": "quasi_identifier", "age": "quasi_identifier", "educ": "insensitive"}
    listed = configuration_file(tmp_path, attributes={**roles, "nr": "quasi_identifier"})
    ran = cli.ends(0, "run", listed, "--no-progress")
    # All records count, not those of the sample.
    assert "nr repeats: 1,200 records of 150 different values" in ran.err
    assert "age repeats" not in ran.err + ran.out
    assert "educ repeats" not in ran.err + ran.out
    # A column that is not listed would take another pass.
    place = {"path": str(tmp_path / "other")}
    ran = cli.ends(
        0, "run", configuration_file(tmp_path, attributes=roles, output=place), "--no-progress"
    )
    assert "nr repeats" not in ran.err


def test_a_large_input_is_not_read_for_amounts(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
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
    cli.ends(
        0, "run", configuration_file(tmp_path, attributes=roles), "--no-progress", says="nr repeats"
    )
    assert counted == ["nr"]


def test_a_wrong_identifier_hides_no_other(tmp_path: Path, table: dict[str, Any], cli: Cli) -> None:
    log = checked(tmp_path, table, cli, attributes={"ward_id": "identifier"})
    assert "ward_id repeats" in log
    assert "patient_nbr repeats" in log
    ran = cli("run", tmp_path / "configuration.yaml", "--no-progress")
    assert "patient_nbr repeats" in ran.err


def test_an_identifier_that_is_a_measurement(tmp_path: Path, cli: Cli) -> None:
    table = {name: values for name, values in panel().items() if name != "nr"}
    assert "longitude" not in checked(tmp_path, table, cli, attributes={"longitude": "identifier"})


@pytest.mark.parametrize(
    ("column", "role", "is_warned"),
    [
        ("nr", None, True),
        ("nr", "quasi_identifier", True),
        # The user says that it is a figure.
        ("nr", {"role": "quasi_identifier", "type": "number"}, False),
        ("nr", "sensitive", False),
        # So do these names.
        ("income", "quasi_identifier", False),
        ("hhweight", None, False),
        ("pid", {"role": "quasi_identifier", "type": "number"}, True),
    ],
)
def test_who_says_that_a_figure_is_no_key(
    tmp_path: Path, cli: Cli, column: str, role: Any, is_warned: bool
) -> None:
    table = {column if name == "nr" else name: values for name, values in panel().items()}
    roles = {"race": "quasi_identifier"} | ({column: role} if role else {})
    log = checked(tmp_path, table, cli, attributes=roles)
    assert (f"{column} repeats: 1,200 records of 150" in log) is is_warned


def test_who_a_person_is_ends_the_question(tmp_path: Path, cli: Cli) -> None:
    people = panel() | {"person_id": list(range(1_200))}
    assert "repeats" not in checked(tmp_path, people, cli)
    # Days, amounts with a fraction and weights of texts are no numbers of people.
    texts = {
        "seen": [f"2020-01-{1 + row % 25:02}" for row in range(1_200)],
        "cost": [f"{row % 100}.50" for row in range(1_200)],
    }
    table = {name: values for name, values in panel().items() if name != "nr"} | texts
    write_csv = "\n".join(",".join(map(str, row)) for row in zip(*table.values(), strict=True))
    (tmp_path / "t.csv").write_text(",".join(table) + "\n" + write_csv + "\n")
    source = {"path": str(tmp_path / "t.csv"), "format": "csv"}
    assert "repeats" not in checked(tmp_path, table, cli, input=source)


@pytest.mark.parametrize(
    ("times", "is_warned"), [((1,), False), ((2,), True), ((3,), True), ((2, 1), True)]
)
@pytest.mark.parametrize("most", [32_768, 500], ids=["small", "large"])
def test_records_that_came_twice(
    tmp_path: Path,
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    times: tuple[int, ...],
    most: int,
    is_warned: bool,
) -> None:
    monkeypatch.setattr(preparing, "SAMPLE_ROWS", most)
    ages = [
        age
        for part, number in enumerate(times)
        for age in [*range(part * 1_000, part * 1_000 + 600)] * number
    ]
    table = {"age": ages, "ill": [f"x{age % 3}" for age in ages]}
    log = checked(tmp_path, table, cli)
    equal = sum(number * 600 for number in times if number > 1)
    assert (f"({equal:,} records have an equal one" in log) is is_warned
    ran = cli("run", tmp_path / "configuration.yaml", "--no-progress")
    assert ("records have an equal one" in ran.err) is is_warned
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    codes = [warning["code"] for warning in manifest["warnings"]]
    assert ("delivered_twice" in codes) is is_warned


def test_records_that_are_equal_by_nature(tmp_path: Path, cli: Cli) -> None:
    random = np.random.default_rng(2)
    table = {"age": random.integers(20, 80, 900).tolist(), "ill": random.choice(["a", "b"], 900)}
    assert "equal one" not in checked(tmp_path, table, cli)
