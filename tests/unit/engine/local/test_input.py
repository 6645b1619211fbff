"""The input of a run on the local engine, and what all engines count in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.local.input import LocalInput


class FrugalInput(LocalInput):
    """Counts exactly as few different texts as some."""

    most_distinct = 256


def test_more_texts_than_a_task_counts_are_estimated(tmp_path: Path) -> None:
    """The total of tasks took the hashes that they kept for all that there were."""
    (tmp_path / "a.csv").write_text("name\n" + "".join(f"x{place}\n" for place in range(20_000)))
    configuration = parse_configuration(
        {
            "input": {
                "path": str(tmp_path / "a.csv"),
                "format": "csv",
                "options": {"header": "true"},
            },
            "output": {"path": str(tmp_path / "release")},
            "attributes": {"name": {"role": "quasi_identifier"}},
            "privacy": {"k": 2},
            "model": "mondrian",
        }
    )
    engine = LocalEngine()
    table = engine.open_source(configuration)
    for kind, tolerance in ((LocalInput, 0.0), (FrugalInput, 0.3)):
        found = kind.of(table, configuration, {}).inspect()
        assert found["distinct_0"] == pytest.approx(20_000, rel=tolerance)
