"""Releases as users get them, made by this process: the engine that needs no Java."""

from __future__ import annotations

from pathlib import Path

import pytest
from read_releases import write_releases

from anonspark.engine.local.engine import LocalEngine


@pytest.fixture
def engine() -> LocalEngine:
    """Give the engine of runs."""
    return LocalEngine()


@pytest.fixture(scope="module", autouse=True)
def _without_spark(without_spark: None) -> None:
    """Let commands choose the same."""


@pytest.fixture(scope="session")
def read_releases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a directory with releases of every style, which tests only read."""
    folder = tmp_path_factory.mktemp("read")
    write_releases(folder)
    return folder
