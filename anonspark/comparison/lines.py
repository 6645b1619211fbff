"""Line charts in the manner of the other charts of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anonspark.page.svg import COLOURS, WIDTH, clean, shortened, styled, to_svg

__all__ = ["Line", "Lines", "draw_lines"]

# Lines are told apart without colours, too.
_MARKERS = "os^Dv*PX<>hp"
_DASHES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class Line:
    """One line.

    Parameters
    ----------
    name : str
        For the legend.
    points : sequence of (float, float)
        By their place on the axis across.
    """

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Lines:
    """A chart of lines with marked points.

    Parameters
    ----------
    title : str
    lines : sequence of Line
    across : str
        What the axis across measures.
    up : str
        What the axis up measures, with its unit.
    logarithmic : bool
        Whether equal ratios across are equally far apart.
    """

    title: str
    lines: Sequence[Line]
    across: str
    up: str
    logarithmic: bool


def draw_lines(chart: Lines, name: str, description: str) -> str:
    """Draw lines; parameters and result as :func:`anonspark.report.charts.draw_bars`."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator

    places = sorted({x for line in chart.lines for x, _ in line.points})
    height = 3.1 + 0.2 * len(chart.lines)
    with styled():
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        for number, line in enumerate(chart.lines):
            axes.plot(
                [x for x, _ in line.points],
                [y for _, y in line.points],
                color=COLOURS["second" if number % 2 else "first"],
                linestyle=_DASHES[number // 2 % len(_DASHES)],
                marker=_MARKERS[number % len(_MARKERS)],
                markersize=5.5,
                linewidth=1.4,
                label=shortened(line.name, 60),
            )
        if chart.logarithmic:
            axes.set_xscale("log")
        axes.set_xticks(places, [f"{place:,.10g}" for place in places])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.grid(axis="both")
        axes.set_xlabel(clean(chart.across))
        axes.set_ylabel(shortened(chart.up, 48))
        axes.set_title(clean(chart.title))
        if len(chart.lines) > 1:
            figure.legend(loc="outside lower left", ncols=1, handlelength=3.2)
        return to_svg(figure, name, description)
