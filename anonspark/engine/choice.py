"""Choose the engine for a piece of work: this process, or Spark."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from anonspark.config import Configuration
from anonspark.config.input import CATALOG_TABLE
from anonspark.engine.files import files_at
from anonspark.engine.foreign_formats import refuse_foreign
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.memory import available_memory
from anonspark.engine.spark.embedded import read_spark_defaults
from anonspark.engine.spark.session import process_has_session
from anonspark.errors import ConfigurationError
from anonspark.redaction import redact

EngineName = Literal["auto", "local", "spark"]
"""The names that users give to engines. ``auto`` leaves the choice to :func:`choose_engine`."""


def engine_name(name: str) -> EngineName:
    """Return the engine that a user named. Raises ConfigurationError if there is no such engine.

    >>> engine_name("local")
    'local'
    """
    match name:
        case "auto" | "local" | "spark":
            return name
        case _:
            raise ConfigurationError(
                f"--engine: found {name!r}. Expected one of auto, local, spark"
            )


READ_FORMATS = ("parquet", "csv", "json", "orc")
WRITTEN_FORMATS = ("parquet", "orc")

# Files may have an eighth of the available memory: records take several times as much in memory as
# in a file, and most of what a run works on is staged on the disk.
_SHARE = 8


@dataclass(frozen=True)
class Work:
    """The paths, or patterns, and formats that are read and written: these decide the engine."""

    read: tuple[str, ...]
    written: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    written_format: str = "parquet"

    @classmethod
    def of(cls, configuration: Configuration) -> Work:
        """Return the work of a run."""
        staging, ledger = configuration.execution.staging_path, configuration.ledger
        named = () if configuration.output.table is None else (CATALOG_TABLE,)
        directories = [*([staging] if staging else []), *([ledger.path] if ledger else [])]
        return cls(
            tuple(configuration.input.paths),
            (configuration.output.path, *directories),
            (configuration.input.format, *named),
            configuration.output.format,
        )


@dataclass(frozen=True)
class Choice:
    """The engine for a piece of work, and the reason in words for users."""

    name: Literal["local", "spark"]
    reason: str


def choose_engine(engine: EngineName, work: Work | None, master: str | None) -> Choice:
    """Choose the engine for a piece of work, by the configuration and the sizes of local files.

    ``work`` is None if it is unknown before Spark has started, as for a configuration on HDFS.
    Neither starts Spark nor imports pyspark. Raises ConfigurationError if the local engine is
    requested together with a Spark master, or cannot do the work, and DataError if no engine reads
    the files.
    """
    if work is not None:
        for data_format in work.formats:
            refuse_foreign(work.read, data_format)
    if engine == "spark":
        return Choice("spark", "execution.engine says so")
    for path in () if work is None else work.read:
        if urlsplit(path).scheme in ("http", "https"):
            raise ConfigurationError(
                f"{redact(path)} is an address of the web, where no table is read. Download it "
                "first, and name the file"
            )
    obstacle = None if work is None else _obstacle(work)
    if engine == "local":
        if master is not None:
            raise ConfigurationError(
                f"execution.engine: found local, together with --master {master}, which is "
                "Spark's. Leave one of the two out"
            )
        if obstacle is not None:
            raise ConfigurationError(
                f"execution.engine: found local, but {obstacle}. Expected local files in formats "
                f"that the local engine reads ({', '.join(READ_FORMATS)}) and writes "
                f"({', '.join(WRITTEN_FORMATS)}). Set it to spark or auto"
            )
        return Choice("local", "execution.engine says so")
    cause = _spark_at_hand(master)
    if cause is not None or obstacle is not None or work is None:
        return Choice("spark", cause or obstacle or "the configuration lies where Spark reads it")
    size, limit = _size_and_limit(work)
    if size > limit:
        return Choice(
            "spark",
            f"the input has {size / 1e6:,.1f} MB on the disk, more than {limit / 1e6:,.1f}, an "
            f"eighth of the memory that is available",
        )
    return Choice(
        "local",
        f"no Spark is given, and local files of {size / 1e6:,.1f} MB fit into this process",
    )


def fits_into_process(work: Work) -> bool:
    """Return whether the local engine can do a piece of work, whatever the user asked for."""
    if _obstacle(work) is not None:
        return False
    size, limit = _size_and_limit(work)
    return size <= limit


def _size_and_limit(work: Work) -> tuple[int, int]:
    """Return the bytes that are read, and how many fit into this process."""
    return sum(map(_bytes_at, work.read)), available_memory() // _SHARE


def _spark_at_hand(master: str | None) -> str | None:
    """Return which Spark there is to use, or None if none was set up."""
    if master is not None:
        return "--master is given"
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return "spark-submit has started this process"
    if process_has_session():
        return "a Spark session is there already"
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"):
        if os.environ.get(name):
            return f"{name} is set"
    if "spark.master" in read_spark_defaults():
        return "spark-defaults.conf names a master"
    return None


def _obstacle(work: Work) -> str | None:
    """Return why this process cannot do the work, or None if it can."""
    for path in (*work.read, *work.written):
        if local_path(path) is None:
            return "a path is an address of another file system"
    for data_format in work.formats:
        if data_format == CATALOG_TABLE:
            return "a table is named, which only a catalog of Spark knows"
        if data_format not in READ_FORMATS:
            return f"tables are read in the format {data_format!r}"
    if work.written_format not in WRITTEN_FORMATS:
        return f"output.format is {work.written_format!r}"
    return None


def local_path(path: str) -> Path | None:
    """Return where a path or ``file:`` address is on the local disk, or None for other addresses.

    >>> str(local_path("file:///data/my%20table.csv")), local_path("hdfs://host/data") is None
    ('/data/my table.csv', True)
    """
    parts = urlsplit(path)
    if not parts.scheme:
        return Path(path)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    return None


def _bytes_at(path: str) -> int:
    """Return the bytes of the files that a path or pattern names, at any depth.

    Returns 0 if they cannot be listed: opening the table says why.
    """
    files = LocalFiles()
    with suppress(ConfigurationError, OSError):
        return sum(size for root in files.matches(path) for _, size in files_at(files, root))
    return 0
