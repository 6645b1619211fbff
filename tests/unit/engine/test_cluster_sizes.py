"""What a cluster should give a run, and the warning of a driver that gets too little."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from anonspark.engine.memory import cluster_sizes
from anonspark.engine.spark import settings
from anonspark.engine.spark.settings import warn_of_little_memory


@pytest.mark.parametrize(
    ("rows", "tasks", "executors", "overhead"),
    [
        (0, 0, 1, 1024),
        (10_000_000, 40, 3, 1024),
        (10_000_001, 41, 3, 2048),
        (100_000_000, 400, 25, 6144),
        (10**9, 4000, 50, 6144),
    ],
)
def test_sizes(rows: int, tasks: int, executors: int, overhead: int) -> None:
    sizes = cluster_sizes(rows, tasks)
    assert (sizes.executors, sizes.driver_overhead) == (executors, overhead)


def session(mode: str, **given: str) -> Any:
    """Return a session with a mode of deployment and sizes of the driver."""
    named = {f"spark.driver.{name}": value for name, value in given.items()}
    named["spark.submit.deployMode"] = mode
    return SimpleNamespace(conf=SimpleNamespace(get=named.get))


@pytest.mark.parametrize(
    ("mode", "given", "rows", "expected"),
    [
        ("client", {}, 10**8, ""),
        ("cluster", {}, 1_000_000, ""),
        ("cluster", {}, 1_000_001, "can have 384 MiB, and may need 512 MiB for 1,000,001 rows"),
        ("cluster", {"memory": "6g"}, 10**7, ""),
        ("cluster", {"memoryOverhead": "511m"}, 10**7, "spark.driver.memoryOverhead=1024m"),
        ("cluster", {"memoryOverhead": "512m"}, 10**7, ""),
        # A number is one of MiB here.
        ("cluster", {"memoryOverhead": "511"}, 10**7, "can have 511 MiB"),
        ("cluster", {"memory": "6144"}, 10**7, ""),
        ("cluster", {"memoryOverhead": "2g"}, 10**8, "spark.driver.memoryOverhead=6144m"),
    ],
)
def test_warning(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    mode: str,
    given: dict[str, str],
    rows: int,
    expected: str,
) -> None:
    monkeypatch.setattr(settings, "available_memory", lambda: 8 * 2**30)
    with caplog.at_level(logging.WARNING, logger="anonspark"):
        warn_of_little_memory(session(mode, **given), rows)
    assert (expected in caplog.text) if expected else not caplog.text
