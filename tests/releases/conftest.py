"""Releases as users get them, made by this process: the engine that needs no Java."""

from __future__ import annotations

import pytest

from anonspark.engine.local.engine import LocalEngine


@pytest.fixture
def engine() -> LocalEngine:
    """Give the engine of runs."""
    return LocalEngine()


@pytest.fixture(scope="module", autouse=True)
def _without_spark(without_spark: None) -> None:
    """Let commands choose the same."""
