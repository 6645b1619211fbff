"""Progress: a live line on a terminal, plain lines in a log, and the seconds of each stage."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as LiveProgress

__all__ = ["Progress"]

_LOGGER = logging.getLogger("anonspark")


@dataclass
class Progress:
    """Tells what a run is doing, and remembers how long it took.

    Parameters
    ----------
    console : Console or None
        A terminal gets a live line with the elapsed seconds; None or a log gets one plain line
        when a stage begins and one when it ends.
    """

    console: Console | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds of each stage, in order."""

    def _live(self, console: Console) -> LiveProgress:
        return LiveProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )

    @contextmanager
    def stage(self, name: str, rows: int | None = None) -> Iterator[None]:
        """Run a stage.

        Parameters
        ----------
        name : str
            What is done, in a few words.
        rows : int or None
            Records that it works on.
        """
        told = name if rows is None else f"{name}: {rows:,} rows"
        start = time.monotonic()
        try:
            if self.console is not None and self.console.is_terminal:
                with self._live(self.console) as live:
                    live.add_task(told, total=None)
                    yield
            else:
                _LOGGER.info("%s ...", told)
                yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start
        done = f"{told}: done in {time.monotonic() - start:.1f} s"
        if self.console is not None and self.console.is_terminal:
            self.console.print(f"[green]✓[/] {done}", highlight=False)
        else:
            _LOGGER.info("%s", done)
