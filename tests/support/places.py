"""Where this repository and what the tests need of it lies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
# The hierarchies of the theses' full-domain recoding, a file for an attribute of Adult.
HIERARCHIES = REPOSITORY / "conf" / "hierarchies" / "adult-vural-2017"


def require_data(path: Path) -> None:
    """Skip the test, or fail it in continuous integration, if a data set is missing."""
    if not path.exists():
        skip_or_fail(f"{path} is missing: set ANONSPARK_DATA to the folder with the data sets")


def skip_or_fail(message: str) -> NoReturn:
    """Skip the test, or fail it in continuous integration, for what it needs is missing."""
    if os.environ.get("CI") == "true":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
