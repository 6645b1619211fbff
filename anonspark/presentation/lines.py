"""Charts of lines with marked points, and the ticks and legend of a chart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from markupsafe import Markup

from anonspark.presentation.svg import (
    HALF_LETTER,
    WIDTH,
    colour,
    drawing,
    element,
    heading,
    shortened,
    stroke,
    text_width,
    write,
)
from anonspark.presentation.tips import Place, tips

_STEPS = (1, 2, 2.5, 5, 10)


def ticks(end: float, most: int, *, whole: bool = False) -> Sequence[float]:
    """Return round numbers from 0 to `end`, equally far apart.

    Parameters
    ----------
    end : float
        Above 0.
    most : int
        Steps at most, 1 or more.
    whole : bool
        Whether all of them are whole numbers.
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
    top: float, entries: Sequence[tuple[Markup, float, str]], *, beside: bool = True
) -> tuple[Markup, float]:
    """Draw a legend.

    Parameters
    ----------
    top : float
    entries : sequence of (Markup, float, str)
        The sign, whose left end is the origin and whose middle is on the axis across, how wide it
        is, and its name.
    beside : bool
        Whether entries share a line if there is room, otherwise each is below the last.

    Returns
    -------
    markup : Markup
    bottom : float
    """
    drawn = []
    x, middle = 0.0, top + _ROW / 2
    for sign, width, name in entries:
        label = shortened(name, WIDTH - width - _LEGEND_GAP)
        whole = width + _LEGEND_GAP + text_width(label)
        if x and (not beside or x + whole > WIDTH):
            x, middle = 0.0, middle + _ROW
        drawn.append(element("g", sign, transform=f"translate({x:.10g} {middle:.10g})"))
        drawn.append(write(x + width + _LEGEND_GAP, middle + HALF_LETTER, label))
        x = round(x + whole + 3 * _LEGEND_GAP, 2)
    return Markup("").join(drawn), middle + _ROW / 2


_TOP = 36.0
_BOTTOM = 190.0
_GAP = 6.0
_SIGN_WIDTH = 26.0

# Lines are told apart without colours, too.
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
    """One line.

    Parameters
    ----------
    name : str
        For the legend.
    points : sequence of (float, float)
        By their place on the axis across.
    intervals : sequence of ((float, float) or None)
        Of each point, lowest and highest number up, where that is known. Empty for none.
    """

    name: str
    points: Sequence[tuple[float, float]]
    intervals: Sequence[tuple[float, float] | None] = ()

    @property
    def ends(self) -> list[float]:
        """All numbers up."""
        intervals = [end for interval in self.intervals for end in interval or ()]
        return [*(y for _, y in self.points), *intervals]


