"""What a run tells of few records, and of its failure: no count and no value."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cases import cases

from anonspark.config import load_configuration
from anonspark.errors import DataError
from anonspark.layers.evaluate.gates import measure_drift
from anonspark.layers.evaluate.withholding import COUNTS, least_count, told_counts, told_missing
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


def counts(dropped: int, left_out: int, published: int = 100) -> dict[str, int]:
    total = published + dropped + left_out
    return dict(zip(COUNTS, (total, dropped, left_out, left_out), strict=True))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_no_sum_or_difference_of_counts_tells_of_fewer_than_k(k: int) -> None:
    for dropped, left_out in itertools.product(range(2 * k + 1), repeat=2):
        told = told_counts(counts(dropped, left_out), k)
        known = [value for value in (*told.values(), 100) if value is not None]
        for size in range(1, len(known) + 1):
            for some in itertools.combinations(known, size):
                for signs in itertools.product((1, -1), repeat=size):
                    found = abs(sum(sign * one for sign, one in zip(signs, some, strict=True)))
                    assert not (0 < found < k and found in (dropped, left_out))


def test_what_is_of_nobody_or_of_many_is_told() -> None:
    assert told_counts(counts(0, 0), 5) == counts(0, 0)
    assert told_counts(counts(5, 7), 5) == counts(5, 7)
    assert told_counts(counts(4, 7), 5) == {
        "rows_in": None,
        "rows_dropped_missing": None,
        "rows_suppressed": 7,
        "rows_left_out": 7,
    }
    assert told_counts(counts(1, 0), 1) == counts(1, 0)


@cases(__file__, "missing", "dropped", "told")
def test_missing_values_tell_of_no_fewer_than_k(
    missing: list[int], dropped: int | None, told: list[int | None]
) -> None:
    assert told_missing(missing, dropped, 5) == told


def test_counts_that_are_withheld_are_compared_by_the_least_that_they_can_be() -> None:
    summary = {"rows_published": 100, "entropy": None, **told_counts(counts(3, 20), 5)}
    assert least_count(summary, "rows_in") == 120
    assert least_count(summary, "rows_dropped_missing") == 0
    assert least_count(summary, "rows_left_out") == 20
    assert least_count(summary, "entropy") is None
    assert least_count({}, "rows_in") is None
    many = {"rows_published": 100, **told_counts(counts(5000, 20), 5)}
    (drift,) = measure_drift({"rows_dropped_missing": 0.5}, many, {**summary, "run_id": "before"})
    assert drift.describe() is not None
