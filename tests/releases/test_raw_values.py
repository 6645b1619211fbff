"""What a value and what a record is: markers of any type, blank rows, files of other programs."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from helpers import command, configuration_file, published, write_table

Capsys = pytest.CaptureFixture[str]

AGES = [20 + place % 40 for place in range(60)]
DAYS = [date(2024, 1, 1 + place % 28) for place in range(60)]


def configure(directory: Path, *names: str, **sections: Any) -> Path:
    """Write a configuration of quasi-identifiers, with k = 5."""
    attributes = dict.fromkeys(names, "quasi_identifier") | sections.pop("others", {})
    output = {"path": str(directory / "release")}
    return configuration_file(
        directory, attributes=attributes, privacy={"k": 5}, output=output, **sections
    )


def test_markers_mean_numbers_and_days(tmp_path: Path, capsys: Capsys) -> None:
    ages = [999 if place % 10 == 0 else age for place, age in enumerate(AGES)]
    seen = [date(1900, 1, 1) if place % 10 == 1 else day for place, day in enumerate(DAYS)]
    write_table(tmp_path / "input.parquet", {"age": ages, "seen": seen})
    source = {
        "path": str(tmp_path / "input.parquet"),
        "missing_markers": ["", "999", "1900-01-01"],
    }
    attributes = {
        "age": {"role": "quasi_identifier", "range": [18, 65]},
        "seen": "quasi_identifier",
    }
    path = configure(tmp_path, input=source, others=attributes)
    found = command(capsys, "run", path)
    assert found.code == 0, found.err
    assert published(tmp_path / "release").num_rows == 48
    found = command(capsys, "verify", tmp_path / "release", "--original", source["path"])
    assert found.code == 0, found.err
