"""The recodings above the one that was chosen: as whoever has the release counts them."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer.main
from commands import Cli
from helpers import configuration_file, contents, metrics, published, summary, write_table

from anonspark.cli.application import application
from anonspark.config import parse_configuration
from anonspark.core.labels import levels_text
from anonspark.engine.local.engine import LocalEngine
from anonspark.layers.evaluate import metrics as nodes_module
from anonspark.pipeline.run import run
from anonspark.verification.audit import audit_release

Row = dict[str, Any]

CITIES = {
    "Ulm": ["Ulm", "Danube", "Germany", "*"],
    "Linz": ["Linz", "Danube", "Austria", "*"],
    "Bonn": ["Bonn", "Rhine", "Germany", "*"],
    "Köln": ["Köln", "Rhine", "Germany", "*"],
}
# A tree: rivers do not cross borders.
CITIES["Linz"][1] = "Danube in Austria"
JOBS = {"cook": ["cook", "*"], "nurse": ["nurse", "*"], "judge": ["judge", "*"]}
LABELS = {"city": CITIES, "job": JOBS}
HEIGHTS = {"city": 3, "job": 1}
WEIGHTS = {"city": 1.0, "job": 0.5}


def people(*extra: tuple[str, str]) -> list[Row]:
    """Return people of classes of 2 to 5, and some who are alone."""
    counts = {
        ("Ulm", "cook"): 4, ("Ulm", "nurse"): 3, ("Linz", "cook"): 2, ("Bonn", "cook"): 3,
        ("Bonn", "nurse"): 5, ("Köln", "cook"): 3, ("Köln", "judge"): 2,
    }  # fmt: skip
    cells = [cell for cell, number in counts.items() for _ in range(number)] + list(extra)
    return [{"city": city, "job": job, "ill": "flu"} for city, job in cells]


def make(folder: Path, rows: list[Row], place: str = "release", **model: Any) -> Path:
    """Publish a release; hierarchies and input are always at the same place."""
    pq.write_table(pa.Table.from_pylist(rows), folder / "input.parquet")
    for one, labels in LABELS.items():
        (folder / f"{one}.csv").write_text("\n".join(";".join(row) for row in labels.values()))
    document = {
        "input": {"path": str(folder / "input.parquet")},
        "attributes": {
            "city": {"role": "quasi_identifier", "hierarchy": str(folder / "city.csv")},
            "job": {
                "role": "quasi_identifier",
                "hierarchy": str(folder / "job.csv"),
                "weight": WEIGHTS["job"],
            },
            "ill": "sensitive",
        },
        "privacy": {"k": 2},
        "model": {"name": "full-domain", "suppression_limit": 1.0, **model},
        "output": {"path": str(folder / place), "mode": "overwrite"},
        "execution": {"seed": 2**40},
    }
    run(LocalEngine(), parse_configuration(document), run_id="same")
    return folder / place


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a release of one round that suppresses nobody, for reading only."""
    levels = [{"city": 0, "job": 0}]
    return make(tmp_path_factory.mktemp("nodes"), people(), levels=levels)


def slow_nodes(release: Path, chosen: dict[str, int]) -> list[Row]:
    """Count every node above the chosen one in the published records, by the definitions."""
    records = published(release).to_pylist()
    found = []
    ranges = [range(chosen[name], HEIGHTS[name] + 1) for name in LABELS]
    for levels in product(*ranges):
        node = dict(zip(LABELS, levels, strict=True))
        above = {
            name: {row[chosen[name]]: row[node[name]] for row in LABELS[name].values()}
            for name in LABELS
        }
        classes = Counter(tuple(above[name][row[name]] for name in LABELS) for row in records)
        lost = 0.0
        for name, level in node.items():
            covered = Counter(row[level] for row in LABELS[name].values())
            shares = [
                (covered[above[name][row[name]]] - 1) / (len(LABELS[name]) - 1) for row in records
            ]
            lost += WEIGHTS[name] * sum(shares) / len(records)
        found.append(
            {
                "levels": ", ".join(f"{name}={level}" for name, level in node.items()),
                "height": sum(levels),
                "classes": len(classes),
                "min_class_size": min(classes.values()),
                "loss": lost / sum(WEIGHTS.values()),
                "order": (round(lost, 9), sum(levels), levels),
            }
        )
    found.sort(key=lambda row: row.pop("order"))
    return found


def test_nodes_are_those_that_the_release_tells(release: Path) -> None:
    rows = metrics(release, "nodes")
    expected = slow_nodes(release, {"city": 0, "job": 0})
    assert len(rows) == len(expected) == 8
    for place, (row, slow) in enumerate(zip(rows, expected, strict=True), start=1):
        assert (row["run_id"], row["round"], row["node"]) == ("same", 1, place)
        assert row["loss"] == pytest.approx(slow.pop("loss"), rel=1e-12)
        assert {name: row[name] for name in slow} == slow
        # Nobody is suppressed at the chosen node, so nobody is above it.
        assert row["suppressed"] == 0


