"""The manifest: what a release is, how it was made, and how to check it."""

from __future__ import annotations

import json
import platform
from functools import reduce
from typing import Any

import numba
import numpy as np
import pandas as pd
import pyarrow as pa
import pyspark
from py4j.protocol import Py4JError

from anonspark import __version__
from anonspark.errors import DataError
from anonspark.filesystem import FileSystem

__all__ = ["MANIFEST", "read_manifest", "versions", "write_manifest"]

MANIFEST = "manifest.json"
"""Name of the file that makes a directory a release."""

# What reading a release takes.
_NEEDED = (
    ("configuration", "privacy", "k"),
    ("published", "quasi_identifier_columns"),
    ("fingerprints", "output"),
)


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
        manifest: dict[str, Any] = json.loads(files.read_text(path))
        for place in _NEEDED:
            reduce(lambda found, key: found[key], place, manifest)
    # Hadoop, too, refuses a file that was changed, where it knows a checksum of it.
    except (ValueError, LookupError, TypeError, Py4JError) as error:
        raise DataError(f"{path}: not a manifest of anonspark; the file is damaged") from error
    return manifest
