"""Blocks of results, such as tables, charts and tiles, for pages, notebooks and terminals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from markupsafe import Markup, escape


@dataclass(frozen=True)
class Verdict:
    """Whether something holds, shown by a word and a sign, not only by colour.

    Parameters
    ----------
    holds : bool
    """

    holds: bool

    def __html__(self) -> str:
        """Return it for a page, as Jinja asks for it."""
        if self.holds:
            return '<span class="good"><span aria-hidden="true">✓</span> holds</span>'
        return '<span class="bad"><span aria-hidden="true">✗</span> does not hold</span>'


@dataclass(frozen=True)
class Grade:
    """How good something is: a letter from A, the best, to E.

    Parameters
    ----------
    letter : str
    """

    letter: str

    def __html__(self) -> str:
        """Return it for a page, as Jinja asks for it."""
        return (
            f'<span class="grade grade-{escape(self.letter.lower())}">{escape(self.letter)}</span>'
        )


@dataclass(frozen=True)
class Role:
    """The role of a column. Pages colour it as ARX does.

    Parameters
    ----------
    name : str
        In words, such as "quasi-identifier".
    """

    name: str

    def __str__(self) -> str:
        return self.name

    def __html__(self) -> str:
        """Return it for a page, as Jinja asks for it."""
        name = escape(self.name)
        return f'<span class="role role-{name.replace(" ", "-")}">{name}</span>'


Cell = str | int | float | Verdict | Grade | Role

_NUMBER = re.compile(r"[-+<>]?\d[\d,]*(\.\d+)?(e[-+]\d+)?( ?%)?( ±[\d.]+)?")

_NO_NUMBER = frozenset(("", "-", "failed", "infinite", "none", "withheld"))
"""Texts in the place of a number."""


def cell_text(cell: object) -> str:
    """Return a cell as text: numbers with commas and four decimals."""
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:z,.4f}" if abs(cell) < 1000 else f"{cell:z,.1f}"
    return str(cell)


@dataclass(frozen=True)
class Table:
    """A table. The first cell of a row is its heading.

    Parameters
    ----------
    caption : str
    columns : sequence of str
        Headings. None for rows of a name and what it has.
    rows : sequence of sequence of (str, int, float, Verdict, Grade or Role)
    tones : sequence of str
        "" or "bad" for each row. Empty if no row stands out.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    tones: Sequence[str] = ()
    kind: str = field(default="table", init=False)

    @property
    def numbers(self) -> list[bool]:
        """Return of each column whether it is one of numbers, which stand to the right.

        Examples
        --------
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
    """A chart and the same figures as a table.

    Parameters
    ----------
    svg : Markup
    table : Table
    """

    svg: Markup
    table: Table
    kind: str = field(default="chart", init=False)


@dataclass(frozen=True)
class Text:
    """A paragraph.

    Parameters
    ----------
    text : str
    tone : str
        "" or "good", "mixed", "bad" or "strong": a result that stands out.
    """

    text: str
    tone: str = ""
    kind: str = field(default="text", init=False)


@dataclass(frozen=True)
class Code:
    """Text to be copied, such as a command.

    Parameters
    ----------
    text : str
    label : str
        What it is.
    """

    text: str
    label: str
    kind: str = field(default="code", init=False)


@dataclass(frozen=True)
class Tile:
    """One figure that is seen at once.

    Parameters
    ----------
    label : str
        What it is about.
    value : str
        The figure in one or a few words.
    text : str
        What it means, in a sentence.
    tone : str
        "", "good", "mixed" or "bad".
    """

    label: str
    value: str
    text: str
    tone: str = ""


@dataclass(frozen=True)
class Tiles:
    """Figures side by side.

    Parameters
    ----------
    tiles : sequence of Tile
    """

    tiles: Sequence[Tile]
    kind: str = field(default="tiles", init=False)


@dataclass(frozen=True)
class Item:
    """One entry of a list.

    Parameters
    ----------
    title : str
        What it is about, in a few words.
    text : str
    tone : str
        "", "mixed" or "bad".
    code : str
        Text to be copied, or none.
    """

    title: str
    text: str
    tone: str = ""
    code: str = ""


@dataclass(frozen=True)
class Items:
    """A list.

    Parameters
    ----------
    items : sequence of Item
    """

    items: Sequence[Item]
    kind: str = field(default="items", init=False)


_NARROW = 5
"""Columns of a table that half of a wide page has room for."""

Block = Table | Chart | Text | Code | Tiles | Items


@dataclass(frozen=True)
class Section:
    """A section of the report.

    Parameters
    ----------
    name : str
        Unique in the page: where links go.
    title : str
    blocks : sequence of Block
        Charts, and tables, that follow each other stand side by side where there is room.
    """

    name: str
    title: str
    blocks: Sequence[Block]

    @property
    def runs(self) -> list[tuple[str, list[Block]]]:
        """The blocks. Consecutive ones of one kind are grouped."""
        return [(kind, list(run)) for kind, run in groupby(self.blocks, lambda block: block.kind)]

    def narrow(self, index: int) -> bool:
        """Return whether a run is a single chart or narrow table, right of the text before it.

        Parameters
        ----------
        index : int
            Of the run.
        """
        if not 0 < index < len(self.runs) or self.runs[index - 1][0] not in ("text", "items"):
            return False
        (first, *others) = self.runs[index][1]
        narrow = isinstance(first, Table) and len(first.columns) <= _NARROW
        return not others and (narrow or isinstance(first, Chart))
