"""What ``init`` writes of a table of any kind passes ``check``, or nothing is written."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import one_by_day
from helpers import command, write_table

TWENTY = list(range(20)) * 2

NAMES = [
    *(
        "age",
        "sex",
        "zip",
        "diagnosis",
        "income",
        "household_id",
        "pid",
        "id",
        "birth_date",
        "city",
    ),
    *("religion", "label", "score", "num_visits", "date", "time", "code", "notes", "email", "x"),
    *("county", "school_id", "a b", "c.d", "e: f", "it's", "#g"),
]
QUOTED = ["my age", "a.b", "x: y", 'it\'s "q"', "#c", "- d", "{e}", "`f`"]
READ_BY_YAML = ["true", "null", "1", "1.5", "2020-01-01", "no", "~", "*"]

ODD: dict[str, dict[str, Any]] = {
    "fewer rows than k": {"age": [1, 2, 3], "sex": ["f", "m", "f"]},
    "as many rows as k": {"age": [1, 2, 3, 4, 5], "income": [1, 2, 3, 4, 5]},
    "a sensitive value of all": {"age": TWENTY, "diagnosis": ["flu"] * 40},
    "a sensitive value of nearly all": {"age": TWENTY, "diagnosis": ["flu"] * 37 + ["x"] * 3},
    "sensitive values in small classes": {"age": [1, 2, 3, 4, 5, 6], "diagnosis": list("aaaabc")},
    "several sensitive": {
        "age": TWENTY, "diagnosis": ["a"] * 20 + ["b"] * 20, "income": [1] * 19 + [2] * 21,
        "religion": ["x"] * 30 + ["y"] * 10,
    },
    "sensitive values that are missing": {"age": TWENTY, "diagnosis": [None] * 20 + ["b"] * 20},
    "names": dict.fromkeys(QUOTED, TWENTY),
    "names that YAML reads": dict.fromkeys(READ_BY_YAML, TWENTY),
    "a long name": {"x" * 300: TWENTY},
    "no values": {"a": [None] * 40, "b": [None] * 40},
    "mostly missing": {"age": [None] * 30 + list(range(10)), "sex": ["f", "m"] * 20},
    "no complete row": {
        "age": [None if row % 2 else row for row in range(40)],
        "zip": [10_000 + row % 7 if row % 2 else None for row in range(40)],
    },
    "truth values": {"a": [True, False] * 20, "b": [True] * 20 + [False] * 20},
    "a column": {"x": TWENTY},
    "a sensitive column": {"diagnosis": ["a", "b"] * 20},
    "two hundred columns": {f"c{place}": TWENTY for place in range(200)},
    "keys": {"id": list(range(40)), "email": [f"a{row}@b.de" for row in range(40)]},
    "households": {
        "household_id": [row // 4 for row in range(40)], "age": TWENTY,
        "diagnosis": [["a", "b", "c", "d"][row % 4] if row < 8 else "a" for row in range(40)],
    },
    "fewer households than k": {"household_id": [row // 10 for row in range(40)], "age": TWENTY},
    "infinite": {"age": [float("inf"), *range(39)], "x": TWENTY},
    "nested": {"a": [[1, 2]] * 40, "b": TWENTY},
    "names that differ in case": {"age": TWENTY, "Age": TWENTY},
    "postal codes with a fraction": {"zip": [row % 7 / 2 for row in range(40)]},
}  # fmt: skip


def check_draft(capsys: pytest.CaptureFixture[str], folder: Path, name: str, *options: str) -> None:
    before = sorted(folder.iterdir())
    drafted = command(capsys, "init", name, "--quiet", *options)
    if drafted.code:
        assert drafted.code == 3, drafted.err
        assert sorted(folder.iterdir()) == before
        return
    checked = command(capsys, "check", "t.yaml", "--quiet", "--set", "execution.engine=local")
    assert checked.code == 0, checked.err


@pytest.mark.parametrize("table", ODD.values(), ids=ODD)
def test_an_odd_table(
    table: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "t.parquet", table)
    check_draft(capsys, tmp_path, "t.parquet")


def texts_of(random: np.random.Generator, rows: int) -> Sequence[str]:
    """Return values of a form, of which some may be missing and one may be frequent."""
    values = random.integers(0, random.choice([1, 2, 3, 5, 10, 40, 200]), rows)
    if random.random() < 0.4:
        values[random.random(rows) < 0.8] = 0
    forms = [
        "v{0}", "{0}", "{0}.0", "{0}.{1}", "{0:04}", "19{2}-0{1}-1{1}", "1{1}.0{1}.19{2}",
        "2020-01-0{1} 10:00:0{1}", "{0}-{1}", "{0},{1}", "A{2}.{1}", "{0}%", "${0}", "x{1} {1}",
    ]  # fmt: skip
    form = random.choice(forms)
    missing = random.choice(["", "NA", "?", "-", "unknown"])
    absent = random.random(rows) < random.choice([0, 0, 0, 0.1, 0.5, 0.95])
    return [
        missing if lacks else form.format(value, 1 + value % 9, 10 + value % 90)
        for value, lacks in zip(values, absent, strict=True)
    ]


@pytest.mark.parametrize("seed", one_by_day(*range(5)))
def test_tables_at_random(
    seed: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    random = np.random.default_rng(seed)
    for number in range(12):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        rows = int(random.choice([1, 4, 5, 6, 9, 12, 20, 33, 60, 150]))
        names = random.choice(NAMES, random.integers(1, 9), replace=False)
        columns = [texts_of(random, rows) for _ in names]
        with Path("t.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([names, *zip(*columns, strict=True)])
        check_draft(capsys, folder, "t.csv", "--option", "header=true")
