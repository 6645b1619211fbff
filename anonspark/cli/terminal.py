"""The terminal, which shows no credentials and acts on no text of others."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import typer
from rich.console import Console, ConsoleDimensions
from rich.text import Text

from anonspark.foreign_text import json_text, visible, visible_lines
from anonspark.redaction import redact, redact_values


def print_json(value: object) -> None:
    """Print a value as JSON, without credentials."""

    def plain(other: object) -> object:
        if isinstance(other, Decimal):
            return int(other)
        if isinstance(other, date):
            return other.isoformat()
        return str(other)

    document = json.loads(json.dumps(value, default=plain))
    typer.echo(json_text(redact_values(document), indent=2))


def print_csv(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Print rows as CSV with a header. None is empty, and truth values are as in JSON."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        cells = (row[name] for name in columns)
        writer.writerow([str(one).lower() if isinstance(one, bool) else one for one in cells])
    print_text(text.getvalue())


def print_text(text: str) -> None:
    """Print lines that a program gets as they are."""
    typer.echo(visible_lines(text) if sys.stdout.isatty() else text, nl=False)


# Wider than any table; rich makes no line of that length of its own accord.
_ENDLESS = 10_000


class Terminal(Console):
    """A console of rich that redacts all texts, also those in tables, and shows them as they are.

    A text is one line. It has neither markup nor emoji of rich: those are for :class:`Text`.

    What is no terminal has no width: in a file or a pipe no line is broken, unless ``COLUMNS`` says
    so.
    """

    def __init__(self, **options: Any) -> None:
        # A command that is called inside of a notebook prints as it does elsewhere.
        super().__init__(force_jupyter=False, markup=False, emoji=False, highlight=False, **options)

    @property
    def size(self) -> ConsoleDimensions:
        """Columns and lines."""
        if self.is_terminal or "COLUMNS" in os.environ:
            return super().size
        return ConsoleDimensions(_ENDLESS, super().size.height)

    @size.setter
    def size(self, wanted: tuple[int, int]) -> None:
        self._width, self._height = wanted

    def render_str(self, text: str, **options: Any) -> Text:
        """Return what is shown of a text: rich asks here for all that it prints, also in tables."""
        return super().render_str(visible(redact(text)), **options)


OUT = Terminal(soft_wrap=True)
"""Standard output, for results."""

ERR = Terminal(stderr=True, soft_wrap=True)
"""Standard error, for messages and progress."""
