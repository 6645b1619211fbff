"""The log of a command on standard error: plain lines for people, or JSON for machines."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, get_args

from rich.console import Console

from anonspark.errors import ConfigurationError, DataError
from anonspark.foreign_text import json_text, visible, visible_lines
from anonspark.progress import Progress
from anonspark.redaction import redact, redact_values

if TYPE_CHECKING:
    from anonspark.config.yaml_reading import Places

LogFormat = Literal["plain", "json"]

LOG_FORMATS: tuple[str, ...] = get_args(LogFormat)

_LOGGER = logging.getLogger("anonspark")


@dataclass
class CommandLog:
    """The messages of one command, on the console of standard error.

    ``debug`` shows stack traces, which may contain values of the data. ``ends_process`` says that
    the process ends with the command.
    """

    console: Console
    format: LogFormat = "plain"
    debug: bool = False
    ends_process: bool = False

    progress: Progress = field(default_factory=Progress)
    """Shows the command's progress."""

    places: Places | None = None
    """Of the configuration that the command has read."""

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Log during the block. JSON includes messages of other libraries."""
        before = _LOGGER.handlers, _LOGGER.level, logging.root.manager.disable
        try:
            with self._json() if self.format == "json" else nullcontext():
                yield
        finally:
            _LOGGER.handlers = before[0]
            _LOGGER.setLevel(before[1])
            logging.disable(before[2])

    @contextmanager
    def _json(self) -> Iterator[None]:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_JsonFormatter(self))
        logging.getLogger().addHandler(handler)
        logging.captureWarnings(capture=True)
        _LOGGER.setLevel(logging.INFO)
        try:
            yield
        finally:
            logging.captureWarnings(capture=False)
            logging.getLogger().removeHandler(handler)

    def follow(self, *, quiet: bool, shows_progress: bool, run_id: str | None = None) -> Progress:
        """Return the progress of the command, which the log then follows.

        ``quiet`` leaves errors only. ``run_id`` is the name of the run if it is known already.
        """
        live = self.format == "plain" and self.console.is_terminal
        self.progress = Progress(self.console if live and shows_progress else None, run_id=run_id)
        if quiet:
            logging.disable(logging.WARNING)
        if not live:
            _LOGGER.setLevel(logging.INFO if shows_progress else logging.WARNING)
        if self.format == "plain" and not live:
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(_PlainFormatter(self))
            _LOGGER.handlers = [handler]
        return self.progress

    def message_of(self, error: BaseException) -> str:
        """Write an error, with the positions of the configuration's keys.

        Errors of loading have the positions already.
        """
        if self.places is None or not isinstance(error, ConfigurationError | DataError):
            return str(error)
        return "\n".join(map(self.places.placed, error.problems))

    def fail(self, code: int, message: str, *, debug: bool) -> int:
        """Report why the command ends, one line a problem, and return its exit code.

        With ``debug`` the stack trace of the current exception is shown, too.
        """
        if self.format == "json":
            trace = debug and sys.exc_info()[0] is not None
            extra = {"exit_code": code, "problems": message}
            _LOGGER.error("%s", message, extra=extra, exc_info=trace)
            return code
        if debug:
            sys.stderr.write(visible_lines(redact(traceback.format_exc())))
        for line in message.split("\n"):
            self.console.print("error: ", style="bold red", end="")
            self.console.print(line, markup=False, highlight=False)
        return code


LOG: ContextVar[CommandLog] = ContextVar("log")
"""The log of the command that is running."""


class _LogFormatter(logging.Formatter):
    def __init__(self, log: CommandLog) -> None:
        super().__init__()
        self._log = log


class _PlainFormatter(_LogFormatter):
    """Writes a line with time, logger and name of the run."""

    def format(self, record: logging.LogRecord) -> str:
        run_id = self._log.progress.run_id
        who = record.name if run_id is None else f"{record.name} {run_id}"
        return visible(redact(f"{self.formatTime(record)} {who}: {record.getMessage()}"))


class _JsonFormatter(_LogFormatter):
    """Writes one JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        progress = self._log.progress
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry: dict[str, object] = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            # Each of several problems is a line.
            "message": getattr(record, "problems", record.getMessage()),
            "run_id": progress.run_id,
            "stage": progress.current,
        }
        if progress.round is not None:
            entry["round"] = progress.round
        if hasattr(record, "exit_code"):
            entry["exit_code"] = record.exit_code
        if self._log.debug and record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        # Other libraries log here, too.
        return json_text(redact_values(entry))
