"""Every command tells what it is doing, from its start on, and keeps quiet if it is asked to."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from helpers import command, write_table

from anonspark.cli.application import main

STAGES = {
    "check": ["read the input", "count who is singled out: 120 rows"],
    "plan": ["read the input"],
    "verify": ["verify"],
    "evaluate": ["evaluate"],
    "report": ["report"],
    "arrange": ["arrange"],
    "clean": ["remove what was left"],
    "compare": ["prepare"],
    "query": ["query"],
    "mapping": ["mapping"],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table, its configuration, a grid and nothing else."""
    folder = tmp_path_factory.mktemp("progress")
    random = np.random.default_rng(2)
    table = {
        "age": random.integers(20, 80, 120).tolist(),
        "city": random.choice(["Linz", "Graz", "Wien"], 120).tolist(),
        "ill": random.choice(["yes", "no"], 120).tolist(),
    }
    write_table(folder / "people.parquet", table)
    document = {
        "input": {"path": str(folder / "people.parquet")},
        "attributes": {
            "age": "quasi_identifier", "city": "quasi_identifier", "ill": "sensitive",
        },
        "privacy": {"k": 4},
        "execution": {"seed": 1},
        "output": {"path": str(folder / "release")},
    }  # fmt: skip
    (folder / "people.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    recoded = document | {
        "attributes": {
            "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [10, 20]}},
            "city": {"role": "quasi_identifier", "hierarchy": {"prefix": [1, 2]}},
            "ill": "sensitive",
        },
        "model": {"name": "full-domain", "suppression_limit": 0.2},
        "output": {"path": str(folder / "recoded")},
    }
    (folder / "recoded.yaml").write_text(yaml.safe_dump(recoded, sort_keys=False))
    grid = {"base": "people.yaml", "axes": {"privacy.k": [4, 8]}, "output": str(folder / "cells")}
    (folder / "grid.yaml").write_text(yaml.safe_dump(grid, sort_keys=False))
    return folder


@pytest.fixture(scope="module")
def release(place: Path) -> Path:
    """Return a release of the table, made by its command."""
    for name in ("people", "recoded"):
        assert main(["run", str(place / f"{name}.yaml"), "--no-progress"]) == 0
    return place / "release"


def arguments(name: str, place: Path, folder: Path) -> list[object]:
    """Return the arguments of a command that reads or makes the release."""
    configuration, release = place / "people.yaml", place / "release"
    people = place / "people.parquet"
    return {
        "check": ["check", configuration, "--set", f"output.path={folder / 'other'}"],
        "plan": ["check", "--plan", configuration, "--set", f"output.path={folder / 'other'}"],
        "verify": ["verify", release, "--original", people],
        "evaluate": ["evaluate", release, "--original", people],
        "report": ["report", release, "--out", folder / "report.html"],
        "arrange": ["arrange", configuration, "--target", "ill", "--out", folder / "arranged"],
        "clean": ["clean", configuration],
        "compare": ["compare", place / "grid.yaml"],
        "query": ["query", release, "age < 40 by ill"],
        "mapping": ["mapping", place / "recoded"],
        "run": ["run", configuration, "--set", f"output.path={folder / 'other'}", "--report"],
        "profile": ["profile", people],
        "init": ["init", people, "--out", folder / "drafted.yaml"],
        "show": ["show", release],
        "history": ["history", place],
        "union": ["union", release, "--out", folder / "union"],
    }[name]


@pytest.mark.parametrize("name", STAGES)
def test_stages(
    name: str, place: Path, release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert release.is_dir()
    words = arguments(name, place, tmp_path)
    outcome = command(capsys, *words)
    assert outcome.code == 0, outcome.err
    told = [line.partition(" anonspark: ")[2] for line in outcome.err.splitlines()]
    done = [line.rpartition(": done in ")[0] for line in told if ": done in " in line]
    assert done[0] == "start"
    assert [stage for stage in done if stage in STAGES[name]] == STAGES[name]


@pytest.mark.parametrize("name", STAGES)
def test_without_progress(
    name: str, place: Path, release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert release.is_dir()
    outcome = command(capsys, *arguments(name, place, tmp_path), "--no-progress")
    assert outcome.code == 0, outcome.err
    assert " ..." not in outcome.err
    assert "done in" not in outcome.err


ANSWERS = {"plan", "evaluate", "compare", "query", "mapping", "profile", "show", "history"}


@pytest.mark.parametrize("name", [*STAGES, "run", "profile", "init", "show", "history", "union"])
def test_quiet_prints_nothing_but_an_answer(
    name: str, place: Path, release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert release.is_dir()
    outcome = command(capsys, *arguments(name, place, tmp_path), "--quiet")
    assert outcome.code == (2 if name == "union" else 0), outcome.err
    # An error is shown, but no warning: the seed of the run is one that is guessed.
    assert bool(outcome.err) == (name == "union")
    assert bool(outcome.out) == (name in ANSWERS)


def test_quiet_keeps_json(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = command(capsys, *arguments("run", place, tmp_path), "--quiet", "--json")
    assert json.loads(outcome.out)["warnings"][0]["code"] == "guessable_seed"
    assert outcome.err == ""
    loud = command(capsys, *arguments("check", place, tmp_path), "--no-progress")
    assert "guessable" not in loud.out
    assert "execution.seed" in loud.err


@pytest.mark.parametrize("name", ["query", "mapping"])
def test_what_is_printed_stays_as_it_is(
    name: str, place: Path, release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert release.is_dir()
    words = arguments(name, place, tmp_path)
    for more in ([], ["--json"]):
        told, quiet = command(capsys, *words, *more), command(capsys, *words, *more, "--quiet")
        assert told.out == quiet.out != ""
        assert "anonspark: " not in told.out
    json.loads(quiet.out)
