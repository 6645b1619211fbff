"""Elements of SVG that belong into an HTML page.

Text stays text, and colours are variables of the page. The same chart makes the same bytes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

WIDTH = 324.0  # px: what a telephone shows without shrinking the text
FONT_SIZE = 10.4
# From the middle of a line of text to its baseline.
HALF_LETTER = 3.7

# Widths of letters in DejaVu Sans, one of the widest fonts of pages, as parts of the font size.
_LETTER_WIDTHS = (
    (0.34, " iIjlJ.,:;'|!"),
    (0.42, 'frt()[]{}/-"\\'),
    (0.80, "ABCDGHKNOPQRTUVXYw&~+<>=#"),
    (1.00, "mMW%@…"),
)
_WIDTH_OF = {letter: width for width, letters in _LETTER_WIDTHS for letter in letters}


def element(tag: str, *children: str, **attributes: float | str) -> Markup:
    """Return an element.

    Parameters
    ----------
    tag : str
    *children : str
        Markup stays as it is. Other text is escaped.
    **attributes : float or str
        A hyphen of a name is written ``_``. Numbers are rounded to hundredths.
    """
    written = [
        Markup(' {}="{}"').format(
            name.rstrip("_").replace("_", "-"),
            f"{round(value, 2) + 0.0:.10g}" if isinstance(value, float) else value,
        )
        for name, value in attributes.items()
    ]
    inside = Markup("").join(children)
    return Markup("<{0}{1}>{2}</{0}>").format(tag, Markup("").join(written), inside)


def drawing(height: float, description: str, *children: str) -> Markup:
    """Return the ``svg`` element of a chart, whose text is in the ink of the page.

    Parameters
    ----------
    height : float
        Beside a width of ``WIDTH``.
    description : str
        What the chart shows, for those who do not see it.
    *children : Markup
    """
    return element(
        "svg",
        *children,
        class_="chart",
        viewBox=f"0 0 {WIDTH:.10g} {height:.10g}",
        role="img",
        aria_label=clean(description),
        font_size=FONT_SIZE,
        style=colour("ink"),
    )


def colour(name: str) -> str:
    """Return the style that fills a shape with a colour of the page."""
    return f"fill: var(--{name})"


def stroke(name: str, width: float = 0.6) -> str:
    """Return the style that draws a line, and fills nothing, with a colour of the page."""
    return f"fill: none; stroke: var(--{name}); stroke-width: {width:.10g}"


def heading(title: str, below: str = "") -> Markup:
    """Return the title of a chart, and below it what goes down or up the left side."""
    bold = write(0.0, 11.0, shortened(title, WIDTH, 12.5), font_size=11.4, font_weight="bold")
    if not below:
        return bold
    return bold + write(0.0, 26.0, shortened(below, WIDTH), style=colour("soft"))


def write(x: float, y: float, text: str, **attributes: float | str) -> Markup:
    """Return a text with its baseline at `y`. It begins at `x` without ``text_anchor``."""
    return element("text", clean(text), x=x, y=y, **attributes)


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """Return about how wide a text is in px: seldom less than in the reader's font."""
    return size * sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    wide = 1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.64
    return _WIDTH_OF.get(letter, wide)


def shortened(text: str, width: float, size: float = FONT_SIZE) -> str:
    """Return as much of a clean text as fits into a width."""
    text = clean(text)
    if text_width(text, size) <= width:
        return text
    while text and text_width(f"{text}…", size) > width:
        text = text[:-1]
    return f"{text}…"


def label_column(labels: Sequence[str], width: float) -> tuple[list[str], float]:
    """Return as much of each label as fits into a width, and how wide the widest is."""
    fitted = [shortened(label, width) for label in labels]
    return fitted, max(map(text_width, fitted), default=0.0)


def clean(text: str) -> str:
    """Return a text without characters that cannot be in a page."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


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
    return [name, *(f"{side}: {text}" for side, text in texts.items())]


def tips(places: Sequence[Place]) -> Markup:
    """Return what is drawn last into a chart: its places, which the browser shows the words of.

    Parameters
    ----------
    places : sequence of Place
        Those without words are left out.
    """
    drawn = [_tip(place_of_tip) for place_of_tip in places if place_of_tip.words]
    if not drawn:
        return Markup()
    return element("g", *drawn, class_="tips", fill="none", pointer_events="all")


def _tip(place: Place) -> Markup:
    left, top = round(place.x), round(place.y)
    # Neighbours have no gap between them, and a page has hundreds: whole numbers.
    right, end = round(place.x + place.width), round(place.y + place.height)
    words = Markup("\n").join(map(clean, place.words))
    return element("path", element("title", words), d=f"M{left} {top}H{right}V{end}H{left}z")
