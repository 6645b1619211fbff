"""What the axis of a chart is divided into, and its legend."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from anonspark.presentation.svg import HALF_LETTER, WIDTH, element, shortened, text_width, write

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
        Whether entries share a line if there is room, otherwise each is below the last.

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
