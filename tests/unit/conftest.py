"""One room after the other, by itself: without the Spark that other tests have started."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def _without_spark(without_spark: None) -> None:
    """Let functions choose the engine as in a process of their own."""
