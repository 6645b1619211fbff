"""Comparisons: cells equal single runs, only what is missing is run, no record is left behind."""

from __future__ import annotations

import csv
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from helpers import command, summary, write_table

from anonspark.comparison import runner
from anonspark.comparison.grid import load_grid
from anonspark.comparison.runner import compare
from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.local.files import LocalFiles
from anonspark.errors import ConfigurationError, DataError
from anonspark.pipeline.run import run

ROWS = 600

# Of the run itself, not of what it made.
OWN = {"run_id", "started", "seconds", "configuration_fingerprint"}


def people(path: Path, seed: int = 7) -> Path:
    random = np.random.default_rng(seed)
    columns = {
        "age": random.integers(18, 90, ROWS),
        "income": np.round(random.lognormal(10, 1, ROWS), 4),
        "disease": [f"Kryptonitis {number}" for number in random.integers(0, 50, ROWS)],
    }
    return write_table(path, columns)


def document(tmp_path: Path) -> dict[str, Any]:
    return {
        "input": {"path": str(tmp_path / "people.parquet")},
        "attributes": {
            "age": "quasi_identifier",
            "income": "quasi_identifier",
            "disease": "sensitive",
        },
        "privacy": {"k": 5},
        "output": {"path": str(tmp_path / "release"), "mode": "error"},
    }


def grid_file(tmp_path: Path, **keys: Any) -> Path:
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(document(tmp_path), sort_keys=False))
    grid = {
        "base": "base.yaml",
        "set": {"model.rho": 2},
        "axes": {"model.name": ["smondrian", "su-mondrian"], "privacy.k": [5, 10]},
        "output": str(tmp_path / "grid"),
    } | keys
    path = tmp_path / "grid.yaml"
    path.write_text(yaml.safe_dump(grid, sort_keys=False))
    return path


