"""What sections of the report are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from markupsafe import Markup


@dataclass(frozen=True)
class Verdict:
    """Whether something holds; told by a word and a sign, not by colour alone.

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
class Table:
    """A table; the first cell of a row is its heading.

    Parameters
    ----------
    caption : str
    columns : sequence of str
        Headings.
    rows : sequence of sequence of str or Verdict
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Verdict]]
    kind: str = field(default="table", init=False)


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
        "" or "good" or "bad": a result that stands out.
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


Block = Table | Chart | Text | Code


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
        """The blocks; those of one kind that follow each other together."""
        return [(kind, list(run)) for kind, run in groupby(self.blocks, lambda block: block.kind)]
