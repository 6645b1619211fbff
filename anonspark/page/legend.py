"""Which sign of a chart stands for what."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from anonspark.page.svg import HALF_LETTER, WIDTH, element, shortened, text_width, write

_ROW = 14.0
_GAP = 5.0


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
        Whether entries stand beside each other where there is room; else each below the last.

    Returns
    -------
    markup : Markup
    bottom : float
    """
    drawn = []
    x, middle = 0.0, top + _ROW / 2
    for sign, width, name in entries:
        label = shortened(name, WIDTH - width - _GAP)
        whole = width + _GAP + text_width(label)
        if x and (not beside or x + whole > WIDTH):
            x, middle = 0.0, middle + _ROW
        drawn.append(element("g", sign, transform=f"translate({x:.10g} {middle:.10g})"))
        drawn.append(write(x + width + _GAP, middle + HALF_LETTER, label))
        x = round(x + whole + 3 * _GAP, 2)
    return Markup("").join(drawn), middle + _ROW / 2
