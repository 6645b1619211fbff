"""Rules that keep first characters, leave the last interval open, and group by decades."""

from __future__ import annotations

import csv
import datetime
import io
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cases import cases
from helpers import command, configuration_file, published, write_table

ROWS = 400
RULES: dict[str, Any] = {
    "age": {"intervals": [5, 10], "top": 80},
    "born": {"calendar": ["year", "decade"]},
    "icd": {"keep": [3, 1]},
}


def people() -> dict[str, Any]:
    draw = random.Random(11)  # noqa: S311
    first = datetime.date(1935, 1, 1)
    codes = ["E11", "E11.9", "E11.65", "E10.1", "I10", "I50.22", "I50.9", "J45.909", "J4"]
    return {
        "age": [draw.randint(18, 104) for _ in range(ROWS)],
        "born": [first + datetime.timedelta(days=draw.randint(0, 25_000)) for _ in range(ROWS)],
        "icd": [draw.choice(codes) for _ in range(ROWS)],
        "illness": [draw.choice(["flu", "cold", "none"]) for _ in range(ROWS)],
    }


def release_of(
    capsys: pytest.CaptureFixture[str], folder: Path, style: str, model: dict[str, Any]
) -> Path:
    write_table(folder / "input.parquet", people())
    path = configuration_file(
        folder,
        attributes={
            **{
                name: {"role": "quasi_identifier", "hierarchy": rule}
                for name, rule in RULES.items()
            },
            "illness": "sensitive",
        },
        privacy={"k": 5},
        model=model,
        output={"style": style},
        execution={"seed": 8_152_637_485_960_714},
    )
    outcome = command(capsys, "run", path, "--no-progress")
    assert outcome.code == 0, outcome.err
    return path


@cases(__file__, "model", "style")
def test_releases_hold_with_the_original(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, model: dict[str, Any], style: str
) -> None:
    path = release_of(capsys, tmp_path, style, model)
    release = tmp_path / "release"
    assert command(capsys, "verify", release, "--config", path, "--json").code == 0
    original = command(
        capsys, "verify", release, "--original", tmp_path / "input.parquet", "--json"
    )
    assert original.code == 0, original.err
    for name in ("evaluate", "report"):
        done = command(capsys, name, release, "--original", tmp_path / "input.parquet")
        assert done.code == 0, done.err


def test_every_label_holds_its_records(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    release_of(capsys, tmp_path, "interval", {"name": "su-mondrian"})
    release, raw = tmp_path / "release", pa.table(people()).to_pylist()
    labels = {name: set(published(release)[name].to_pylist()) for name in RULES}
    assert "80+" in labels["age"]
    assert any(label.endswith("0s") for label in labels["born"])
    assert any(label.endswith("*") and len(label) == 4 for label in labels["icd"])
    for question, holds in (
        ("icd = 'E11*'", lambda row: row["icd"].startswith("E11")),
        ("icd = 'E11'", lambda row: row["icd"] == "E11"),
        ("icd in ('J*', 'I10')", lambda row: row["icd"][0] == "J" or row["icd"] == "I10"),
        ("age >= 80", lambda row: row["age"] >= 80),
        ("age between 95 and 97", lambda row: 95 <= row["age"] <= 97),
        ("born < '1950-01-01'", lambda row: row["born"].year < 1950),
    ):
        outcome = command(capsys, "query", release, question, "--json")
        assert outcome.code == 0, outcome.err
        answer = json.loads(outcome.out)
        truth = sum(map(holds, raw))
        assert answer["lower"] <= truth <= answer["upper"], question
        assert answer["lower"] <= answer["estimate"] <= answer["upper"], question


def test_the_mapping_of_an_open_interval_has_no_end(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    release_of(capsys, tmp_path, "interval", {"name": "full-domain", "suppression_limit": 0.1})
    outcome = command(capsys, "mapping", tmp_path / "release")
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    (row,) = [row for row in rows if row["label"] == "80+"]
    assert (row["low"], row["high"], row["high_included"]) == ("80", "", "")
