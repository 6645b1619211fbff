"""The file of a run that failed is read by others: it shows names of variables, not values."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from anonspark.config import load_configuration
from anonspark.errors import DataError
from anonspark.layers.publish.failures import note_outcome
from anonspark.progress import Progress

CONFIGURATION = """\
input: {path: "${PEOPLE_DIR}/people.csv"}
quasi_identifiers: [age]
privacy: {k: 5}
metrics: {append_to: history, job: "${JOB}"}
output: {path: out}
"""


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            DataError("input.path: nothing is at file:/data/Tr0ub4dor/people.csv. 3/8 of 12"),
            "input.path: nothing is at file:/data/Tr0ub4dor/people.csv. … of …",
        ),
        (ValueError("Tr0ub4dor"), "ended by ValueError"),
    ],
)
def test_a_failure_is_noted_without_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PEOPLE_DIR", "/data/Tr0ub4dor")
    monkeypatch.setenv("JOB", "visits")
    (tmp_path / "c.yaml").write_text(CONFIGURATION)
    configuration = load_configuration("c.yaml")
    note_outcome(
        configuration,
        Progress(run_id="night-1"),
        started=datetime(2026, 11, 24, tzinfo=UTC),
        error=error,
        published=False,
        files=None,
    )
    (noted,) = tmp_path.glob("history/failures/date=2026-11-24/night-1.json")
    told = json.loads(noted.read_text())
    assert (told["message"], told["job"]) == (message, "visits")
