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
"""As a user names it. ``auto`` for what :func:`choose_engine` says."""


def engine_name(name: str) -> EngineName:
    """Return the engine that a user named on the command line.

    Raises
    ------
    ConfigurationError
        If there is no such engine.
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

# Of the memory that is available, what files may have on the disk. Records in memory take some
# times as much as in a file, and most of what a run works on is staged on the disk.
_SHARE = 8


@dataclass(frozen=True)
class Work:
    """The work, as far as it decides the engine.

    Parameters
    ----------
    read : tuple of str
        Paths that are read as tables, glob patterns among them.
    written : tuple of str
        Paths that are written to.
    formats : tuple of str
        That tables are read in.
    written_format : str
        That tables are written in.
    """

    read: tuple[str, ...]
    written: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    written_format: str = "parquet"

    @classmethod
    def of(cls, configuration: Configuration) -> Work:
        """Return what a run of a configuration does."""
        staging, ledger = configuration.execution.staging_path, configuration.ledger
        named = () if configuration.output.table is None else (CATALOG_TABLE,)
        places = [*([staging] if staging else []), *([ledger.path] if ledger else [])]
        return cls(
            tuple(configuration.input.paths),
            (configuration.output.path, *places),
            (configuration.input.format, *named),
            configuration.output.format,
        )


@dataclass(frozen=True)
class Choice:
    """The engine for a piece of work, and the reason.

    Parameters
    ----------
    name : str
    reason : str
        For users. No value of the data.
    """

    name: Literal["local", "spark"]
    reason: str


def choose_engine(engine: EngineName, work: Work | None, master: str | None) -> Choice:
    """Decide who does a piece of work.

    Parameters
    ----------
    engine : str
        What the user said.
    work : Work or None
        None where it is not known before Spark has started, as of a configuration on HDFS.
    master : str or None
        Of Spark, as the user gave it.

    Raises
    ------
    ConfigurationError
        If the local engine and a master are both asked for, or the local engine cannot do it.
    DataError
        If files are of another program, which no engine reads.

    Notes
    -----
    Looks at the sizes of local files. No Spark is started and pyspark is not imported.
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
    cause = _given_spark(master)
    if cause is not None or obstacle is not None or work is None:
        return Choice("spark", cause or obstacle or "the configuration lies where Spark reads it")
    size, most = _size_and_most(work)
    if size > most:
        return Choice(
            "spark",
            f"the input has {size / 1e6:,.1f} MB on the disk, more than {most / 1e6:,.1f}, an "
            f"eighth of the memory that is available",
        )
    return Choice(
        "local",
        f"no Spark is given, and local files of {size / 1e6:,.1f} MB fit into this process",
    )


def fits_into_process(work: Work) -> bool:
    """Return whether the engine without Java can do a piece of work, whatever was asked for."""
    if _obstacle(work) is not None:
        return False
    size, most = _size_and_most(work)
    return size <= most


def _size_and_most(work: Work) -> tuple[int, int]:
    """Return the bytes that are read, and how many fit into this process."""
    return sum(map(_bytes_at, work.read)), available_memory() // _SHARE


def _given_spark(master: str | None) -> str | None:
    """Return why there is a Spark to be used, if there is one."""
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
    """Return why this process cannot do the work, if it cannot."""
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
    """Return where a path or ``file:`` address is on the local disk, or None for others."""
    parts = urlsplit(path)
    if not parts.scheme:
        return Path(path)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    return None


def _bytes_at(path: str) -> int:
    """Return the bytes of the files that a path or pattern names, at any depth."""
    files = LocalFiles()
    with suppress(ConfigurationError, OSError):
        return sum(size for root in files.matches(path) for _, size in files_at(files, root))
    # Whoever reads them says what is wrong.
    return 0
