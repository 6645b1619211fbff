"""Blocks on a terminal: light tables, numbers to the right, no figure cut at 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table as Grid
from rich.text import Text as Line

from anonspark.presentation.blocks import Table, Text, cell_text
from anonspark.presentation.card import Card

_STYLES = {"good": "green", "mixed": "yellow", "bad": "red", "strong": "bold"}

_LEAST_NAME = 9
_WIDEST_NAME = 44
"""Of lines with a name and a figure, so that there is room for the figure."""

_SHORT = 16
_NARROW = 12
"""Letters of a column of texts that is folded late, and of one that is folded at all."""

Block = Table | Text | Card


def show_blocks(console: Console, blocks: Iterable[Block]) -> None:
    """Print blocks, one below the other. Notes of cards are in the log."""
    follows = False
    for block in blocks:
        if follows:
            console.print()
        if isinstance(block, Card):
            _show_card(console, block)
        elif isinstance(block, Text):
            console.print(block.text, style=_STYLES.get(block.tone))
        else:
            _show_table(console, block)
        follows = isinstance(block, Table) or (isinstance(block, Card) and bool(block.tables))


def _show_card(console: Console, card: Card) -> None:
    first = f"{card.title}: " if card.title else ""
    verdict = card.verdict if first else f"{card.verdict[:1].upper()}{card.verdict[1:]}"
    console.print(f"{first}{verdict}", style=f"bold {_STYLES.get(card.tone, '')}".strip())
    _show_lines(console, card.figures)
    if card.figures and card.tables:
        console.print()
    show_blocks(console, (*card.tables, *map(Text, card.remarks)))


def _show_lines(console: Console, rows: Sequence[Sequence[object]]) -> None:
    """Print names and figures in two columns, with further lines indented."""
    longest = max((len(str(name)) for name, _ in rows), default=0)
    width = max(_LEAST_NAME, min(longest, max(_WIDEST_NAME, console.width // 2)))
    for name, cell in rows:
        # First without credentials, which may not be seen any more when they are broken.
        text = console.render_str(cell_text(cell)).plain
        room = max(console.width - width - 4, _NARROW)
        first, *others = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
        console.print(f"  {name:<{width}}  ", style="dim", end="")
        for line in (first, *(f"{'':<{width + 4}}{other}" for other in others)):
            console.print(line)


def _show_table(console: Console, table: Table) -> None:
    """Print a table, in two halves if it is too wide, because a cut number is another number."""
    if not table.columns:
        console.print(table.caption, style="bold")
        _show_lines(console, table.rows)
        return
    numbers = table.numbers
    headings, widths = [], []
    for index, name in enumerate(table.columns):
        widest = max((cell_len(cell_text(row[index])) for row in table.rows), default=0)
        lines = textwrap.wrap(
            name, max(widest, _NARROW), break_long_words=False, break_on_hyphens=False
        ) or [""]
        headings.append(Line("\n").join(map(console.render_str, lines)))
        widths.append(max(widest, *map(cell_len, lines)))
    layout = _layout(widths, numbers, console.width)
    if layout is None and len(widths) > 3:
        half = (len(widths) + 1) // 2
        for places in (range(half), (0, *range(half, len(widths)))):
            columns = [table.columns[index] for index in places]
            rows = [[row[index] for index in places] for row in table.rows]
            _show_table(console, Table(table.caption, columns, rows, table.tones))
        return
    gap, longest = layout or (1, _NARROW)
    grid = Grid(
        title=table.caption or None,
        title_justify="left",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
        padding=(0, gap - 1),
    )
    for heading, number, width in zip(headings, numbers, widths, strict=True):
        justify: JustifyMethod = "right" if number else "left"
        whole = number or width <= longest
        grid.add_column(heading, justify=justify, overflow="fold", no_wrap=whole)
    for row, tone in zip(table.rows, table.tones or [""] * len(table.rows), strict=True):
        grid.add_row(*map(cell_text, row), style=_STYLES.get(tone))
    console.print(grid)


def _layout(widths: Sequence[int], numbers: Sequence[bool], width: int) -> tuple[int, int] | None:
    """Choose the gap of columns and the longest text that is not folded, or None if nothing fits.

    >>> _layout([10, 40], [True, False], width=80), _layout([50, 60], [True, True], width=80)
    ((2, 80), None)
    """
    for gap, longest in ((2, width), (1, width), (1, _SHORT), (1, _NARROW)):
        least = sum(
            size if number or size <= longest else _NARROW
            for size, number in zip(widths, numbers, strict=True)
        )
        if least + gap * (len(widths) - 1) <= width:
            return gap, longest
    return None
