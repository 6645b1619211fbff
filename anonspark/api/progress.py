"""Show progress: a live line in a notebook or on a terminal, nothing elsewhere."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from markupsafe import escape
from rich.console import Console

from anonspark.progress import Progress

_SECONDS_BETWEEN_UPDATES = 0.5


def progress_for(shows: bool) -> Progress:
    """Return a live line in a notebook, or the display of the command line on a terminal.

    Elsewhere, or if it is not wanted, the logger ``anonspark`` gets lines of the level INFO.
    """
    if shows and in_notebook():
        return NotebookProgress()
    if shows and sys.stderr.isatty():
        return Progress(Console(stderr=True, soft_wrap=True))
    return Progress()


def in_notebook() -> bool:
    """Return whether this program is a notebook, whose cells show HTML."""
    shell = sys.modules.get("IPython")
    if shell is None:
        return False
    running = shell.get_ipython()
    return running is not None and getattr(running, "kernel", None) is not None


def ipython_display() -> Any:
    """Return the module with which a notebook displays objects."""
    return importlib.import_module("IPython.display")


@dataclass
class NotebookProgress(Progress):
    """Shows the current step and its seconds below the cell, and removes the line at the end."""

    _line: Any = field(default=None, repr=False)
    _text: str = field(default="", repr=False)
    _since: float = field(default=0.0, repr=False)

    @contextmanager
    def _shown(self, title: str) -> Iterator[None]:
        self._text = title
        self._since = time.monotonic()
        self._notify = self._reporter(title)
        ended = threading.Event()
        self._show()
        showing = threading.Thread(target=self._keep_showing, args=(ended,), daemon=True)
        showing.start()
        try:
            yield
        finally:
            self._notify = None
            ended.set()
            showing.join()
            self._write("")

    def _reporter(self, title: str) -> Callable[[str], None]:
        def report(detail: str) -> None:
            self._text = f"{title}: {detail}"

        return report

    def _say(self, done: str) -> None:
        """Leave nothing below the cell about finished steps."""

    def _keep_showing(self, ended: threading.Event) -> None:
        while not ended.wait(_SECONDS_BETWEEN_UPDATES):
            self._show()

    def _show(self) -> None:
        self._write(f"{self._text} ... {time.monotonic() - self._since:.0f} s")

    def _write(self, text: str) -> None:
        shown = ipython_display().HTML(f"<span>{escape(text)}</span>")
        if self._line is None:
            self._line = ipython_display().display(shown, display_id=True)
        else:
            self._line.update(shown)
