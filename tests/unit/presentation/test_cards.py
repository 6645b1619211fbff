"""Cards: the last lines of a run on one screen, tables of ``anonspark evaluate``, roles."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from anonspark.cli.command import Terminal
from anonspark.core.model_scores import accuracy_difference
from anonspark.pipeline.context import Release
from anonspark.pipeline.warnings.release_warning import ReleaseWarning
from anonspark.presentation.blocks import Role, Section, Table, cell_text
from anonspark.presentation.card import table_text
from anonspark.presentation.document import render
from anonspark.presentation.release import published_card
from anonspark.presentation.terminal import show_blocks
from anonspark.presentation.utility import utility_card
from anonspark.utility.evaluation import Utility
from anonspark.utility.models import Learning, ModelDifference, ModelLoss, Score
from anonspark.utility.workload import WorkloadError

SUMMARY: dict[str, Any] = {
    "run_id": "monday", "k": 5, "rows_published": 1000, "rows_dropped_missing": 12,
    "rows_suppressed": 0, "rows_left_out": 0, "published_classes": 100,
    "published_min_class_size": 6, "utility_score": 97.5,
}  # fmt: skip
ATTRIBUTES = [
    {"attribute": f"column-{place}", "loss": loss}
    for place, loss in enumerate((0.01, 0.2, None, 0.05, 0.3))
]
RISK = [
    {"round": 1, "attacker": "prosecutor", "highest": 0.9, "average": 0.8},
    {"round": None, "attacker": "prosecutor", "highest": 0.2, "average": 0.125},
]


def criterion(name: str, measured: float | None) -> dict[str, Any]:
    return {"criterion": name, "attribute": "ill", "required": 2.0, "measured": measured}


def shown(
    summary: dict[str, Any] = SUMMARY,
    *,
    criteria: int = 0,
    warnings: int = 0,
    earlier: bool = False,
) -> list[str]:
    privacy = [{"criterion": "k", "required": 5.0, "measured": 6.0}]
    privacy += [criterion(f"criterion {place}", 3.0) for place in range(criteria)]
    told = [ReleaseWarning("rare_values", "text", "ill", {})] * warnings
    release = Release(
        "out/people", summary, [], ATTRIBUTES, privacy, RISK, {}, told, earlier=earlier
    )
    console = Terminal(file=io.StringIO(), soft_wrap=True)
    show_blocks(console, [published_card(release)])
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def test_what_was_there_already_is_told_so() -> None:
    first, *_ = shown({**SUMMARY, "started": datetime(2026, 11, 21, 2, tzinfo=UTC)}, earlier=True)
    assert first == (
        "Nothing left to do: release monday of 2026-11-21 02:00 UTC is complete: every "
        "record matches at least 5 others (k = 5)"
    )


def test_the_verdict_comes_first_and_all_is_told() -> None:
    first, *others = shown(criteria=1, warnings=2)
    assert first == "Release monday is published: every record matches at least 5 others (k = 5)"
    text = "\n".join(others)
    for words in (
        "at         out/people",
        "1,000 published, 12 dropped (missing quasi-identifier)",
        "100, of 10.0 records on average, the smallest of 6",
        "re-identification risk 20.0% at most, 12.5% on average",
        "criterion 0 of ill: 3 in the worst class, 2 required",
        "very good (97.5 of 100 for the detail kept in the published columns)",
        "column-4 (30.00% of its range), column-1 (20.00% of its range), column-3 (5.00%",
        "2 warnings in the log and in the manifest",
    ):
        assert words in text


def test_it_is_one_screen_whatever_was_required() -> None:
    lines = shown(criteria=30, warnings=9)
    assert len(lines) <= 16
    assert any("26 more criteria: --details" in line for line in lines)


def test_people_are_counted_where_they_count() -> None:
    first, *_ = shown({**SUMMARY, "smallest_units": 7})
    assert first.endswith("every class covers at least 7 people (k = 5)")


def test_a_count_of_few_records_is_not_told() -> None:
    lines = shown({**SUMMARY, "rows_left_out": None, "rows_suppressed": None})
    assert any("fewer than 5 left out (no class)" in line for line in lines)


def test_a_pipe_has_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert Terminal(file=io.StringIO()).width > 1000
    assert Terminal(file=io.StringIO(), force_terminal=True).width <= 1000
    monkeypatch.setenv("COLUMNS", "70")
    assert Terminal(file=io.StringIO()).width == 70


def test_a_notebook_makes_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert Terminal(file=io.StringIO()).width > 1000


@pytest.mark.parametrize("name", ["identifier", "quasi-identifier", "sensitive", "insensitive"])
def test_a_role_has_a_colour_on_pages_and_its_name_everywhere(name: str) -> None:
    table = Table("Columns", ("column", "role"), [["age", Role(name)]])
    page = render(
        title="t",
        kind="k",
        subtitle="s",
        opening=Section("a", "A", [table]),
        sections=[],
        footer="",
    )
    assert f'<span class="role role-{name}">{name}</span>' in page
    assert re.search(rf"\.role-{name} {{ border-color: #[0-9a-f]{{6}}; }}", page)
    assert cell_text(Role(name)) == name

    assert name in table_text(table)


WORKLOAD = WorkloadError(1000, ["age", "job"], [], 0.05, 30.2, 0.0123, 0.02, 0.001, 0.03)


def utility_shown(learning: Learning | None) -> str:
    console = Console(file=io.StringIO(), width=100)
    card = utility_card("out/people", Utility(30162, WORKLOAD, None, learning))
    show_blocks(console, [card])
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_errors_of_counts() -> None:
    text = utility_shown(None)
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
    text = utility_shown(learned(classes))
    assert "9,000 original records" in text
    assert "accuracy 0.7500" in " ".join(text.split())
    assert "original with the test records" in text
    assert ("ROC AUC" in text) == (classes == 2)
    assert ("weighted" in text) == (classes == 3)
    assert "0.4500" in text
    assert "0.3700" in text


def test_differences() -> None:
    text = utility_shown(learned(3))
    assert "not comparable" in " ".join(text.split())
    (row,) = (line for line in text.splitlines() if "loses" in line)
    assert [word for word in row.split() if word[0] in "-±"] == ["-0.0100", "±0.0058"]
    words = "compared with the best of the release (random forest): loss of accuracy 0.0100 ±0.0058"
    assert words in " ".join(text.split())
    assert "left out" not in text
    text = utility_shown(learned(2, held_out=True, left_out=1234))
    assert "not comparable" not in " ".join(text.split())
    assert "1,234 held-out records are of a class that the original has not" in text


def test_nothing_has_no_sign() -> None:
    assert [cell_text(figure) for figure in (-0.0, -0.00001, -0.00005, -1234.0)] == [
        "0.0000",
        "0.0000",
        "-0.0001",
        "-1,234.0",
    ]
