"""Comparisons whose cells are evaluated: figures of `evaluate`, reuse, refusals, the report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from cases import cases
from commands import Cli
from helpers import document_file, write_table

from anonspark.comparison.grid import load_grid
from anonspark.config import parse_configuration
from anonspark.core.figure_text import figure_texts
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from anonspark.utility.evaluation import evaluate

ROWS = 400
LEARNERS = ("logistic_regression", "random_forest", "gradient_boosted_trees")


def people(seed: int) -> pa.Table:
    """Return people whose illness depends on age and job."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 80, ROWS)
    job = random.choice(["clerk", "cook", "driver", "nurse"], ROWS)
    ill = (age + 20 * (job == "cook") + random.normal(0, 12, ROWS)) > 65
    return pa.table(
        {
            "age": age,
            "job": job,
            "visits": random.poisson(2, ROWS),
            "ill": np.where(ill, "Kryptonitis", "no"),
        }
    )


def base(tmp_path: Path) -> dict[str, Any]:
    return {
        "input": {"path": str(tmp_path / "people.parquet")},
        "attributes": {
            "number": "identifier",
            "age": "quasi_identifier",
            "job": {"role": "quasi_identifier", "type": "text"},
            "visits": "insensitive",
            "ill": "sensitive",
        },
        "privacy": {"k": 5},
    }


def grid_file(tmp_path: Path, holdout: str = "holdout.parquet", **keys: Any) -> Path:
    grid = {
        "base": base(tmp_path),
        "axes": {"privacy.k": [5, 60]},
        "evaluation": {"target": "ill", "holdout": {"path": str(tmp_path / holdout)}},
        "rank_by": "model_loss",
        "output": str(tmp_path / "grid"),
    } | keys
    return document_file(tmp_path, grid, "grid.yaml")


