"""A card: what was found, in a few words, figures and charts, as text and as a piece of a page."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from jinja2 import BaseLoader, Environment, StrictUndefined, Template
from markupsafe import Markup

from anonspark.foreign_text import blanked
from anonspark.presentation.blocks import Chart, Table
from anonspark.presentation.svg import clean
from anonspark.redaction import redact

MOST_LINES = 25
"""Lines of a card as text."""

_WIDTH = 100
_WIDEST = 60
_MOST_ROWS = 8
_MOST_NOTES = 3


@dataclass(frozen=True)
class Card:
    """What was found.

    Parameters
    ----------
    title : str
        What it is.
    verdict : str
        One sentence.
    holds : bool or None
        Whether that is good; None where there is nothing to judge.
    figures : sequence of (str, str)
        Words and a figure.
    table : Table or None
        Of texts.
    notes : sequence of str
        What is warned of.
    charts : callable
        Draws the charts.
    remarks : sequence of str
        Sentences about the figures, which warn of nothing.
    """

    title: str
    verdict: str
    holds: bool | None = None
    figures: Sequence[tuple[str, str]] = ()
    table: Table | None = None
    notes: Sequence[str] = ()
    charts: Callable[[], Sequence[Chart]] = tuple
    remarks: Sequence[str] = ()

    @property
    def tone(self) -> str:
        """Return how the verdict is coloured: what is warned of weakens one that is good."""
        if self.holds is None:
            return ""
        return "bad" if not self.holds else "mixed" if self.notes else "good"

    @property
    def sign(self) -> str:
        """Return what stands before the verdict for who sees no colours."""
        return {"": "", "bad": "✗", "mixed": "!", "good": "✓"}[self.tone]


def card_text(card: Card) -> str:
    """Return a card as plain text of at most ``MOST_LINES`` lines, without credentials."""
    sign = f"{card.sign} " if card.sign else ""
    lines = _wrapped(f"{card.title}: {sign}{card.verdict}", "", 3)
    if card.figures:
        lines += _aligned([[f"  {words}", figure] for words, figure in card.figures])
    if card.table is not None:
        rows = [*map(list, card.table.rows)]
        cells = [[f"  {row[0]}", *map(str, row[1:])] for row in rows[:_MOST_ROWS]]
        heads = [f"  {card.table.columns[0]}", *card.table.columns[1:]]
        lines += [f"  {card.table.caption}:", *_aligned([heads, *cells])]
        if len(rows) > _MOST_ROWS:
            lines.append(f"  ... and {len(rows) - _MOST_ROWS:,} more")
    for remark in card.remarks:
        lines += _wrapped(remark, "  ", 2)
    for note in card.notes[:_MOST_NOTES]:
        lines += _wrapped(note, "  ! ", 3)
    if len(card.notes) > _MOST_NOTES:
        lines.append(f"  ! ... and {len(card.notes) - _MOST_NOTES:,} more")
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], "  ..."]
    return redact("\n".join(lines))


def table_text(table: Table) -> str:
    """Return a table of figures as plain text."""
    rows = [[str(cell) for cell in row] for row in table.rows]
    return redact("\n".join([clean(table.caption), *_aligned([list(table.columns), *rows])]))


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write cells below each other: the first of a row to the left, the others to the right."""
    cells = [[_short(clean(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def _short(cell: str) -> str:
    return cell if len(cell) <= _WIDEST else f"{cell[: _WIDEST - 1]}…"


def _wrapped(text: str, indent: str, most: int) -> list[str]:
    """Write a sentence in lines that a terminal shows whole."""
    return textwrap.wrap(
        clean(text),
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=" " * max(len(indent), 2),
        max_lines=most,
        placeholder=" …",
    )


def card_html(card: Card) -> str:
    """Return a card as a piece of HTML for a page of somebody else's, such as a notebook.

    Returns
    -------
    str
        It loads nothing, runs no script, styles nothing but itself, in light and dark, and holds
        no credentials.
    """
    page = _template().render(card=card, charts=card.charts(), scoped=_scoped)
    return blanked(redact(page))


def chart_html(chart: Chart) -> str:
    """Return a chart as a piece of HTML like :func:`card_html`."""
    page = _template().render(card=None, charts=[chart], scoped=_scoped)
    return blanked(redact(page))


_LIGHT = {
    "ink": "#1d232b",
    "soft": "#55606e",
    "paper": "#ffffff",
    "panel": "#f5f7f9",
    "grid": "#c9d0d8",
    "first": "#1f6fb4",
    "second": "#b85c00",
    "good": "#11693a",
    "mixed": "#8a5300",
    "bad": "#b3261e",
    "link": "#0b5cad",
}
_DARK = {
    "ink": "#e7ebf0",
    "soft": "#a9b4c0",
    "paper": "#14181d",
    "panel": "#1d232a",
    "grid": "#48525e",
    "first": "#62aef0",
    "second": "#f0a04b",
    "good": "#6fd69b",
    "mixed": "#f2bd6b",
    "bad": "#ff8a80",
    "link": "#8cc4ff",
}

# How JupyterLab, VS Code, Colab and pages of documentation say that they are light or dark.
_SAY_LIGHT = (
    '[data-jp-theme-light="true"]',
    "body.vscode-light",
    'html[theme="light"]',
    '[data-md-color-scheme="default"]',
)
_SAY_DARK = (
    '[data-jp-theme-light="false"]',
    "body.vscode-dark",
    'html[theme="dark"]',
    '[data-md-color-scheme="slate"]',
)


def _scoped() -> Markup:
    """Return the colours of a card: those of the page around it, else those of the system."""
    light, dark = (
        "".join(f"--{name}:{colour};" for name, colour in colours.items())
        for colours in (_LIGHT, _DARK)
    )
    said_light, said_dark = (
        ",".join(f"{one} .anonspark" for one in said) for said in (_SAY_LIGHT, _SAY_DARK)
    )
    return Markup(  # noqa: S704 - our own colours
        f".anonspark,{said_light}{{{light}}}"
        f"@media (prefers-color-scheme:dark){{.anonspark{{{dark}}}{said_light}{{{light}}}}}"
        f"{said_dark}{{{dark}}}"
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=BaseLoader(), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    source = files("anonspark.presentation").joinpath("card.html.j2").read_text(encoding="utf-8")
    return environment.from_string(source)
