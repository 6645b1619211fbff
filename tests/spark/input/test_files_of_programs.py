"""Converted files and archives: both engines read the same."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import date
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest
from cases import one_by_day
from commands import Cli
from helpers import configuration_file, published
from workbooks import write_workbook

import anonspark

LABELS = {"sex": {1: "male", 2: "female", 9: "no answer"}, "educ": {1: "none", 2: "low", 3: "high"}}
PEOPLE = pd.DataFrame(
    {
        "age": [float(20 + n * 7 % 50) for n in range(240)],
        "sex": [float([1, 2, 9][n % 3]) for n in range(240)],
        "educ": [float(1 + n * 5 % 3) for n in range(240)],
        "born": [date(1990, 1, 1 + n % 28) for n in range(240)],
        "town": ["abc"[n % 3] for n in range(240)],
    }
)


def as_spss(path: Path) -> Path:
    pyreadstat.write_sav(
        PEOPLE, str(path), variable_value_labels=LABELS, missing_ranges={"sex": [9]}
    )
    return path


def as_stata(path: Path) -> Path:
    pyreadstat.write_dta(PEOPLE, str(path), variable_value_labels=LABELS)
    return path


def as_workbook(path: Path) -> Path:
    return write_workbook(path, {"people": [list(PEOPLE), *PEOPLE.to_numpy().tolist()]})


def as_archive(path: Path) -> Path:
    text = io.BytesIO()
    PEOPLE.to_csv(text, index=False)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("people.csv", text.getvalue())
    return path


def as_zstandard(path: Path) -> Path:
    content = PEOPLE.to_csv(index=False).encode()
    path.write_bytes(pa.compress(content, codec="zstd", asbytes=True))
    return path


WRITERS = {
    "people.sav": as_spss,
    "people.dta": as_stata,
    "people.xlsx": as_workbook,
    "people.csv.zip": as_archive,
    "people.csv.zst": as_zstandard,
}


CONVERTED = ("people.sav", "people.dta", "people.xlsx")


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", one_by_day(*WRITERS))
def test_both_engines_publish_the_same(tmp_path: Path, cli: Cli, name: str) -> None:
    original = WRITERS[name](tmp_path / name)
    if name in CONVERTED:
        anonspark.convert(original, tmp_path / "people.parquet")
        original = tmp_path / "people.parquet"
    releases = []
    for engine in ("local", "spark"):
        path = configuration_file(
            tmp_path,
            input={"path": str(original)},
            missing="category",
            attributes={
                **dict.fromkeys(("age", "sex", "born", "educ"), "quasi_identifier"),
                "town": "insensitive",
            },
            execution={"engine": engine, "seed": 7},
            output={"path": str(tmp_path / engine)},
        )
        cli.ends(0, "run", path)
        cli.ends(0, "verify", tmp_path / engine, "--original", original, "--engine", engine)
        releases.append(
            (
                published(tmp_path / engine),
                json.loads((tmp_path / engine / "manifest.json").read_text()),
            )
        )
    (local, one), (spark, other) = releases
    assert local.equals(spark)
    for fingerprinted in ("input", "output"):
        assert one["fingerprints"][fingerprinted] == other["fingerprints"][fingerprinted]
    if name in CONVERTED[:2]:
        # In the order of the codes, not of letters.
        assert "{none, high}" not in set(local["educ"].to_pylist())
        assert "high" in str(set(local["educ"].to_pylist()))
        is_missing = "no answer" not in str(set(local["sex"].to_pylist()))
        assert is_missing == (name == "people.sav")


def test_commands_on_a_converted_file(tmp_path: Path, cli: Cli) -> None:
    original = tmp_path / "people.parquet"
    cli.ends(0, "convert", as_stata(tmp_path / "people.dta"), original, "--no-progress")
    configured = tmp_path / "people.yaml"
    cli.ends(0, "init", original, "--out", configured, "--no-progress")
    for asked in ("check", "run"):
        cli.ends(0, asked, configured, "--no-progress", "--set", f"output.path={tmp_path}/o")
    cli.ends(0, "evaluate", tmp_path / "o", "--original", original, "--no-progress")
