"""Progress: a live line on a terminal, plain lines in a log, and the seconds of each stage."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as LiveProgress

_LOGGER = logging.getLogger("anonspark")

_SECONDS_BETWEEN_LINES = 30.0

# As the rounds name their stages.
_ROUND = re.compile(r"round (\d+) of \d+")


class _SparseLog:
    """Logs what a stage is at, not more often than every 30 seconds."""

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self._last = time.monotonic()

    def __call__(self, detail: str) -> None:
        if time.monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            _LOGGER.info("%s: %s", self._stage, detail)


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

    run_id: str | None = None
    """Name of the run, for whoever writes the log; None outside of runs."""

    current: str | None = None
    """The stage at hand, or the one that failed; None between stages."""

    _told: Callable[[str], None] | None = field(default=None, repr=False)
    _followers: list[Callable[[str], None]] = field(default_factory=list, repr=False)

    @property
    def round(self) -> int | None:
        """Number of the round at hand, None outside of rounds."""
        found = _ROUND.fullmatch(self.current or "")
        return int(found[1]) if found else None

    @contextmanager
    def followed_by(self, follower: Callable[[str], None]) -> Iterator[None]:
        """Call somebody with what is going on, whenever it changes, until the block ends.

        Parameters
        ----------
        follower : callable
            Takes the stage, and behind a comma what it is at; called in the thread that works.
        """
        self._followers.append(follower)
        try:
            yield
        finally:
            self._followers.remove(follower)

    def tell(self, detail: str) -> None:
        """Say what the stage at hand is at: live on a terminal, every 30 seconds in a log."""
        if self._told is not None:
            self._told(detail)
        self._follow(f"{self.current}, {detail}")

    def _follow(self, moment: str) -> None:
        for follower in self._followers:
            follower(moment)

    def skip(self, name: str, rows: int) -> None:
        """Say that a stage was finished before, by a process that was killed since."""
        self._say(f"{name}: {rows:,} rows: finished before")

    def _say(self, done: str) -> None:
        if self.console is not None and self.console.is_terminal:
            self.console.print(f"[green]✓[/] {done}", highlight=False)
        else:
            _LOGGER.info("%s", done)

    def _live(self, console: Console) -> LiveProgress:
        return LiveProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Run a stage without a word in the log: its seconds count, and followers hear of it."""
        start = time.monotonic()
        self.current = name
        self._follow(name)
        try:
            yield
            self.current = None
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start

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
        terminal = self.console if self.console is not None and self.console.is_terminal else None
        start = time.monotonic()
        with self.timed(name):
            try:
                if terminal is not None:
                    with self._live(terminal) as live:
                        task = live.add_task(told, total=None)
                        self._told = lambda detail: live.update(
                            task, description=f"{told}: {detail}"
                        )
                        yield
                else:
                    _LOGGER.info("%s ...", told)
                    self._told = _SparseLog(told)
                    yield
            finally:
                self._told = None
            done = f"{told}: done in {time.monotonic() - start:.1f} s"
            self._say(done)


@dataclass
class InnerProgress(Progress):
    """Progress of a run that is one of several: its stages are what the outer stage is at."""

    outer: Progress = field(default_factory=Progress)

    def tell(self, detail: str) -> None:
        """Say what the run is at."""
        self.outer.tell(detail)
        super().tell(detail)

    @contextmanager
    def stage(self, name: str, rows: int | None = None) -> Iterator[None]:  # noqa: ARG002
        """Run a stage of the run; parameters as :meth:`Progress.stage`."""
        self.outer.tell(name)
        with self.timed(name):
            yield
