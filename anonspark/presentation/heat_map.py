"""Matrices of numbers with their colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup

from anonspark.core.arrays import Figures
from anonspark.presentation.svg import (
    HALF_LETTER,
    WIDTH,
    colour,
    drawing,
    element,
    heading,
    label_column,
    write,
)
from anonspark.presentation.tips import Place, tips

_LABEL_WIDTH = 90.0
_ROW_HEIGHT = 21.0
_TOP = 24.0
_GAP = 5.0


@dataclass(frozen=True)
class HeatMap:
    """A matrix whose rows and columns are the same things.

    Parameters
    ----------
    title : str
    labels : sequence of str
        Of rows and columns.
    matrix : float64 ndarray of shape (labels, labels)
        In [-1, 1]. NaN is left empty.
    words : mapping of (int, int) to str
        What the cell of a row and a column says when it is pointed at.
    """

    title: str
    labels: Sequence[str]
    matrix: Figures
    words: Mapping[tuple[int, int], str] = field(default_factory=dict)


def draw_heat_map(chart: HeatMap, description: str) -> Markup:
    """Draw a matrix with its numbers.

    Parameters
    ----------
    chart : HeatMap
    description : str
        What the chart shows, for those who do not see it.

    Returns
    -------
    Markup
        An ``svg`` element.
    """
    labels, widest = label_column(chart.labels, _LABEL_WIDTH)
    left = widest + _GAP
    width = (WIDTH - left) / max(len(labels), 1)
    bottom = _TOP + len(labels) * _ROW_HEIGHT
    # "-.25" is not wider than its cell.
    size = min(7.5, width / 2.5)
    cells, numbers, names = [], [], []
    for row, column in np.ndindex(chart.matrix.shape):
        value = float(chart.matrix[row, column])
        if np.isnan(value):
            continue
        x, y = left + column * width, _TOP + row * _ROW_HEIGHT
        cells.append(
            element(
                "rect",
                x=x,
                y=y,
                width=width,
                height=_ROW_HEIGHT,
                style=colour("second" if value < 0 else "first"),
                fill_opacity=abs(value) * 0.55,
            )
        )
        numbers.append(write(x + width / 2, y + _ROW_HEIGHT / 2 + 0.35 * size, _two_places(value)))
    for number, label in enumerate(labels):
        middle = _TOP + (number + 0.5) * _ROW_HEIGHT
        names.append(write(widest, middle + HALF_LETTER, label))
        x = left + (number + 0.5) * width + HALF_LETTER
        turned = f"translate({x:.2f} {bottom + _GAP}) rotate(-90)"
        names.append(write(0.0, 0.0, label, transform=turned))
    height = bottom + widest + 2 * _GAP
    places = [
        Place(left + column * width, _TOP + row * _ROW_HEIGHT, width, _ROW_HEIGHT, [words])
        for (row, column), words in chart.words.items()
    ]
    return drawing(
        height,
        description,
        heading(chart.title),
        *cells,
        element("g", *numbers, text_anchor="middle", font_size=size),
        element("g", *names, text_anchor="end"),
        tips(places),
    )


def _two_places(value: float) -> str:
    """Return a number in [-1, 1] as short as a cell wants it, such as .46."""
    text = f"{abs(value):.2f}".removeprefix("0").replace("1.00", "1")
    return text if round(value, 2) >= 0 else f"\N{MINUS SIGN}{text}"
