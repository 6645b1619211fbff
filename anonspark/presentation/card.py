"""A card: what was found, in a few words, figures and charts, as text and as a piece of a page."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup

from anonspark.foreign_text import blanked
from anonspark.presentation.blocks import Cell, Chart, Table, cell_text
from anonspark.presentation.svg import clean
from anonspark.redaction import redact

if TYPE_CHECKING:
    from jinja2 import Template

MOST_LINES = 25
"""Lines of a card as text."""

_WIDTH = 100
_WIDEST = 60
_WIDEST_NAME = 44
_MOST_ROWS = 8
_MOST_NOTES = 3


@dataclass(frozen=True)
class Card:
    """A result on one screen: a title, a verdict of one sentence, figures, tables and charts.

    ``holds`` says whether the result is good, None if there is nothing to judge. ``tables`` come
    last and are cut if lines are few. ``notes`` are warnings, ``remarks`` sentences about the
    figures that warn of nothing.

    >>> card = Card("people", "all criteria hold", holds=True, figures=[("k", 5), ("classes", 120)])
    >>> print(card_text(card))
    people: ✓ all criteria hold
      k          5
      classes  120
    """

    title: str
    verdict: str
    holds: bool | None = None
    figures: Sequence[tuple[str, Cell]] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    charts: Callable[[], Sequence[Chart]] = tuple
    remarks: Sequence[str] = ()

    @property
    def tone(self) -> str:
        """Return the colour of the verdict: warnings weaken a good one."""
        if self.holds is None:
            return ""
        return "bad" if not self.holds else "mixed" if self.notes else "good"

    @property
    def sign(self) -> str:
        """Return the sign before the verdict, for readers who see no colours."""
        return {"": "", "bad": "✗", "mixed": "!", "good": "✓"}[self.tone]

    def with_first(self, figure: tuple[str, Cell]) -> Card:
        """Return a copy with a further figure above all others."""
        return replace(self, figures=(figure, *self.figures))

    @property
    def has_numbers(self) -> bool:
        """Return whether all figures are numbers, which stand to the right."""
        return Table("", ("", ""), self.figures).numbers[1]

    @property
    def headline(self) -> str:
        """Return title and verdict in a line."""
        return ": ".join(filter(None, (self.title, f"{self.sign} {self.verdict}".strip())))


def card_text(card: Card) -> str:
    """Write a card as plain text of at most ``MOST_LINES`` lines, without credentials."""
    lines = _wrapped(card.headline, "", 3)
    lines += _figure_lines(card)
    for remark in card.remarks:
        lines += _wrapped(remark, "  ", 2)
    for note in card.notes[:_MOST_NOTES]:
        lines += _wrapped(note, "  ! ", 3)
    if len(card.notes) > _MOST_NOTES:
        lines.append(f"  ! ... and {len(card.notes) - _MOST_NOTES:,} more")
    for table in card.tables:
        shown = replace(table, rows=table.rows[:_MOST_ROWS])
        lines += [f"  {table.caption}:", *(f"  {line}" for line in _table_lines(shown))]
        if len(table.rows) > _MOST_ROWS:
            lines.append(f"  ... and {len(table.rows) - _MOST_ROWS:,} more")
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], "  ..."]
    return redact("\n".join(lines))


def _figure_lines(card: Card) -> list[str]:
    """Write names and figures in two columns, sentences among them in several lines."""
    figures = card.figures
    if card.has_numbers:
        return _aligned([[f"  {words}", figure] for words, figure in figures], [False, True])
    width = max((min(len(words), _WIDEST_NAME) for words, _ in figures), default=0)
    lines = []
    for words, figure in figures:
        indent = f"  {_short(clean(words)):<{width}}  "
        lines += _wrapped(cell_text(figure), indent, 2)
    return lines


def table_text(table: Table) -> str:
    """Write a table of figures as plain text.

    >>> print(table_text(Table("Ages", ["age", "records"], [["20", 3], ["30", 12]])))
    Ages
    age  records
     20        3
     30       12
    """
    return redact("\n".join([clean(table.caption), *_table_lines(table)]))


def _table_lines(table: Table) -> list[str]:
    return _aligned([table.columns, *table.rows], table.numbers)


def _aligned(rows: Sequence[Sequence[Cell]], right: Sequence[bool]) -> list[str]:
    """Write cells below each other, columns of numbers to the right."""
    cells = [[_short(clean(cell_text(cell))) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    ]


def _short(cell: str) -> str:
    return cell if len(cell) <= _WIDEST else f"{cell[: _WIDEST - 1]}…"


def _wrapped(text: str, indent: str, most: int) -> list[str]:
    """Write a sentence in lines that fit a terminal, at most so many."""
    return textwrap.wrap(
        clean(text),
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=" " * max(len(indent), 2),
        max_lines=most,
        placeholder=" …",
    )


def card_html(card: Card) -> str:
    """Write a card as a piece of HTML to embed in another page, such as a notebook.

    It loads nothing, runs no script, styles nothing but itself, in light and dark, and holds no
    credentials.
    """
    page = _template().render(card=card, charts=card.charts(), scoped=_scoped)
    return blanked(redact(page))


def chart_html(chart: Chart) -> str:
    """Write a chart as a piece of HTML like :func:`card_html`."""
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
    in_light, in_dark = (
        ",".join(f"{selector} .anonspark" for selector in selectors)
        for selectors in (_SAY_LIGHT, _SAY_DARK)
    )
    return Markup(  # noqa: S704 - our own colours
        f".anonspark,{in_light}{{{light}}}"
        f"@media (prefers-color-scheme:dark){{.anonspark{{{dark}}}{in_light}{{{light}}}}}"
        f"{in_dark}{{{dark}}}"
    )


@cache
def _template() -> Template:
    # Late: a terminal needs no templates.
    from jinja2 import BaseLoader, Environment, StrictUndefined

    environment = Environment(
        loader=BaseLoader(), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    source = files("anonspark.presentation").joinpath("card.html.j2").read_text(encoding="utf-8")
    environment.filters["cell"] = _cell
    return environment.from_string(source)


def _cell(cell: Cell) -> str:
    return cell if hasattr(cell, "__html__") else cell_text(cell)  # type: ignore[return-value]
