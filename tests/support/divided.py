"""Releases of drawn tables, verified with all classes in every task and with classes shared out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from helpers import configuration_file, divided_classes, write_table

from anonspark.config import load_configuration
from anonspark.engine.protocol import Engine
from anonspark.pipeline.run import run
from anonspark.verification.audit import audit_release

QUASI_IDENTIFIERS = ("age", "wage", "since", "town", "married")
FULL_DOMAIN: dict[str, Any] = {"name": "full-domain", "suppression_limit": 0.3}
MODELS: dict[str, dict[str, Any]] = {
    "smondrian": {"model": {"name": "smondrian"}},
    "bounds": {"model": {"name": "su-mondrian"}, "output": {"style": "bounds"}},
    "overlapping": {"model": {"name": "microaggregation"}},
    "tuples": {"model": {"name": "canon"}, "output": {"style": "bounds"}},
    "hierarchies": {"model": FULL_DOMAIN},
    "numbers": {"model": {"name": "mondrian"}},
}


def draw_people(seed: int, rows: int) -> pa.Table:
    """Draw records of five quasi-identifiers, some missing, a sensitive and another column."""
    draw = np.random.default_rng(seed)
    ages = draw.integers(0, 90, rows)
    wages = draw.integers(0, 4000, rows) / 100
    days = pa.array(draw.integers(-400, 12_000, rows).astype(np.int32), pa.int32())
    towns = [f"t{number}" for number in range(9)]
    return pa.table(
        {
            "age": pa.array(ages, pa.int64(), mask=draw.random(rows) < 0.05),
            "wage": pa.array(wages).cast(pa.decimal128(9, 2)),
            "since": days.cast(pa.date32()),
            "town": pa.array(draw.choice(towns, rows), pa.string(), mask=draw.random(rows) < 0.05),
            "married": draw.random(rows) < 0.5,
            "illness": draw.choice(["flu", "gout", "mumps"], rows, p=[0.7, 0.2, 0.1]),
            "job": draw.choice(["cook", "clerk"], rows),
        }
    )


def publish_people(
    engine: Engine, folder: Path, seed: int, model: str, rows: int = 40
) -> tuple[Path, Path, Path]:
    """Publish drawn people: the release, its original and a population of more people."""
    folder.mkdir(parents=True, exist_ok=True)
    people = draw_people(seed, rows)
    original = write_table(folder / "input.parquet", people)
    others = pa.concat_tables([people, draw_people(seed + 1000, rows)])
    population = write_table(folder / "population.parquet", others.select(QUASI_IDENTIFIERS))
    attributes: dict[str, Any] = dict.fromkeys(QUASI_IDENTIFIERS, "quasi_identifier")
    attributes |= {"illness": "sensitive", "job": "insensitive"}
    if model == "numbers":
        attributes |= {"town": "identifier", "married": "insensitive"}
    if model == "hierarchies":
        towns = folder / "towns.csv"
        towns.write_text("\n".join(f"t{number};{'NS'[number % 2]};*" for number in range(9)) + "\n")
        rules = {"age": {"intervals": [10, 30]}, "wage": {"intervals": [5, 20]}}
        rules |= {"since": {"calendar": ["year", "decade"]}, "town": str(towns)}
        for name, hierarchy in rules.items():
            attributes[name] = {"role": "quasi_identifier", "hierarchy": hierarchy}
    sections = {"missing": "category", "privacy": {"k": 3}, **MODELS[model]}
    path = configuration_file(folder, attributes=attributes, **sections)
    run(engine, load_configuration(path))
    return folder / "release", original, population


def figures(engine: Engine, release: Path, **tables: Path) -> dict[str, Any]:
    """Return all figures of a verification."""
    paths = {name: str(path) for name, path in tables.items()}
    return audit_release(engine, str(release), **paths).as_dict()


def verify_both_ways(
    engine: Engine, release: Path, original: Path, population: Path, **sizes: int
) -> list[dict[str, Any]]:
    """Return the figures with all classes in every task, and those with classes shared out."""
    tables = {"original": original, "population": population}
    found = [figures(engine, release, **tables)]
    with divided_classes(**sizes):
        found.append(figures(engine, release, **tables))
    return found
