"""Charts with their tables."""

from __future__ import annotations

from markupsafe import Markup

from anonspark.page.blocks import Chart, Table
from anonspark.report.charts import Bars, draw_bars

__all__ = ["bars"]


def bars(name: str, bars: Bars, description: str, table: Table) -> Chart:
    """Return a bar chart and the same figures as a table; parameters as there."""
    return Chart(Markup(draw_bars(bars, name, description)), table)  # noqa: S704 - escaped there
