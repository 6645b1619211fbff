"""The manifest: what a release is, how it was made, and how to check it."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import pandas as pd
import pyarrow as pa
import pyspark

from anonspark._version import __version__
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.redaction import redact_values
from anonspark.release.manifest_form import FORM, manifest_problems

__all__ = ["MANIFEST", "manifest_text", "read_manifest", "versions", "write_manifest"]

MANIFEST = "manifest.json"
"""Name of the file that makes a directory a release."""


def versions(spark_version: str) -> dict[str, str]:
    """Return the versions of everything that had a hand in a release.

    Parameters
    ----------
    spark_version : str
        That of the session, which a cluster may choose.
    """
    return {
        "anonspark": __version__,
        "python": platform.python_version(),
        "spark": spark_version,
        "pyspark": pyspark.__version__,
        "pyarrow": pa.__version__,
        "numpy": np.__version__,
        "numba": numba.__version__,
        "pandas": pd.__version__,
    }


def write_manifest(files: FileSystem, release: str, manifest: dict[str, Any]) -> None:
    """Write a release's manifest as readable JSON."""
    files.write_text(f"{release}/{MANIFEST}", manifest_text(manifest))


def manifest_text(manifest: dict[str, Any]) -> str:
    """Return a manifest as readable JSON; one that lists its files says so by its form.

    Credentials are redacted; in ``configuration`` they are already, and columns and files keep
    their names.
    """
    if "files" in manifest:
        manifest = {"form": FORM, **manifest}
    told = {
        key: value if key in ("configuration", "files", "published") else redact_values(value)
        for key, value in manifest.items()
    }
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


def read_manifest(files: FileSystem, release: str) -> dict[str, Any]:
    """Read a release's manifest; every key that anonspark reads is there and of its type.

    Raises
    ------
    DataError
        If there is none.
    GuaranteeError
        If it is damaged, or not one of ours: what it says cannot be relied on.
    """
    path = f"{release.rstrip('/')}/{MANIFEST}"
    if not files.exists(path):
        raise DataError(
            f"{release}: no {MANIFEST} there, so it is not a complete release; give the directory "
            "that output.path named"
        )
    try:
        manifest: dict[str, Any] = json.loads(
            files.read_text(path), object_pairs_hook=_each_key_once
        )
    # Hadoop, too, refuses a file that was changed, where it knows a checksum of it.
    except (ValueError, RecursionError, OSError, ConfigurationError) as error:
        raise GuaranteeError(
            f"{path}: not a manifest of anonspark, or it cannot be read; the file is damaged: "
            "restore it, or publish the release again"
        ) from error
    problems = manifest_problems(manifest)
    if problems:
        raise GuaranteeError(
            "\n".join(
                f"{path}: not a manifest of anonspark; the file is damaged: {problem}; restore it, "
                "or publish the release again"
                for problem in problems
            )
        )
    return manifest


def _each_key_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that stands there twice, of which readers would see either."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands there twice")
    return found
