"""What a terminal of 80 columns and a notebook show, compared with files.

``ANONSPARK_SNAPSHOTS=write`` writes the files anew; read the differences before you commit them.
"""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path

import pandas as pd
import pytest
from helpers import command
from places import REPOSITORY

import anonspark

FILES = Path(__file__).with_name("terminal")

CONFIGURATION = """\
input: {path: people.csv, format: csv, options: {header: "true"}}
attributes:
  birth_date: {role: quasi_identifier, type: date}
  sex: quasi_identifier
  education: quasi_identifier
  income: {role: quasi_identifier, type: number}
  diagnosis: sensitive
missing: drop
privacy: {k: 5, l_diversity: {attribute: diagnosis, l: 3}}
execution: {seed: 4611686018427387905, engine: local}
output: {path: out}
"""

COMMANDS = {
    "profile": ("profile", "people.csv"),
    "check": ("check", "people.yaml"),
    "plan": ("check", "--plan", "people.yaml"),
    "run": ("run", "people.yaml", "--run-id", "monday", "--details"),
    "verify": ("verify", "out", "--original", "people.csv"),
    "query": ("query", "out", "by sex"),
    "evaluate": ("evaluate", "out", "--original", "people.csv"),
}


def compare(name: str, shown: str) -> None:
    """Compare a text with the file of its name."""
    shown = re.sub(r"About \d+ seconds", "About N seconds", shown)
    shown = re.sub(r" +$", "", shown, flags=re.M)
    file = FILES / f"{name}.txt"
    if os.environ.get("ANONSPARK_SNAPSHOTS") == "write":
        file.write_text(shown, encoding="utf-8")
    assert shown == file.read_text(encoding="utf-8")


def test_a_terminal_shows_what_it_showed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    lines = (REPOSITORY / "data" / "people.csv").read_text(encoding="utf-8").splitlines()
    Path("people.csv").write_text("\n".join(lines[:401]) + "\n", encoding="utf-8")
    Path("people.yaml").write_text(CONFIGURATION, encoding="utf-8")
    for name, line in COMMANDS.items():
        done = command(capsys, *line)
        assert done.code == 0, done.err
        compare(name, done.out.replace(str(tmp_path), ""))
    # Tables and figures are never wider than the terminal; sentences are broken by it.
    frames = [line for line in done.out.splitlines() if "──" in line or line.startswith("  ")]
    assert max(map(len, frames)) <= 80


def test_a_notebook_shows_what_it_showed() -> None:
    people = pd.read_csv(REPOSITORY / "data" / "people.csv", nrows=400)
    roles = {"quasi_identifiers": ["sex", "income"], "sensitive": ["diagnosis"]}
    columns = ["sex", "income", "diagnosis"]
    with anonspark.anonymize(people[columns], k=5, l=3, seed=2**62 + 1, **roles) as release:
        compare("notebook_release", f"{release!r}\n")
        compare("notebook_verification", f"{release.verify(original=people)!r}\n")
    compare("notebook_profile", f"{anonspark.profile(people[columns])!r}\n")


def test_the_picture_of_a_terminal_is_what_the_commands_print() -> None:
    drawn = runpy.run_path(str(REPOSITORY / "tools" / "draw_terminal.py"))["draw"]()
    picture = REPOSITORY / "docs" / "images" / "terminal.svg"
    assert drawn == picture.read_text(encoding="utf-8"), "run tools/draw_terminal.py"