def test_the_first_node_is_that_of_the_round(release: Path) -> None:
    (of_round,) = metrics(release, "rounds")
    first, *_ = metrics(release, "nodes")
    for name in ("levels", "height", "classes"):
        assert first[name] == of_round[name]
    assert first["loss"] == pytest.approx(of_round["loss"], rel=1e-12)
    assert first["min_class_size"] == summary(release)["min_class_size"]


def test_suppressed_records_are_counted_at_the_chosen_node_alone(tmp_path: Path) -> None:
    """A node above places some of them: how many would tell how few they are."""
    rows = people(("Linz", "nurse"), ("Ulm", "judge"))
    release = make(tmp_path, rows, levels=[{"city": 1, "job": 0}])
    assert summary(release)["rows_left_out"] == 2
    first, *others = metrics(release, "nodes")
    assert first["suppressed"] == 2
    assert others
    assert {row["suppressed"] for row in others} == {None}
    expected = slow_nodes(release, {"city": 1, "job": 0})
    found = metrics(release, "nodes")
    for name in ("levels", "classes", "min_class_size"):
        assert [row[name] for row in found] == [row[name] for row in expected]


def test_nothing_tells_apart_inputs_of_the_same_release(tmp_path: Path) -> None:
    """Who is left out may be placed at one node or another: no figure depends on it."""
    levels = [{"city": 0, "job": 0}]
    tables = []
    for left_out in (("Linz", "nurse"), ("Ulm", "judge"), ("Linz", "judge")):
        made = make(tmp_path, people(left_out), levels=levels)
        assert summary(made)["rows_left_out"] is None
        file = made / "metrics" / "nodes" / "part-00000.parquet"
        tables.append((sorted(map(str, published(made).to_pylist())), file.read_bytes()))
        assert {row["suppressed"] for row in metrics(made, "nodes")} == {None}
    assert tables[0] == tables[1] == tables[2]


def test_every_round_has_its_nodes(tmp_path: Path) -> None:
    rows = people(("Linz", "nurse"), ("Ulm", "judge"), ("Bonn", "judge"))
    levels = [{"city": 0, "job": 0}, {"city": 3, "job": 0}]
    made = make(tmp_path, rows, name="rho-gain", rho=1, levels=levels)
    rounds = metrics(made, "rounds")
    found = metrics(made, "nodes")
    assert (
        [row["levels"] for row in found if row["node"] == 1]
        == [row["levels"] for row in rounds]
        == ["city=0, job=0", "city=3, job=0"]
    )
    assert [row["levels"] for row in found if row["round"] == 2] == [
        "city=3, job=0", "city=3, job=1",
    ]  # fmt: skip
    assert audit_release(LocalEngine(), str(made)).failures == []


def test_at_most_twenty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes_module, "MOST_NODES", 3)
    made = make(tmp_path, people(), levels=[{"city": 0, "job": 0}])
    expected = slow_nodes(made, {"city": 0, "job": 0})[:3]
    assert [row["levels"] for row in metrics(made, "nodes")] == [row["levels"] for row in expected]


def test_other_models_have_no_such_table(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(people()), tmp_path / "input.parquet")
    document = {
        "input": {"path": str(tmp_path / "input.parquet")},
        "attributes": {"city": "quasi_identifier", "job": "quasi_identifier", "ill": "sensitive"},
        "privacy": {"k": 2},
        "model": {"name": "smondrian"},
        "output": {"path": str(tmp_path / "release")},
        "execution": {"seed": 2**40},
    }
    run(LocalEngine(), parse_configuration(document))
    assert not (tmp_path / "release" / "metrics" / "nodes").exists()


# Inside: the nodes that a search looked at --------------------------------------------------------


def configuration_of(folder: Path, **model: Any) -> Path:
    """Write a configuration of the people, some of whom are alone."""
    make(folder, people(("Linz", "nurse"), ("Ulm", "judge")), levels=[{"city": 0, "job": 0}])
    shutil.rmtree(folder / "release")
    path = folder / "people.yaml"
    attributes: Row = {
        name: {"role": "quasi_identifier", "hierarchy": str(folder / f"{name}.csv")}
        for name in LABELS
    }
    attributes["ill"] = "sensitive"
    path.write_text(
        json.dumps(
            {
                "input": {"path": str(folder / "input.parquet")},
                "attributes": attributes,
                "privacy": {"k": 2},
                "model": {"name": "full-domain", "suppression_limit": 0.05, **model},
                "output": {"path": str(folder / "release")},
                "execution": {"seed": 2**40},
            }
        )
    )
    return path


