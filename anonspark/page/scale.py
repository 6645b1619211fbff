"""What the axis of a chart is divided into."""

from __future__ import annotations

import math
from collections.abc import Sequence

_STEPS = (1, 2, 2.5, 5, 10)


def ticks(end: float, most: int, *, whole: bool = False) -> Sequence[float]:
    """Return round numbers from 0 to `end`, equally far apart.

    Parameters
    ----------
    end : float
        Above 0.
    most : int
        Steps at most; 1 or more.
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
