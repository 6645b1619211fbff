"""What a chart says of a part of it, when a pointer rests there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from anonspark.presentation.svg import clean, element


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


def tips(places: Sequence[Place]) -> Markup:
    """Return what is drawn last into a chart: its places, which the browser shows the words of.

    Parameters
    ----------
    places : sequence of Place
        Those without words are left out.
    """
    drawn = [_tip(one) for one in places if one.words]
    if not drawn:
        return Markup()
    return element("g", *drawn, class_="tips", fill="none", pointer_events="all")


def _tip(place: Place) -> Markup:
    left, top = round(place.x), round(place.y)
    # Neighbours have no gap between them, and a page has hundreds: whole numbers.
    right, end = round(place.x + place.width), round(place.y + place.height)
    words = Markup("\n").join(map(clean, place.words))
    return element("path", element("title", words), d=f"M{left} {top}H{right}V{end}H{left}z")
