"""``run --details`` says when another model would lose much less, in no file of the release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import command, configuration_file, contents, write_table

from anonspark.models import choosing as rivals


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with clustered records, which microaggregation is good for."""
    folder = tmp_path_factory.mktemp("rivals")
    random = np.random.default_rng(8)
    centre = random.normal(0, 50, (40, 3))[random.integers(0, 40, rivals.LEAST_ROWS)]
    values = (centre + random.normal(0, 1, centre.shape)).round(1)
    table: dict[str, Any] = {name: values[:, place] for place, name in enumerate("abc")}
    write_table(folder / "input.parquet", table)
    return folder


def configured(folder: Path, **sections: Any) -> Path:
    roles = dict.fromkeys("abc", "quasi_identifier")
    return configuration_file(folder, attributes=roles, privacy={"k": 5}, **sections)


def test_a_model_that_loses_much_less_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = configured(folder, model={"name": "smondrian"}, output={"mode": "overwrite"})
    first = command(capsys, "run", path, "--run-id", "a", "--details")
    assert first.code == 0, first.err
    (line,) = [one for one in first.out.splitlines() if one.startswith("  better ")]
    words = line.split()
    assert words[1:6] == ["microaggregation", "would", "lose", "about", words[5]]
    assert int(words[5].removesuffix("%")) >= 20
    assert words[6] == "less"
    assert line.endswith("--set model.name=microaggregation")
    assert "microaggregation would lose about" in first.err
    assert "microaggregation" not in json.dumps(
        [text for name, text in contents(folder / "release").items() if name.endswith(".json")],
        default=str,
    )
    # It is the same again, and true of the whole table.
    again = command(capsys, "run", path, "--run-id", "a", "--details")
    assert line in again.out
    lost = [
        json.loads(command(capsys, "run", path, "--json", "--quiet", *arguments).out)["summary"]
        for arguments in ([], ["--set", "model.name=microaggregation"])
    ]
    assert lost[1]["gcp"] < 0.9 * lost[0]["gcp"]


@pytest.mark.parametrize(
    "model",
    [{"name": "microaggregation"}, {"name": "auto"},
     {"name": "microaggregation", "objective": "queries"}],
)  # fmt: skip
def test_nothing_is_said_of_the_best(
    folder: Path, capsys: pytest.CaptureFixture[str], model: dict[str, Any]
) -> None:
    path = configured(folder, model=model, output={"mode": "overwrite"})
    outcome = command(capsys, "run", path, "--quiet", "--details")
    assert outcome.code == 0, outcome.err
    assert "better" not in outcome.out


def test_nothing_is_tried_unless_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = configured(folder, model={"name": "smondrian"}, output={"mode": "overwrite"})
    outcome = command(capsys, "run", path, "--json", "--quiet")
    assert "compare models" not in json.loads(outcome.out)["seconds"]
    again = command(capsys, "run", path, "--json", "--quiet", "--details")
    assert "compare models" in json.loads(again.out)["seconds"]
