"""The trend of all runs in a terminal of 80 columns."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest
from rich.console import Console

from anonspark.cli.display import history_blocks
from anonspark.presentation.terminal import show_blocks
from anonspark.reporting.nights import Night


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
        Night("visits-2026-11-03", "visits", datetime(2026, 11, 3, 2, tzinfo=UTC), 4),
        night(4, 0.0004, job="labs" if several else "visits"),
    ]
    out = io.StringIO()
    show_blocks(Console(file=out, width=80), history_blocks(nights))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    rows = [line for line in text.splitlines() if line.startswith("2026-11-")]
    assert len(rows) == 4
    assert [line.split()[-2] for line in rows if "failed" not in line] == [
        "0.2000",
        "0.0331",
        "0.0004",
    ]
    assert len({line.index("0.", 17) for line in rows if "failed" not in line}) == 1
    assert "12,345,678" in rows[1]
    assert ("labs" in text) is several
    assert ("visits-2026-11-04" in text) is not several
