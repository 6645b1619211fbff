"""Ordered dictionaries of Parquet files bring the same order to both engines."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from commands import Cli
from helpers import configuration_file, published

LEVELS = ["none", "mild", "never", "moderate", "severe"]


@pytest.mark.usefixtures("spark")
def test_both_engines_read_the_order(tmp_path: Path, cli: Cli) -> None:
    texts = [LEVELS[[0, 1, 3, 4][place * 7 % 4]] for place in range(200)]
    seen = pd.date_range("2020-01-01", periods=200)
    severity = pd.Categorical(texts, LEVELS, ordered=True)
    folder = tmp_path / "input.parquet"
    folder.mkdir()
    people = pd.DataFrame({"severity": severity, "seen": seen, "note": None})
    people.to_parquet(folder / "a.parquet", index=False)
    people.assign(note="x").to_parquet(folder / "b.parquet", index=False)
    releases = []
    for engine in ("local", "spark"):
        path = configuration_file(
            tmp_path,
            attributes={"severity": "quasi_identifier", "seen": "sensitive", "note": "insensitive"},
            privacy={"k": 120},
            execution={"engine": engine, "seed": 7},
            output={"path": str(tmp_path / engine)},
        )
        cli.ends(0, "run", path)
        releases.append(published(tmp_path / engine))
    assert set(releases[1]["severity"].to_pylist()) == {"{none, mild}", "{moderate, severe}"}
    assert releases[0].equals(releases[1])
