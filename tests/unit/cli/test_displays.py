"""Answers to questions, and the trend of all runs, in a terminal of 80 columns."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest
import shellingham
from commands import Cli
from rich.console import Console

from anonspark.cli.command import Terminal
from anonspark.cli.display import answer_blocks, history_blocks
from anonspark.presentation.terminal import show_blocks
from anonspark.reading.counting import Count, Counts
from anonspark.reading.published import Answer
from anonspark.reporting.nights import Night


def shown(answer: Answer) -> str:
    """Return what a terminal with colours is sent."""
    file = io.StringIO()
    terminal = Terminal(file=file, force_terminal=True, color_system="truecolor")
    show_blocks(terminal, answer_blocks(answer))
    return file.getvalue()


def test_numbers_are_not_highlighted_in_pieces() -> None:
    count = Count(8825.9, 7798, 10226, 30162)
    assert shown(Answer("", count, None, None, 1366)) == (
        "about 8,825.9 of 30,162 records. For certain at least 7,798 and at most 10,226\n"
        "records that were left out of the release are not counted: 1,366\n"
    )
    exact = Count(1234.0, 1234, 1234, 30162)
    assert shown(Answer("", exact, None, None, 0)) == "1,234 of 30,162 records, exactly\n"


def test_groups_are_not_highlighted_either() -> None:
    count = Count(8825.9, 7798, 10226, 30162)
    groups = Counts({"<=50K": count, 1234: count, None: count})
    _, _, *rows = shown(Answer("", count, "income", groups, None)).splitlines()
    assert len(rows) == 5
    assert not any("\x1b" in row for row in rows)


def test_counts_print_a_line_for_each_value() -> None:
    counts = Counts({"Female": Count(8825.9, 7798, 10226, 30162), None: Count(12, 12, 12, 30162)})
    assert repr(counts) == "Female   8,825.9 (certain: 7,798 to 10,226)\nmissing  12"
    assert counts["Female"].lower == 7798


def night(day: int, loss: float, *, job: str = "visits", records: int = 30_162) -> Night:
    figures = {
        "rows_published": records,
        "published_classes": 2_164,
        "rows_suppressed": None,
        "loss": loss,
        "seconds": 3.456 * day,
    }
    began = datetime(2026, 11, day, 2, tzinfo=UTC)
    return Night(f"visits-2026-11-{day:02}", job, began, figures=figures)


@pytest.mark.parametrize("several", [False, True])
def test_figures_are_whole_and_stand_below_each_other(several: bool) -> None:
    nights = [
        night(1, 0.2),
        night(2, 0.03312, records=12_345_678),
        night(4, 0.0004, job="labs" if several else "visits"),
    ]
    out = io.StringIO()
    show_blocks(Console(file=out, width=80), history_blocks(nights))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    rows = [line for line in text.splitlines() if line.startswith("2026-11-")]
    assert len(rows) == 3
    assert [line.split()[-2] for line in rows] == ["0.2000", "0.0331", "0.0004"]
    assert len({line.index("0.", 17) for line in rows}) == 1
    assert "12,345,678" in rows[1]
    assert ("labs" in text) is several
    assert ("visits-2026-11-04" in text) is not several


COMPLETE = "import sys; from anonspark.cli.application import main\n"
SLOW = ("numba", "numpy", "pyarrow", "pyspark", "pandas")


def completed(words: str, place: int) -> tuple[list[str], list[str]]:
    """Return what a shell is offered, and which slow packages that has imported."""
    script = f"{COMPLETE}main([])\nprint(*sys.modules, file=sys.stderr)"
    asked = {
        "_ANONSPARK_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | asked, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), [name for name in SLOW if name in done.stderr.split()]


def test_commands_and_options() -> None:
    assert completed("anonspark ch", 1) == (["check"], [])
    offered, slow = completed("anonspark run --", 2)
    assert {"--set", "--details", "--resume", "--json"} <= set(offered)
    assert slow == []


def test_the_script_of_a_shell(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shellingham, "detect_shell", lambda: ("bash", "/bin/bash"))
    outcome = cli.ends(0, "--show-completion")
    assert "complete -o default -F _anonspark_completion anonspark" in outcome.out

    def unknown() -> tuple[str, str]:
        raise shellingham.ShellDetectionFailure

    monkeypatch.setattr(shellingham, "detect_shell", unknown)
    outcome = cli.ends(6, "--show-completion")
    assert outcome.err.splitlines()[-1].startswith("error: completion: the shell was not recog")
