"""The look of all charts, and what makes them part of a page.

Text stays text, and colours become variables of the page. The same figure makes the same bytes: no
dates, no random names.
"""

from __future__ import annotations

import io
import re
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "WIDTH", "clean", "shortened", "styled", "to_svg"]

# Colours that matplotlib takes, and what they become in the page.
COLOURS = {
    "ink": "#010203",
    "grid": "#010204",
    "paper": "#010205",
    "first": "#010206",
    "second": "#010207",
}
_VARIABLES = {colour: f"var(--{name})" for name, colour in COLOURS.items()}

_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": COLOURS["grid"],
    "axes.facecolor": "none",
    "axes.labelcolor": COLOURS["ink"],
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": COLOURS["ink"],
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "figure.facecolor": "none",
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "grid.color": COLOURS["grid"],
    "grid.linewidth": 0.6,
    "hatch.color": COLOURS["paper"],
    "hatch.linewidth": 1.2,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "legend.labelcolor": COLOURS["ink"],
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "anonspark",
    "text.color": COLOURS["ink"],
    # A dollar sign in a column's name is no formula.
    "text.parse_math": False,
    "xtick.color": COLOURS["ink"],
    "xtick.labelsize": 9,
    "ytick.color": COLOURS["ink"],
    "ytick.labelsize": 9,
}

WIDTH = 4.5  # inches of 72 px: what a telephone shows without shrinking the text
_LONGEST_LABEL = 26

_ID = re.compile(r'\bid="([^"]+)"')
_REFERENCE = re.compile(r'(url\(#|href="#)([^)"]+)')
_COLOUR = re.compile("|".join(_VARIABLES))
_OPENING = re.compile(r"<svg\b[^>]*>", re.DOTALL)
_VIEW = re.compile(r'viewBox="([^"]+)"')
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# It would style the whole page.
_STYLE_SHEET = re.compile(r"\s*<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the style of all charts inside this block."""
    from matplotlib import rc_context

    with warnings.catch_warnings(), rc_context(_STYLE):
        # A letter that this font lacks is drawn in the reader's font.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def clean(text: str) -> str:
    """Return a text without characters that cannot be in a page."""
    return "".join(" " if unicodedata.category(sign)[0] == "C" else sign for sign in text)


def shortened(text: str, longest: int = _LONGEST_LABEL) -> str:
    """Return a clean text of so many characters at most."""
    text = clean(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def to_svg(figure: Figure, name: str, description: str) -> str:
    """Return a figure as an element of a page.

    Parameters
    ----------
    figure : Figure
    name : str
        Unique in the page: what all ids of the chart begin with.
    description : str
        What the chart shows, for those who do not see it.

    Raises
    ------
    ValueError
        If matplotlib wrote something else than it does today.
    """
    written = io.StringIO()
    figure.savefig(
        written,
        format="svg",
        metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"), None),
    )
    text = written.getvalue()
    text = _METADATA.sub("", _COMMENT.sub("", text[text.index("<svg") :]))
    text = _STYLE_SHEET.sub("", text)
    text = _ID.sub(rf'id="{name}-\1"', text)
    text = _REFERENCE.sub(rf"\1{name}-\2", text)
    text = _COLOUR.sub(lambda match: _VARIABLES[match[0]], text)
    view = _VIEW.search(text)
    if view is None:
        raise ValueError("matplotlib wrote an SVG without a view box")
    attributes = f'class="chart" viewBox="{view[1]}" role="img" aria-label="{_quoted(description)}"'
    return _OPENING.sub(lambda _: f"<svg {attributes}>", text, count=1).strip()


def _quoted(text: str) -> str:
    from markupsafe import escape

    return str(escape(clean(text)))
