"""Charts of horizontal bars, and of matrices by their colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from markupsafe import Markup

from anonspark.presentation.blocks import Chart, Table
from anonspark.presentation.lines import legend, number_text, ticks
from anonspark.presentation.svg import (
    HALF_LETTER,
    WIDTH,
    colour,
    drawing,
    element,
    heading,
    label_column,
    shortened,
    stroke,
    text_width,
    write,
)
from anonspark.presentation.tips import Place, tips

_LABEL_WIDTH = 146.0
_SIGN_WIDTH = 12.0


@dataclass(frozen=True)
class Series:
    """Bars of one colour.

    Parameters
    ----------
    name : str
        For the legend.
    values : sequence of float
        One for each bar. NaN draws none.
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
        Whether the second series begins where the first one ends, otherwise below it.
    limit : float or None
        Where the axis ends. None ends it with the longest bar.
    marks : sequence of (float, str)
        Lines across the bars, such as a bound, with their names.
    words : sequence of sequence of str
        What each row says when it is pointed at, in lines. Empty for none.
    """

    title: str
    labels: Sequence[str]
    series: Sequence[Series]
    axis: str
    rows: str
    stacked: bool = False
    limit: float | None = None
    marks: Sequence[tuple[float, str]] = ()
    words: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class _Frame:
    """Where the bars of a chart are: in px, but for `end`, the number at the right end."""

    left: float
    right: float
    top: float
    row_height: float
    rows: int
    end: float

    @property
    def bottom(self) -> float:
        return self.top + self.rows * self.row_height

    def across(self, value: float) -> float:
        return self.left + (self.right - self.left) * value / self.end


def bar_chart(name: str, bars: Bars, description: str, table: Table) -> Chart:
    """Return a chart of bars and the same figures as a table. See :func:`draw_bars`."""
    return Chart(draw_bars(bars, name, description), table)


def draw_bars(chart: Bars, name: str, description: str) -> Markup:
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
    Markup
        An ``svg`` element.
    """
    labels, widest = label_column(chart.labels, _LABEL_WIDTH)
    left = widest + 6
    frame = _frame(chart, left)
    middles = [frame.top + (row + 0.5) * frame.row_height for row in range(frame.rows)]
    parts = [
        heading(chart.title, chart.rows),
        _axis(chart, frame),
        *(
            write(left - 6, middle + HALF_LETTER, label, text_anchor="end")
            for label, middle in zip(labels, middles, strict=True)
        ),
        *_bars(chart, frame, name),
    ]
    if not chart.stacked:
        thickness = 0.78 * frame.row_height / len(chart.series)
        parts += [
            write(
                frame.across(value) + 3,
                middle + (number - (len(chart.series) - 1) / 2) * thickness + HALF_LETTER,
                text,
            )
            for number, (series, texts) in enumerate(zip(chart.series, _texts(chart), strict=True))
            for value, text, middle in zip(series.values, texts, middles, strict=True)
            if not math.isnan(value)
        ]
    parts += [_mark(frame.across(place), frame.top, frame.bottom) for place, _ in chart.marks]
    bottom = frame.bottom + 32
    if len(chart.series) > 1 or chart.marks:
        signs = [
            (_bar(0.0, -4.0, _SIGN_WIDTH, 8.0, number, name), _SIGN_WIDTH, one.name)
            for number, one in enumerate(chart.series)
        ] + [(_mark(_SIGN_WIDTH / 2, -6.0, 6.0), _SIGN_WIDTH, text) for _, text in chart.marks]
        drawn, bottom = legend(bottom, signs)
        parts.append(drawn)
    if len(chart.series) > 1:
        parts.insert(0, _hatch(name))
    rows = [
        Place(0.0, frame.top + row * frame.row_height, WIDTH, frame.row_height, words)
        for row, words in enumerate(chart.words)
    ]
    return drawing(bottom, description, *parts, tips(rows))


