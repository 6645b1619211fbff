"""Tasks that fail whatever Spark does: a clear message, nothing published, nothing left."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import cases
from commands import Cli
from helpers import configuration_file, contents, write_table

from anonspark.models import blockwise

pytestmark = pytest.mark.usefixtures("spark")


def reason_to_fail(name: str) -> Callable[[], None]:
    """Return what a task fails by; made here, so that it is sent to the workers as it is."""

    def fail() -> None:
        raise ValueError("Kryptonitis 7")

    def take_all_memory() -> None:
        np.ones(2**50)

    def be_killed() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    return {"exception": fail, "memory": take_all_memory, "killed": be_killed}[name]


@cases(__file__, "reason", "code", "expected")
def test_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, reason: str, code: int, expected: str
) -> None:
    fail = reason_to_fail(reason)

    class Failing(blockwise.FinishBlocks):
        """Sent to the workers as it is, for it has no module that they could import."""

        def __call__(self, batches: Any) -> Any:
            for batch in batches:
                fail()
                yield batch

    monkeypatch.setattr(blockwise, "FinishBlocks", Failing)
    random = np.random.default_rng(7)
    write_table(
        tmp_path / "input.parquet",
        {"age": random.integers(0, 100, 100), "disease": ["Kryptonitis 7"] * 100},
    )
    path = configuration_file(
        tmp_path,
        attributes={"age": "quasi_identifier", "disease": "sensitive"},
        model={"name": "su-mondrian", "rho": 2},
    )
    before = contents(tmp_path)
    outcome = cli.ends(code, "run", path, "--no-progress", says=f"error: {expected}")
    assert "Kryptonitis" not in outcome.err
    assert contents(tmp_path) == before
