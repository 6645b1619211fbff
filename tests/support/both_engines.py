"""Run a configuration on an engine, and keep what must be the same on both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anonspark import anonymize
from anonspark.config import parse_configuration
from anonspark.engine.protocol import Engine
from anonspark.errors import AnonsparkError
from anonspark.pipeline.run import run


def outcome(engine: Engine, document: Mapping[str, Any], output: Path) -> dict[str, Any]:
    """Return the files, fingerprints and warnings of a release, or the error and its exit code."""
    document = {**document, "output": {**document.get("output", {}), "path": str(output)}}
    document["execution"] = {"seed": 2**61 + 1, **document.get("execution", {})}
    try:
        run(engine, parse_configuration(document))
    except AnonsparkError as error:
        return {"code": error.exit_code, "message": str(error).replace("file:///", "file:/")}
    manifest = json.loads((output / "manifest.json").read_text())
    return {
        "files": {
            file.name: hashlib.sha256(file.read_bytes()).hexdigest()
            for file in sorted((output / "data").glob("*.parquet"))
        },
        "fingerprints": [manifest["fingerprints"][name] for name in ("input", "output")],
        "warnings": manifest["warnings"],
    }


def outcome_of_table(table: Any, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return fingerprints and warnings of a table that is given, or the error and its exit code."""
    document = {**document, "execution": {"seed": 2**61 + 1}}
    try:
        with anonymize(table, document, progress=False) as release:
            manifest = release.manifest
            return {
                "fingerprints": [manifest["fingerprints"][name] for name in ("input", "output")],
                "warnings": manifest["warnings"],
            }
    except AnonsparkError as error:
        return {"code": error.exit_code, "message": str(error)}
