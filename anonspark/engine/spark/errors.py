"""Explain Spark's exceptions to users, without the values that their texts may hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.errors.exceptions.captured import CapturedException

from anonspark.engine.files import FilesError
from anonspark.engine.reading_errors import (
    not_of_the_format,
    options_not_taken,
    remedy,
    type_not_read,
    unreadable,
    vanished,
)
from anonspark.errors import (
    LOWER_TASK_ROWS,
    ConfigurationError,
    DataError,
    EnvironmentProblem,
    PublishingError,
    TaskFailure,
)

if TYPE_CHECKING:
    from anonspark.progress import Progress

_NO_SPACE = re.compile(
    r"No space left on device|Disk quota exceeded|disk is full|quota of .* is exceeded"
    r"|QuotaExceededException",
    re.IGNORECASE,
)
# HDFS counts names as well as bytes.
_QUOTA = re.compile(r"quota of .* is exceeded|QuotaExceededException", re.IGNORECASE)

_VANISHED = re.compile(r"FileNotFoundException|FILE_NOT_EXIST|PATH_NOT_FOUND|NoSuchFileException")

# An error of our reader of text files in a task, whose text holds no value.
_OURS = re.compile(r"anonspark\.errors\.DataError: (?!CANNOT_READ)(\S.*)")

_UNREADABLE = re.compile(
    r"UNABLE_TO_INFER_SCHEMA|"
    # The second is the first one's text before Spark 4.
    r"FAILED_READ_FILE|Encountered error while reading file|"
    r"CANNOT_READ|is not a Parquet file|Malformed|"
    r"AccessControlException|AccessDeniedException|Permission denied|BadRecordException|"
    r"EOFException|CORRUPT|ParquetDecodingException|OrcException|FileFormatException"
)

# A file that Spark's reader or ours could not read.
_NAMED = re.compile(
    r"while reading file (file:\S+?)\.?(?:\s|$)|CANNOT_READ: ([^{\s].*?) is damaged, or is another"
)

# The decoders of Parquet and ORC do not check a changed byte in a dictionary or a length.
_CORRUPT = re.compile(
    r"(?:IndexOutOfBounds|NegativeArraySize|NullPointer|BufferUnderflow|IllegalArgument"
    r"|IllegalState|Arithmetic|ClassCast|UnsupportedOperation)Exception\b[^\n]*"
    r"(?:\n\tat [^\n]*){0,5}?\n\tat (?:\w+//?)?org\.apache\.(?:parquet|orc|spark\.sql\.execution"
    r"\.datasources\.(?:parquet|orc)\.(?!\w*Writ))"
)

_PACKAGES = (
    "let PYSPARK_PYTHON (or spark.pyspark.python) name, on every node, a Python that has anonspark "
    "with its dependencies, or send them along with --py-files and --archives (see docs/clusters)"
)

_ENVIRONMENT = (
    # First the Python of the workers, which is not the driver's: workers that cannot start end as
    # unexpectedly as those that are killed. Names of modules and versions hold no data.
    (
        re.compile(r"PYTHON_VERSION_MISMATCH|Python in worker has different version"),
        f"the workers' Python has another version than the driver's: {_PACKAGES}",
    ),
    (
        re.compile(r"No module named '([\w.]+)'"),
        f"the workers' Python lacks the module {{}}: {_PACKAGES}",
    ),
    (
        re.compile(r"Can't get attribute '\w+' on <module '(anonspark[\w.]*)'"),
        f"the workers have another version of the module {{}} than the driver: {_PACKAGES}",
    ),
    (
        re.compile(
            r"PACKAGE_NOT_INSTALLED|UNSUPPORTED_PACKAGE_VERSION"
            r"|\b(?:PySpark)?ImportError: |FailedTaskError: (?:ModuleNotFound|Import)Error"
        ),
        f"the workers' Python lacks a package, or has another version of it: {_PACKAGES}",
    ),
    (
        re.compile(
            r"Cannot run program \"(?![^\"]*java)[^\"]*\"|Error from python worker"
            r"|Python worker (?:failed to|did not) connect"
        ),
        f"a worker's Python does not start: {_PACKAGES}",
    ),
    (
        re.compile(r"SIMPLE auth|GSS initiate|via:\[.*KERBEROS|SecretManager\$InvalidToken"),
        "a file system asks for Kerberos, and Spark has no valid ticket or token for it: give "
        "spark-submit --principal and --keytab (see docs/clusters), or run kinit before",
    ),
    (
        re.compile(r"SafeModeException|Name node is in safe mode"),
        "the NameNode of HDFS is in safe mode, in which nothing can be written: wait until it "
        "has left it (hdfs dfsadmin -safemode get), and run again",
    ),
    (
        # Errors of object stores and HDFS. A host of a wrong name will not come back.
        re.compile(
            r"^(?!.*UnknownHostException).*(?:AWSClientIOException|AWSServiceThrottledException"
            r"|AWSStatus500Exception|AWSApiCallTimeoutException|SdkClientException"
            r"|failed on connection exception)",
            re.DOTALL,
        ),
        "a store that the run reads or writes cannot be reached, or asks for fewer requests: "
        "look whether it is up and how long its client tries (fs.s3a.attempts.maximum, for "
        "instance), and run again, a run with --resume",
    ),
    (
        re.compile(r"bigger than spark\.driver\.maxResultSize"),
        "the tasks of a job hand more to the driver than spark.driver.maxResultSize allows: raise "
        "it, and spark.driver.memory with it, or publish fewer columns",
    ),
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
        f"workers live in, or {LOWER_TASK_ROWS}",
    ),
    (
        re.compile(r"MemoryError|Unable to allocate|malloc of size \d+ failed|\bbad_alloc\b"),
        f"a Python worker ran out of memory: {LOWER_TASK_ROWS}, or raise "
        "spark.executor.pyspark.memory where it is set, else spark.executor.memoryOverhead",
    ),
    (
        re.compile(r"Python worker exited unexpectedly|Python worker process terminated"),
        "a Python worker was killed, as systems do when memory runs out: "
        f"{LOWER_TASK_ROWS}, or raise spark.executor.memoryOverhead",
    ),
    (
        re.compile(
            r"ExecutorLostFailure|Master removed our application|All masters are unresponsive|"
            r"Executor heartbeat timed out|Remote RPC client disassociated|"
            r"Job \d+ cancelled because SparkContext was shut down"
        ),
        "Spark lost executors more often than it tries again (spark.task.maxFailures), or its "
        "master. Look at the cluster, and run again, a run with --resume",
    ),
)
"""Faults of the environment that make queries fail, with remedies. The first match counts."""

_TASK = re.compile(r"failed \d+ times|Traceback \(most recent call last\)")

# The type of an error that anonspark.engine.spark.tasks leaves, or at the beginning of the last
# line of a traceback. The text behind it may hold data.
_PYTHON_TYPE = re.compile(
    r"FailedTaskError: (\w+)"
    r"|^(?!\S*FailedTaskError)([A-Za-z_][\w.]*(?:Error|Exception|Exit))(?=:|$)",
    re.MULTILINE,
)


def condition_of(error: PySparkException) -> str | None:
    """Return the name of an error's condition, which holds no data, in any version of Spark."""
    get_condition = getattr(error, "getCondition", None) or error.getErrorClass
    condition: str | None = get_condition()
    return condition


