"""The tables of ``anonspark evaluate``."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from anonspark.cli.utility_display import show_utility
from anonspark.utility.evaluation import Learning, Utility
from anonspark.utility.learning import Score
from anonspark.utility.workload import WorkloadError

WORKLOAD = WorkloadError(1000, ["age", "job"], [], 0.05, 30.2, 0.0123, 0.02, 0.001, 0.03)


def shown(learning: Learning | None) -> str:
    console = Console(file=io.StringIO(), width=100)
    show_utility(console, "out/people", Utility(30162, WORKLOAD, None, learning))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_errors_of_counts() -> None:
    text = shown(None)
    for words in ("out/people", "1,000", "age, job", "no sensitive attribute", "5.00%", "1.23%"):
        assert words in text
    assert "Learning" not in text


@pytest.mark.parametrize("classes", [2, 3])
def test_scores(classes: int) -> None:
    area = 0.9 if classes == 2 else None
    scores = [
        Score("original", "random forest", 0.81, 0.41, area),
        Score("original_with_test", "random forest", 0.82, 0.42, area),
        Score("release", "random forest", 0.8, 0.4, area),
    ]
    text = shown(Learning("income", classes, False, 9000, 0.75, scores))
    assert "9,000 original records" in text
    assert "accuracy 0.7500" in text
    assert "original with the test records" in text
    assert ("ROC AUC" in text) == (classes == 2)
    assert ("weighted F1" in text) == (classes == 3)
