"""The SQL settings that a session has while we use it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import TYPE_CHECKING

from anonspark.engine.memory import available_memory, cluster_sizes
from anonspark.engine.spark.java_objects import elements_of
from anonspark.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_of_connect(session: object) -> bool:
    """Return whether a session is one of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


logger = logging.getLogger("anonspark")

_OPENING, _MOST = "spark.sql.files.openCostInBytes", "spark.sql.files.maxPartitionBytes"
_SIZE = re.compile(r"\s*(\d+)\s*([bkmgtp]?)i?b?\s*", re.IGNORECASE)

# Spark divides them among as many tasks as there can be at once.
_NUMBERS = 1 << 20

_MEANING: Mapping[str, str] = {
    # A timestamp must mean the same on every machine.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # An overflow or an impossible cast is an error, never a silent null. Default since Spark 4.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.retainGroupColumns": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.allowNegativeScaleOfDecimal": "false",
    "spark.sql.legacy.charVarcharAsString": "false",
    # Days are those of the calendar of today in all years, as other programs write them; files of
    # Spark 2 say that theirs are not.
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    # A column that only some files have is not to be found by chance; see
    # anonspark.engine.spark.file_schemas.
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.orc.mergeSchema": "false",
    # A damaged or vanished file is an error, never a table with fewer rows.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Whose files we can ask for their columns.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,kafka,orc,parquet,text",
    # The number of a round, read back from a folder's name, is a number.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "true",
}
"""Settings that decide what is read from a file, and what an expression means."""

_NAMES_OF_UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00")

_WRITING: Mapping[str, str] = {
    # Spark's default is still INT96, which hardly any other program can compare or index.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInWrite": "CORRECTED",
}
"""Settings that decide how files are written, and nothing that is read."""


SQL_SETTINGS: Mapping[str, str] = {
    **_MEANING,
    **_WRITING,
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # Our functions work on whole batches: larger ones than the default of 10,000 rows pay.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # Times in nanoseconds are read as numbers, of which read_stored_columns makes times.
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    # A round writes finished records, outliers and classes side by side: three open files, no sort.
    "spark.sql.maxConcurrentOutputFileWriters": "3",
    # The traceback of a failed task (Spark 4.3) must not print local variables, which hold records.
    "spark.sql.execution.pyspark.udf.tracebackWithLocals.enabled": "false",
}
"""SQL settings that every session gets while we use it."""