def environment_problem(error: BaseException) -> str | None:
    """Return the fault of the environment that made a query fail with a remedy, or None.

    No value of the data is in it. Errors that are not Spark's give None.
    """
    if not isinstance(error, PySparkException | Py4JError):
        return None
    try:
        text = str(error)
    except (Py4JError, OSError):  # the text comes from Java
        return "Java has ended, or was killed. Look at the system's log, and run again"
    for pattern, problem in _ENVIRONMENT:
        if (match := pattern.search(text)) is not None:
            return problem.format(*map(repr, match.groups()))
    return None


def java_class_name(error: BaseException) -> str | None:
    """Return the class of the Java exception behind an error, which holds no data, or None."""
    thrown = None
    if isinstance(error, Py4JJavaError):
        thrown = error.java_exception
    elif isinstance(error, CapturedException):
        thrown = error._origin
    return None if thrown is None else str(thrown.getClass().getName())


# Exceptions of Java because of a wrong option, class or address.
_NOT_TAKEN = re.compile(
    r"IllegalArgument|NumberFormat|DateTime|ClassNotFound|NoClassDefFound|Instantiation"
    r"|NoSuchMethod|NegativeArraySize|SparkRuntimeException"
)
_NO_DRIVER = re.compile(r"No suitable driver|Did not find registered driver|ClassNotFound")


