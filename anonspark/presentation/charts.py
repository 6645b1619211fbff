"""Draw charts of bars and of lines as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

from markupsafe import Markup

from anonspark.presentation.blocks import Chart, Table
from anonspark.presentation.svg import (
    HALF_LETTER,
    WIDTH,
    Tip,
    colour,
    drawing,
    element,
    heading,
    label_column,
    shortened,
    stroke,
    text_width,
    tips,
    write,
)

_STEPS = (1, 2, 2.5, 5, 10)


def ticks(end: float, most: int, *, whole: bool = False) -> Sequence[float]:
    """Return round numbers from 0 to an end above 0, equally far apart, in at most so many steps.

    >>> ticks(7.0, 4), ticks(1.0, 5, whole=True)
    ([0.0, 2.0, 4.0, 6.0], [0.0, 1.0])
    """
    least = end / most
    power = 10.0 ** math.floor(math.log10(least))
    step = next(
        step
        for step in (
            factor * scale for scale in (power, 10 * power, 100 * power) for factor in _STEPS
        )
        if step >= least * (1 - 1e-9) and (not whole or step.is_integer())
    )
    return [number * step for number in range(int(end / step + 1e-9) + 1)]


def number_text(value: float) -> str:
    """Write a number of an axis."""
    return f"{value:,.10g}"


_ROW = 14.0
_LEGEND_GAP = 5.0


def legend(
    top: float, entries: Sequence[tuple[Markup, float, str]], *, in_row: bool = True
) -> tuple[Markup, float]:
    """Draw a legend below ``top``, and return it with its bottom.

    An entry is a sign, its width and a name. The left end of a sign is the origin, its middle is on
    the axis across. Entries share a line if there is room, or each has its own.
    """
    drawn = []
    x, middle = 0.0, top + _ROW / 2
    for sign, width, name in entries:
        label = shortened(name, WIDTH - width - _LEGEND_GAP)
        whole = width + _LEGEND_GAP + text_width(label)
        if x and (not in_row or x + whole > WIDTH):
            x, middle = 0.0, middle + _ROW
        drawn.append(element("g", sign, transform=f"translate({x:.10g} {middle:.10g})"))
        drawn.append(write(x + width + _LEGEND_GAP, middle + HALF_LETTER, label))
        x = round(x + whole + 3 * _LEGEND_GAP, 2)
    return Markup("").join(drawn), middle + _ROW / 2


_TOP = 36.0
_BOTTOM = 190.0
_GAP = 6.0
_LINE_SIGN = 26.0

# Lines differ by markers and dashes, for readers who see no colours.
_MARKERS = (
    "M-3 0A3 3 0 0 0 3 0A3 3 0 0 0 -3 0Z",
    "M-2.7 -2.7H2.7V2.7H-2.7Z",
    "M0 -3.4L3.2 2.6H-3.2Z",
    "M0 -3.8L3.2 0L0 3.8L-3.2 0Z",
    "M0 3.4L3.2 -2.6H-3.2Z",
    "M0 -4L1 -1.3L3.8 -1.2L1.6 .5L2.4 3.2L0 1.7L-2.4 3.2L-1.6 .5L-3.8 -1.2L-1 -1.3Z",
    "M-1.1 -3.3H1.1V-1.1H3.3V1.1H1.1V3.3H-1.1V1.1H-3.3V-1.1H-1.1Z",
    "M-3 -1.5L-1.5 -3L0 -1.5L1.5 -3L3 -1.5L1.5 0L3 1.5L1.5 3L0 1.5L-1.5 3L-3 1.5L-1.5 0Z",
    "M-3.4 0L2.6 -3.2V3.2Z",
    "M3.4 0L-2.6 -3.2V3.2Z",
    "M0 -3.5L3 -1.7V1.7L0 3.5L-3 1.7V-1.7Z",
    "M0 -3.4L3.2 -1L2 2.7H-2L-3.2 -1Z",
)
_DASHES = ("", "5 2", "5 2 1 2", "1.5 2")


@dataclass(frozen=True)
class Line:
    """A line through points, with its name for the legend.

    ``intervals`` has the lowest and highest number up of each point, if known, or is empty.
    """

    name: str
    points: Sequence[tuple[float, float]]
    intervals: Sequence[tuple[float, float] | None] = ()

    @property
    def ends(self) -> list[float]:
        """All numbers up, of points and intervals."""
        intervals = [end for interval in self.intervals for end in interval or ()]
        return [*(y for _, y in self.points), *intervals]


@dataclass(frozen=True)
class Lines:
    """A chart of lines with marked points, at least one in all.

    ``across`` and ``up`` say what the axes measure, up with its unit. On a logarithmic axis equal
    ratios across are equally far apart. ``words`` are the lines of the tip at a number across,
    ``names`` the texts below it, by default the number.
    """

    title: str
    lines: Sequence[Line]
    across: str
    up: str
    logarithmic: bool
    words: Mapping[float, Sequence[str]] = field(default_factory=dict)
    names: Mapping[float, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _LinesFrame:
    """The px in which the points of a chart lie, from `left` on."""

    left: float
    first: float
    last: float
    start: float
    end: float
    logarithmic: bool

    def across(self, value: float) -> float:
        """Return the horizontal position of a number. The first and the last keep off the ends."""
        low, high, scaled = (
            math.log(end) if self.logarithmic else end for end in (self.first, self.last, value)
        )
        part = (scaled - low) / (high - low) if high > low else 0.5
        return self.left + (WIDTH - self.left) * (0.06 + 0.86 * part)

    def up(self, value: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * (value - self.start) / (self.end - self.start)


def draw_lines(chart: Lines, description: str) -> Markup:
    """Draw lines, with a description for those who do not see them."""
    points = [point for line in chart.lines for point in line.points]
    places = sorted({x for x, _ in points})
    ends = [end for line in chart.lines for end in line.ends]
    start, end = 1.05 * min(0.0, *ends), 1.05 * max(0.0, *ends)
    if start == end:
        end = 1.0
    up = _ticks(start, end)
    left = max(text_width(number_text(tick)) for tick in up) + _GAP
    frame = _LinesFrame(left, places[0], places[-1], start, end, chart.logarithmic)
    parts = [heading(chart.title, chart.up), _axes(chart, frame, places, up)]
    signs = []
    for number, line in enumerate(chart.lines):
        drawn = [(frame.across(x), frame.up(y)) for x, y in line.points]
        if any(line.intervals):
            parts.append(_whiskers(number, frame, line))
        parts.append(_stroke(number, drawn))
        sign = _stroke(number, [(0.0, 0.0), (_LINE_SIGN, 0.0)], marked=[(_LINE_SIGN / 2, 0.0)])
        signs.append((sign, _LINE_SIGN, line.name))
    bottom = _BOTTOM + 32
    if len(signs) > 1:
        names, bottom = legend(bottom, signs, in_row=False)
        parts.append(names)
    parts.append(tips(_bands(chart, frame, places)))
    return drawing(bottom, description, *parts)


def _bands(chart: Lines, frame: _LinesFrame, places: Sequence[float]) -> list[Tip]:
    """Return the area nearest to each number across, with its tip."""
    middles = [frame.across(value) for value in places]
    edges = [frame.left, *((left_one + other) / 2 for left_one, other in pairwise(middles)), WIDTH]
    return [
        Tip(left, _TOP, right - left, _BOTTOM - _TOP, chart.words.get(value, ()))
        for value, (left, right) in zip(places, pairwise(edges), strict=True)
    ]


def _ticks(start: float, end: float) -> list[float]:
    """Return round numbers from `start`, which is not above 0, to `end`, which is not below.

    >>> _ticks(-1.0, 1.0)
    [-1.0, -0.5, 0.0, 0.5, 1.0]
    """
    step = ticks(end - start, 5)[1]
    return [number * step for number in range(math.ceil(start / step), int(end / step + 1e-9) + 1)]


def _whiskers(number: int, frame: _LinesFrame, line: Line) -> Markup:
    """Draw the intervals of a line's points."""
    name = "second" if number % 2 else "first"
    path = ""
    for (x, _), interval in zip(line.points, line.intervals, strict=True):
        if interval is not None:
            center, (low, high) = frame.across(x), map(frame.up, interval)
            path += f"M{center:.2f} {low:.2f}V{high:.2f}"
            path += "".join(f"M{center - 3:.2f} {end:.2f}H{center + 3:.2f}" for end in (low, high))
    return element("path", d=path, style=stroke(name))


