"""Association in a run: told before it publishes, and the same as ``anonspark evaluate`` finds."""

from __future__ import annotations

import json
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from commands import Cli, Outcome, interrupted
from evaluated import people
from helpers import document_file, metrics, summary, write_table

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError, GuaranteeError
from anonspark.pipeline.run import run
from anonspark.utility.evaluation import open_evaluation

ATTRIBUTES: dict[str, Any] = {
    "age": "quasi_identifier",
    "born": "quasi_identifier",
    "job": "quasi_identifier",
    "weight": "quasi_identifier",
    "visits": "insensitive",
    "ill": "sensitive",
}


def document_at(tmp_path: Path, table: pa.Table | None = None, **sections: Any) -> dict[str, Any]:
    path = write_table(tmp_path / "people.parquet", people() if table is None else table)
    document: dict[str, Any] = {
        "input": {"path": str(path)},
        "attributes": ATTRIBUTES,
        "missing": "category",
        "privacy": {"k": 5},
        "model": {"name": "smondrian"},
        "evaluate": {"association": {"target": "ill"}},
        "output": {"path": str(tmp_path / "release")},
        "execution": {"seed": 2**40 + 1},
    }
    for name, section in sections.items():
        own = document.get(name)
        document[name] = own | section if isinstance(own, dict) else section
    return document


def told(tmp_path: Path) -> tuple[float | None, dict[str, tuple[float | None, float | None]]]:
    release = tmp_path / "release"
    rows = metrics(release, "attributes")
    own = {one["attribute"]: (one["association_before"], one["association_after"]) for one in rows}
    return summary(release)["association_loss"], own


def evaluated(tmp_path: Path, target: str = "ill") -> tuple[float | None, dict[str, Any]]:
    release, original = str(tmp_path / "release"), str(tmp_path / "people.parquet")
    found = open_evaluation(LocalEngine(), release, original, target).association()
    assert found is not None
    return found.loss, {one.name: (one.before, one.after) for one in found.attributes}


@cases(__file__, "sections")
def test_a_run_tells_what_evaluate_finds(tmp_path: Path, sections: dict[str, Any]) -> None:
    found = run(LocalEngine(), parse_configuration(document_at(tmp_path, **sections)))
    loss, own = told(tmp_path)
    assert (loss, own) == evaluated(tmp_path)
    assert found.summary["association_loss"] == loss
    assert loss is not None
    assert 0 < loss < 1.2
    assert all(before is not None and before > 0 for before, _ in own.values())


@pytest.mark.parametrize("style", ["interval", "bounds"])
def test_a_release_that_is_its_input_loses_nothing(tmp_path: Path, style: str) -> None:
    # Twice each, so that k = 2 generalizes nothing.
    table = pa.concat_tables([people(), people()])
    document = document_at(tmp_path, table, privacy={"k": 2}, output={"style": style})
    release = run(LocalEngine(), parse_configuration(document))
    assert release.summary["gcp"] == 0
    assert told(tmp_path)[0] == 0
    assert told(tmp_path) == evaluated(tmp_path)


def test_a_run_that_is_continued(tmp_path: Path) -> None:
    configuration = parse_configuration(document_at(tmp_path))

    with interrupted("measure_association_kept"):
        run(LocalEngine(), configuration, run_id="one", resume=True)
    run(LocalEngine(), configuration, run_id="one", resume=True)
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert manifest["attempt"] == 2
    assert told(tmp_path) == evaluated(tmp_path)


def test_hierarchies_and_records_left_out(tmp_path: Path) -> None:
    jobs = ["clerk;office;*", "cook;kitchen;*", "driver;road;*", "nurse;ward;*", "?;?;*"]
    (tmp_path / "jobs.csv").write_text("\n".join(jobs[:4]) + "\n")
    attributes = ATTRIBUTES | {
        "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [10, 20]}},
        "born": {"role": "quasi_identifier", "hierarchy": {"calendar": ["year"]}},
        "job": {"role": "quasi_identifier", "hierarchy": str(tmp_path / "jobs.csv")},
        "weight": "insensitive",
    }
    model = {"name": "full-domain", "suppression_limit": 0.1, "residual": "drop"}
    document = document_at(tmp_path, attributes=attributes, model=model, missing="drop")
    found = run(LocalEngine(), parse_configuration(document))
    assert found.summary["rows_left_out"]
    loss, own = told(tmp_path)
    assert (loss, own) == evaluated(tmp_path)


def people_of_all_kinds() -> pa.Table:
    """Return people, each kind of value among their attributes, with what means missing."""
    table = people()
    rows = np.arange(len(table))
    found = {
        **{name: table[name] for name in ("age", "job", "visits")},
        "born": table["born"].cast(pa.date32()),
        "weight": np.where(rows % 50 == 0, np.nan, table["weight"].to_numpy()),
        "short": table["weight"].cast(pa.float32()),
        "paid": pa.array([Decimal(int(one)) / 4 for one in rows % 90], pa.decimal128(9, 2)),
        "seen": pa.array(rows % 400 * 3_600_000_000, pa.timestamp("us")),
        "here": rows % 3 == 0,
        "code": [f" {10_000 + 7 * int(one) % 900} " for one in rows],
        "met": [str(date(2020, 1, 1) + timedelta(days=int(one) % 200)) for one in rows],
        "ill": ["?" if one % 40 == 0 else own for one, own in enumerate(table["ill"].to_pylist())],
    }
    return pa.table(found)


