"""``anonspark show``: what a release is, and the commands that make it again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from commands import Cli
from helpers import configuration_file, write_table

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.release.manifest import read_manifest
from anonspark.release.rerun_configuration import configuration_text

SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "criteria": {
        "privacy": {"k": 3, "l_diversity": 2, "t_closeness": 0.6},
        "output": {"style": "bounds", "copies": ["csv"]},
        "missing": "category",
        "gates": {"gcp": {"max": 0.9}},
    },
    "model": {"model": {"name": "microaggregation"}, "execution": {"seed": 2**60 + 1}},
    "csv": {"input": {"path": "people.csv"}},
    "variables": {"metrics": {"job": "cost $${EUR} and $${run_date}"}},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_shown_commands_make_the_release_again(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    people = {
        "age": [20 + n * 7 % 50 for n in range(120)],
        "job": ["abc"[n % 3] for n in range(120)],
    }
    write_table(tmp_path / "input.parquet", pa.table(people))
    rows = zip(people["age"], people["job"], strict=True)
    (tmp_path / "people.csv").write_text("age;job\n" + "".join(f"{a};{b}\n" for a, b in rows))
    settings = SETTINGS[name]
    path = configuration_file(
        tmp_path,
        attributes={"age": "quasi_identifier", "job": "sensitive"},
        **settings | {"output": {"path": "out"} | settings.get("output", {})},
    )
    cli.ends(0, "run", path)
    shown = cli.ends(0, "show", "out", "--json")
    document = json.loads(shown.out)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert document["configuration"] == manifest["configuration"]
    assert document["claimed"]
    first, second = map(shlex.split, document["again"])
    assert first[-2:] == [">", "again.yaml"]
    printed = cli.ends(0, *first[1:-2])
    (tmp_path / "again.yaml").write_text(printed.out)
    seed = settings.get("execution", {}).get("seed")
    assert ("seed_file: SEED" in printed.out) == (seed is not None)
    if seed is not None:
        (tmp_path / "SEED").write_text(str(seed))
        (tmp_path / "SEED").chmod(0o600)
    cli.ends(0, *second[1:])
    again = json.loads((tmp_path / "out-again" / "manifest.json").read_text())
    for fingerprint in ("input", "output"):
        assert again["fingerprints"][fingerprint] == manifest["fingerprints"][fingerprint]
    written = sorted((tmp_path / "out" / "data").iterdir())
    for file in written:
        assert file.read_bytes() == (tmp_path / "out-again" / "data" / file.name).read_bytes()
    text = cli("show", "out").out
    assert len(text.splitlines()) <= 40
    assert f"{len(document['claimed'])} statements are claimed, not proven: --details" in text
    assert "Claimed by the run, not proven" in cli("show", "out", "--details").out
    assert manifest["configuration"]["execution"]["seed_fingerprint"] in text or seed is None


def test_orders_are_not_in_a_release(tmp_path: Path, cli: Cli) -> None:
    write_table(tmp_path / "input.parquet", pa.table({"size": ["small", "large"] * 40}))
    path = configuration_file(
        tmp_path, attributes={"size": {"role": "quasi_identifier", "order": ["small", "large"]}}
    )
    cli.ends(0, "run", path)
    text = configuration_text(read_manifest(LocalEngine().files, str(tmp_path / "release")))
    assert text.endswith("# attributes.size.order had 2 values. Write them again.\n")
    assert parse_configuration(yaml.safe_load(text)).attributes["size"].order is None


def test_names_stay_in_their_comment_and_their_quotes(tmp_path: Path, cli: Cli) -> None:
    name = "size ${HOME}\nmetrics:\n  job: injected\n#"
    write_table(tmp_path / "input.parquet", pa.table({name: ["small", "large"] * 40}))
    ordered = {"role": "quasi_identifier", "order": ["small", "large"]}
    path = configuration_file(tmp_path, attributes={name: ordered})
    cli.ends(0, "run", path)
    printed = cli("show", tmp_path / "release", "--yaml").out
    document = yaml.safe_load(printed)
    assert list(document["attributes"]) == [name]
    assert "metrics" not in document


def test_a_broken_release_is_refused(tmp_path: Path, cli: Cli) -> None:
    write_table(tmp_path / "input.parquet", pa.table({"age": list(range(60))}))
    path = configuration_file(tmp_path, attributes={"age": "quasi_identifier"})
    cli.ends(0, "run", path)
    with (tmp_path / "release" / "README.md").open("a") as page:
        page.write("more\n")
    cli.ends(4, "show", tmp_path / "release", says="README.md")
    # The configuration alone is read from the manifest.
    cli.ends(0, "show", tmp_path / "release", "--yaml")
