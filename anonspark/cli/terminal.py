"""The terminal, which shows no credentials."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from anonspark.redaction import redact


class Terminal(Console):
    """A console of rich that redacts all texts, also those in tables."""

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