@contextmanager
def opening_table(
    paths: Sequence[str], data_format: str, path_key: str, section: str | None
) -> Iterator[None]:
    """Translate errors of a data source while a table is opened.

    Raises ConfigurationError if Spark does not know the format, or the data source refuses its
    options, and DataError if the table cannot be opened. Errors that :func:`reading_input` and
    :func:`environment_problem` explain better are raised unchanged.
    """
    try:
        yield
    except AnalysisException as error:
        reason = condition_of(error) or "no reason given"
        if reason == "PARQUET_TYPE_ILLEGAL":
            # Without a schema Spark reads the types of all columns.
            parameters = error.getMessageParameters() or {}
            where = f"{path_key}: {', '.join(paths)}"
            raise type_not_read(where, parameters.get("parquetType", "unknown")) from error
        if reason == "UNABLE_TO_INFER_SCHEMA":
            reason = "no file has columns"
        raise not_of_the_format(paths, data_format, path_key, section, reason) from error
    except Py4JNetworkError:
        raise  # Java has ended
    except (PySparkException, Py4JError) as error:
        text = str(error)
        if (reported := _OURS.search(text)) is not None:
            raise DataError(reported[1]) from error
        # These have better words elsewhere.
        if "DATA_SOURCE_NOT_FOUND" not in text and (
            any(pattern.search(text) for pattern in (_NO_SPACE, _VANISHED, _UNREADABLE))
            or environment_problem(error) is not None
        ):
            raise
        raise _opening_error(error, paths, data_format, path_key, section) from error


def _opening_error(
    error: PySparkException | Py4JError,
    paths: Sequence[str],
    data_format: str,
    path_key: str,
    section: str | None,
) -> ConfigurationError | DataError:
    """Explain the error of a data source that could not open a table."""
    text = str(error)
    if "DATA_SOURCE_NOT_FOUND" in text:
        return ConfigurationError(
            f"{path_key if section is None else f'{section}.format'}: this Spark has no data "
            f"source {data_format!r}. Expected parquet, csv, orc, json or the name of one whose "
            "package Spark was started with"
        )
    kind = java_class_name(error) or type(error).__name__
    # Only the kind is shown: the text may quote an address with a password.
    details = "(the details, with --debug, may show credentials)"
    if _NO_DRIVER.search(text):
        where = path_key if section is None else f"{section}.format, {section}.options"
        return ConfigurationError(
            f"{where}: the data source {data_format!r} found no driver or class that it needs "
            f"({kind}). Check the options, and start Spark with its package (--packages, --jars) "
            f"{details}"
        )
    if _NOT_TAKEN.search(kind):
        return options_not_taken(data_format, path_key, section, kind)
    return DataError(
        f"{path_key}: cannot open {', '.join(paths)} as {data_format} ({kind}). Check the path, "
        f"and {remedy(section)} {details}"
    )