def test_values_of_all_kinds_in_a_run_and_of_its_release(tmp_path: Path) -> None:
    attributes = dict.fromkeys(
        ("age", "job", "weight", "short", "paid", "seen", "here"), "quasi_identifier"
    ) | {
        "code": {"role": "quasi_identifier", "hierarchy": {"prefix": [1, 3]}},
        "met": {"role": "quasi_identifier", "hierarchy": {"calendar": ["month", "year"]}},
        "born": {"role": "quasi_identifier", "hierarchy": {"calendar": ["year"]}},
        "visits": {"role": "quasi_identifier", "hierarchy": {"intervals": [2, 4]}},
        "ill": "sensitive",
    }
    document = document_at(tmp_path, people_of_all_kinds(), attributes=attributes)
    document["input"]["missing_markers"] = ["?"]
    run(LocalEngine(), parse_configuration(document))
    found = told(tmp_path)
    assert found == evaluated(tmp_path)
    assert all(before is not None for before, _ in found[1].values())


def test_it_is_not_there_unless_asked_for(tmp_path: Path) -> None:
    document = document_at(tmp_path)
    asked = parse_configuration(document)
    del document["evaluate"]
    plain = parse_configuration(document)
    found = run(LocalEngine(), plain)
    assert told(tmp_path) == (None, dict.fromkeys(("age", "born", "job", "weight"), (None, None)))
    assert "association" not in found.seconds
    # What changes no record changes no fingerprint of the settings.
    assert plain.settings_fingerprint() == asked.settings_fingerprint()
    assert plain.fingerprint() != asked.fingerprint()


def test_gate_on_association_loss_stops_the_release(tmp_path: Path) -> None:
    document = document_at(tmp_path, gates={"association_loss": {"max": 0.01}})
    with pytest.raises(GuaranteeError, match="association_loss"):
        run(LocalEngine(), parse_configuration(document))
    assert not (tmp_path / "release").exists()
    document["gates"] = {
        "association_loss": {"max": 0.9},
        "attributes.age.association_after": {"min": 0.01},
    }
    run(LocalEngine(), parse_configuration(document))
    del document["evaluate"]
    with pytest.raises(ConfigurationError, match=r"Name a target: evaluate\.association\.target"):
        parse_configuration(document)


def test_drift(tmp_path: Path) -> None:
    drift = {"append_to": str(tmp_path / "runs"), "drift": {"association_loss": 0.1}}
    document = document_at(tmp_path, metrics=drift)
    run(LocalEngine(), parse_configuration(document))
    table = people()
    other = table.set_column(table.schema.get_field_index("ill"), "ill", table["job"].fill_null(""))
    again = document_at(tmp_path, other, metrics=drift, output={"mode": "overwrite"})
    with pytest.raises(GuaranteeError, match="association_loss"):
        run(LocalEngine(), parse_configuration(again))


def test_cells_are_ranked_by_it(tmp_path: Path, cli: Cli) -> None:
    base = document_at(tmp_path)
    del base["output"]
    grid = {
        "base": base,
        "axes": {"model.name": ["smondrian", "canon"], "privacy.k": [5]},
        "rank_by": "association_loss",
        "output": str(tmp_path / "comparison"),
    }
    shown = compared(tmp_path, grid, cli)
    assert shown.code == 0, shown.err
    rows = metrics(tmp_path / "comparison", "")
    by_place = sorted(rows, key=lambda row: row["place"])
    losses = [row["association_loss"] for row in by_place]
    assert losses == sorted(losses)
    del base["evaluate"]
    shown = compared(tmp_path, grid, cli)
    assert shown.code == 2
    assert "Name a target: evaluate.association.target for all cells" in shown.err


def compared(tmp_path: Path, grid: dict[str, Any], cli: Cli) -> Outcome:
    return cli("compare", document_file(tmp_path, grid, "grid.yaml"), "--no-progress")


@cases(__file__, "target", "expected")
def test_targets_that_are_refused(tmp_path: Path, cli: Cli, target: str, expected: str) -> None:
    table = people()
    table = table.append_column("one", pa.array(["planted Quetzal"] * len(table)))
    table = table.append_column("many", pa.array([f"Quetzal {one % 101}" for one in range(600)]))
    attributes = ATTRIBUTES | {"one": "insensitive", "many": "insensitive"}
    document = document_at(
        tmp_path, table, attributes=attributes, evaluate={"association": {"target": target}}
    )
    shown = cli.ends(2, "run", document_file(tmp_path, document), "--no-progress", says=expected)
    assert "Quetzal" not in shown.err + shown.out
    assert not (tmp_path / "release").exists()


def test_attributes_that_tell_nothing(tmp_path: Path, cli: Cli) -> None:
    rows = 200
    table = pa.table({"age": [30] * rows, "ill": ["yes", "no"] * (rows // 2)})
    document = document_at(tmp_path, table)
    document["attributes"] = {"age": "quasi_identifier", "ill": "sensitive"}
    shown = cli.ends(0, "run", document_file(tmp_path, document))
    assert "association_loss is null: the quasi-identifiers predict next to nothing" in shown.err
    loss, own = told(tmp_path)
    assert loss is None
    assert own["age"] == pytest.approx((0.0, 0.0), abs=1e-9)
    document["gates"] = {"association_loss": {"max": 1}}
    document["output"]["mode"] = "overwrite"
    cli.ends(4, "run", document_file(tmp_path, document), "--no-progress")


def test_it_is_shown(tmp_path: Path, cli: Cli) -> None:
    path = document_file(tmp_path, document_at(tmp_path))
    shown = cli.ends(0, "run", path, "--details")
    assert "association with the target that is lost" in shown.out
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert manifest["summary"]["association_loss"] == told(tmp_path)[0]
    assert manifest["seconds"]["association"] > 0
    cli.ends(0, "verify", tmp_path / "release")