def _frame(chart: Bars, left: float) -> _Frame:
    beside = 1 if chart.stacked else len(chart.series)
    values = [[0.0 if math.isnan(one) else one for one in series.values] for series in chart.series]
    ends = list(map(sum, zip(*values, strict=True))) if chart.stacked else list(chain(*values))
    longest = max(ends, default=0.0) or 1.0
    # Half of the last number of the axis may lie outside.
    right = WIDTH - max(8.0, text_width(number_text(chart.limit or longest)) / 2)
    end = chart.limit
    if not chart.stacked:
        # A bar and its number end inside.
        numbers = [text_width(text) + 6 for texts in _texts(chart) for text in texts]
        space = right - left
        room = zip(ends, numbers, strict=True)
        if end is None:
            end = max((value * space / (space - width) for value, width in room), default=0.0)
        else:
            spaces = ((WIDTH - left - width) * end / value for value, width in room if value)
            right = min([right, *(left + space for space in spaces)])
    return _Frame(
        left=left,
        right=right,
        top=36.0,
        row_height=11.5 + 10 * beside,
        rows=len(chart.labels),
        end=end or 1.05 * longest,
    )


def _axis(chart: Bars, frame: _Frame) -> Markup:
    """Draw the axis and the grid below the bars, as many numbers as there is room for."""
    whole = chart.limit is None and all(
        float(value).is_integer() for series in chart.series for value in series.values
    )
    room = frame.right - frame.left
    for most in (5, 4, 3, 2, 1):
        places = ticks(frame.end, most, whole=whole)
        if max(text_width(number_text(one)) + 8 for one in places) * len(places) <= room:
            break
    lines = "".join(f"M{frame.across(one):.2f} {frame.top}V{frame.bottom:.2f}" for one in places)
    base = frame.bottom + 12
    numbers = [write(frame.across(one), base, number_text(one)) for one in places]
    name = shortened(chart.axis, WIDTH)
    middle = (frame.left + frame.right) / 2
    inside = min(middle, WIDTH - text_width(name) / 2)
    return Markup("").join(
        [
            element("path", d=lines, style=stroke("grid")),
            element(
                "g",
                *numbers,
                write(max(inside, text_width(name) / 2), base + 14, name),
                text_anchor="middle",
            ),
        ]
    )


def _bars(chart: Bars, frame: _Frame, name: str) -> list[Markup]:
    """Draw the bars of all series, stacked or below each other in their rows."""
    beside = 1 if chart.stacked else len(chart.series)
    thickness = 0.78 * frame.row_height / beside
    drawn = []
    starts = [0.0] * frame.rows
    for number, series in enumerate(chart.series):
        for row, value in enumerate(series.values):
            if math.isnan(value):
                continue
            left = frame.across(starts[row])
            top = frame.top + (row + 0.11) * frame.row_height
            top += 0.0 if chart.stacked else number * thickness
            width = frame.across(starts[row] + value) - left
            drawn.append(_bar(left, top, width, 0.94 * thickness, number, name))
            if chart.stacked:
                starts[row] += value
    return drawn


def _bar(left: float, top: float, width: float, height: float, series: int, name: str) -> Markup:
    style = f"fill: url(#{name}-hatch)" if series else colour("first")
    return element("rect", x=left, y=top, width=width, height=height, style=style)


def _hatch(name: str) -> Markup:
    """Return the hatching of the second series, which distinguishes it without colours."""
    return element(
        "defs",
        element(
            "pattern",
            element("rect", width=5, height=5, style=colour("second")),
            element("path", d="M0 0V5", style=stroke("paper", 2.4)),
            id=f"{name}-hatch",
            width=5,
            height=5,
            patternUnits="userSpaceOnUse",
            patternTransform="rotate(45)",
        ),
    )


def _mark(x: float, top: float, bottom: float) -> Markup:
    return element(
        "path",
        d=f"M{x:.2f} {top:.2f}V{bottom:.2f}",
        style=stroke("ink", 1.2),
        stroke_dasharray="4 2",
    )


def _texts(chart: Bars) -> list[list[str]]:
    """Write the number of each bar: whole ones, or all with one decimal."""
    values = chain(*(series.values for series in chart.series))
    decimals = 0 if all(math.isnan(value) or value.is_integer() for value in values) else 1
    return [[f"{value:z,.{decimals}f}" for value in series.values] for series in chart.series]


_TOP = 24.0
_GAP = 5.0
