"""Run functions in tasks: the number of the task, and errors without values."""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import PurePath

import pyarrow as pa

from anonspark.errors import AnonsparkError

Batches = Iterator[pa.RecordBatch]
"""The Arrow batches of one task."""


def takes_dictionaries(function: Callable[[Batches], Batches]) -> bool:
    """Return whether a function says, by an attribute of this name, that texts may be coded."""
    return bool(getattr(function, "takes_dictionaries", False))


class _TaskState(threading.local):
    # A thread runs one task at a time.
    number = 0
    is_remote = True


_STATE = _TaskState()


def task_number() -> int:
    """Return the number of the task that runs in this thread, 0 or above. 0 outside of tasks.

    No two tasks of one table have the same. An attempt has that of the task that it repeats.
    """
    return _STATE.number


def is_remote() -> bool:
    """Return whether what the task of this thread makes goes to other processes or machines."""
    return _STATE.is_remote


def enter_task(number: int, *, is_remote: bool = True) -> None:
    """Set the task that begins in this thread, and where its results go. For engines."""
    _STATE.number, _STATE.is_remote = number, is_remote


class FailedTaskError(Exception):
    """A task failed. The message names the kind of error and the calls that led to it.

    Parameters
    ----------
    error : Exception
        Whose text is left out, for it often quotes the value that caused it.
    """

    def __init__(self, error: Exception | str) -> None:
        # A text is what comes back from another process.
        super().__init__(error if isinstance(error, str) else _without_text(error))


def run_guarded(function: Callable[[Batches], Batches], batches: Batches) -> Batches:
    """Apply a function to the batches of a task. Its errors lose their texts.

    What a failed task says goes to logs and to an engine's interfaces, where other people read it
    than those who may see the data.

    Raises
    ------
    AnonsparkError
        As it is: its text holds no value.
    FailedTaskError
        For every other error.
    """
    try:
        yield from function(batches)
    except (AnonsparkError, FailedTaskError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, its text may quote a record
        failed = FailedTaskError(error)
    else:
        return
    # Outside the handler, so that the traceback does not show the error that came first.
    raise failed


def _without_text(error: Exception) -> str:
    calls = "; ".join(
        f"{PurePath(frame.filename).name}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    )
    kind = type(error).__name__
    if isinstance(error, OSError) and error.errno is not None:
        # The system's own words for it, such as that a disk is full.
        kind += f" ({os.strerror(error.errno)})"
    return f"{kind} at {calls} (its text is left out: it may hold data)"