@dataclass(frozen=True)
class Lines:
    """A chart of lines with marked points.

    Parameters
    ----------
    title : str
    lines : sequence of Line
        With one point or more in all.
    across : str
        What the axis across measures.
    up : str
        What the axis up measures, with its unit.
    logarithmic : bool
        Whether equal ratios across are equally far apart.
    words : mapping of float to sequence of str
        What a place across says when it is pointed at, in lines.
    names : mapping of float to str
        What is written below a place across. Its number where that is missing.
    """

    title: str
    lines: Sequence[Line]
    across: str
    up: str
    logarithmic: bool
    words: Mapping[float, Sequence[str]] = field(default_factory=dict)
    names: Mapping[float, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Frame:
    """Where the points of a chart are, from `left` on, in px."""

    left: float
    first: float
    last: float
    start: float
    end: float
    logarithmic: bool

    def across(self, value: float) -> float:
        """Return the horizontal position of a number. The first and the last keep off the ends."""
        low, high, place = (
            math.log(one) if self.logarithmic else one for one in (self.first, self.last, value)
        )
        part = (place - low) / (high - low) if high > low else 0.5
        return self.left + (WIDTH - self.left) * (0.06 + 0.86 * part)

    def up(self, value: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * (value - self.start) / (self.end - self.start)


def draw_lines(chart: Lines, description: str) -> Markup:
    """Draw lines, as :func:`~anonspark.presentation.bars.draw_heat_map` draws a heat map."""
    points = [point for line in chart.lines for point in line.points]
    places = sorted({x for x, _ in points})
    ends = [end for line in chart.lines for end in line.ends]
    start, end = 1.05 * min(0.0, *ends), 1.05 * max(0.0, *ends)
    if start == end:
        end = 1.0
    up = _ticks(start, end)
    left = max(text_width(number_text(one)) for one in up) + _GAP
    frame = _Frame(left, places[0], places[-1], start, end, chart.logarithmic)
    parts = [heading(chart.title, chart.up), _axes(chart, frame, places, up)]
    signs = []
    for number, line in enumerate(chart.lines):
        drawn = [(frame.across(x), frame.up(y)) for x, y in line.points]
        if any(line.intervals):
            parts.append(_whiskers(number, frame, line))
        parts.append(_stroke(number, drawn))
        sign = _stroke(number, [(0.0, 0.0), (_SIGN_WIDTH, 0.0)], marked=[(_SIGN_WIDTH / 2, 0.0)])
        signs.append((sign, _SIGN_WIDTH, line.name))
    bottom = _BOTTOM + 32
    if len(signs) > 1:
        names, bottom = legend(bottom, signs, beside=False)
        parts.append(names)
    parts.append(tips(_bands(chart, frame, places)))
    return drawing(bottom, description, *parts)


def _bands(chart: Lines, frame: _Frame, places: Sequence[float]) -> list[Place]:
    """Return what is nearest to each place across, with what it says."""
    middles = [frame.across(place) for place in places]
    edges = [frame.left, *((one + other) / 2 for one, other in pairwise(middles)), WIDTH]
    return [
        Place(left, _TOP, right - left, _BOTTOM - _TOP, chart.words.get(place, ()))
        for place, (left, right) in zip(places, pairwise(edges), strict=True)
    ]


def _ticks(start: float, end: float) -> list[float]:
    """Return round numbers from `start`, which is not above 0, to `end`, which is not below."""
    step = ticks(end - start, 5)[1]
    return [number * step for number in range(math.ceil(start / step), int(end / step + 1e-9) + 1)]


def _whiskers(number: int, frame: _Frame, line: Line) -> Markup:
    """Draw the intervals of a line's points."""
    name = "second" if number % 2 else "first"
    path = ""
    for (x, _), interval in zip(line.points, line.intervals, strict=True):
        if interval is not None:
            place, (low, high) = frame.across(x), map(frame.up, interval)
            path += f"M{place:.2f} {low:.2f}V{high:.2f}"
            path += "".join(f"M{place - 3:.2f} {end:.2f}H{place + 3:.2f}" for end in (low, high))
    return element("path", d=path, style=stroke(name))


def _axes(chart: Lines, frame: _Frame, places: Sequence[float], up: Sequence[float]) -> Markup:
    """Draw grid, numbers and the name of the axis across."""
    grid = "".join(f"M{frame.left:.2f} {frame.up(one):.2f}H{WIDTH}" for one in up)
    grid += "".join(f"M{frame.across(one):.2f} {_TOP}V{_BOTTOM}" for one in places)
    rows = [write(frame.left - _GAP, frame.up(one) + HALF_LETTER, number_text(one)) for one in up]
    shown: list[tuple[float, str]] = []
    names = [chart.names.get(place) or number_text(place) for place in places]
    # The first and the last end inside.
    texts = [
        (min(frame.across(place), WIDTH - text_width(name) / 2), name)
        for place, name in zip(places, names, strict=True)
    ]
    if chart.logarithmic:
        # Where there is no room for all of them, 50 says more than 40.
        texts.sort(key=lambda one: one[1].strip("0.,") not in ("1", "2", "5"))
    for middle, text in texts:
        if all(
            abs(middle - other) >= (text_width(text) + text_width(own)) / 2 + 6
            for other, own in shown
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
    """Draw a line with its markers, at its points unless others are given."""
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
