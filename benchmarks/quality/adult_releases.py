"""Releases of Adult with the hierarchies of ARX, and what the thesis' loss says of them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from quality.csv_tables import read_texts
from quality.uncertainty import entropy_loss

TARGET = "income"
QUASI_IDENTIFIERS = (
    "age", "workclass", "education", "marital-status", "occupation", "race", "sex",
    "native-country", "relationship",
)  # fmt: skip
WITHOUT_HIERARCHY = ("age", "sex")
OTHER_FILES = {"relationship": "adult_full_hierarchy_relationship.csv"}
INSENSITIVE = ("hours-per-week", "capital-gain", "capital-loss")

PRIVACY: Mapping[str, Mapping[str, Any]] = {
    "k = 3": {"k": 3},
    "k = 3, t = 0.4": {"k": 3, "t_closeness": {"attribute": TARGET, "t": 0.4}},
    "k = 3, l = 2": {"k": 3, "l_diversity": {"attribute": TARGET, "l": 2}},
}


def make_release(data: Path, privacy: Mapping[str, Any], output: str) -> Mapping[str, Any]:
    """Anonymize adult.csv by smondrian; return the summary of the run.

    Parameters
    ----------
    data : Path
        Folder of the public data sets.
    privacy : mapping
        Section of the configuration.
    output : str
    """
    folder = data / "hierarchies"
    attributes: dict[str, Any] = {}
    for name in QUASI_IDENTIFIERS:
        attributes[name] = {"role": "quasi_identifier"}
        if name not in WITHOUT_HIERARCHY:
            file = OTHER_FILES.get(name, f"adult_hierarchy_{name}.csv")
            attributes[name]["hierarchy"] = str(folder / file)
    attributes |= dict.fromkeys(INSENSITIVE, "insensitive")
    document = {
        "input": {
            "path": str(data / "adult.csv"),
            "format": "csv",
            "options": {"header": "true", "inferSchema": "true"},
        },
        "attributes": attributes | {TARGET: "sensitive"},
        "privacy": privacy,
        "model": {"name": "smondrian"},
        "output": {"path": output},
        "execution": {"seed": 2**40 + 1},
    }
    return run(LocalEngine(), parse_configuration(document)).summary


def entropy_loss_of(data: Path, privacy: Mapping[str, Any]) -> float:
    """Return the thesis' loss of a release, over its quasi-identifiers."""
    original = read_texts(data / "adult.csv")
    with tempfile.TemporaryDirectory(prefix="anonspark-loss-") as folder:
        make_release(data, privacy, f"{folder}/release")
        found = pq.read_table(f"{folder}/release/data")
    published = [
        [str(value) for value in found.column(name).to_pylist()] for name in QUASI_IDENTIFIERS
    ]
    # The release has another order of records, which no coefficient sees.
    return entropy_loss(
        [original.column(name) for name in QUASI_IDENTIFIERS],
        published,
        original.column(TARGET),
        found.column(TARGET).to_pylist(),
    )
