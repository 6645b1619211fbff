"""Manifests that are sound in form, of releases that no run made."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from anonspark import __version__
from anonspark.config import parse_configuration
from anonspark.core.figures import SUMMARY

PROGRAMS = ("python", "spark", "pyspark", "pandas", "pyarrow", "numpy", "numba")


def manifest_of(
    configuration: Mapping[str, Any],
    kinds: Mapping[str, tuple[str, str]],
    columns: Iterable[str] = (),
    *,
    run_id: str = "night",
) -> dict[str, Any]:
    """Return a manifest with all keys that every run writes.

    Parameters
    ----------
    configuration : mapping
        As a file has it, without input, output and seed where those do not matter.
    kinds : mapping of str to tuple of str
        Kind and type of each quasi-identifier.
    columns : iterable of str
        Published columns of quasi-identifiers; their names where none are given.
    run_id : str
    """
    whole = {
        "input": {"path": "input.parquet", "format": "parquet"},
        "output": {"path": "release"},
        "execution": {"seed": 5},
        **configuration,
    }
    whole["output"] = {"path": "release", **whole["output"]}
    parsed = parse_configuration(whole)
    own = list(columns) or list(kinds)
    texts = {"model": "su-mondrian", "version": __version__}
    names = [figure.name for figure in SUMMARY if not figure.name.endswith("_fingerprint")]
    return {
        "form": 2,
        "run_id": run_id,
        "started": "2026-11-22T11:05:21+00:00",
        "seconds": {"prepare": 1.5, "evaluate": 1, "publish": 1.0, "verify": 2.5},
        "versions": {"anonspark": __version__, **dict.fromkeys(PROGRAMS, "1.0")},
        "configuration": parsed.public_dict(),
        "fingerprints": {"configuration": "a" * 64, "input": "b" * 64, "output": "c" * 64},
        "published": {
            "rows": 10,
            "rows_left_out": 0,
            "sensitive_values": {},
            "left_out_values": "told",
            "columns": [*own, *parsed.published_as_is],
            "quasi_identifier_columns": own,
            "quasi_identifiers": [
                {"name": name, "kind": kind, "type": arrow_type}
                for name, (kind, arrow_type) in kinds.items()
            ],
        },
        "summary": {
            name: texts.get(name, 5) for name in names if name not in ("run_id", "started")
        },
        "gates": [],
        "drift": [],
        "attempt": 1,
        "warnings": [],
        "files": [],
    }


def listed_files(release: Path) -> list[dict[str, Any]]:
    """Return the files of a release as a manifest lists them, with no numbers of rows."""
    found = []
    for path in sorted(release.rglob("*")):
        if path.is_file() and path.name != "manifest.json":
            content = path.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            name = str(path.relative_to(release))
            found.append({"path": name, "bytes": len(content), "rows": None, "sha256": digest})
    return found
