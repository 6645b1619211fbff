"""Releases attacked together by Spark: what the process by itself finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helpers import write_people_of_towns

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.pipeline.run import run
from anonspark.sharing.pairs.releases import Attack, audit_releases


def release(folder: Path, name: str, attributes: dict[str, Any], **sections: Any) -> str:
    document = {
        "input": {"path": str(folder / "input.parquet")},
        "attributes": {**attributes, "disease": "sensitive"},
        "privacy": {"k": 3},
        "output": {"path": str(folder / name)},
        **sections,
    }
    run(LocalEngine(), parse_configuration(document))
    return str(folder / name)


def test_both_engines_find_the_same(engine: SparkEngine, tmp_path: Path) -> None:
    write_people_of_towns(tmp_path, 60)
    towns = {"role": "quasi_identifier", "hierarchy": str(tmp_path / "towns.csv")}
    both: dict[str, Any] = {"age": "quasi_identifier", "town": towns}
    paths = [
        release(tmp_path, "first", both),
        release(tmp_path, "second", {"age": "quasi_identifier"}, missing="category"),
    ]
    attack = Attack("same people", original=str(tmp_path / "input.parquet"))
    found = [audit_releases(one, paths, attack=attack) for one in (LocalEngine(), engine)]
    assert found[0].as_dict() == found[1].as_dict()
    figures = found[0].pairs[0].figures
    assert figures.proven > 0
    assert figures.breaches > 0
