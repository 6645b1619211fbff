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
    """Return the progress that work reports to.

    Parameters
    ----------
    shows : bool
        False keeps it to itself.

    Returns
    -------
    Progress
        A live line in a notebook, the display of the command line on a terminal, otherwise lines of
        the logger ``anonspark``, of the level INFO.
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
    """Return what a notebook shows things with."""
    return importlib.import_module("IPython.display")


@dataclass
class NotebookProgress(Progress):
    """One line below the cell, which says what is done and since when, and goes at the end."""

    _line: Any = field(default=None, repr=False)
    _text: str = field(default="", repr=False)
    _since: float = field(default=0.0, repr=False)

    @contextmanager
    def _shown(self, title: str) -> Iterator[None]:
        self._text = title
        self._since = time.monotonic()
        self._notify = self._tell_of(title)
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

    def _tell_of(self, title: str) -> Callable[[str], None]:
        def report(detail: str) -> None:
            self._text = f"{title}: {detail}"

        return report

    def _say(self, done: str) -> None:
        """Say nothing: what was done is not left below the cell."""

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
