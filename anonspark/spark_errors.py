"""What Spark's exceptions mean to a user, without the values that their texts may hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from anonspark.errors import DataError, EnvironmentProblem, PublishingError, TaskFailure

if TYPE_CHECKING:
    from anonspark.progress import Progress

__all__ = ["condition_of", "reading_input", "running_tasks", "writing_output"]

_NO_SPACE = re.compile(
    r"No space left on device|Disk quota exceeded|disk is full|quota of .* is exceeded",
    re.IGNORECASE,
)

_VANISHED = re.compile(r"FileNotFoundException|FILE_NOT_EXIST|PATH_NOT_FOUND|NoSuchFileException")

_UNREADABLE = re.compile(
    r"MALFORMED_RECORD|UNABLE_TO_INFER_SCHEMA|"
    # The second is what the first says before Spark 4.
    r"FAILED_READ_FILE|Encountered error while reading file|"
    r"CANNOT_READ|is not a Parquet file|Malformed|"
    r"AccessControlException|AccessDeniedException|Permission denied|BadRecordException|"
    r"EOFException|CORRUPT|ParquetDecodingException|OrcException|FileFormatException"
)

# What ran out of memory, and which setting is too small.
_MEMORY = (
    (
        re.compile(r"java\.lang\.OutOfMemoryError|GC overhead limit exceeded"),
        "Java ran out of memory: raise spark.executor.memory, or spark.driver.memory where Spark "
        "runs embedded or the driver failed",
    ),
    (
        re.compile(
            r"exceeding (?:physical |virtual )?memory limits|OOMKilled|"
            r"exit code (?:is )?137|exited with code 137|Exit status: 137"
        ),
        "an executor was killed for its memory: raise spark.executor.memoryOverhead, which Python "
        "workers live in, or lower execution.task_rows",
    ),
    (
        re.compile(r"MemoryError|Unable to allocate|malloc of size \d+ failed|\bbad_alloc\b"),
        "a Python worker ran out of memory: lower execution.task_rows, or raise "
        "spark.executor.pyspark.memory where it is set, else spark.executor.memoryOverhead",
    ),
    (
        re.compile(r"Python worker exited unexpectedly|Python worker process terminated"),
        "a Python worker was killed, as systems do when memory runs out: lower "
        "execution.task_rows, or raise spark.executor.memoryOverhead",
    ),
)

_LOST = re.compile(
    r"ExecutorLostFailure|Master removed our application|All masters are unresponsive|"
    r"Executor heartbeat timed out|Remote RPC client disassociated|"
    r"Job \d+ cancelled because SparkContext was shut down"
)

_TASK = re.compile(r"failed \d+ times|Traceback \(most recent call last\)")

# What anonspark.tasks leaves of an error, or the last line of a traceback, which begins with the
# exception's type; what follows may hold data.
_PYTHON_TYPE = re.compile(
    r"FailedTaskError: (\w+)"
    r"|^(?!\S*FailedTaskError)([A-Za-z_][\w.]*(?:Error|Exception|Exit))(?=:|$)",
    re.MULTILINE,
)


def condition_of(error: PySparkException) -> str | None:
    """Return the name of an error's condition, which holds no data, in any version of Spark."""
    named = getattr(error, "getCondition", None) or error.getErrorClass
    condition: str | None = named()
    return condition


@contextmanager
def reading_input(paths: tuple[str, ...], key: str = "input.path: ") -> Iterator[None]:
    """Translate failures of reading.

    Parameters
    ----------
    paths : tuple of str
        What is read.
    key : str
        Put before them: the configuration key that named them.

    Raises
    ------
    DataError
        If files vanished or cannot be decoded.
    PublishingError
        If the disk of the staging directory is full.
    """
    where = key + ", ".join(paths)
    with writing_output():
        try:
            yield
        except (PySparkException, Py4JError) as error:
            text = str(error)
            if _NO_SPACE.search(text):
                raise
            if _VANISHED.search(text):
                raise DataError(
                    f"{where}: files vanished while they were read; keep the input unchanged "
                    "during a run, and run again"
                ) from error
            if _UNREADABLE.search(text):
                raise DataError(
                    f"{where}: files cannot be read in this format, or there are none; check the "
                    "path, input.format, input.options, permissions and the files themselves "
                    "(the details, with --debug, may show data)"
                ) from error
            raise


@contextmanager
def writing_output() -> Iterator[None]:
    """Translate failures of writing.

    Raises
    ------
    PublishingError
        If a disk is full.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        if _NO_SPACE.search(str(error)):
            raise PublishingError(
                "output.path: no space left on the device of the output or of spark.local.dir; "
                "nothing was published. Free space there (a run needs about three times the "
                "size of its input) and run again"
            ) from error
        raise


@contextmanager
def running_tasks(progress: Progress) -> Iterator[None]:
    """Translate failures of tasks that Spark has run again in vain.

    Parameters
    ----------
    progress : Progress
        Knows the stage that was at work.

    Raises
    ------
    EnvironmentProblem
        If memory ran out, or executors were lost.
    TaskFailure
        If a task failed as often as Spark runs it, for another reason.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        stage = progress.current or "between two stages"
        for pattern, problem in _MEMORY:
            if pattern.search(text):
                raise EnvironmentProblem(f"{stage}: {problem}; nothing was published") from error
        if _LOST.search(text):
            raise EnvironmentProblem(
                f"{stage}: Spark lost executors more often than it tries again "
                "(spark.task.maxFailures), or its master; nothing was published. Look at the "
                "cluster, and run again with --resume"
            ) from error
        if _TASK.search(text):
            types = ["".join(found) for found in _PYTHON_TYPE.findall(text)]
            kind = f" with {types[-1]} in Python" if types else ""
            raise TaskFailure(
                f"{stage}: a task failed each time that Spark ran it (spark.task.maxFailures), "
                f"at last{kind}; nothing was published. If the cluster is sound this is a bug of "
                "anonspark: please report it. --debug and the executors' logs show the details, "
                "which may contain data"
            ) from error
        raise