def _axes(chart: Lines, frame: _LinesFrame, places: Sequence[float], up: Sequence[float]) -> Markup:
    """Draw grid, numbers and the name of the axis across."""
    grid = "".join(f"M{frame.left:.2f} {frame.up(at):.2f}H{WIDTH}" for at in up)
    grid += "".join(f"M{frame.across(at):.2f} {_TOP}V{_BOTTOM}" for at in places)
    rows = [write(frame.left - _GAP, frame.up(at) + HALF_LETTER, number_text(at)) for at in up]
    shown: list[tuple[float, str]] = []
    names = [chart.names.get(value) or number_text(value) for value in places]
    # The first and the last end inside.
    texts = [
        (min(frame.across(value), WIDTH - text_width(name) / 2), name)
        for value, name in zip(places, names, strict=True)
    ]
    if chart.logarithmic:
        # Where there is no room for all of them, 50 says more than 40.
        texts.sort(key=lambda at: at[1].strip("0.,") not in ("1", "2", "5"))
    for middle, text in texts:
        if all(
            abs(middle - other) >= (text_width(text) + text_width(size)) / 2 + 6
            for other, size in shown
        ):
            shown.append((middle, text))
    columns = [write(middle, _BOTTOM + 14, text) for middle, text in sorted(shown)]
    name = shortened(chart.across, WIDTH - frame.left)
    columns.append(write((frame.left + WIDTH) / 2, _BOTTOM + 28, name))
    return Markup("").join(
        [
            element("path", d=grid, style=stroke("grid")),
            element("g", *rows, text_anchor="end"),
            element("g", *columns, text_anchor="middle"),
        ]
    )


