"""The tables of ``anonspark evaluate``."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from anonspark.core.model_scores import accuracy_difference
from anonspark.presentation.terminal import show_blocks
from anonspark.presentation.utility import utility_card
from anonspark.utility.evaluation import Utility
from anonspark.utility.models import Learning, ModelDifference, ModelLoss, Score
from anonspark.utility.workload import WorkloadError

WORKLOAD = WorkloadError(1000, ["age", "job"], [], 0.05, 30.2, 0.0123, 0.02, 0.001, 0.03)


def shown(learning: Learning | None) -> str:
    console = Console(file=io.StringIO(), width=100)
    card = utility_card("out/people", Utility(30162, WORKLOAD, None, learning))
    show_blocks(console, [card])
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_errors_of_counts() -> None:
    text = shown(None)
    for words in ("out/people", "1,000", "age, job", "no sensitive attribute", "5.00%", "1.23%"):
        assert words in text
    assert "Learning" not in text


def learned(classes: int, *, held_out: bool = False, left_out: int = 0) -> Learning:
    area = 0.9 if classes == 2 else None
    scores = [
        Score("original", "random forest", 0.81, 0.43, 0.4, 0.41, 0.6, area),
        Score("original_with_test", "random forest", 0.82, 0.44, 0.41, 0.42, 0.6, area),
        Score("release", "random forest", 0.8, 0.45, 0.37, 0.4, 0.6, area),
    ]
    found = accuracy_difference(9000, 400, 310)
    difference = ModelDifference("random forest", found, found if classes == 2 else None)
    loss = ModelLoss("accuracy", "random forest", "random forest", 0.01, found.standard_error)
    return Learning(
        "income", classes, held_out, 9000, left_out, 0.75, scores, [difference], loss, None
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_scores(classes: int) -> None:
    text = shown(learned(classes))
    assert "9,000 original records" in text
    assert "accuracy 0.7500" in " ".join(text.split())
    assert "original with the test records" in text
    assert ("ROC AUC" in text) == (classes == 2)
    assert ("weighted" in text) == (classes == 3)
    assert "0.4500" in text
    assert "0.3700" in text


def test_differences() -> None:
    text = shown(learned(3))
    assert "not comparable" in " ".join(text.split())
    (row,) = (line for line in text.splitlines() if "loses" in line)
    assert [word for word in row.split() if word[0] in "-±"] == ["-0.0100", "±0.0058"]
    words = "compared with the best of the release (random forest): loss of accuracy 0.0100 ±0.0058"
    assert words in " ".join(text.split())
    assert "left out" not in text
    text = shown(learned(2, held_out=True, left_out=1234))
    assert "not comparable" not in " ".join(text.split())
    assert "1,234 held-out records are of a class that the original has not" in text
