"""The files of ``tests/systems/jars.lock``: there, or a test that needs one is skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pyspark
import pytest
from places import REPOSITORY

JARS = Path(os.environ.get("ANONSPARK_JARS") or REPOSITORY / "build" / "jars")
SPARK_JARS = Path(pyspark.__file__).parent / "jars"


def cannot_run(reason: str) -> None:
    """Skip a test whose service cannot be started here; where ``SYSTEMS=required`` it fails."""
    if os.environ.get("SYSTEMS") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


def locked_jars(*names: str) -> list[Path]:
    """Return the fetched files of some names, versions left out."""
    found = []
    for name in names:
        files = sorted(JARS.glob(f"{name}-[0-9]*.jar"))
        if len(files) != 1:
            cannot_run(f"{JARS} has {len(files)} files {name}-*.jar: make systems fetches one")
        found += files
    return found


def spark_jars(*patterns: str) -> list[Path]:
    """Return files that come with Spark."""
    return [file for pattern in patterns for file in sorted(SPARK_JARS.glob(pattern))]
