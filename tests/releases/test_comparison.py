"""Comparisons: cells equal single runs, and only what is missing is run, with a trial of models."""

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
from commands import Cli
from helpers import configuration_file, document_file, summary, write_table

from anonspark.comparison import runner
from anonspark.comparison.grid import Trial, load_comparison, load_grid
from anonspark.comparison.runner import advise, compare
from anonspark.comparison.table import CellResult
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
    document_file(tmp_path, document(tmp_path), "base.yaml")
    grid = {
        "base": "base.yaml",
        "set": {"model.rho": 2},
        "axes": {"model.name": ["smondrian", "su-mondrian"], "privacy.k": [5, 10]},
        "output": str(tmp_path / "grid"),
    } | keys
    return document_file(tmp_path, grid, "grid.yaml")


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
    engine: LocalEngine, tmp_path: Path, calls: list[str], cli: Cli
) -> None:
    people(tmp_path / "people.parquet")
    path = grid_file(tmp_path)
    done = cli.ends(0, "compare", path)
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
    again = cli("compare", path)
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
    engine: LocalEngine, tmp_path: Path, calls: list[str], cli: Cli
) -> None:
    people(tmp_path / "people.parquet")
    axes = {
        "privacy.l_diversity": [{"attribute": "disease", "l": 60}, {"attribute": "disease", "l": 2}]
    }
    path = grid_file(tmp_path, axes=axes, rank_by="dm")
    done = cli.ends(0, "compare", path, "--set", "model.rho=1")
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


MODELS = ["su-mondrian", "smondrian", "u-canon", "microaggregation"]


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    random = np.random.default_rng(6)
    table = {
        "age": random.integers(20, 80, 90).tolist(),
        "height": random.normal(170, 10, 90).tolist(),
        "ill": random.choice(["yes", "no"], 90).tolist(),
    }
    write_table(tmp_path / "input.parquet", table)
    roles = {"age": "quasi_identifier", "height": "quasi_identifier", "ill": "sensitive"}
    return configuration_file(tmp_path, attributes=roles, privacy={"k": 20})


def test_models_at_three_k(configuration: Path, tmp_path: Path, cli: Cli) -> None:
    outcome = cli.ends(0, "compare", configuration, "--no-progress", "--json")
    told = json.loads(outcome.out)
    cells = {(row["model"], row["k"]): row for row in told["cells"]}
    assert set(cells) == {(name, k) for name in MODELS for k in (20, 40, 100)}
    # What the table is too small for is refused, with the reason, and the others are run.
    for name in MODELS:
        assert [cells[name, k]["status"] for k in (20, 40, 100)] == ["done", "done", "refused"]
        assert "100 needs at least 100 rows, the input has 90" in cells[name, 100]["reason"]
    assert sorted(told["refused"]) == ["full-domain", "rho-gain"]
    assert "attributes.age: found no hierarchy" in told["refused"]["rho-gain"]
    losses = {name: cells[name, 20]["loss"] for name in MODELS}
    advice = told["advice"]
    best = advice["sentence"].split()[4].removesuffix(",")
    # The configuration's own model stays where the best is hardly better.
    assert losses[best] <= min(losses.values()) / 0.98
    is_least = losses[best] == min(losses.values())
    assert ("loses least" in advice["sentence"]) == is_least
    assert is_least or f"the least is {min(losses.values()):.4f})" in advice["sentence"]
    assert f"(loss {losses[best]:.4f}" in advice["sentence"]
    assert f"{cells[best, 40]['loss']:.4f} at k = 40" in advice["sentence"]
    assert told["path"] == f"{tmp_path}/release-comparison"

    # A second call runs nothing, and the last two lines are for people.
    shown = cli.ends(0, "compare", configuration, "--no-progress")
    sentence, *_, there, remedy = shown.out.splitlines()
    assert there.startswith("0 runs, 12 reused. ")
    # In a pipe it is there once.
    assert sentence.lower() == advice["sentence"].lower()
    assert shown.out.lower().count(advice["sentence"].lower()) == 1
    done = f"--set {advice['set'][0]}" if advice["set"] else "nothing to set"
    assert remedy == f"To use it: {done}"

    # And the winner is made by what it says.
    arguments = [word for one in advice["set"] for word in ("--set", one)]
    outcome = cli("run", configuration, *arguments, "--no-progress", "--json")
    summary = json.loads(outcome.out)["summary"]
    assert (summary["model"], summary["loss"]) == (best, pytest.approx(losses[best]))


