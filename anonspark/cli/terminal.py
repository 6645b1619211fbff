"""The terminal, which shows no credentials."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console, ConsoleDimensions
from rich.table import Table

from anonspark.redaction import redact

# Wider than any table; rich makes no line of that length of its own accord.
_ENDLESS = 10_000


class Terminal(Console):
    """A console of rich that redacts all texts, also those in tables.

    What is no terminal has no width: in a file or a pipe no line is broken, unless ``COLUMNS`` says
    so.
    """

    def __init__(self, **options: Any) -> None:
        # A command that is called inside of a notebook prints as it does elsewhere.
        super().__init__(force_jupyter=False, **options)

    @property
    def size(self) -> ConsoleDimensions:
        """Columns and lines."""
        if self.is_terminal or "COLUMNS" in os.environ:
            return super().size
        return ConsoleDimensions(_ENDLESS, super().size.height)

    @size.setter
    def size(self, wanted: tuple[int, int]) -> None:
        self._width, self._height = wanted

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does; parameters are those of :meth:`rich.console.Console.print`."""
        super().print(*map(_redacted, objects), **options)


def _redacted(shown: Any) -> Any:
    if isinstance(shown, str):
        return redact(shown)
    if isinstance(shown, Table):
        shown.title = _redacted(shown.title)
        # Before cells are folded.
        for column in shown.columns:
            column._cells = [_redacted(cell) for cell in column._cells]
    return shown


OUT = Terminal(soft_wrap=True)
"""Standard output, for results."""

ERR = Terminal(stderr=True, soft_wrap=True)
"""Standard error, for messages and progress."""
