"""The manifest: what a release is, how it was made, and how to check it."""

from __future__ import annotations

import json
import platform
from typing import Any

import numba
import numpy as np
import pandas as pd
import pyarrow as pa
import pyspark

from anonspark import __version__
from anonspark.errors import DataError
from anonspark.filesystem import FileSystem

__all__ = ["MANIFEST", "read_manifest", "versions", "write_manifest"]

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
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    files.write_text(f"{release}/{MANIFEST}", text)


def read_manifest(files: FileSystem, release: str) -> dict[str, Any]:
    """Read a release's manifest.

    Raises
    ------
    DataError
        If there is none, or it is not one of ours.
    """
    path = f"{release.rstrip('/')}/{MANIFEST}"
    if not files.exists(path):
        raise DataError(
            f"{release}: no {MANIFEST} there, so it is not a complete release; give the directory "
            "that output.path named"
        )
    try:
        manifest = json.loads(files.read_text(path))
        if not isinstance(manifest, dict) or "published" not in manifest:
            raise ValueError("not a manifest")
    except ValueError as error:
        raise DataError(f"{path}: not a manifest of anonspark; the file is damaged") from error
    return manifest