def test_variables_and_short_forms_are_taken(
    configuration: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEOPLE", str(configuration.parent / "input.parquet"))
    text = (
        "input: {path: '${PEOPLE}'}\nquasi_identifiers: [age]\nsensitive: [ill]\n"
        f"privacy: {{k: 45}}\nexecution: {{seed: 1}}\noutput: {{path: {tmp_path}/short}}\n"
    )
    (tmp_path / "short.yaml").write_text(text)
    outcome = cli.ends(0, "compare", tmp_path / "short.yaml", "--no-progress", "--json")
    told = json.loads(outcome.out)
    assert {row["status"] for row in told["cells"] if row["k"] == 45} == {"done"}


def test_a_wrong_configuration_is_told_once(configuration: Path, cli: Cli) -> None:
    outcome = cli.ends(2, "compare", configuration, "--set", "privacy.k=0")
    assert len(outcome.err.splitlines()) == 1
    assert "privacy.k" in outcome.err


def result(name: str, k: int, loss: float | None, left_out: int | None = 0) -> CellResult:
    summary: dict[str, Any] = {"loss": loss, "k": k, "rows_left_out": left_out}
    settings = {"model.name": name, "privacy.k": k}
    reason = "no class" if loss is None else None
    return CellResult(
        "", settings, "", reason, {}, {} if loss is None else summary, [], [], [], [], {}
    )


def test_another_model_has_to_be_worth_it() -> None:
    trial = Trial("su-mondrian", has_options=False, k=5, refused={})
    cells = [result("su-mondrian", 5, 0.1), result("microaggregation", 5, 0.099)]
    advice = advise(trial, cells)
    assert advice.overrides == ()
    assert advice.sentence == (
        "at k = 5 su-mondrian (cuts at medians, outliers in further rounds), which the "
        "configuration has, loses about as little as any "
        "(loss 0.1000, the least is 0.0990)"
    )
    unnamed = Trial("su-mondrian", has_options=False, k=5, refused={}, names_model=False)
    assert advise(unnamed, cells[:1]).sentence == (
        "at k = 5 su-mondrian (cuts at medians, outliers in further rounds), which is the default, "
        "loses least (loss 0.1000)"
    )
    auto = Trial(None, has_options=False, k=5, refused={})
    assert advise(auto, cells[:1]).sentence.startswith(
        "at k = 5 su-mondrian (cuts at medians, outliers in further rounds), which model: auto may "
        "choose, too, loses least"
    )
    cells = [result("su-mondrian", 5, 0.1), result("microaggregation", 5, 0.06, None)]
    advice = advise(trial, [*cells, result("microaggregation", 10, 0.09)])
    assert advice.command_line == "--set model.name=microaggregation"
    assert advice.sentence == (
        "at k = 5 microaggregation (groups of k to 2k - 1 records) loses least (loss 0.0600, 0.60 "
        "of su-mondrian's 0.1000) and "
        "leaves fewer than 5 records out. It would lose 0.0900 at k = 10"
    )
    # Options of the configuration's model are not those of another.
    advice = advise(Trial("su-mondrian", has_options=True, k=5, refused={}), cells)
    assert advice.command_line == "--set 'model={name: microaggregation}'"


def test_a_configuration_that_names_no_model_has_the_default(configuration: Path) -> None:
    for overrides, is_named in (([], False), (["model.name=u-canon"], True)):
        trial = load_comparison(configuration, overrides).trial
        assert trial is not None
        assert trial.names_model == is_named


def test_where_nothing_can_be_had() -> None:
    trial = Trial("canon", has_options=False, k=5, refused={})
    assert "no model can keep" in advise(trial, [result("canon", 5, None)]).sentence
    advice = advise(trial, [result("canon", 5, None), result("su-mondrian", 5, 0.2, 7)])
    assert "canon is refused" in advice.sentence
    assert "leaves 7 records out" in advice.sentence
    assert advice.overrides == ("model.name=su-mondrian",)
