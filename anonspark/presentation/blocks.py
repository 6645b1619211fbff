"""Blocks of results, such as tables, charts and tiles, for pages, notebooks and terminals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from markupsafe import Markup, escape


@dataclass(frozen=True)
class Verdict:
    """Whether something holds, shown by a word and a sign, not only by colour."""

    holds: bool

    def __html__(self) -> str:
        """Return the form for a page, as Jinja asks for it."""
        if self.holds:
            return '<span class="good"><span aria-hidden="true">✓</span> holds</span>'
        return '<span class="bad"><span aria-hidden="true">✗</span> does not hold</span>'


@dataclass(frozen=True)
class Grade:
    """A grade from A, the best, to E."""

    letter: str

    def __html__(self) -> str:
        """Return the form for a page, as Jinja asks for it."""
        return (
            f'<span class="grade grade-{escape(self.letter.lower())}">{escape(self.letter)}</span>'
        )


@dataclass(frozen=True)
class Role:
    """The role of a column in words, such as "quasi-identifier". Pages colour it as ARX does."""

    name: str

    def __str__(self) -> str:
        return self.name

    def __html__(self) -> str:
        """Return the form for a page, as Jinja asks for it."""
        name = escape(self.name)
        return f'<span class="role role-{name.replace(" ", "-")}">{name}</span>'


Cell = str | int | float | Verdict | Grade | Role

_NUMBER = re.compile(r"[-+<>]?\d[\d,]*(\.\d+)?(e[-+]\d+)?( ?%)?( ±[\d.]+)?")

_NO_NUMBER = frozenset(("", "-", "failed", "infinite", "none", "withheld"))
"""Texts in the place of a number."""


def cell_text(cell: object) -> str:
    """Write a cell: numbers with commas, and with four decimals.

    >>> cell_text(12345), cell_text(0.5), cell_text("age")
    ('12,345', '0.5000', 'age')
    """
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:z,.4f}" if abs(cell) < 1000 else f"{cell:z,.1f}"
    return str(cell)


@dataclass(frozen=True)
class Table:
    """A table. The first cell of a row is its heading.

    Without ``columns`` the rows are pairs of a name and a value. ``tones`` is "" or "bad" for each
    row, or empty if no row stands out.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    tones: Sequence[str] = ()
    kind: str = field(default="table", init=False)

    @property
    def numbers(self) -> list[bool]:
        """Return for each column whether it is one of numbers, which stand to the right.

        >>> Table("Ages", ["name", "age"], [["Ada", "36"], ["Bob", "withheld"]]).numbers
        [False, True]
        """
        columns = [
            set(map(cell_text, column)) - _NO_NUMBER for column in zip(*self.rows, strict=True)
        ]
        are_numbers = [bool(texts) and all(map(_NUMBER.fullmatch, texts)) for texts in columns]
        return are_numbers or [False] * len(self.columns)


@dataclass(frozen=True)
class Chart:
    """A chart and the same figures as a table."""

    svg: Markup
    table: Table
    kind: str = field(default="chart", init=False)


@dataclass(frozen=True)
class Text:
    """A paragraph. Its tone is "", "good", "mixed", "bad", or "strong" for a result."""

    text: str
    tone: str = ""
    kind: str = field(default="text", init=False)


@dataclass(frozen=True)
class Code:
    """A text to be copied, such as a command, and its label."""

    text: str
    label: str
    kind: str = field(default="code", init=False)


@dataclass(frozen=True)
class Tile:
    """A figure that is seen at once: label, figure in a few words, and its meaning in a sentence.

    The tone is "", "good", "mixed" or "bad".
    """

    label: str
    value: str
    text: str
    tone: str = ""


@dataclass(frozen=True)
class Tiles:
    """Figures side by side."""

    tiles: Sequence[Tile]
    kind: str = field(default="tiles", init=False)


@dataclass(frozen=True)
class Item:
    """An entry of a list: a title of a few words, a text, and perhaps code to be copied.

    The tone is "", "mixed" or "bad".
    """

    title: str
    text: str
    tone: str = ""
    code: str = ""


@dataclass(frozen=True)
class Items:
    """A list of entries."""

    items: Sequence[Item]
    kind: str = field(default="items", init=False)


_NARROW = 5
"""Columns of a table that half of a wide page has room for."""

Block = Table | Chart | Text | Code | Tiles | Items


@dataclass(frozen=True)
class Section:
    """A section of a page. Links go to its name, which is unique in the page.

    Charts, and tables, that follow each other stand side by side if there is room.
    """

    name: str
    title: str
    blocks: Sequence[Block]

    @property
    def runs(self) -> list[tuple[str, list[Block]]]:
        """The blocks, with consecutive ones of one kind grouped."""
        return [(kind, list(run)) for kind, run in groupby(self.blocks, lambda block: block.kind)]

    def narrow(self, index: int) -> bool:
        """Return whether a run is one chart or narrow table, right of the text before it."""
        if not 0 < index < len(self.runs) or self.runs[index - 1][0] not in ("text", "items"):
            return False
        (first, *others) = self.runs[index][1]
        narrow = isinstance(first, Table) and len(first.columns) <= _NARROW
        return not others and (narrow or isinstance(first, Chart))
