"""Set a session's SQL settings while we use it, and restore them."""

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

# Numbers that Spark divides among as many tasks as run in parallel.
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
    # Days are those of the Gregorian calendar in all years, as other programs write them. Files of
    # Spark 2 name theirs.
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    # A column that only some files have must not depend on which file Spark opens first: see
    # anonspark.engine.spark.file_schemas.
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.orc.mergeSchema": "false",
    # A damaged or vanished file is an error, never a table with fewer rows.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Sources whose files, and so their columns, can be listed.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,kafka,orc,parquet,text",
    # A round's number in the name of a folder is read back as a number.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "true",
}
"""Settings that decide which values files have, and what an expression means."""

_NAMES_OF_UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00")

_WRITING: Mapping[str, str] = {
    # Spark's default is INT96, which hardly any other program can compare or index.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInWrite": "CORRECTED",
}
"""Settings that decide how files are written, but not how they are read."""


SQL_SETTINGS: Mapping[str, str] = {
    **_MEANING,
    **_WRITING,
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # Our functions are faster on larger batches than the default of 10,000 rows.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # Times in nanoseconds are read as numbers, which read_stored_columns converts to times.
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    # A round writes finished records, outliers and classes at once: three open files save a sort.
    "spark.sql.maxConcurrentOutputFileWriters": "3",
    # The traceback of a failed task (Spark 4.3) must not print local variables, which hold records.
    "spark.sql.execution.pyspark.udf.tracebackWithLocals.enabled": "false",
}
"""SQL settings that every session gets while we use it."""

_BATCHES_OF_ROWS: Mapping[str, str] = {
    # Rows of 100 kB, such as those with a clinical note, make batches of 200 MB.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2048",
    # The one value that means no limit.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}


def batches_of_rows(session: SparkSession) -> AbstractContextManager[None]:
    """Limit Arrow batches by their rows alone inside of a block, while Python gets single records.

    Since Spark 4.1 batches are also limited by their size, which is summed up over all columns
    before each row: a quarter of Java's work of handing records over. Packed batches
    (:mod:`anonspark.staged.records`), which are few and large, need that limit.
    """
    return _settings(session, _BATCHES_OF_ROWS)


def one_row_at_a_time(session: SparkSession) -> AbstractContextManager[None]:
    """Hand rows over one by one inside of a block: each is as large as a file."""
    return _settings(session, {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"})


def folder_names_as_texts(session: SparkSession) -> AbstractContextManager[None]:
    """Open tables inside of a block with texts for the columns that folders name."""
    return _settings(session, {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"})


def parquet_settings(session: SparkSession) -> list[str]:
    """Return the sorted names of a session's settings of Parquet files for Hadoop."""
    if is_of_connect(session):
        names = (name.removeprefix("spark.hadoop.") for name in session.conf.getAll)
        return sorted(name for name in names if name.startswith("parquet."))
    hadoop = session._jsparkSession.sessionState().newHadoopConf()
    keys = map(str, elements_of(hadoop.getPropsWithPrefix("parquet.").keySet()))
    return sorted(f"parquet.{key}" for key in keys)


def sizes_of_tasks(session: SparkSession) -> tuple[int, int, int]:
    """Return the sizes by which Spark divides files among tasks.

    These are the bytes that opening a file counts for, the limit of bytes of a task, and the number
    of tasks that run in parallel, for which Spark Connect runs a small job the first time.
    """
    opening, most = (_bytes_of(key, session.conf.get(key)) for key in (_OPENING, _MOST))
    if is_of_connect(session):
        return opening, most, _parallel_tasks(session)
    return opening, most, max(session.sparkContext.defaultParallelism, 1)


_DEPLOY_MODE = "spark.submit.deployMode"
_HEAP, _OVERHEAD = "spark.driver.memory", "spark.driver.memoryOverhead"
# Up to so many rows the driver takes no more memory than any process.
_FEW_ROWS = 1_000_000


def warn_of_little_memory(session: SparkSession, rows: int) -> None:
    """Warn before the work if the driver's Python may have too little memory for the rows."""
    limit = available_memory() // 2**20
    if not is_of_connect(session) and session.conf.get(_DEPLOY_MODE, None) == "cluster":
        heap = _bytes_of(_HEAP, session.conf.get(_HEAP, "1g"), "m")
        usual = f"{max(384 << 20, heap // 10)}b"
        limit = min(limit, _bytes_of(_OVERHEAD, session.conf.get(_OVERHEAD, usual), "m") >> 20)
    needed = cluster_sizes(rows, 1).driver_overhead
    # Half of the recommended memory was measured.
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
    """Return the number of tasks among which Spark divides a range, by a small job."""
    from pyspark.sql import functions as sf

    return session.range(_NUMBERS).select(sf.spark_partition_id()).distinct().count()


@contextmanager
def our_settings(session: SparkSession) -> Iterator[None]:
    """Apply `SQL_SETTINGS` inside of a block, and restore the session's settings afterwards.

    pyspark logs no errors of queries meanwhile, whose texts may hold values of the data.
    """
    with _settings(session, SQL_SETTINGS), _query_errors_unlogged():
        yield


@contextmanager
def writing_settings(session: SparkSession) -> Iterator[None]:
    """Write files as we do, with values that are computed by the session's settings."""
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
    """Apply settings inside of a block, and restore those that were set before."""
    previous = {key: session.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            session.conf.set(key, value)
        yield
    finally:
        _restore_settings(session, previous)


def _restore_settings(session: SparkSession, previous: Mapping[str, str | None]) -> None:
    """Restore settings. Only logs a failure if the session has ended meanwhile."""
    with suppress_java_errors("the settings of the session could not be put back"):
        for key, value in previous.items():
            if value is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, value)


# The last one is Spark Connect's.
_ERROR_LOGGERS = (
    *("SQLQueryContextLogger", "DataFrameQueryContextLogger"),
    "pyspark.sql.connect.logging",
)


@contextmanager
def _query_errors_unlogged() -> Iterator[None]:
    """Keep pyspark from logging errors of queries, whose texts may hold values of the data.

    From version 4 on pyspark logs them on standard error, and also raises them.
    """
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # pyspark 3.5 raises them only
        yield
        return
    loggers = [PySparkLogger.getLogger(name) for name in _ERROR_LOGGERS]
    previous = [query_logger.disabled for query_logger in loggers]
    for query_logger in loggers:
        query_logger.disabled = True
    try:
        yield
    finally:
        for query_logger, disabled in zip(loggers, previous, strict=True):
            query_logger.disabled = disabled


@contextmanager
def suppress_java_errors(message: str) -> Iterator[None]:
    """Log an error of Java, and go on: Java may have ended already."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:
        logger.debug("%s", message, exc_info=error)
