"""Progress: a live line on a terminal, plain lines in a log, and the seconds of each stage."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anonspark.foreign_text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as LiveProgress

_LOGGER = logging.getLogger("anonspark")

_SECONDS_BETWEEN_LINES = 30.0
_SECONDS_BEFORE_A_LINE = 2.0

# The names of stages in `pipeline/rounds.py`.
_ROUND = re.compile(r"round (\d+) of \d+")


_CURRENT: ContextVar[Progress | None] = ContextVar("progress", default=None)


def report_step(detail: str) -> None:
    """Report the current step, a few words without a value of the data, to the stage around it.

    For work that is handed no progress, however deep it lies below the stage. Outside of stages
    nothing happens.
    """
    progress = _CURRENT.get()
    if progress is not None:
        progress.report_step(detail)


class Heartbeat:
    """Logs a stage after two seconds, and its current step every 30, from a thread of its own.

    ``wait`` waits for some seconds and returns whether the stage has ended, so that tests need no
    clock. None waits for :meth:`stop`.
    """

    def __init__(self, stage: str, wait: Callable[[float], bool] | None = None) -> None:
        self._stage = stage
        self._detail = ""
        self._ended = threading.Event()
        self._wait = wait or self._ended.wait
        self._thread = threading.Thread(target=self._beat, name="anonspark-progress", daemon=True)

    def start(self) -> None:
        """Begin to log."""
        self._thread.start()

    def report_step(self, detail: str) -> None:
        """Set the current step of the stage. The next line shows it."""
        self._detail = f": {detail}"

    def stop(self) -> None:
        """Log no more."""
        self._ended.set()
        self._thread.join()

    def _beat(self) -> None:
        if self._wait(_SECONDS_BEFORE_A_LINE):
            return
        _LOGGER.info("%s ...", self._stage)
        seconds, pause = _SECONDS_BETWEEN_LINES, _SECONDS_BETWEEN_LINES - _SECONDS_BEFORE_A_LINE
        while not self._wait(pause):
            _LOGGER.info("%s%s, %.0f s so far", self._stage, self._detail, seconds)
            seconds, pause = seconds + _SECONDS_BETWEEN_LINES, _SECONDS_BETWEEN_LINES


@dataclass
class Progress:
    """Reports what a run is doing, and records how long each stage took.

    A terminal gets a live line with the elapsed seconds. Without a console, or in a log, each stage
    gets a plain line when it ends, and a long one also after 2 seconds and every 30.

    >>> progress = Progress()
    >>> with progress.stage("stage records", 1000):
    ...     progress.current
    'stage records'
    >>> list(progress.seconds), progress.current
    (['stage records'], None)
    """

    console: Console | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds of each stage, in order."""

    run_id: str | None = None
    """Name of the run for the log, or None outside of runs."""

    current: str | None = None
    """The current stage, the one that failed, or None between stages."""

    _notify: Callable[[str], None] | None = field(default=None, repr=False)
    _followers: list[Callable[[str], None]] = field(default_factory=list, repr=False)
    _silent: bool = field(default=False, repr=False)
    _beginning: ExitStack = field(default_factory=ExitStack, repr=False)

    @property
    def round(self) -> int | None:
        """Number of the current round, or None outside of rounds."""
        match = _ROUND.fullmatch(self.current or "")
        return int(match[1]) if match else None

    @contextmanager
    def followed_by(self, follower: Callable[[str], None]) -> Iterator[None]:
        """Call a function in this thread with each step of the block, as "stage, detail"."""
        self._followers.append(follower)
        try:
            yield
        finally:
            self._followers.remove(follower)

    def report_step(self, detail: str) -> None:
        """Report the current step of the stage: live on a terminal, in a log with the next line."""
        if self._notify is not None:
            self._notify(detail)
        self._follow(f"{self.current}, {detail}")

    def _follow(self, moment: str) -> None:
        for follower in self._followers:
            follower(moment)

    def skip(self, name: str, rows: int) -> None:
        """Report that a stage was finished by an earlier process, which was killed."""
        self._say(f"{name}: {rows:,} rows: finished before")

    def _say(self, done: str) -> None:
        if self.console is not None and self.console.is_terminal:
            from rich.text import Text

            self.console.print(Text("✓", "green"), Text(visible(done)))
        else:
            _LOGGER.info("%s", done)

    def _live(self, console: Console) -> LiveProgress:
        # Late: in a log, and of a program, nothing of it is used.
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as LiveProgress

        return LiveProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Run a stage without a line in the log: its seconds count, and followers hear of it."""
        start = time.monotonic()
        outer = _CURRENT.set(self)
        self.current = name
        self._follow(name)
        try:
            yield
            self.current = None
        finally:
            _CURRENT.reset(outer)
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start

    @contextmanager
    def stage(self, name: str, rows: int | None = None) -> Iterator[None]:
        """Run a stage, whose name is a few words, over so many records if that is known."""
        self.begun()
        title = name if rows is None else f"{name}: {rows:,} rows"
        with self.timed(name), self._shown(title):
            yield

    def begin(self, name: str) -> None:
        """Show what is done until the first stage begins. Its seconds do not count."""
        self.begun()
        self.current = name
        self._beginning.enter_context(self._shown(name))

    def begun(self, *, failed: bool = False) -> None:
        """End what :meth:`begin` shows, in silence if it failed."""
        self._silent = failed
        if not failed:
            self.current = None
        self._beginning.close()

    @contextmanager
    def _shown(self, title: str) -> Iterator[None]:
        """Show a title as long as the block runs: live on a terminal, with a heartbeat in a log."""
        start = time.monotonic()
        terminal = self.console if self.console is not None and self.console.is_terminal else None
        try:
            if terminal is not None:
                with self._live(terminal) as live:
                    task = live.add_task(visible(title), total=None)
                    self._notify = lambda detail: live.update(
                        task, description=visible(f"{title}: {detail}")
                    )
                    yield
            else:
                with self._heartbeat(title):
                    yield
        finally:
            self._notify = None
        if not self._silent:
            self._say(f"{title}: done in {time.monotonic() - start:.1f} s")

    @contextmanager
    def _heartbeat(self, title: str) -> Iterator[None]:
        if not _LOGGER.isEnabledFor(logging.INFO):
            yield
            return
        beats = Heartbeat(title)
        self._notify = beats.report_step
        beats.start()
        try:
            yield
        finally:
            beats.stop()


@dataclass
class InnerProgress(Progress):
    """Progress of a run that is one of several: its stages are the steps of the outer stage."""

    outer: Progress = field(default_factory=Progress)

    def report_step(self, detail: str) -> None:
        """Report the current step of the run."""
        self.outer.report_step(detail)
        super().report_step(detail)

    @contextmanager
    def stage(self, name: str, rows: int | None = None) -> Iterator[None]:  # noqa: ARG002
        """Run a stage of the run, which the outer stage shows as its current step."""
        self.outer.report_step(name)
        with self.timed(name):
            yield
