"""What is known of a run before its rounds is judged before its rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import write_table

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import GuaranteeError
from anonspark.layers.evaluate.gates import Drift
from anonspark.pipeline.run import run
from anonspark.progress import Progress


def document_of(folder: Path, rows: int, missing: int = 0, **sections: Any) -> dict[str, Any]:
    """Write a table and return its configuration."""
    random = np.random.default_rng(rows)
    ages = [None] * missing + random.integers(20, 80, rows - missing).tolist()
    path = write_table(folder / f"{rows}-{missing}.parquet", {"age": ages, "town": ["x"] * rows})
    return {
        "input": {"path": str(path)},
        "attributes": {"age": "quasi_identifier", "town": "insensitive"},
        "missing": "drop",
        "privacy": {"k": 4},
        "metrics": {"append_to": str(folder / "runs"), "drift": {"rows_in": 0.2}},
        "execution": {"seed": 1},
        "output": {"path": str(folder / "release"), "mode": "overwrite"},
        **sections,
    }


def stages_of(document: dict[str, Any], words: str | None = None) -> list[str]:
    """Run a configuration, which fails with some words, and return its stages."""
    progress = Progress()
    if words is None:
        run(LocalEngine(), parse_configuration(document), progress=progress)
    else:
        with pytest.raises(GuaranteeError, match=words):
            run(LocalEngine(), parse_configuration(document), progress=progress)
    return list(progress.seconds)


def test_half_a_delivery_ends_the_night_at_once(tmp_path: Path) -> None:
    stages = stages_of(document_of(tmp_path, 100))
    assert stages[:3] == ["prepare", "drift", "round 1 of 5"]
    words = r"metrics\.drift\.rows_in: found 50 after 100 in run \w+, a relative change of 0\.5"
    assert stages_of(document_of(tmp_path, 50), words) == ["prepare", "drift"]
    # Figures that only a release has are judged when there is one.
    told = {"append_to": str(tmp_path / "runs"), "drift": {"gcp": 0.0, "rows_in": 9}}
    stages = stages_of(document_of(tmp_path, 50, metrics=told), r"metrics\.drift\.gcp")
    assert "verify" in stages


def test_a_gate_on_the_input_is_judged_at_once(tmp_path: Path) -> None:
    gates = {"rows_in": {"min": 100}, "rows_dropped_missing": {"max": 5}}
    document = document_of(tmp_path, 60, 10, gates=gates)
    words = (
        r"gates\.rows_in: found 60, expected at least 100, 40 more\n"
        r"gates\.rows_dropped_missing: found 10, expected at most 5, 5 less"
    )
    assert stages_of(document, words) == ["prepare", "drift"]
    # Of fewer than k records no number is told.
    document = document_of(tmp_path, 60, 3, gates={"rows_dropped_missing": {"max": 2}})
    words = r"gates\.rows_dropped_missing: found a number that is withheld"
    assert stages_of(document, words) == ["prepare", "drift"]
    stages_of(document_of(tmp_path, 60, 3, gates={"rows_dropped_missing": {"max": 3}}))


@pytest.mark.parametrize(
    ("found", "before", "less", "sure"),
    [(120, 100, 0, False), (121, 100, 0, True), (122, 100, 2, False), (123, 100, 2, True),
     (79, 100, 9, True), (105, 100, 9, False)],
)  # fmt: skip
def test_a_count_that_may_be_told_smaller_is_judged_by_the_nearest(
    found: float, before: float, less: int, sure: bool
) -> None:
    assert Drift("rows_in", found, before, 0.2, "monday").is_sure(less) == sure
    nearest = min((abs(found - some - before) / before for some in range(less + 1)), default=0.0)
    assert sure == (nearest > 0.2)
