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
    """Write an element. Children that are Markup stay, other texts are escaped.

    A hyphen of an attribute's name is written ``_``. Numbers are rounded to hundredths.

    >>> str(element("text", "a < b", x=1.0, text_anchor="end"))
    '<text x="1" text-anchor="end">a &lt; b</text>'
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
    """Write the ``svg`` element of a chart, with a description for those who do not see it.

    It is ``WIDTH`` px wide, and its text is in the ink of the page.
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
    """Return the style that fills a shape with a colour of the page.

    >>> colour("ink")
    'fill: var(--ink)'
    """
    return f"fill: var(--{name})"


def stroke(name: str, width: float = 0.6) -> str:
    """Return the style that draws a line, and fills nothing, with a colour of the page."""
    return f"fill: none; stroke: var(--{name}); stroke-width: {width:.10g}"


def heading(title: str, below: str = "") -> Markup:
    """Write the title of a chart, and below it what goes down or up the left side."""
    bold = write(0.0, 11.0, shortened(title, WIDTH, 12.5), font_size=11.4, font_weight="bold")
    if not below:
        return bold
    return bold + write(0.0, 26.0, shortened(below, WIDTH), style=colour("soft"))


def write(x: float, y: float, text: str, **attributes: float | str) -> Markup:
    """Write a text with its baseline at `y`. It begins at `x` without ``text_anchor``."""
    return element("text", clean(text), x=x, y=y, **attributes)


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """Estimate the width of a text in px: it is seldom less than in the reader's font.

    >>> text_width("il", 10.0) < text_width("MW", 10.0)
    True
    """
    return size * sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    wide = 1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.64
    return _WIDTH_OF.get(letter, wide)


def shortened(text: str, width: float, size: float = FONT_SIZE) -> str:
    """Cut a text off where a width ends.

    >>> shortened("capital gain", 40.0)
    'capit…'
    """
    text = clean(text)
    if text_width(text, size) <= width:
        return text
    while text and text_width(f"{text}…", size) > width:
        text = text[:-1]
    return f"{text}…"


def label_column(labels: Sequence[str], width: float) -> tuple[list[str], float]:
    """Shorten labels to a width. Also return the width of the widest."""
    fitted = [shortened(label, width) for label in labels]
    return fitted, max(map(text_width, fitted), default=0.0)


def clean(text: str) -> str:
    r"""Replace characters that cannot be in a page by blanks.

    >>> clean("a\tb\n")
    'a b '
    """
    return "".join(sign if sign.isprintable() else " " for sign in text)


@dataclass(frozen=True)
class Tip:
    """The lines that are shown when an area of a chart, in px, is pointed at."""

    x: float
    y: float
    width: float
    height: float
    words: Sequence[str]


def words_of(name: str, texts: Mapping[str, str]) -> list[str]:
    """Write one text, or several with their names, as the lines of a tip.

    >>> words_of("age", {"original": "5", "release": "6"})
    ['age', 'original: 5', 'release: 6']
    """
    if len(texts) == 1:
        return [f"{name}: {text}" for text in texts.values()]
    return [name, *(f"{side}: {text}" for side, text in texts.items())]


def tips(areas: Sequence[Tip]) -> Markup:
    """Draw the areas that have a tip, on top of a chart."""
    drawn = [_area(tip) for tip in areas if tip.words]
    if not drawn:
        return Markup()
    return element("g", *drawn, class_="tips", fill="none", pointer_events="all")


def _area(tip: Tip) -> Markup:
    left, top = round(tip.x), round(tip.y)
    # Neighbours have no gap between them, and a page has hundreds: whole numbers.
    right, end = round(tip.x + tip.width), round(tip.y + tip.height)
    words = Markup("\n").join(map(clean, tip.words))
    return element("path", element("title", words), d=f"M{left} {top}H{right}V{end}H{left}z")