def _stroke(
    number: int,
    points: Sequence[tuple[float, float]],
    marked: Sequence[tuple[float, float]] | None = None,
) -> Markup:
    """Draw a line with its markers, at its points or at others."""
    name = "second" if number % 2 else "first"
    path = "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in points)
    marker = _MARKERS[number % len(_MARKERS)]
    dashes = _DASHES[number // 2 % len(_DASHES)]
    return Markup("").join(
        [
            element("path", d=path, style=stroke(name, 1.4), stroke_dasharray=dashes or "none"),
            *(
                element(
                    "path", d=marker, transform=f"translate({x:.2f} {y:.2f})", style=colour(name)
                )
                for x, y in (points if marked is None else marked)
            ),
        ]
    )


_LABEL_WIDTH = 146.0
_SIGN_WIDTH = 12.0


@dataclass(frozen=True)
class Series:
    """Bars of one colour, with a name for the legend. NaN draws no bar."""

    name: str
    values: Sequence[float]


@dataclass(frozen=True)
class Bars:
    """A chart of horizontal bars, with labels of the rows from the top, and one or two series.

    ``axis`` says what the bars measure, with its unit, ``rows`` what the rows are. Stacked series
    begin where the first one ends, others lie below it. The axis ends at ``limit``, or with the
    longest bar. ``marks`` are lines across the bars, such as a bound, with their names. ``words``
    are the lines of each row's tip.
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
    """The px in which the bars of a chart lie, and `end`, the number at the right end."""

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
    """Draw bars, and keep the same figures as a table. See :func:`draw_bars`."""
    return Chart(draw_bars(bars, name, description), table)


def draw_bars(chart: Bars, name: str, description: str) -> Markup:
    """Draw bars, with a description for those who do not see them.

    All ids of the chart begin with ``name``, which is unique in the page.
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
    parts += [_mark(frame.across(mark), frame.top, frame.bottom) for mark, _ in chart.marks]
    bottom = frame.bottom + 32
    if len(chart.series) > 1 or chart.marks:
        signs = [
            (_bar(0.0, -4.0, _SIGN_WIDTH, 8.0, number, name), _SIGN_WIDTH, item.name)
            for number, item in enumerate(chart.series)
        ] + [(_mark(_SIGN_WIDTH / 2, -6.0, 6.0), _SIGN_WIDTH, text) for _, text in chart.marks]
        drawn, bottom = legend(bottom, signs)
        parts.append(drawn)
    if len(chart.series) > 1:
        parts.insert(0, _hatch(name))
    rows = [
        Tip(0.0, frame.top + row * frame.row_height, WIDTH, frame.row_height, words)
        for row, words in enumerate(chart.words)
    ]
    return drawing(bottom, description, *parts, tips(rows))


def _frame(chart: Bars, left: float) -> _Frame:
    bars = 1 if chart.stacked else len(chart.series)
    values = [[0.0 if math.isnan(x) else x for x in series.values] for series in chart.series]
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
        row_height=11.5 + 10 * bars,
        rows=len(chart.labels),
        end=end or 1.05 * longest,
    )


def _axis(chart: Bars, frame: _Frame) -> Markup:
    """Draw the grid behind the bars, and below it the axis with as many numbers as fit."""
    whole = chart.limit is None and all(
        float(value).is_integer() for series in chart.series for value in series.values
    )
    room = frame.right - frame.left
    for number_of_marks in (5, 4, 3, 2, 1):
        marks = ticks(frame.end, number_of_marks, whole=whole)
        if max(text_width(number_text(mark)) + 8 for mark in marks) * len(marks) <= room:
            break
    lines = "".join(f"M{frame.across(mark):.2f} {frame.top}V{frame.bottom:.2f}" for mark in marks)
    base = frame.bottom + 12
    numbers = [write(frame.across(mark), base, number_text(mark)) for mark in marks]
    name = shortened(chart.axis, WIDTH)
    middle = (frame.left + frame.right) / 2
    middle_of_name = min(middle, WIDTH - text_width(name) / 2)
    return Markup("").join(
        [
            element("path", d=lines, style=stroke("grid")),
            element(
                "g",
                *numbers,
                write(max(middle_of_name, text_width(name) / 2), base + 14, name),
                text_anchor="middle",
            ),
        ]
    )


def _bars(chart: Bars, frame: _Frame, name: str) -> list[Markup]:
    """Draw the bars of all series, stacked or below each other in their rows."""
    bars = 1 if chart.stacked else len(chart.series)
    thickness = 0.78 * frame.row_height / bars
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
    """Draw the hatching of the second series, which distinguishes it without colours."""
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
