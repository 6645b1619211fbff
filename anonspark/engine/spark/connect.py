"""Reach the files of Spark Connect, and their columns, without Java in this process.

This process reads, writes and renames files by a path that is mounted here. The server and its
workers reach the same path by Spark's file systems.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import parquet
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from anonspark.engine.data_files import listed_files
from anonspark.engine.files import literal
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.reading_errors import unreadable
from anonspark.errors import ConfigurationError, EnvironmentProblem
from anonspark.redaction import redact

# Options that decide which folders are columns.
_OF_FOLDERS = ("basepath", "recursivefilelookup")


@dataclass(frozen=True)
class MountedFiles(LocalFiles):
    """Files by paths that this process, and the server and workers of Spark Connect, all reach."""

    spark: SparkSession

    def make_private_directory(self, path: str) -> None:
        """Create a directory that its owner alone can read, and check that Spark reads it.

        Raises EnvironmentProblem if the server does not read there what this process writes.
        """
        super().make_private_directory(path)
        probe, written = f"{self.qualified(path)}/probe-{uuid.uuid4().hex}", uuid.uuid4().hex
        self.write_text(probe, written)
        try:
            lines = self.spark.read.text(literal(probe)).collect()
        except PySparkException:
            lines = []
        finally:
            self.delete(probe)
        if [row.value for row in lines] != [written]:
            self.delete_if_empty(path)
            raise EnvironmentProblem(
                f"path {path}: Spark Connect's server does not read there what this process "
                "writes. Expected a disk that is mounted at the same path here, at the server and "
                "at all of its workers, and a server that runs as the user of this process. Choose "
                "such a path (output.path, execution.staging_path), or use spark-submit"
            )


def input_files(table: DataFrame) -> list[str]:
    """Return the addresses of a table's files, sorted, in the form of :class:`MountedFiles`."""
    return sorted(f"file:{unquote(urlsplit(uri).path)}" for uri in table.inputFiles())


def folder_names(table: DataFrame, paths: Sequence[str], options: Mapping[str, str]) -> list[str]:
    """Return the columns of a table that folders name.

    Raises ConfigurationError if an option decides which folders are columns.
    """
    listed = listed_files(MountedFiles(table.sparkSession), paths)
    names = next((list(file.folders) for file in listed if file.folders and file.bytes), [])
    deciding = sorted(name for name in options if name.lower() in _OF_FOLDERS)
    if names and deciding:
        raise ConfigurationError(
            f"input.options.{deciding[0]}: found it with folders like column=value, of which Spark "
            "Connect does not report which are columns. Remove it, or use spark-submit"
        )
    return names


def schema_of_file(spark: SparkSession, data_format: str, file: str) -> StructType:
    """Return the columns that Spark reads in a file, or no columns if it has none."""
    try:
        return spark.read.format(data_format).load(literal(file)).schema
    except AnalysisException as error:
        if "UNABLE_TO_INFER_SCHEMA" in str(error):
            return StructType()
        raise


def read_footers(files: Sequence[str], readers: int) -> list[parquet.FileMetaData]:
    """Read the footers of Parquet files in parallel. Raises DataError if a file cannot be read."""
    with ThreadPoolExecutor(readers) as pool:
        return list(pool.map(_read_footer, files))


def _read_footer(file: str) -> parquet.FileMetaData:
    """Read the footer of a Parquet file."""
    try:
        return parquet.read_metadata(file.removeprefix("file:"))
    except (pa.ArrowException, OSError) as error:
        raise unreadable(redact(file)) from error


def words_of_footer(footer: parquet.FileMetaData) -> str:
    """Return the columns of a Parquet file in the words of Spark's reader."""
    text = re.sub(r" field_id=-?\d+", "", str(footer.schema).partition("\n")[2])
    text = re.sub(r"\(([A-Z][a-z]+)\) {", lambda match: f"({match[1].upper()}) {{", text)
    text = re.sub(
        r"\(Timestamp\(isAdjustedToUTC=(\w+), timeUnit=nanoseconds[^()]*\)\)",
        r"(TIMESTAMP(NANOS,\1))",
        text,
    )
    return text.replace(" (Null);", " (UNKNOWN);")
