"""Errors of anonspark, each with the exit code of the command line that reports it.

A user's mistake and a bug of ours never look alike: everything that a user can mend is an
:class:`AnonsparkError` with a message that names the key, the column or the path at fault, says
what was found, what was expected and what to do, and never contains a value of the data nor
credentials. Every other exception that reaches the command line is a bug.

>>> error = DataError("age: found no such column. Correct the name", "input.path: found no file")
>>> error.exit_code, len(error.problems)
(3, 2)
>>> isinstance(error, AnonsparkError)
True
>>> exit_code_of(GuaranteeError("k: the smallest class has 4 records. Nothing was published"))
4
"""

from __future__ import annotations

import errno
import os
import re
import traceback
from pathlib import Path

from anonspark.foreign_text import visible, visible_lines
from anonspark.redaction import redact

__all__ = [
    "AnonsparkError",
    "ConfigurationError",
    "DataError",
    "EnvironmentProblem",
    "GuaranteeError",
    "PublishingError",
    "SparkNeededError",
    "TaskFailure",
    "UnknownKeywordError",
    "exit_code_of",
    "limit_reached",
    "raise_if_limit_reached",
    "refusal_of",
]


_PACKAGE = f"{Path(__file__).parent}{os.sep}"
_ARROW = ("pyarrow.lib",)
# Numbers of errors of disks, connections and permissions, which no bug of ours raises.
_REFUSALS = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO),
    *(errno.ENOTCONN, errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EEXIST),
)
_OF_LIMITS = re.compile(
    r"can't start new thread|Failed to launch worker thread|malloc of size \d+ failed"
    r"|Cannot allocate memory|bad_alloc"
)


class AnonsparkError(Exception):
    """Base of all errors that a user can mend.

    Parameters
    ----------
    *messages : str
        The texts of the error. Credentials in them are redacted, and invisible characters escaped.

    Attributes
    ----------
    exit_code : int
        Exit code of the process if this error ends the command line.

    Examples
    --------
    >>> AnonsparkError("input.path: s3a://KEY:SECRET@bucket/people is no directory").args[0]
    'input.path: s3a://(redacted)@bucket/people is no directory'
    """

    exit_code = 1

    def __init__(self, *messages: str) -> None:
        super().__init__(*(visible_lines(redact(message)) for message in messages))

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows: the user's line and the message, no frame of ours."""
        frames = traceback.extract_tb(self.__traceback__)
        ours = [frame.filename.startswith(_PACKAGE) for frame in frames]
        before = ours.index(True) if any(ours) else len(frames)
        asked = "".join(traceback.format_list(frames[max(before - 1, 0) : before])).splitlines()
        return [*asked, f"{type(self).__name__}: " + "\n".join(map(str, self.args))]


class _ProblemsError(AnonsparkError):
    """Base of errors that list several problems, one message of a line each."""

    def __init__(self, *problems: str) -> None:
        self.problems = tuple(visible(redact(problem)) for problem in problems)
        super().__init__("\n".join(self.problems))


class ConfigurationError(_ProblemsError):
    """The command line or the configuration is wrong.

    Parameters
    ----------
    *problems : str
        All problems, one message each.

    Examples
    --------
    >>> ConfigurationError("privacy.k: Field required", "input.path: Field required").problems
    ('privacy.k: Field required', 'input.path: Field required')
    """

    exit_code = 2


class UnknownKeywordError(ConfigurationError, TypeError):
    """A function was called with a keyword that it does not have."""


class SparkNeededError(ConfigurationError):
    """A file lies where only Spark's Hadoop reaches it, and there is no Spark yet."""


class DataError(_ProblemsError):
    """The input is unreadable or does not fit the configuration. Each problem is a message."""

    exit_code = 3


class GuaranteeError(AnonsparkError):
    """A privacy criterion does not hold for a release. Nothing was published."""

    exit_code = 4


class PublishingError(AnonsparkError):
    """The release could not be written. What was at the output path before is untouched."""

    exit_code = 5


class EnvironmentProblem(AnonsparkError):  # noqa: N818 - EnvironmentError is Python's own
    """Java, Python, Spark or the cluster is missing or does not fit."""

    exit_code = 6


class TaskFailure(AnonsparkError):  # noqa: N818 - named like Spark's own event
    """A task failed as often as Spark runs it, by a fault of the cluster or a bug of ours."""

    exit_code = 1


def limit_reached(error: BaseException | None) -> EnvironmentProblem | None:
    """Return an error if the system refused threads, memory or a file, or None.

    All causes of the error are searched, because libraries wrap what the system raises.

    >>> str(limit_reached(MemoryError()))[:47]
    'the system gave this process no more threads or'
    >>> limit_reached(KeyError("age")) is None
    True
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in _REFUSALS and error.filename:
            return EnvironmentProblem(refusal_of(error))
        refused = isinstance(error, RuntimeError | OSError) or type(error).__module__ in _ARROW
        if isinstance(error, MemoryError) or (refused and _OF_LIMITS.search(str(error))):
            return EnvironmentProblem(
                "the system gave this process no more threads or memory. Raise its limits "
                "(ulimit -v for memory, ulimit -u for threads, or those of its container), or give "
                "the machine less to do"
            )
        error = error.__cause__ or error.__context__
    return None


def raise_if_limit_reached(error: BaseException) -> None:
    """Raise what :func:`limit_reached` returns, or nothing if that is None."""
    problem = limit_reached(error)
    if problem is not None:
        raise problem from error


def refusal_of(error: OSError) -> str:
    """Write the message for a file operation that the system refused.

    >>> refusal_of(PermissionError(13, "Permission denied", "out/people"))[:64]
    'the system refused to read or write out/people (Permission denie'
    """
    at = f" to read or write {error.filename}" if error.filename else " a file operation"
    return (
        f"the system refused{at} ({error.strerror or error}). Check disk, connection and "
        "permissions, and run the command again"
    )


LOWER_TASK_ROWS = "lower execution.task_rows (no help after the warning large_block)"
"""Remedy for tasks that are too large, unless they hold a block that cannot be cut."""


def exit_code_of(error: BaseException | None) -> int:
    """Return the exit code of a process that ends with an error, or with None.

    >>> [exit_code_of(error) for error in (None, KeyboardInterrupt(), ValueError())]
    [0, 130, 1]
    """
    if error is None:
        return 0
    if isinstance(error, KeyboardInterrupt):
        return 130
    code: int = getattr(error, "exit_code", AnonsparkError.exit_code)
    return code
