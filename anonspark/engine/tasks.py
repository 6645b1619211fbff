"""Run functions in tasks, which know the number of their task, without data in errors."""

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
    """Return whether a function has the true attribute ``takes_dictionaries``: texts may be coded.

    >>> takes_dictionaries(lambda batches: batches)
    False
    """
    return bool(getattr(function, "takes_dictionaries", False))


class _TaskState(threading.local):
    # A thread runs one task at a time.
    number = 0
    is_remote = True


_STATE = _TaskState()


def task_number() -> int:
    """Return the number of the task that runs in this thread, from 0, and 0 outside of tasks.

    No two tasks of one table have the same number. An attempt has that of the task that it repeats.
    """
    return _STATE.number


def is_remote() -> bool:
    """Return whether the results of this thread's task go to other processes or machines."""
    return _STATE.is_remote


def enter_task(number: int, *, is_remote: bool = True) -> None:
    """Set the number of the task that begins in this thread. Engines call it.

    ``is_remote`` says whether another process reads its results.

    >>> enter_task(3, is_remote=False)
    >>> task_number(), is_remote()
    (3, False)
    >>> enter_task(0)
    """
    _STATE.number, _STATE.is_remote = number, is_remote


class FailedTaskError(Exception):
    """A task failed. The message names the kind of error and the calls that led to it.

    Parameters
    ----------
    error : Exception or str
        The error, whose text is left out: it may quote a record. Or the message of this class, as
        another process sends it.

    Examples
    --------
    >>> print(FailedTaskError(ValueError("39")))
    ValueError at  (its text is left out: it may hold data)
    """

    def __init__(self, error: Exception | str) -> None:
        super().__init__(error if isinstance(error, str) else _without_text(error))


def run_guarded(function: Callable[[Batches], Batches], batches: Batches) -> Batches:
    """Apply a function to the batches of a task, and take the text off its errors.

    The text of a failed task is shown in logs and in an engine's interfaces, to people who may not
    see the data. Raises an AnonsparkError unchanged, because its text holds no value, and
    FailedTaskError in place of every other error.
    """
    try:
        yield from function(batches)
    except (AnonsparkError, FailedTaskError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, its text may quote a record
        failed = FailedTaskError(error)
    else:
        return
    # Raised outside of the handler: else the traceback would show the first error, with its text.
    raise failed


def _without_text(error: Exception) -> str:
    """Describe an error by its kind and its calls."""
    calls = "; ".join(
        f"{PurePath(frame.filename).name}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    )
    kind = type(error).__name__
    if isinstance(error, OSError) and error.errno is not None:
        # The system's words quote no record: a disk is full, for instance.
        kind += f" ({os.strerror(error.errno)})"
    return f"{kind} at {calls} (its text is left out: it may hold data)"