@contextmanager
def reading_input(paths: tuple[str, ...], key: str = "input.path: ") -> Iterator[None]:
    """Translate errors that occur while paths are read. ``key`` names them, with a colon.

    Raises DataError if files vanished or cannot be decoded, and PublishingError if the disk of the
    staging directory is full.
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
                raise vanished(where) from error
            if (reported := _OURS.search(text)) is not None:
                raise DataError(reported[1]) from error
            if _UNREADABLE.search(text) or _CORRUPT.search(text):
                match = _NAMED.search(text)
                file = match and unquote(match[1] or match[2]).replace("file:///", "file:/")
                raise unreadable(where, file) from error
            if environment_problem(error) is None and (kind := _kind_of_input_failure(error)):
                raise DataError(
                    f"{where}: cannot be read or computed ({kind}). Check input.options, and what "
                    "the table is computed by (the details, with --debug, may show data)"
                ) from error
            raise


# Errors of a data source, or of the expressions and functions of a DataFrame of the user.
_INPUT_FAILURE = re.compile(
    r"\[((?:CAST_|ARITHMETIC_|DIVIDE_|NUMERIC_|DATETIME_|CANNOT_PARSE_|INVALID_|DUPLICATED_MAP_KEY"
    r"|FAILED_EXECUTE_UDF|USER_RAISED|SCALAR_SUBQUERY|INCONSISTENT_BEHAVIOR|UNSUPPORTED_CHAR)"
    r"[A-Z0-9_.]*)\]"
    r"|\b(java\.sql\.\w+)"
)


def _kind_of_input_failure(error: BaseException) -> str | None:
    """Return the kind of a failure of the input, without data, or None if it was none."""
    text = str(error)
    if isinstance(error, AnalysisException) or "FailedTaskError" in text:
        return None  # an error of our queries or functions
    if (match := _INPUT_FAILURE.search(text)) is not None:
        return match[1] or match[2]
    kind = java_class_name(error) or ""
    if kind.endswith("PythonException") or "PythonException" in text:
        types = ["".join(groups) for groups in _PYTHON_TYPE.findall(text)]
        return types[-1] if types else "PythonException"
    return kind if _NOT_TAKEN.search(kind) else None


@contextmanager
def writing_output() -> Iterator[None]:
    """Raise PublishingError if a disk is full, or a quota is exceeded."""
    try:
        yield
    except (PySparkException, Py4JError, FilesError) as error:
        text = f"{error} {error.__cause__}"
        if _QUOTA.search(text):
            raise PublishingError(
                "output.path: a quota of the output's directory is exceeded. Nothing was "
                "published. Raise it (hdfs dfs -count -q shows the quotas of names and of bytes. A "
                "run needs some hundred names and about three times the size of its input), or "
                "publish elsewhere"
            ) from error
        if _NO_SPACE.search(text):
            raise PublishingError(
                "output.path: no space left on the device of the output or of spark.local.dir. "
                "Nothing was published. Free space there (a run needs about three times the "
                "size of its input) and run again"
            ) from error
        raise


@contextmanager
def running_tasks(progress: Progress) -> Iterator[None]:
    """Translate errors of tasks that failed at every attempt, and name the stage that was running.

    Raises EnvironmentProblem if memory ran out, executors were lost, or workers have another Python
    or lack packages, and TaskFailure for another reason.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        stage = progress.current or "between two stages"
        problem = environment_problem(error)
        if problem is not None:
            raise EnvironmentProblem(f"{stage}: {problem}. Nothing was published") from error
        if _TASK.search(text):
            types = ["".join(groups) for groups in _PYTHON_TYPE.findall(text)]
            kind = f" with {types[-1]} in Python" if types else ""
            raise TaskFailure(
                f"{stage}: a task failed each time that Spark ran it (spark.task.maxFailures), "
                f"at last{kind}. Nothing was published. If the cluster is sound this is a bug of "
                "anonspark: please report it. --debug and the executors' logs show the details, "
                "which may contain data"
            ) from error
        raise
