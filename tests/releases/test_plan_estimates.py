"""``plan`` tells seconds and bytes, and every command that tells something tells it as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main
from helpers import command, configuration_file, write_table

from anonspark.cli.application import application

# The schema is JSON; ledger is a group of its own.
WITHOUT_JSON = {"schema", "ledger", "verifier"}


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    random = np.random.default_rng(9)
    write_table(tmp_path / "input.parquet", {"age": random.integers(20, 80, 200).tolist()})
    roles = {"age": "quasi_identifier"}
    return configuration_file(tmp_path, attributes=roles, output={"mode": "overwrite"})


def planned(
    capsys: pytest.CaptureFixture[str], configuration: Path, *arguments: str
) -> dict[str, Any]:
    outcome = command(capsys, "check", "--plan", configuration, "--quiet", "--json", *arguments)
    assert outcome.code == 0, outcome.err
    told: dict[str, Any] = json.loads(outcome.out)
    return told


def test_an_earlier_run_tells_what_another_takes(
    configuration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = planned(capsys, configuration)
    assert (told["rows"], told["columns"]) == (200, ["age"])
    assert told["engine"]["name"] == "local"
    before = told["estimate"]
    assert before["run_id"] is None
    assert before["bytes"] == 200
    # One of five attributes, at 145,029 records a second, after two seconds.
    assert before["seconds"] == pytest.approx(2 + 200 / 5 / 128_000)
    assert "Constants of docs/performance.md" in before["basis"]

    assert command(capsys, "run", configuration, "--run-id", "first", "--quiet").code == 0
    write_table(tmp_path / "input.parquet", {"age": list(range(400))})
    after = planned(capsys, configuration)["estimate"]
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    (data,) = [one for one in manifest["files"] if one["path"].startswith("data/")]
    assert after["run_id"] == "first"
    assert after["bytes"] == 2 * data["bytes"]
    assert after["seconds"] == pytest.approx(2 * sum(manifest["seconds"].values()))
    shown = command(capsys, "check", "--plan", configuration, "--quiet").out
    assert "of data: as run first, which published 200 records" in shown
    # Of other settings it tells nothing.
    assert planned(capsys, configuration, "--set", "privacy.k=9")["estimate"]["run_id"] is None


def test_a_model_without_a_rate_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_table(tmp_path / "input.parquet", {"age": list(range(100))})
    roles = {"age": {"role": "quasi_identifier", "hierarchy": {"intervals": [10, 50]}}}
    path = configuration_file(tmp_path, attributes=roles, model={"name": "full-domain"})
    told = planned(capsys, path)
    assert told["estimate"]["seconds"] is None
    assert "no rate is known of full-domain" in told["estimate"]["basis"]
    assert told["nodes"] is not None


def test_every_command_tells_json() -> None:
    commands = typer.main.get_command(application).commands  # type: ignore[attr-defined]
    without = {
        name
        for name, one in commands.items()
        if not any("--json" in parameter.opts for parameter in one.params)
    }
    assert without <= WITHOUT_JSON


def test_clean_tells_json(configuration: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = command(capsys, "clean", configuration, "--quiet", "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["found"] == []
