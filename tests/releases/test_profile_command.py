"""``anonspark profile``, as a user types it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from helpers import command
from places import REPOSITORY

PEOPLE = REPOSITORY / "data" / "people.csv"
VALUES = ("PE8F2E4592B8FDBA4", "Kowalski", "Brookview", "depression")


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "data").mkdir()
    shutil.copy(PEOPLE, tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return "data/people.csv"


def test_the_page_shows_what_the_command_prints(
    people: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = command(capsys, "profile", people, "--quiet")
    assert (outcome.code, outcome.err) == (0, "")
    printed = "\n".join(line.rstrip() for line in outcome.out.splitlines())
    page = (REPOSITORY / "docs" / "profile.md").read_text()
    shown = re.search(r"<!-- made by .*? -->\n\n```text\n(.*?)\n```", page, re.S)
    assert shown is not None
    assert printed == shown[1]


def test_no_value_is_shown(people: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = command(capsys, "profile", people, "--html", "page.html")
    assert outcome.code == 0
    assert outcome.err.startswith("20")
    assert "look at the data" in outcome.err.splitlines()[0]
    page = (tmp_path / "page.html").read_text()
    assert "postal_code gives city away" in page
    told = outcome.out + outcome.err + page
    assert not [value for value in VALUES if value in told]


def test_values_and_json(people: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = json.loads(command(capsys, "profile", people, "--quiet", "--json", "--k", "10").out)
    assert (plain["rows"], plain["k"]) == (2000, 10)
    assert plain["sample"] == {"rows": 2000, "seed": 0}
    by_name = {one["name"]: one for one in plain["columns"]}
    assert by_name["person_id"]["role"] == "identifier"
    assert "examples" not in by_name["diagnosis"]
    assert [(one["column"], one["determines"], one["within"]) for one in plain["dependencies"]] == [
        ("postal_code", "city", None),
        ("city", "postal_code", 0.05),
    ]
    assert len(plain["sets"]["triples"]) == 165
    arguments = ("profile", people, "--quiet", "--show-values", "--html", "page.html")
    shown = command(capsys, *arguments)
    assert "examples" in shown.out
    assert "married" in shown.out
    assert "married" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("nowhere.csv",), 3, "DATA: no file is at nowhere.csv. Check the path"),
        (("hdfs:///people",), 2, "DATA: the name 'hdfs:///people' does not show the format"),
        (("data/people.csv", "--option", "header"), 2, "--option: found 'header'. Expected NAME="),
        (("data/people.csv", "--engine", "odd"), 2, "--engine: found 'odd'. Expected one of"),
    ],
)
@pytest.mark.usefixtures("people")
def test_what_is_wrong(
    arguments: tuple[str, ...],
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome = command(capsys, "profile", *arguments, "--quiet")
    assert outcome.code == code
    assert message in outcome.err
