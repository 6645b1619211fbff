"""Bars and matrices as SVG that belongs into an HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from anonspark.page.svg import COLOURS, WIDTH, clean, shortened, styled, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Bars", "HeatMap", "Series", "draw_bars", "draw_heat_map"]


@dataclass(frozen=True)
class Series:
    """Bars of one colour.

    Parameters
    ----------
    name : str
        For the legend.
    values : sequence of float
        One a bar; NaN draws none.
    """

    name: str
    values: Sequence[float]


@dataclass(frozen=True)
class Bars:
    """A chart of horizontal bars.

    Parameters
    ----------
    title : str
    labels : sequence of str
        Of the rows, from the top.
    series : sequence of Series
        One or two.
    axis : str
        What the bars measure, with its unit.
    rows : str
        What the rows are.
    stacked : bool
        Whether the second series begins where the first one ends; else below it.
    limit : float or None
        Where the axis ends; None where the longest bar does.
    marks : sequence of (float, str)
        Lines across the bars, such as a bound, with their names.
    """

    title: str
    labels: Sequence[str]
    series: Sequence[Series]
    axis: str
    rows: str
    stacked: bool = False
    limit: float | None = None
    marks: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True)
class HeatMap:
    """A matrix whose rows and columns are the same things.

    Parameters
    ----------
    title : str
    labels : sequence of str
        Of rows and columns.
    matrix : float64 ndarray of shape (labels, labels)
        In [-1, 1]; NaN is left empty.
    """

    title: str
    labels: Sequence[str]
    matrix: npt.NDArray[np.float64]


def draw_bars(chart: Bars, name: str, description: str) -> str:
    """Draw bars.

    Parameters
    ----------
    chart : Bars
    name : str
        Unique in the page: what all ids of the chart begin with.
    description : str
        What the chart shows, for those who do not see it.

    Returns
    -------
    str
        An ``svg`` element.
    """
    from matplotlib.ticker import MaxNLocator

    beside = 1 if chart.stacked else len(chart.series)
    # The name of the rows stands beside them, from the bottom to the top.
    inside = max(len(chart.labels) * (0.16 + 0.14 * beside), 0.075 * min(len(chart.rows), 36) + 0.1)
    height = 0.95 + inside
    height += 0.22 * (len(chart.series) > 1 or bool(chart.marks))
    with styled():
        figure, axes = _figure(height)
        thickness = 0.78 / beside
        places = np.arange(len(chart.labels), dtype=np.float64)
        start = np.zeros(len(chart.labels))
        for number, series in enumerate(chart.series):
            values = np.nan_to_num(np.array(series.values, np.float64))
            offset = 0.0 if chart.stacked else (number - (beside - 1) / 2) * thickness
            second = number == 1
            axes.barh(
                places + offset,
                values,
                height=thickness * 0.94,
                left=start if chart.stacked else None,
                color=COLOURS["second" if second else "first"],
                # Seen without colours, too.
                hatch="////" if second else None,
                edgecolor=COLOURS["paper"] if second else "none",
                linewidth=0,
                label=clean(series.name),
            )
            if chart.stacked:
                start = start + values
            if len(chart.series) == 1:
                for row, value in enumerate(values.tolist()):
                    axes.annotate(
                        _short_number(value),
                        (value, row),
                        (3, 0),
                        textcoords="offset points",
                        va="center",
                        fontsize=8,
                    )
                axes.margins(x=0.16)
        for place, text in chart.marks:
            axes.axvline(
                place, color=COLOURS["ink"], linewidth=1.2, linestyle="--", label=clean(text)
            )
        axes.set_yticks(places, [shortened(label) for label in chart.labels])
        axes.set_ylim(len(chart.labels) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(left=0)
        if chart.limit is not None:
            axes.set_xlim(right=chart.limit)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=chart.limit is None and _whole(chart)))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.grid(axis="x")
        axes.set_xlabel(clean(chart.axis))
        axes.set_ylabel(shortened(chart.rows, 36))
        _set_title(figure, chart.title)
        if len(chart.series) > 1 or chart.marks:
            figure.legend(loc="outside lower left", ncols=3, handlelength=1.4, columnspacing=1.2)
        return to_svg(figure, name, description)


def draw_heat_map(chart: HeatMap, name: str, description: str) -> str:
    """Draw a matrix with its numbers; parameters and result as :func:`draw_bars`."""
    from matplotlib.patches import Rectangle

    n = len(chart.labels)
    size = 7.5 if n <= 10 else 6.0
    with styled():
        figure, axes = _figure(1.4 + 0.29 * n)
        for row, column in np.ndindex(chart.matrix.shape):
            value = float(chart.matrix[row, column])
            if np.isnan(value):
                continue
            colour = COLOURS["second" if value < 0 else "first"]
            square = Rectangle(
                (column - 0.5, row - 0.5), 1, 1, facecolor=colour, alpha=abs(value) * 0.55
            )
            axes.add_patch(square)
            axes.text(column, row, _two_places(value), ha="center", va="center", fontsize=size)
        axes.set_xlim(-0.5, n - 0.5)
        axes.set_ylim(n - 0.5, -0.5)
        labels = [shortened(label, 16) for label in chart.labels]
        axes.set_xticks(range(n), labels, rotation=90)
        axes.set_yticks(range(n), labels)
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        _set_title(figure, chart.title)
        return to_svg(figure, name, description)


def _two_places(value: float) -> str:
    """Return a number in [-1, 1] as short as a cell wants it, such as .46."""
    text = f"{abs(value):.2f}".removeprefix("0").replace("1.00", "1")
    return text if round(value, 2) >= 0 else f"\N{MINUS SIGN}{text}"


def _short_number(value: float) -> str:
    return f"{value:,.0f}" if value.is_integer() or abs(value) >= 100 else f"{value:.2g}"


def _whole(chart: Bars) -> bool:
    """Return whether all bars are whole numbers, so that parts of one are not marked."""
    return all(float(value).is_integer() for one in chart.series for value in one.values)


def _figure(height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.add_subplot()


def _set_title(figure: Figure, title: str) -> None:
    figure.suptitle(clean(title), x=0.02, ha="left", fontsize=10, fontweight="bold")
