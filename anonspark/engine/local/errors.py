"""Translate errors of this process into :mod:`anonspark.errors`."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from anonspark.engine.files import FilesError
from anonspark.engine.reading_errors import unreadable, vanished
from anonspark.engine.tasks import FailedTaskError
from anonspark.errors import (
    LOWER_TASK_ROWS,
    EnvironmentProblem,
    PublishingError,
    TaskFailure,
    raise_if_limit_reached,
    refusal_of,
)
from anonspark.progress import Progress

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_NO_SPACE_TEXTS = ("No space left on device", "Disk quota exceeded")

FAILURES = (FailedTaskError, pa.ArrowException)
"""Errors of tasks and Arrow. Their texts may quote records."""


def _is_full(error: BaseException) -> bool:
    number = getattr(error, "errno", None)
    return number in _NO_SPACE or any(text in str(error) for text in _NO_SPACE_TEXTS)


@contextmanager
def writing_output() -> Iterator[None]:
    """Translate failures of writing.

    Raises
    ------
    PublishingError
        If a disk is full, or the system refuses otherwise.
    """
    try:
        yield
    except (OSError, *FAILURES) as error:
        if _is_full(error):
            raise PublishingError(
                "output.path: no space left on the device of the output or of the folder for "
                "temporary files (TMPDIR). Nothing was published. Free space there (a run needs "
                "about three times the size of its input) and run again"
            ) from error
        if isinstance(error, FilesError) or (isinstance(error, OSError) and error.strerror):
            raise PublishingError(
                f"output.path: nothing was published, because {refusal_of(error)}"
            ) from error
        raise


@contextmanager
def reading_input(paths: tuple[str, ...], key: str) -> Iterator[None]:
    """Translate failures of reading.

    Parameters
    ----------
    paths : tuple of str
        What is read.
    key : str
        What named them, with a colon.

    Raises
    ------
    DataError
        If files vanished, are damaged, or cannot be reached.
    EnvironmentProblem
        If the system refuses otherwise.
    PublishingError
        If the disk of the staging directory is full.
    """
    where = key + ", ".join(paths)
    with writing_output():
        try:
            yield
        except FileNotFoundError as error:
            raise vanished(where) from error
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, PermissionError) as error:
            raise unreadable(where) from error
        except OSError as error:
            if _is_full(error) or not error.strerror:
                raise
            raise EnvironmentProblem(refusal_of(error)) from error


@contextmanager
def running_tasks(progress: Progress) -> Iterator[None]:
    """Translate failures of tasks.

    Parameters
    ----------
    progress : Progress
        Knows the stage that was at work.

    Raises
    ------
    EnvironmentProblem
        If memory ran out.
    TaskFailure
        If a task failed for another reason.
    """
    try:
        yield
    except (MemoryError, *FAILURES) as error:
        stage = progress.current or "between two stages"
        if isinstance(error, MemoryError) or "MemoryError" in str(error):
            raise EnvironmentProblem(
                f"{stage}: this process ran out of memory: {LOWER_TASK_ROWS}, or let a cluster "
                "do it (execution.engine: spark). Nothing was published"
            ) from error
        if _is_full(error):
            raise
        raise_if_limit_reached(error)
        kind = str(error).partition(" ")[0] if isinstance(error, FailedTaskError) else None
        raise TaskFailure(
            f"{stage}: a task failed with {kind or type(error).__name__}. Nothing was published. "
            "This is a bug of anonspark: please report it. --debug shows the details, which may "
            "contain data"
        ) from error
