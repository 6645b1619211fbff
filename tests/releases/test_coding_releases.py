"""Runs that follow a coding: what they publish, what their manifest says, and what is refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from cases import data_beside
from commands import Cli
from helpers import document_file, published, summary, write_table
from release_folders import save_manifest

import anonspark
from anonspark.config import load_configuration, parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError, GuaranteeError
from anonspark.pipeline.run import run
from anonspark.release.manifest import read_manifest
from anonspark.release.manifest_form import manifest_problems
from anonspark.sharing.coding.agreement import coding_fingerprint

TOWNS = "Adana;south;*\nBursa;north;*\nKonya;south;*\nRize;north;*\n"
CODING: dict[str, Any] = data_beside(__file__)["CODING"]


def people(rows: int, seed: int) -> pa.Table:
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "person": [f"P{number}" for number in range(rows)],
            "birth_year": draw.integers(1930, 2020, rows),
            "diagnosis": draw.choice(["asthma", "fracture", "migraine"], rows),
            "sex": draw.choice(["female", "male", "other"], rows, p=[0.5, 0.45, 0.05]),
            "town": draw.choice(["Adana", "Bursa", "Konya", "Rize"], rows),
        }
    )


def with_coding(folder: Path, coding: dict[str, Any] = CODING, **sections: Any) -> dict[str, Any]:
    """Write table and coding, and return the configuration of a holder."""
    agreed = folder / "agreed"
    agreed.mkdir(exist_ok=True)
    (agreed / "towns.csv").write_text(TOWNS)
    (agreed / "hospitals.yaml").write_text(yaml.safe_dump(coding, sort_keys=False))
    document: dict[str, Any] = {
        "input": {"path": str(write_table(folder / "own.parquet", people(300, 1)))},
        "coding": str(agreed / "hospitals.yaml"),
        "attributes": {"person": "identifier"},
        "model": {"name": "smondrian"},
        "output": {"path": str(folder / "release")},
    }
    return document | sections


def test_the_release_of_a_coding(tmp_path: Path, cli: Cli) -> None:
    document = with_coding(tmp_path)
    path = document_file(tmp_path, document)
    configuration = load_configuration(str(path))
    assert configuration.agreed_coding is not None
    fingerprint = configuration.agreed_coding.fingerprint
    checked = cli("check", path)
    assert f"Coding: hospitals-2026, fingerprint {fingerprint}\n" in checked.out
    told = json.loads(cli("check", path, "--json").out)["coding"]
    assert told == {"name": "hospitals-2026", "fingerprint": fingerprint}
    cli.ends(0, "run", path)
    release = tmp_path / "release"
    assert published(release).column_names == ["town", "birth_year", "sex", "diagnosis"]
    coding = read_manifest(LocalEngine().files, str(release)).coding
    assert (coding["name"], coding["fingerprint"]) == ("hospitals-2026", fingerprint)
    assert coding_fingerprint(coding["document"]) == fingerprint
    town, *_ = coding["document"]["attributes"]
    assert town["hierarchy"] == {"sha256": hashlib.sha256(TOWNS.encode()).hexdigest()}
    cli.ends(0, "verify", release, "--original", tmp_path / "own.parquet")


def test_it_is_the_release_of_what_the_coding_says(tmp_path: Path) -> None:
    document = with_coding(tmp_path)
    engine = LocalEngine()
    run(engine, parse_configuration(document))
    del document["coding"]
    attributes = dict(CODING["attributes"])
    attributes["town"] = attributes["town"] | {"hierarchy": str(tmp_path / "agreed" / "towns.csv")}
    document["attributes"] = attributes | {"person": "identifier"}
    document |= {"privacy": CODING["privacy"], "output": {"path": str(tmp_path / "plain")}}
    run(engine, parse_configuration(document))
    same = [read_manifest(engine.files, str(tmp_path / one)) for one in ("release", "plain")]
    assert same[0].fingerprint == same[1].fingerprint
    assert same[1].coding == {}
    assert summary(tmp_path / "release")["gcp"] == summary(tmp_path / "plain")["gcp"]


def test_a_hierarchy_file_that_changes_between_configuration_and_run(tmp_path: Path) -> None:
    configuration = parse_configuration(with_coding(tmp_path))
    (tmp_path / "agreed" / "towns.csv").write_text(TOWNS.replace("Konya;south", "Konya;north"))
    with pytest.raises(ConfigurationError, match="not the file that the coding was agreed on"):
        run(LocalEngine(), configuration)
    assert not (tmp_path / "release").exists()


def test_verify_refuses_a_changed_hierarchy_file(tmp_path: Path, cli: Cli) -> None:
    run(LocalEngine(), parse_configuration(with_coding(tmp_path)))
    (tmp_path / "agreed" / "towns.csv").write_text(TOWNS + "Izmir;west;*\n")
    original = tmp_path / "own.parquet"
    outcome = cli.ends(2, "verify", tmp_path / "release", "--original", original)
    assert "not the file that the coding was agreed on" in outcome.err


def test_a_manifest_whose_coding_was_changed(tmp_path: Path) -> None:
    run(LocalEngine(), parse_configuration(with_coding(tmp_path)))
    path = tmp_path / "release" / "manifest.json"
    manifest = json.loads(path.read_text())
    assert manifest_problems(manifest) == []
    for change in ({"name": "other"}, {"privacy": {"k": 2}}, {"privacy": {"k": "two"}}):
        changed = json.loads(path.read_text())
        changed["coding"]["document"] |= change
        assert "coding.fingerprint: expected that of coding.document" in manifest_problems(changed)
    manifest["coding"]["document"]["privacy"]["k"] = 2
    save_manifest(path.parent, manifest)
    with pytest.raises(GuaranteeError, match=r"coding\.fingerprint: expected"):
        read_manifest(LocalEngine().files, str(path.parent))


def test_less_than_agreed_on_is_refused(tmp_path: Path, cli: Cli) -> None:
    path = document_file(tmp_path, with_coding(tmp_path))
    for setting, key in (
        ("privacy.k=4", "privacy.k"),
        ("attributes.birth_year.role=insensitive", "attributes.birth_year"),
        ("output.style=mean", "output.style"),
        ("missing=category", "missing"),
    ):
        cli.ends(2, "run", path, "--set", setting, says=key)
    assert not (tmp_path / "release").exists()


def test_levels_recode_every_table_alike(tmp_path: Path) -> None:
    attributes = {
        "town": CODING["attributes"]["town"],
        "birth_year": {"role": "quasi_identifier", "hierarchy": {"intervals": [10, 50]}},
        "diagnosis": "sensitive",
    }
    levels = {"town": 1, "birth_year": 2}
    coding = {"name": "fixed", "attributes": attributes, "privacy": {"k": 5}, "levels": levels}
    document = with_coding(tmp_path, coding)
    del document["model"]
    labels = []
    for seed in (1, 2):
        write_table(tmp_path / "own.parquet", people(300, seed))
        document["output"] = {"path": str(tmp_path / f"release-{seed}")}
        run(LocalEngine(), parse_configuration(document))
        data = published(tmp_path / f"release-{seed}")
        labels.append({name: set(data[name].to_pylist()) for name in levels})
    assert labels[0]["town"] == labels[1]["town"] == {"north", "south"}
    assert labels[0]["birth_year"] == labels[1]["birth_year"]


def test_a_plan_takes_no_coding(tmp_path: Path, cli: Cli) -> None:
    plan = {
        "base": with_coding(tmp_path),
        "output": str(tmp_path / "plans"),
        "recipients": {
            "one": {"columns": ["town"], "purpose": "p", "approved": "board", "privacy": {"k": 5}}
        },
    }
    path = document_file(tmp_path, plan)
    cli.ends(2, "distribute", path, says="base.coding: found a coding")


def test_arranging_by_a_coding_is_warned_of(tmp_path: Path, cli: Cli) -> None:
    path = document_file(tmp_path, with_coding(tmp_path))
    options = ("--target", "diagnosis", "--attribute", "town", "--out", tmp_path / "arranged")
    cli.ends(0, "arrange", path, *options, says="Do not put it into the coding")
    assert "Do not put it into a coding" in (tmp_path / "arranged" / "orders.yaml").read_text()


def test_a_configuration_of_python(tmp_path: Path) -> None:
    document = with_coding(tmp_path)
    del document["input"], document["output"]
    with anonspark.anonymize(people(200, 3), document) as release:
        assert release.manifest["coding"]["name"] == "hospitals-2026"
        assert not release.verify().failures


def test_rare_records_under_fixed_levels_are_left_out(tmp_path: Path) -> None:
    """They count as suppressed, of whom a holder allows as many as it likes."""
    attributes = {
        "town": CODING["attributes"]["town"],
        "birth_year": {
            "role": "quasi_identifier",
            "range": [1900, 2030],
            "hierarchy": {"intervals": [10]},
        },
    }
    levels = {"town": 0, "birth_year": 1}
    coding = {"name": "fixed", "attributes": attributes, "privacy": {"k": 3}, "levels": levels}
    document = with_coding(tmp_path, coding)
    del document["model"]
    # A class of three, and six of one.
    table = {
        "person": [f"P{number}" for number in range(9)],
        "town": ["Adana"] * 3 + ["Bursa"] * 6,
        "birth_year": [1950, 1951, 1952, *range(1960, 2020, 10)],
    }
    write_table(tmp_path / "own.parquet", table)
    with pytest.raises(GuaranteeError, match="suppresses at most 0 of the 9 records"):
        run(LocalEngine(), parse_configuration(document))
    document["model"] = {"name": "full-domain", "suppression_limit": 1.0}
    run(LocalEngine(), parse_configuration(document))
    assert set(published(tmp_path / "release")["birth_year"].to_pylist()) == {"[1950-1960["}
    found = summary(tmp_path / "release")
    assert found["rows_published"] == 3
    assert found["rows_left_out"] == 6
    assert found["published_min_class_size"] == 3


def test_levels_that_a_hierarchy_has_not(tmp_path: Path, cli: Cli) -> None:
    attributes = {"town": CODING["attributes"]["town"]}
    coding = {"name": "high", "attributes": attributes, "privacy": {"k": 3}, "levels": {"town": 3}}
    document = with_coding(tmp_path, coding)
    path = document_file(tmp_path, document | {"model": {"name": "full-domain"}})
    cli.ends(2, "check", path, says="but the hierarchy of the attribute has the levels 0 to 2")
    cli.ends(2, "run", document_file(tmp_path, document), says="by which 'full-domain' recodes")


def test_values_of_no_order_are_refused(tmp_path: Path, cli: Cli) -> None:
    document = with_coding(tmp_path)
    table = people(300, 1)
    sex = [*table["sex"].to_pylist()[:-1], "Zebediah"]
    place = table.schema.get_field_index("sex")
    write_table(tmp_path / "own.parquet", table.set_column(place, "sex", pa.array(sex)))
    outcome = cli.ends(3, "run", document_file(tmp_path, document))
    (line,) = [one for one in outcome.err.splitlines() if one.startswith("error: ")]
    assert line.startswith("error: attributes.sex.order: lacks some of the column's values")
    assert not any(sign.isdigit() for sign in line)
    assert not (tmp_path / "release").exists()