_BATCHES_OF_ROWS: Mapping[str, str] = {
    # Rows of 100 kB, such as those with a clinical note, still make batches of 200 MB only.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2048",
    # The one value that means no limit.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}


def batches_of_rows(session: SparkSession) -> AbstractContextManager[None]:
    """Limit Arrow batches by their rows alone while single records are handed to Python.

    Since Spark 4.1 batches are limited by their size, too, which is summed up over all columns
    before each row: a quarter of all that Java does to hand records over. Packed batches (see
    :mod:`anonspark.staged.records`), which are few and large, need that limit.

    Parameters
    ----------
    session : SparkSession
        Its settings are others inside of the ``with`` block.
    """
    return _settings(session, _BATCHES_OF_ROWS)


def one_row_at_a_time(session: SparkSession) -> AbstractContextManager[None]:
    """Hand rows over one by one, each of which is as large as a file.

    Parameters
    ----------
    session : SparkSession
        Its settings are others inside of the ``with`` block.
    """
    return _settings(session, {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"})


def folder_names_as_texts(session: SparkSession) -> AbstractContextManager[None]:
    """Open tables inside of a ``with`` block whose folders are columns of texts."""
    return _settings(session, {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"})


def parquet_settings(session: SparkSession) -> list[str]:
    """Return the names of the settings of Parquet files that Hadoop gets from a session, sorted."""
    if is_of_connect(session):
        names = (name.removeprefix("spark.hadoop.") for name in session.conf.getAll)
        return sorted(name for name in names if name.startswith("parquet."))
    hadoop = session._jsparkSession.sessionState().newHadoopConf()
    keys = map(str, elements_of(hadoop.getPropsWithPrefix("parquet.").keySet()))
    return sorted(f"parquet.{key}" for key in keys)


def sizes_of_tasks(session: SparkSession) -> tuple[int, int, int]:
    """Return what Spark divides files by.

    Returns
    -------
    opening, most : int
        Bytes that opening a file counts for, and that one task reads at most.
    tasks : int
        How many there can be at once. Spark Connect runs a small job for it, the first time.
    """
    opening, most = (_bytes_of(key, session.conf.get(key)) for key in (_OPENING, _MOST))
    if is_of_connect(session):
        return opening, most, _parallel_tasks(session)
    return opening, most, max(session.sparkContext.defaultParallelism, 1)


_DEPLOY_MODE = "spark.submit.deployMode"
_HEAP, _OVERHEAD = "spark.driver.memory", "spark.driver.memoryOverhead"
# Up to so many rows the driver takes what a process takes.
_FEW_ROWS = 1_000_000


def warn_of_little_memory(session: SparkSession, rows: int) -> None:
    """Warn before the work if the driver's Python can have too little memory for so many rows."""
    limit = available_memory() // 2**20
    if not is_of_connect(session) and session.conf.get(_DEPLOY_MODE, None) == "cluster":
        heap = _bytes_of(_HEAP, session.conf.get(_HEAP, "1g"), "m")
        usual = f"{max(384 << 20, heap // 10)}b"
        limit = min(limit, _bytes_of(_OVERHEAD, session.conf.get(_OVERHEAD, usual), "m") >> 20)
    needed = cluster_sizes(rows, 1).driver_overhead
    # Half of it is what was measured.
    if rows > _FEW_ROWS and limit < needed // 2:
        logger.warning(
            "the driver's Python can have %d MiB, and may need %d MiB for %s rows. Set "
            "spark.driver.memoryOverhead=%dm, or give the machine more memory",
            limit,
            needed // 2,
            f"{rows:,}",
            needed,
        )


def _bytes_of(key: str, text: str | None, unit: str = "b") -> int:
    """Return the bytes that a setting of Spark names, in a unit where the text has none."""
    match = _SIZE.fullmatch(text or "")
    if match is None:
        raise ConfigurationError(f"Spark's setting {key}: found no size. Expected one as in 128MB")
    return int(match[1]) << 10 * "bkmgtp".index(match[2].lower() or unit)


@cache
def _parallel_tasks(session: SparkSession) -> int:
    from pyspark.sql import functions as sf

    return session.range(_NUMBERS).select(sf.spark_partition_id()).distinct().count()


@contextmanager
def our_settings(session: SparkSession) -> Iterator[None]:
    """Work with `SQL_SETTINGS` in a session, and leave it as it was found.

    Parameters
    ----------
    session : SparkSession
        Any session. Its settings are others inside of the ``with`` block, and pyspark logs no
        errors of queries there, whose text may hold values of the data.
    """
    with _settings(session, SQL_SETTINGS), _query_errors_unlogged():
        yield


@contextmanager
def writing_settings(session: SparkSession) -> Iterator[None]:
    """Write files as we do, of what is computed with the session's own settings."""
    with _settings(session, _WRITING), _query_errors_unlogged():
        yield


def reads_as_we_do(session: SparkSession) -> bool:
    """Return whether files and expressions mean the same in a session as with `SQL_SETTINGS`."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    def means(key: str, value: str) -> bool:
        try:
            current = session.conf.get(key)
        except (PySparkException, Py4JError):
            return True  # neither set, nor known to this Spark
        if key == "spark.sql.session.timeZone" and current in _NAMES_OF_UTC:
            return True
        return current is None or current.upper() == value.upper()

    return all(means(key, value) for key, value in _MEANING.items())


@contextmanager
def _settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Apply settings for a while. What was set before is set afterwards, and nothing else."""
    previous = {key: session.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            session.conf.set(key, value)
        yield
    finally:
        _restore_settings(session, previous)


def _restore_settings(session: SparkSession, previous: Mapping[str, str | None]) -> None:
    """Put back what was set. Quietly if the session has ended meanwhile."""
    with suppress_java_errors("the settings of the session could not be put back"):
        for key, value in previous.items():
            if value is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, value)


# The last one is that of Spark Connect.
_ERROR_LOGGERS = (
    *("SQLQueryContextLogger", "DataFrameQueryContextLogger"),
    "pyspark.sql.connect.logging",
)


@contextmanager
def _query_errors_unlogged() -> Iterator[None]:
    """Keep pyspark from printing errors of queries, whose text may hold values of the data.

    From version 4 on pyspark logs them on standard error from Python, besides raising them.
    """
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # pyspark 3.5 raises them only
        yield
        return
    loggers = [PySparkLogger.getLogger(name) for name in _ERROR_LOGGERS]
    previous = [each.disabled for each in loggers]
    for each in loggers:
        each.disabled = True
    try:
        yield
    finally:
        for each, disabled in zip(loggers, previous, strict=True):
            each.disabled = disabled


@contextmanager
def suppress_java_errors(message: str) -> Iterator[None]:
    """Log, and nothing more, that Java did not do what was asked: it may have ended already."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:
        logger.debug("%s", message, exc_info=error)