def test_a_plan_shows_the_nodes_of_the_search(tmp_path: Path, cli: Cli) -> None:
    path = configuration_of(tmp_path)
    before = contents(tmp_path)
    found = {}
    for most in (5_000_000, 1):
        # Tuples on the cluster, of which this engine is one, are told of alike.
        setting = f"model.driver_tuples={most}"
        outcome = cli.ends(0, "check", path, "--nodes", "--json", "--set", setting)
        found[most] = json.loads(outcome.out)["best_nodes"]
    assert found[1] == found[5_000_000]
    told = {json.dumps(one["levels"]): one for one in found[1]}
    finest = told['{"city": 0, "job": 0}']
    assert (finest["classes"], finest["suppressed"], finest["binds"]) == (7, 2, "k")
    assert (finest["is_allowed"], finest["is_chosen"]) == (False, False)
    # Nothing stays that could be taken for a release, nor raw records.
    assert contents(tmp_path) == before
    shown = cli("check", path, "--nodes", "--no-progress")
    assert "suppresses too much" in shown.out
    assert "keep them internal" in shown.out
    cli.ends(0, "run", path, "--no-progress")
    (of_run,) = metrics(tmp_path / "release", "rounds")
    (chosen,) = (one for one in found[1] if one["is_chosen"])
    assert levels_text(chosen["levels"]) == of_run["levels"]
    assert chosen["classes"] == of_run["classes"]
    assert chosen["suppressed"] == of_run["outlier_rows"]
    assert chosen["loss"] == pytest.approx(summary(tmp_path / "release")["loss"], rel=1e-12)


def test_other_models_have_no_nodes(tmp_path: Path, cli: Cli) -> None:
    path = configuration_of(tmp_path)
    document = json.loads(path.read_text()) | {"model": {"name": "smondrian"}}
    path.write_text(json.dumps(document))
    outcome = cli.ends(2, "check", path, "--nodes")
    assert "--nodes: model.name is smondrian, which searches no lattice" in outcome.err


# The schema is JSON; ledger is a group of its own.
WITHOUT_JSON = {"schema", "ledger", "verifier"}


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    random = np.random.default_rng(9)
    write_table(tmp_path / "input.parquet", {"age": random.integers(20, 80, 200).tolist()})
    roles = {"age": "quasi_identifier"}
    return configuration_file(tmp_path, attributes=roles, output={"mode": "overwrite"})


def planned(cli: Cli, configuration: Path, *arguments: str) -> dict[str, Any]:
    outcome = cli.ends(0, "check", "--plan", configuration, "--no-progress", "--json", *arguments)
    told: dict[str, Any] = json.loads(outcome.out)
    return told


def test_an_earlier_run_tells_what_another_takes(
    configuration: Path, tmp_path: Path, cli: Cli
) -> None:
    told = planned(cli, configuration)
    assert (told["rows"], told["columns"]) == (200, ["age"])
    assert told["engine"]["name"] == "local"
    before = told["estimate"]
    assert before["run_id"] is None
    assert before["bytes"] == 200
    # One of five attributes, at 256,000 records a second, after two seconds.
    assert before["seconds"] == pytest.approx(2 + 200 / 5 / 256_000)
    assert "Constants of docs/performance.md" in before["basis"]
    assert (before["serial_seconds"], before["lower_bound"]) == (None, False)

    cli.ends(0, "run", configuration, "--run-id", "first", "--no-progress")
    write_table(tmp_path / "input.parquet", {"age": list(range(400))})
    after = planned(cli, configuration)["estimate"]
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    (data,) = [one for one in manifest["files"] if one["path"].startswith("data/")]
    assert after["run_id"] == "first"
    assert after["bytes"] == 2 * data["bytes"]
    assert after["seconds"] == pytest.approx(2 * sum(manifest["seconds"].values()))
    shown = cli("check", "--plan", configuration, "--no-progress").out
    assert "of data: as run first, which published 200 records" in shown
    # Of other settings it tells nothing.
    assert planned(cli, configuration, "--set", "privacy.k=9")["estimate"]["run_id"] is None


def test_a_model_without_a_rate_says_so(tmp_path: Path, cli: Cli) -> None:
    write_table(tmp_path / "input.parquet", {"age": list(range(100))})
    roles = {"age": {"role": "quasi_identifier", "hierarchy": {"intervals": [10, 50]}}}
    path = configuration_file(tmp_path, attributes=roles, model={"name": "full-domain"})
    told = planned(cli, path)
    assert told["estimate"]["seconds"] is None
    assert "no rate is known of full-domain" in told["estimate"]["basis"]
    assert told["nodes"] is not None


def test_every_command_tells_json() -> None:
    commands = typer.main.get_command(application).commands  # type: ignore[attr-defined]
    without = {
        name
        for name, one in commands.items()
        if not any("--json" in parameter.opts for parameter in one.params)
    }
    assert without <= WITHOUT_JSON


def test_clean_tells_json(configuration: Path, cli: Cli) -> None:
    outcome = cli.ends(0, "clean", configuration, "--no-progress", "--json")
    assert json.loads(outcome.out)["found"] == []
