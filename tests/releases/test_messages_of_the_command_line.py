"""What a user is told whose command line is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cases import cases
from helpers import command


@cases(__file__, "line", "told")
def test_what_is_said_of_a_wrong_line(
    capsys: pytest.CaptureFixture[str], line: str, told: str
) -> None:
    shown = command(capsys, *line.split())
    assert shown.code == 2
    assert told in shown.err


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("age,zip,disease\n" + "30,1,flu\n31,2,cold\n" * 9)
    path = tmp_path / "people.yaml"
    path.write_text(
        f"input: {{path: {tmp_path}/people.csv, options: {{header: true}}}}\n"
        "quasi_identifiers: [age, zipp]\n"
        "attributes:\n"
        "  disese: sensitive\n"
        "privacy: {k: 2}\n"
        "output:\n"
        f"  path: {tmp_path}/release\n"
    )
    return path


def test_what_the_data_show_is_told_at_the_place_of_its_key(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("check", "run"):
        shown = command(capsys, name, configuration)
        assert shown.code == 3
        listed, attribute = [line for line in shown.err.splitlines() if line.startswith("error: ")]
        assert listed.startswith(f"error: {configuration}:2:26: attributes.zipp: the input has no")
        assert attribute.startswith(f"error: {configuration}:4:3: attributes.disese: the input has")
    shown = command(capsys, "check", configuration, "--log-format", "json")
    told = json.loads(shown.err.splitlines()[-1])["message"]
    assert told == f"{listed}\n{attribute}".replace("error: ", "")

    (configuration.parent / "release").mkdir()
    shown = command(capsys, "run", configuration)
    assert shown.code == 2
    assert f"error: {configuration}:7:3: output.path: " in shown.err
    # What writes nothing says it, and looks at the rest.
    for options in ([], ["--plan"]):
        shown = command(capsys, "check", configuration, *options)
        assert shown.code == 3
        assert f"output.path: {configuration.parent / 'release'} exists already" in shown.err


def test_what_the_file_does_not_say_has_no_place_in_it(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = command(capsys, "check", configuration, "--set=input.path=/nowhere/people.csv")
    assert shown.code == 3
    assert "error: input.path: /nowhere/people.csv is not there" in shown.err
    added = "--set=attributes.town=insensitive"
    shown = command(capsys, "check", configuration, added)
    assert shown.code == 3
    assert "error: attributes.town: the input has no such column" in shown.err
    assert f"error: {configuration}:4:3: attributes.disese: " in shown.err
