"""Holders who anonymize apart under one coding."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from helpers import document_file, write_table

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.pipeline.run import run

ATTRIBUTES: Mapping[str, Any] = {
    "age": {"role": "quasi_identifier", "type": "number", "range": [0, 120]},
    "sex": {"role": "quasi_identifier", "order": ["female", "male"]},
    "illness": "sensitive",
}


def write_coding(folder: Path, privacy: Mapping[str, Any], **keys: Any) -> Path:
    """Write ``coding.yaml``."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {"name": "clinics", "attributes": dict(ATTRIBUTES), "privacy": dict(privacy), **keys}
    return document_file(folder, document, "coding.yaml")


def anonymize(
    folder: Path,
    name: str,
    table: pa.Table | Mapping[str, Any],
    coding: Path | None,
    engine: Engine | None = None,
    **sections: Any,
) -> Path:
    """Let a holder anonymize a table, and return the release: ``folder/name``."""
    path = write_table(folder / f"{name}.parquet", table)
    document: dict[str, Any] = {
        "input": {"path": str(path)},
        "model": {"name": "smondrian"},
        "output": {"path": str(folder / name)},
        "execution": {"seed": 77},
        **sections,
    }
    if coding is not None:
        document["coding"] = str(coding)
    run(engine or LocalEngine(), parse_configuration(document))
    return folder / name