def hidden(tmp_path: Path) -> list[Path]:
    return [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record what is prepared and what is run, by name and k."""
    made: list[str] = []
    prepare = runner.prepare

    def recorded_prepare(*arguments: Any, **options: Any) -> Any:
        made.append("prepare")
        return prepare(*arguments, **options)

    def recorded_run(engine: LocalEngine, configuration: Any, **options: Any) -> Any:
        made.append(f"{configuration.model.name} {configuration.privacy.k}")
        return run(engine, configuration, **options)

    monkeypatch.setattr(runner, "prepare", recorded_prepare)
    monkeypatch.setattr(runner, "run", recorded_run)
    return made


def test_cells_equal_single_runs_and_only_what_is_missing_is_run(
    engine: LocalEngine, tmp_path: Path, calls: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    people(tmp_path / "people.parquet")
    path = grid_file(tmp_path)
    done = command(capsys, "compare", path)
    assert done.code == 0, done.err
    assert "4 runs, none reused" in done.out
    assert "setting 2 of 4: smondrian, k = 10: done in " in done.err
    all_of_them = ["smondrian 5", "smondrian 10", "su-mondrian 5", "su-mondrian 10"]
    assert calls == ["prepare", *all_of_them]
    assert hidden(tmp_path) == []

    output = tmp_path / "grid"
    table = pq.read_table(output / "metrics").to_pylist()
    with (output / "metrics.csv").open(newline="") as file:
        as_csv = list(csv.DictReader(file))
    assert [row["cell"] for row in as_csv] == [row["cell"] for row in table]
    assert [float(row["gcp"]) for row in as_csv] == [row["gcp"] for row in table]
    for k in (5, 10):
        of_k = [row for row in table if row["privacy_k"] == row["k"] == k]
        assert [row["place"] for row in of_k] == [1, 2]
        assert of_k[0]["gcp"] < of_k[1]["gcp"]
    grid = load_grid(path)
    for cell in (grid.cells[0], grid.cells[3]):
        (row,) = (row for row in table if row["cell"] == cell.id)
        name, k = cell.settings.values()
        single = tmp_path / f"{name}-{k}"
        configuration = document(tmp_path) | {"privacy": {"k": k}}
        configuration["model"] = {"name": name, "rho": 2}
        configuration["output"] = {"path": str(single)}
        run(engine, parse_configuration(configuration))
        expected = summary(single)
        figures = set(expected) - OWN - {"output_fingerprint"}
        assert {key: row[key] for key in figures} == {key: expected[key] for key in figures}
        kept = json.loads((output / "cells" / f"{cell.id}.json").read_text())
        assert kept["summary"]["output_fingerprint"] == expected["output_fingerprint"]
        assert kept["summary"]["configuration_fingerprint"][:16] == cell.id
        rounds = pq.read_table(single / "metrics" / "rounds").to_pylist()
        assert [row["gcp_total"] for row in kept["rounds"]] == [row["gcp_total"] for row in rounds]

    # Nothing that a person could be known by: neither values nor the folder of the releases.
    written = "".join(
        file.read_bytes().decode("latin-1") for file in output.rglob("*") if file.is_file()
    )
    assert "Kryptonitis" not in written
    incomes = pq.read_table(tmp_path / "people.parquet")["income"].to_pylist()
    assert not [income for income in incomes if str(income) in written]
    page = (output / "report.html").read_text()
    assert "gcp against k: one line for each of" in page

    # Again: the input is looked at, nothing is run.
    calls.clear()
    again = command(capsys, "compare", path)
    assert "0 runs, 4 reused" in again.out
    assert calls == ["prepare"]
    assert pq.read_table(output / "metrics").to_pylist() == table

    # A cell that is missing, a new one, and what a killed run left of a third.
    calls.clear()
    (output / "cells" / f"{grid.cells[1].id}.json").unlink()
    (output / "cells" / f"_{grid.cells[0].id}.draft").write_text("{")
    axes = [
        {"model.name": ["smondrian", "su-mondrian"], "privacy.k": [5, 10]},
        {"model.name": ["smondrian"], "privacy.k": [20]},
    ]
    wider = load_grid(grid_file(tmp_path, axes=axes))
    comparison = compare(engine, wider)
    assert calls == ["prepare", "smondrian 10", "smondrian 20"]
    assert (comparison.ran, comparison.reused, len(comparison.rows)) == (2, 3, 5)

    # Another input under the same path.
    people(tmp_path / "people.parquet", seed=8)
    with pytest.raises(ConfigurationError, match="figures of another input"):
        compare(engine, wider)
    assert hidden(tmp_path) == []


def test_a_cell_that_cannot_hold_its_criterion_is_recorded(
    engine: LocalEngine, tmp_path: Path, calls: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    people(tmp_path / "people.parquet")
    axes = {
        "privacy.l_diversity": [{"attribute": "disease", "l": 60}, {"attribute": "disease", "l": 2}]
    }
    path = grid_file(tmp_path, axes=axes, rank_by="dm")
    done = command(capsys, "compare", path, "--set", "model.rho=1")
    assert done.code == 0, done.err
    assert "refused: " in done.out
    assert "l-diversity" in done.out
    table = {row["status"]: row for row in pq.read_table(tmp_path / "grid" / "metrics").to_pylist()}
    assert set(table) == {"refused", "done"}
    assert "60" in table["refused"]["reason"]
    assert table["refused"]["place"] is table["refused"]["dm"] is None
    assert table["done"]["rho"] == 1
    # It is not tried again.
    calls.clear()
    assert compare(engine, load_grid(path, ["model.rho=1"])).reused == 2
    assert calls == ["prepare"]
    assert "l=60" not in done.err


def test_what_is_refused_before_any_cell_is_run(
    engine: LocalEngine, tmp_path: Path, calls: list[str]
) -> None:
    people(tmp_path / "people.parquet")
    axes = {"privacy.k": [5, ROWS + 1]}
    with pytest.raises(DataError, match=f"{ROWS + 1} needs at least"):
        compare(engine, load_grid(grid_file(tmp_path, axes=axes)))
    with pytest.raises(ConfigurationError, match="lie inside one another"):
        compare(engine, load_grid(grid_file(tmp_path, output=str(tmp_path))))
    other = tmp_path / "other"
    (other / "metrics").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match="is not a comparison"):
        compare(engine, load_grid(grid_file(tmp_path, output=str(other))))
    assert calls == ["prepare"]
    assert hidden(tmp_path) == []
    assert [path.name for path in other.iterdir()] == ["metrics"]


def test_staging_is_private_and_removed_when_a_cell_fails(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(tmp_path / "people.parquet")
    modes: list[int] = []

    def run_once(*arguments: Any, **options: Any) -> Any:
        (staging,) = hidden(tmp_path)
        modes.append(stat.S_IMODE(staging.stat().st_mode))
        assert LocalFiles().exists(f"{staging}/records-1/snapshot")
        if len(modes) == 2:
            raise KeyError("a bug")
        return run(*arguments, **options)

    monkeypatch.setattr(runner, "run", run_once)
    grid = load_grid(grid_file(tmp_path))
    with pytest.raises(KeyError):
        compare(engine, grid)
    assert modes == [0o700, 0o700]
    assert hidden(tmp_path) == []
    # What was measured before stays measured.
    assert [path.stem for path in (tmp_path / "grid" / "cells").glob("*.json")] == [
        grid.cells[0].id
    ]
