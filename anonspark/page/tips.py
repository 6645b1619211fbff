"""What a chart says of a place in it, when a pointer rests on the place or it is focused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from anonspark.page.svg import WIDTH, clean, element, shortened, text_width

_LINE = 11
_MARGIN = 5
_GAP = 2


@dataclass(frozen=True)
class Place:
    """A part of a chart that says something.

    Parameters
    ----------
    x, y, width, height : float
        In px of the chart.
    words : sequence of str
        Its lines.
    """

    x: float
    y: float
    width: float
    height: float
    words: Sequence[str]


def words_of(name: str, texts: Mapping[str, str]) -> list[str]:
    """Return the lines of a place that has one text or several, each with its name."""
    if len(texts) == 1:
        return [f"{name}: {text}" for text in texts.values()]
    return [name, *(f"{one}: {text}" for one, text in texts.items())]


def tips(
    places: Sequence[Place], height: float, *, beside: bool = False, stops: bool = True
) -> Markup:
    """Return what is drawn last into a chart: its places, and hidden, what they say.

    Parameters
    ----------
    places : sequence of Place
        Those without words are left out.
    height : float
        Of the chart.
    beside : bool
        Whether words stand beside their place; else below it, or above it near the end.
    stops : bool
        Whether the keyboard goes to each place, and screen readers read it; else a touch does.
    """
    drawn = [_tip(one, height, beside, stops) for one in places if one.words]
    return element("g", *drawn, class_="tips") if drawn else Markup()


def _tip(place: Place, height: float, beside: bool, stops: bool) -> Markup:
    lines = [part for line in place.words for part in _wrapped(clean(line))]
    wide = round(max(map(text_width, lines)) + 2 * _MARGIN)
    high = _LINE * len(lines) + _MARGIN
    left, top = round(place.x), round(place.y)
    # Neighbours have no gap between them.
    right, end = round(place.x + place.width), round(place.y + place.height)
    if beside:
        # On the side with more room.
        x = right + _GAP if left < WIDTH - right else left - _GAP - wide
        y = top + _GAP
    else:
        x = (left + right - wide) // 2
        y = end + _GAP if end + _GAP + high <= height else top - _GAP - high
    x = max(1, min(x, int(WIDTH) - wide - 1))
    y = max(1, min(y, int(height) - high - 1))
    first, *others = lines
    # Small, for a page has hundreds: what is closed by itself, and whole numbers.
    said = element(
        "g",
        _path(f"M-{_MARGIN}-{_LINE}h{wide}v{high}h-{wide}z"),
        element("text", clean(first), *(element("tspan", line, x=0, dy=_LINE) for line in others)),
        transform=f"translate({x + _MARGIN} {y + _LINE})",
    )
    area = _path(f"M{left} {top}H{right}V{end}H{left}z")
    # A touch focuses what can be focused at all.
    reached: dict[str, str] = {"tabindex": "-1"}
    if stops:
        reached = {"tabindex": "0", "role": "img", "aria_label": clean("; ".join(place.words))}
    return element("g", area, said, **reached)


def _path(points: str) -> Markup:
    return Markup('<path d="{}"/>').format(points)


def _wrapped(line: str) -> list[str]:
    """Return a text in lines that fit into a chart."""
    most = WIDTH - 2 * _MARGIN - 2
    lines = [""]
    for word in line.split(" "):
        longer = f"{lines[-1]} {word}".lstrip()
        if lines[-1] and text_width(longer) > most:
            lines.append(word)
        else:
            lines[-1] = longer
    return [shortened(one, most) for one in lines]


def tip_style(within: str = "") -> Markup:
    """Return the rules that show what a place says, and print nothing of it.

    Parameters
    ----------
    within : str
        What the charts are in, where the page around is somebody else's; a selector.
    """
    chart = f"{within} svg.chart".lstrip()
    one = f"{chart} .tips>g"
    # One place speaks at a time: the one that the keyboard is at, else that below the pointer.
    silent = (
        f"{chart} .tips:has(>g:hover)>g:focus:not(:hover):not(:focus-visible)>g,"
        f"{chart} .tips:has(>g:focus-visible)>g:hover:not(:focus-visible)>g"
    )
    return Markup(  # noqa: S704 - our own
        f"{one}{{outline:none}}"
        f"{one}>path{{fill:var(--ink);fill-opacity:0}}"
        f"{one}:hover>path,{one}:focus>path{{fill-opacity:.1}}"
        f"{one}:focus-visible>path{{stroke:var(--link);stroke-width:1.5}}"
        f"{one}>g{{display:none;pointer-events:none}}"
        f"{one}:hover>g,{one}:focus>g{{display:inline}}"
        f"{silent}{{display:none}}"
        f"{one}>g path{{fill:var(--paper);stroke:var(--ink);stroke-width:.8}}"
        f"@media print{{{one}{{display:none}}}}"
    )
