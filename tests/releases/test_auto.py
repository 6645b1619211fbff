"""The model that is chosen for a table: deterministic, told, and what was promised of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from data_sets import ADULT
from helpers import command, configuration_file, contents, summary, write_table

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.models import choosing
from anonspark.models import choosing as rivals
from anonspark.pipeline.run import run
from anonspark.verification.audit import audit_release

if TYPE_CHECKING:
    pass


NUMBERS = ADULT.quasi_identifiers


@pytest.fixture(scope="module")
def few(adult_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("adult") / "few.parquet"
    table = pc.read_csv(adult_path).select([*NUMBERS, "sex", "marital-status", "income"])
    pq.write_table(table.slice(0, 1_000), path)
    return path


def release_of(
    engine: LocalEngine, table: Path, path: Path, model: dict[str, Any], task_rows: int = 250_000
) -> dict[str, Any]:
    document = {
        "input": {"path": str(table)},
        "attributes": dict.fromkeys([*NUMBERS, "sex", "marital-status"], "quasi_identifier")
        | {"income": "sensitive"},
        "privacy": {"k": 5, "l_diversity": {"attribute": "income", "l": 2}},
        "model": model,
        "output": {"path": str(path)},
        "execution": {"task_rows": task_rows},
    }
    run(engine, parse_configuration(document))
    manifest: dict[str, Any] = json.loads((path / "manifest.json").read_text())
    return manifest


@pytest.mark.parametrize("objective", ["loss", "queries"])
def test_the_best_of_all_is_chosen(
    engine: LocalEngine, few: Path, tmp_path: Path, objective: str
) -> None:
    auto = {"name": "auto", "objective": objective}
    chosen = release_of(engine, few, tmp_path / "auto", auto)["chosen_model"]
    audit_release(engine, str(tmp_path / "auto")).require()
    assert (chosen["objective"], chosen["rows"]) == (objective, 1_000)
    assert len(chosen["tried"]) == 3
    best = min(chosen["tried"], key=lambda one: one["loss"])
    assert chosen["model"] == best["model"]
    # The release is that of the model named, and it is the same however it is cut into tasks.
    options = best["model"]
    release_of(engine, few, tmp_path / "named", options)
    again = release_of(engine, few, tmp_path / "again", auto, task_rows=250)
    assert again["chosen_model"] == chosen
    found = summary(tmp_path / "auto")
    for other in ("named", "again"):
        fingerprint = summary(tmp_path / other)["output_fingerprint"]
        assert fingerprint == found["output_fingerprint"]
    assert found["model"] == "auto"


def test_losses_are_those_of_releases(engine: LocalEngine, few: Path, tmp_path: Path) -> None:
    """All records are tried, so each candidate is known to lose what its release loses."""
    told = release_of(engine, few, tmp_path / "auto", {"name": "auto"})["chosen_model"]["tried"]
    assert summary(tmp_path / "auto")["loss"] == pytest.approx(min(one["loss"] for one in told))
    for place, one in enumerate(told):
        release_of(engine, few, tmp_path / str(place), one["model"])
        assert summary(tmp_path / str(place))["loss"] == pytest.approx(one["loss"], rel=1e-9)


def test_a_table_larger_than_the_sample_is_drawn_from(
    engine: LocalEngine, few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anonspark.models.choosing._SAMPLED", 500)
    shuffled = tmp_path / "shuffled.parquet"
    table = pq.read_table(few)
    pq.write_table(table.take(pa.array(range(table.num_rows - 1, -1, -1))), shuffled)
    chosen = release_of(engine, few, tmp_path / "one", {"name": "auto"})["chosen_model"]
    assert 400 < chosen["rows"] < 600
    other = release_of(engine, shuffled, tmp_path / "other", {"name": "auto"}, task_rows=350)
    assert other["chosen_model"] == chosen


def test_a_sample_that_is_smaller_than_k_chooses_all_the_same(
    engine: LocalEngine, few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "_SAMPLED", 20)
    document = {
        "input": {"path": str(few)},
        "attributes": dict.fromkeys(NUMBERS, "quasi_identifier"),
        "privacy": {"k": 100},
        "model": "auto",
        "output": {"path": str(tmp_path / "out")},
    }
    run(engine, parse_configuration(document))
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert 0 < manifest["chosen_model"]["rows"] < 100


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
        json.loads(command(capsys, "run", path, "--json", "--no-progress", *arguments).out)[
            "summary"
        ]
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
    outcome = command(capsys, "run", path, "--no-progress", "--details")
    assert outcome.code == 0, outcome.err
    assert "better" not in outcome.out


def test_nothing_is_tried_unless_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = configured(folder, model={"name": "smondrian"}, output={"mode": "overwrite"})
    outcome = command(capsys, "run", path, "--json", "--no-progress")
    assert "compare models" not in json.loads(outcome.out)["seconds"]
    again = command(capsys, "run", path, "--json", "--no-progress", "--details")
    assert "compare models" in json.loads(again.out)["seconds"]
