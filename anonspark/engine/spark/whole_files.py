"""Parquet files that Spark hands to tasks as a whole, to be decoded in Python.

Row by row, the way from Java to Python takes longer than all that is done with the records there.
As one value each, the bytes of files take next to nothing. Spark reads them with its own file
systems and credentials, and tasks come about as with every other table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from anonspark.engine.file_schemas import FileSchemas
from anonspark.engine.raw_columns import type_name
from anonspark.engine.spark.file_schemas import ParquetFooters
from anonspark.engine.spark.java_objects import elements_of, java_class
from anonspark.engine.spark.settings import reads_as_we_do

LARGEST_FILE = 128 * 2**20
"""Bytes of a file. A task holds it about four times: in Java, on the way, and in Python."""

# Of the bytes of a file, at most one in so many is of columns that are read, or Spark, which reads
# no others, is as fast.
_BYTES_FOR_ONE = 4

# Options that say which files are read, and nothing of how.
_HARMLESS = ("modifiedafter", "modifiedbefore", "pathglobfilter", "recursivefilelookup")

_SIGNED = re.compile(r"INTEGER\((8|16|32|64),true\)")
_TIMESTAMP = re.compile(r"TIMESTAMP\((?:MILLIS|MICROS),(true|false)\)")
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")

_UNANNOTATED: Mapping[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BINARY": pa.binary(),
}


@dataclass(frozen=True)
class WholeFiles:
    """Files that tasks get as a whole.

    Parameters
    ----------
    footers : ParquetFooters
    columns : pyarrow.Schema
        What is read of each.
    """

    footers: ParquetFooters
    columns: pa.Schema

    def contents(self, session: SparkSession) -> DataFrame:
        """Return a table of the bytes of each file, a row each; lazy."""
        relation = self.footers.relation
        sources = "org.apache.spark.sql.execution.datasources"
        binary = java_class(session, f"{sources}.binaryfile.BinaryFileFormat")
        # The very files whose footers were read, and which nobody lists again.
        files = java_class(session, f"{sources}.HadoopFsRelation")(
            relation.location(),
            relation.partitionSchema(),
            binary.schema(),
            relation.bucketSpec(),
            binary(),
            relation.options(),
            session._jsparkSession,
        )
        frame = DataFrame(session._jsparkSession.baseRelationToDataFrame(files), session)
        return frame.select("content")


@dataclass(frozen=True)
class Splits:
    """How Spark divides files among tasks.

    Parameters
    ----------
    tasks : int
        That run at the same time.
    most_bytes : int
        Of a file that a task reads.
    opening_bytes : int
        What opening a file costs, as bytes.
    """

    tasks: int
    most_bytes: int
    opening_bytes: int

    def bytes_of_task(self, sizes: Sequence[int]) -> int:
        """Return how much of a file Spark gives to one task, if it may divide files."""
        every = sum(sizes) + len(sizes) * self.opening_bytes
        return min(self.most_bytes, max(self.opening_bytes, every // max(self.tasks, 1)))


def find_whole_files(
    session: SparkSession,
    files: FileSchemas | None,
    options: Mapping[str, str],
    schema: pa.Schema,
    columns: Sequence[str],
) -> WholeFiles | str:
    """Return files that tasks can read as a whole, or why rows have to be handed over one by one.

    Parameters
    ----------
    session : SparkSession
    files : FileSchemas or None
        Of the input, as it was opened.
    options : mapping of str to str
        Of the input's format.
    schema : pyarrow.Schema
        Of the input, as :func:`anonspark.engine.spark.arrow.arrow_schema` tells it.
    columns : sequence of str
        All columns that are read.

    Returns
    -------
    WholeFiles or str
        In words, what only Spark's own reader knows.
    """
    if not isinstance(files, ParquetFooters):
        return "a table that is not made of Parquet files"
    wanted = pa.schema([schema.field(name) for name in columns])
    odd = (
        odd_options(options)
        or odd_settings(session)
        or odd_sizes(files.sizes, splits_of(session))
        or odd_columns(files, wanted)
        or odd_share(bytes_of_columns(session, files), columns)
    )
    return odd or WholeFiles(files, wanted)


def odd_options(options: Mapping[str, str]) -> str | None:
    """Return an option of the format that says how files are read."""
    odd = sorted(name for name in options if name.lower() not in _HARMLESS)
    return f"input.options.{odd[0]}" if odd else None


def odd_settings(session: SparkSession) -> str | None:
    """Return what the session says of reading Parquet files that only Spark can follow."""
    if not reads_as_we_do(session):
        return "the settings of the session"
    hadoop = session._jsparkSession.sessionState().newHadoopConf()
    keys = sorted(map(str, elements_of(hadoop.getPropsWithPrefix("parquet.").keySet())))
    if keys:
        return f"parquet.{keys[0]}"
    most = "spark.sql.sources.binaryFile.maxLength"
    return most if int(session.conf.get(most, None) or LARGEST_FILE) < LARGEST_FILE else None


def splits_of(session: SparkSession) -> Splits:
    """Return how a session divides files among tasks."""
    state = session._jsparkSession.sessionState().conf()
    return Splits(
        session.sparkContext.defaultParallelism,
        int(state.filesMaxPartitionBytes()),
        int(state.filesOpenCostInBytes()),
    )


def odd_sizes(sizes: Sequence[int], splits: Splits) -> str | None:
    """Return what of the files' sizes is against reading them as a whole.

    A file is read by one task then. Where Spark would divide one among more than two, the others
    would wait for it.
    """
    if not any(sizes):
        return "a table without files"
    largest = max(sizes)
    if largest > LARGEST_FILE:
        return f"a file of more than {LARGEST_FILE // 2**20} MiB"
    if largest > 2 * splits.bytes_of_task(sizes):
        return "files that are too few, or of too different sizes, for the tasks that there can be"
    return None


def odd_columns(files: ParquetFooters, wanted: pa.Schema) -> str | None:
    """Return what of the files' columns only Spark's own reader knows.

    Parameters
    ----------
    files : ParquetFooters
    wanted : pyarrow.Schema
        The columns that are read, with the types that Spark reads them as.
    """
    if files.folders:
        return "columns that are names of folders"
    if files.old_calendar and any(pa.types.is_temporal(field.type) for field in wanted):
        return "days or times that may be those of an old calendar"
    for message in files.messages:
        found = _columns_of(message)
        for field in wanted:
            own = found.get(field.name.lower())
            if own is None:
                return f"a file without the column {field.name!r}"
            kind, annotation = own
            if field.metadata or type_in_file(kind, annotation) != field.type:
                told = type_name(field.type)
                return f"the column {field.name!r} of type {told}, stored as {kind} {annotation}"
    return None


def bytes_of_columns(session: SparkSession, files: ParquetFooters) -> dict[str, int]:
    """Return what each column takes in the largest file, or in the first row group of it."""
    largest = max(zip(files.sizes, files.files, strict=True))[1]
    metadata = java_class(session, "org.apache.parquet.hadoop.ParquetFileReader").readFooter(
        session._jsparkSession.sessionState().newHadoopConf(),
        java_class(session, "org.apache.hadoop.fs.Path")(largest),
        java_class(
            session, "org.apache.parquet.format.converter.ParquetMetadataConverter"
        ).NO_FILTER,
    )
    found: dict[str, int] = {}
    for block in elements_of(metadata.getBlocks())[:1]:
        for column in elements_of(block.getColumns()):
            name = str(column.getPath().toArray()[0]).lower()
            found[name] = found.get(name, 0) + int(column.getTotalSize())
    return found


def odd_share(sizes: Mapping[str, int], columns: Sequence[str]) -> str | None:
    """Return whether most of a file would be read for nothing.

    Parameters
    ----------
    sizes : mapping of str to int
        Bytes of each column, by its name in small letters.
    columns : sequence of str
        Those that are read.
    """
    read = sum(sizes.get(name.lower(), 0) for name in columns)
    many = read * _BYTES_FOR_ONE < sum(sizes.values())
    return "the bytes of columns that are not listed" if many else None


def _columns_of(message: Any) -> dict[str, tuple[str, str]]:
    """Return of each column of a file what its values are stored as, and what they mean."""
    columns = {}
    for field in elements_of(message.getFields()):
        kind, annotation = "GROUP", field.getLogicalTypeAnnotation()
        if field.isPrimitive() and field.getRepetition().name() != "REPEATED":
            kind = str(field.asPrimitiveType().getPrimitiveTypeName().toString())
        told = "" if annotation is None else str(annotation.toString())
        columns[str(field.getName()).lower()] = (kind, told)
    return columns


def type_in_file(kind: str, annotation: str) -> pa.DataType | None:
    """Return the type of values that Spark and Arrow read alike; None for others.

    Parameters
    ----------
    kind : str
        Parquet's name of what they are stored as; ``GROUP`` for values that are not plain.
    annotation : str
        What they mean, as parquet-mr writes it; empty where a file says nothing.
    """
    if not annotation:
        return _UNANNOTATED.get(kind)
    if annotation == "STRING" and kind == "BINARY":
        return pa.string()
    if annotation == "DATE" and kind == "INT32":
        return pa.date32()
    if match := _SIGNED.fullmatch(annotation):
        bits = int(match[1])
        fits = kind == ("INT64" if bits == 64 else "INT32")
        return (
            {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[bits] if fits else None
        )
    if (match := _TIMESTAMP.fullmatch(annotation)) and kind == "INT64":
        return pa.timestamp("us", "UTC" if match[1] == "true" else None)
    if (match := _DECIMAL.fullmatch(annotation)) and int(match[1]) <= 38:
        return pa.decimal128(int(match[1]), int(match[2]))
    return None