@pytest.fixture(autouse=True)
def tables(tmp_path: Path) -> None:
    numbered = people(1).append_column("number", pa.array(range(ROWS)))
    write_table(tmp_path / "people.parquet", numbered)
    write_table(tmp_path / "holdout.parquet", people(2))


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Record how many examples models are trained with."""
    made: list[int] = []
    learn = LocalEngine.learn

    def recorded(engine: LocalEngine, examples: Any, *arguments: Any) -> Any:
        made.append(examples.count())
        return learn(engine, examples, *arguments)

    monkeypatch.setattr(LocalEngine, "learn", recorded)
    return made


def test_files_tell_how_they_are_read(tmp_path: Path, cli: Cli) -> None:
    semicolons = pc.WriteOptions(delimiter=";")
    whole = pq.read_table(tmp_path / "people.parquet")
    pc.write_csv(whole, str(tmp_path / "people.csv"), write_options=semicolons)
    pc.write_csv(people(2), str(tmp_path / "holdout.csv"), write_options=semicolons)
    # Equal records, which passes share out, are told apart by a hash of texts or of numbers.
    parquet = {**base(tmp_path), "model": {"name": "smondrian"}}
    keys = {"base": parquet | {"input": {"path": str(tmp_path / "people.csv")}}}
    figures = []
    for given in ({"base": parquet}, keys):
        output = str(tmp_path / f"grid-{len(figures)}")
        holdout = "holdout.csv" if given is keys else "holdout.parquet"
        told = {"axes": {"privacy.k": [5]}} | given | {"output": output}
        cli.ends(0, "compare", grid_file(tmp_path, holdout, **told))
        (row,) = pq.read_table(f"{output}/metrics").to_pylist()
        figures.append({name: row[name] for name in ("gcp", "model_loss", "median_query_error")})
    assert figures[0] == figures[1]


def test_a_cell_has_the_figures_of_evaluate(
    engine: LocalEngine, tmp_path: Path, trainings: list[int], cli: Cli
) -> None:
    path = grid_file(tmp_path)
    done = cli.ends(0, "compare", path)
    assert "2 runs, none reused" in done.out
    assert "model loss" in done.out
    # The original's models once, and those of each release.
    assert trainings == [ROWS] * 3
    output = tmp_path / "grid"
    rows = pq.read_table(output / "metrics").to_pylist()
    for cell in load_grid(path).cells:
        (row,) = (row for row in rows if row["cell"] == cell.id)
        k = cell.settings["privacy.k"]
        release = tmp_path / f"release-{k}"
        configuration = base(tmp_path) | {"privacy": {"k": k}, "output": {"path": str(release)}}
        run(engine, parse_configuration(configuration))
        paths = [str(one) for one in (release, tmp_path / "people.parquet")]
        found = evaluate(engine, *paths, "ill", str(tmp_path / "holdout.parquet"))
        expected = json.loads(json.dumps(asdict(found)))
        kept = json.loads((output / "cells" / f"{cell.id}.json").read_text())["evaluation"]
        assert kept == {name: expected[name] for name in ("workload", "association", "learning")}
        learning = found.learning
        assert learning is not None
        assert learning.loss is not None
        assert found.association is not None
        assert (row["median_query_error"], row["mean_query_error"]) == (
            found.workload.median,
            found.workload.mean,
        )
        assert row["association_loss"] == found.association.loss
        assert (row["model_loss"], row["model_loss_error"]) == (
            learning.loss.loss,
            learning.loss.standard_error,
        )
        assert row["accuracy_majority"] == learning.majority
        scores = [one for one in learning.scores if one.trained_on == "release"]
        for learner, score in zip(LEARNERS, scores, strict=True):
            for name in ("accuracy", "precision", "recall", "f1", "f1_macro", "roc_auc"):
                assert row[f"{name}_{learner}"] == getattr(score, name)
    assert [row["place"] for row in rows] == [1, 1]
    assert rows[0]["model_loss"] < rows[1]["model_loss"]

    page = (output / "report.html").read_text()
    assert "model_loss against k" in page
    first, margin = rows[0]["model_loss"], 1.96 * rows[0]["model_loss_error"]
    first_text, *ends = figure_texts([first, first - margin, first + margin])
    assert f"{first_text} ({' to '.join(ends)})" in page
    written = "".join(
        file.read_bytes().decode("latin-1") for file in output.rglob("*") if file.is_file()
    )
    assert "Kryptonitis" not in written


def test_a_second_call_runs_nothing_and_another_hold_out_everything(
    tmp_path: Path, trainings: list[int], cli: Cli
) -> None:
    path = grid_file(tmp_path)
    cli.ends(0, "compare", path)
    figures = pq.read_table(tmp_path / "grid" / "metrics").to_pylist()
    trainings.clear()
    again = cli("compare", path)
    assert "0 runs, 2 reused" in again.out
    assert trainings == []
    assert pq.read_table(tmp_path / "grid" / "metrics").to_pylist() == figures
    # The order of the held-out records does not matter, a value of one does.
    table = people(2)
    write_table(tmp_path / "holdout.parquet", table.take(np.arange(ROWS)[::-1]))
    assert "0 runs, 2 reused" in cli("compare", path).out
    changed = table.set_column(2, "visits", pa.array([7, *table["visits"].to_pylist()[1:]]))
    write_table(tmp_path / "other.parquet", changed)
    other = grid_file(tmp_path, "other.parquet")
    cli.ends(2, "compare", other, says="held-out records")
    for keys in ({"evaluation": None, "rank_by": "gcp"}, {"evaluation": {"queries": False}}):
        if keys["evaluation"]:
            holdout = {"path": str(tmp_path / "holdout.parquet")}
            keys["evaluation"] = {"target": "ill", "holdout": holdout, "queries": False}
        cli.ends(2, "compare", grid_file(tmp_path, **keys))
    assert trainings == []
    elsewhere = grid_file(tmp_path, "other.parquet", output=str(tmp_path / "elsewhere"))
    assert "2 runs, none reused" in cli("compare", elsewhere).out
    assert trainings == [ROWS] * 3


def test_a_class_that_the_input_has_not_is_left_out_and_counted(tmp_path: Path, cli: Cli) -> None:
    table = people(2)
    odd = ["perhaps"] * 30 + table["ill"].to_pylist()[30:]
    write_table(tmp_path / "odd.parquet", table.set_column(3, "ill", pa.array(odd)))
    holdout = {"path": str(tmp_path / "odd.parquet")}
    evaluation = {"target": "ill", "holdout": holdout, "queries": False}
    axes = {"privacy.k": [20]}
    done = cli.ends(0, "compare", grid_file(tmp_path, evaluation=evaluation, axes=axes))
    note = "30 held-out records are of a class that the input has not"
    assert note in " ".join(done.out.split())
    assert note in (tmp_path / "grid" / "report.html").read_text()
    (row,) = pq.read_table(tmp_path / "grid" / "metrics").to_pylist()
    found = json.loads(cli("compare", tmp_path / "grid.yaml", "--json").out)
    assert found["notes"] == [f"{note}. They were left out"]
    assert row["median_query_error"] is None
    assert row["model_loss"] is not None


def test_what_cannot_be_measured_is_null_and_says_why(tmp_path: Path, cli: Cli) -> None:
    table = people(2)
    healthy = table.set_column(3, "ill", pa.array(["no"] * ROWS))
    write_table(tmp_path / "holdout.parquet", healthy)
    done = cli.ends(0, "compare", grid_file(tmp_path, axes={"privacy.k": [20]}))
    assert "model_loss is not measured: the test records are of one class" in done.out
    (row,) = pq.read_table(tmp_path / "grid" / "metrics").to_pylist()
    assert (row["model_loss"], row["place"], row["roc_auc_random_forest"]) == (None, None, None)
    assert row["accuracy_majority"] == 1


@cases(__file__, "evaluation", "keys", "code", "words")
def test_refused_evaluations_write_nothing_and_show_no_value(
    tmp_path: Path,
    cli: Cli,
    evaluation: dict[str, Any] | None,
    keys: dict[str, Any],
    code: int,
    words: str,
) -> None:
    table = people(2)
    constant = pa.array(["x"] * ROWS)
    held_out = {
        "holdout": table,
        "lacking": table.drop_columns(["job"]),
        "other": table.set_column(0, "age", pa.array([date(2020, 1, 1)] * ROWS)),
        "constant": table.append_column("constant", constant),
    }
    paths = {
        name: str(write_table(tmp_path / f"{name}.parquet", one)) for name, one in held_out.items()
    }
    document = base(tmp_path)
    if evaluation and evaluation.get("target") == "constant":
        numbered = people(1).append_column("number", pa.array(range(ROWS)))
        whole = numbered.append_column("constant", constant)
        write_table(tmp_path / "people.parquet", whole)
        document["attributes"]["constant"] = "insensitive"
    if evaluation and "holdout" in evaluation:
        path = evaluation["holdout"]["path"].format(**paths)
        evaluation = evaluation | {"holdout": {"path": path}}
    given = {"base": document, "evaluation": evaluation} | keys
    outcome = cli.ends(code, "compare", grid_file(tmp_path, **given))
    assert re.search(words, " ".join(outcome.err.split())), outcome.err
    assert "Kryptonitis" not in outcome.err
    assert not (tmp_path / "grid" / "metrics").exists()
