"""Quasi-identifiers that are days, numbers or ordered groups in disguise."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from cases import cases
from helpers import command, configuration_file, write_table

from anonspark.core.recognition.disguised import (
    OTHER_DAY,
    OTHER_NUMBER,
    disguise_of,
    letters_misorder,
)

DAYS = [
    *("31.12.1980", "12/31/1980", "1980/12/31", "31-12-80", "1.1.1980", "31 Dec 1980"),
    *("Dec 31, 1980", "31.12.1980 10:00", "31. Dezember 1980", "31DEC1980", "1980W05", "1980-W05"),
    *("1980-12", "12/1980", "Dec 1980", "Dec-80", "31/12/80", "1980.12.31"),
]
NUMBERS = [
    *("3,5", "-3,5", "1,234", "1,234.5", "1.234,5", "1.234.567", "1 234", "1\u202f234,5"),
    *("1'234.5", "45%", "-4.5 %", "$12", "12 \u20ac", "\u20ac 1.234,50", "12 EUR", "$1,234.50"),
]
NEITHER = ["abc", "12D", "0-4", "123 456 789", "52.5,13.4", "12 Main Street", "1.2.", "10:30", ""]
NEITHER += ["Mark 12", "1980-85", "Decker 1234", "12 kg"]


@pytest.mark.parametrize("text", DAYS)
def test_days_are_recognized(text: str) -> None:
    assert disguise_of([text]) == "other date"
    assert pc.match_substring_regex(pa.array([text]), OTHER_DAY).to_pylist() == [True]


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_are_recognized(text: str) -> None:
    assert disguise_of([text, "12"]) == "other number"
    assert pc.match_substring_regex(pa.array([text]), OTHER_NUMBER).to_pylist() == [True]


@pytest.mark.parametrize("text", NEITHER)
def test_others_are_neither(text: str) -> None:
    assert disguise_of([text]) is None


def test_units_and_moments() -> None:
    assert disguise_of(["12kg", "8.5 kg", "100 kg"]) == "other number"
    assert disguise_of(["-5 \u00b0C", "3 \u00b0C"]) == "other number"
    # Letters that differ are no unit.
    assert disguise_of(["10A", "10B", "12C"]) is None
    assert disguise_of(["1980-12-31 10:00:00", "1999-01-01T00:00Z"]) == "timestamp"


@cases(__file__, "values", "wrong")
def test_orders_of_letters(values: list[str], wrong: bool) -> None:
    assert letters_misorder(values) is wrong
    assert letters_misorder(values[::-1]) is wrong


def codes(text: str) -> list[tuple[str, str]]:
    return [(one["code"], one["attribute"]) for one in json.loads(text)["warnings"]]


def test_check_and_run_warn_with_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = range(60)
    columns = {
        "born": [f"{row % 28 + 1:02d}.{row % 12 + 1:02d}.{1950 + row % 50}" for row in rows],
        "seen": [f"{2000 + row % 20}-01-{row % 28 + 1:02d}" for row in rows],
        "weight": [f"{50 + row % 40},{row % 10}" for row in rows],
        "agegroup": [("0-4", "5-9", "10-14", "85+")[row % 4] for row in rows],
    }
    write_table(tmp_path / "input.parquet", columns)
    seed = {"seed": 5_164_208_731_946_275_003}
    roles = dict.fromkeys(columns, "quasi_identifier")
    path = configuration_file(tmp_path, attributes=roles, execution=seed)
    expected = [
        ("text_days", "born"),
        ("text_days", "seen"),
        ("text_numbers", "weight"),
        ("order_of_letters", "agegroup"),
    ]
    checked = command(capsys, "check", path, "--json")
    assert codes(checked.out) == expected
    ran = command(capsys, "run", path, "--json", "--no-progress")
    assert codes(ran.out) == expected
    assert codes((tmp_path / "release" / "manifest.json").read_text()) == expected
    for said in (
        *("born: nearly all of its values are days", "Declare its type as date", "1234.5"),
        *("attributes.agegroup.order", "written as 2026-01-31"),
    ):
        assert said in checked.err
        assert said in ran.err
    assert not any(value in checked.err + ran.err for own in columns.values() for value in own)

    # What is advised helps.
    write_table(tmp_path / "input.csv", columns, "csv")
    groups = {"role": "quasi_identifier", "order": ["0-4", "5-9", "10-14", "85+"]}
    for more, wanted in (
        ({}, [("text_days", "born"), ("text_days", "seen")]),
        ({"dateFormat": "dd.MM.yyyy"}, [("text_days", "born"), ("text_days", "seen")]),
        ({"dateFormat": "dd.MM.yyyy", "inferSchema": "true"}, []),
    ):
        path = configuration_file(
            tmp_path,
            input={
                "path": str(tmp_path / "input.csv"),
                "format": "csv",
                "options": {"header": "true"} | more,
            },
            attributes={
                **{key: {"role": "quasi_identifier", "grid": "auto"} for key in ("born", "seen")},
                "agegroup": groups,
            },
            output={"mode": "overwrite"},
            execution=seed,
        )
        outcome = command(capsys, "check", path, "--json")
        assert outcome.code == 0, outcome.err
        assert codes(outcome.out) == wanted
        assert ("inferSchema" in outcome.err) == bool(wanted)
        if wanted:
            outcome = command(capsys, "check", path, "--json", "--set", "attributes.seen.type=date")
            assert codes(outcome.out) == [("text_days", "born")]
