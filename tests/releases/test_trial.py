"""``compare`` with a configuration instead of a grid: models at three k, and one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import command, configuration_file, write_table

from anonspark.comparison.grid import Trial, load_comparison
from anonspark.comparison.runner import advise
from anonspark.comparison.table import CellResult

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


def test_models_at_three_k(
    configuration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = command(capsys, "compare", configuration, "--no-progress", "--json")
    assert outcome.code == 0, outcome.err
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
    shown = command(capsys, "compare", configuration, "--no-progress")
    assert shown.code == 0, shown.err
    *_, there, sentence, remedy = shown.out.splitlines()
    assert there.startswith("0 runs, 12 reused. ")
    assert sentence.lower() == advice["sentence"].lower()
    done = f"--set {advice['set'][0]}" if advice["set"] else "nothing to set"
    assert remedy == f"To use it: {done}"

    # And the winner is made by what it says.
    arguments = [word for one in advice["set"] for word in ("--set", one)]
    outcome = command(capsys, "run", configuration, *arguments, "--no-progress", "--json")
    summary = json.loads(outcome.out)["summary"]
    assert (summary["model"], summary["loss"]) == (best, pytest.approx(losses[best]))


def test_variables_and_short_forms_are_taken(
    configuration: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PEOPLE", str(configuration.parent / "input.parquet"))
    text = (
        "input: {path: '${PEOPLE}'}\nquasi_identifiers: [age]\nsensitive: [ill]\n"
        f"privacy: {{k: 45}}\nexecution: {{seed: 1}}\noutput: {{path: {tmp_path}/short}}\n"
    )
    (tmp_path / "short.yaml").write_text(text)
    outcome = command(capsys, "compare", tmp_path / "short.yaml", "--no-progress", "--json")
    assert outcome.code == 0, outcome.err
    told = json.loads(outcome.out)
    assert {row["status"] for row in told["cells"] if row["k"] == 45} == {"done"}


def test_a_wrong_configuration_is_told_once(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = command(capsys, "compare", configuration, "--set", "privacy.k=0")
    assert outcome.code == 2
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
        "at k = 5 su-mondrian, which the configuration has, loses about as little as any "
        "(loss 0.1000, the least is 0.0990)"
    )
    unnamed = Trial("su-mondrian", has_options=False, k=5, refused={}, names_model=False)
    assert advise(unnamed, cells[:1]).sentence == (
        "at k = 5 su-mondrian, which is the default, loses least (loss 0.1000)"
    )
    cells = [result("su-mondrian", 5, 0.1), result("microaggregation", 5, 0.06, None)]
    advice = advise(trial, [*cells, result("microaggregation", 10, 0.09)])
    assert advice.command_line == "--set model.name=microaggregation"
    assert advice.sentence == (
        "at k = 5 microaggregation loses least (loss 0.0600, 0.60 of su-mondrian's 0.1000) and "
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
