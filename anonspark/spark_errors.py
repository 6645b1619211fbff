"""What Spark's exceptions mean to a user, without the values that their texts may hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from anonspark.errors import DataError, PublishingError

__all__ = ["condition_of", "reading_input", "writing_output"]

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
