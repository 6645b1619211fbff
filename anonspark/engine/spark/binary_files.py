"""Parquet files that are decoded in Python tasks, handed over as they are.

Spark's own reader makes rows, and handing rows over to Python costs several times what decoding
them there does. Its source ``binaryFile`` hands over a whole file as one value: with Spark's file
systems and credentials, and the same files that its reader of Parquet would find.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyarrow import parquet
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from anonspark.engine.files import FilesError, literal
from anonspark.engine.spark.arrow import arrow_schema, spark_schema
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.engine.spark.made import Made
from anonspark.engine.spark.parquet_files import is_plain_schema
from anonspark.engine.spark.whole_files import odd_settings, odd_sizes, splits_of
from anonspark.engine.tasks import Batches
from anonspark.engine.values.whole_files import decode_file

CONTENT = "content"
"""Column of the files' bytes."""

# More than most footers have.
_TAIL = 1 << 16
# Their length, and the magic bytes.
_END = 8

_SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"
_VERSION_KEY = b"org.apache.spark.version"
# Of files that count days and times by an old calendar.
_LEGACY_KEYS = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")

_PATH = re.compile(r"\bpath=(.*?); isDirectory=false; length=(\d+);")


def open_own_parquet(spark: SparkSession, path: str) -> Made | None:
    """Open Parquet files that we wrote, to be decoded in Python.

    Parameters
    ----------
    spark : SparkSession
    path : str
        A directory of files.

    Returns
    -------
    Made or None
        None where only Spark's reader knows the files, or what to say of them: there are none, one
        is too large or damaged, or they have columns or footers that we do not write.

    Notes
    -----
    No job. The driver lists the files and reads the footer of the first one, by name, as Spark's
    reader does; the types of the columns of the others are compared when they are decoded.
    """
    try:
        found = _list_files(spark, path)
        if found is None:
            return None
        files, first, size = found
        schema = _own_schema(FileSystem(spark), first, size)
    except (PySparkException, Py4JError, FilesError, OSError, pa.ArrowException):
        return None
    if schema is None:
        return None
    decode = DecodeParquet(schema)

    def rows() -> DataFrame:
        return spark.read.schema(spark_schema(schema)).parquet(literal(path))

    return Made(files, decode, schema, decode.select, rows)


def _list_files(spark: SparkSession, path: str) -> tuple[DataFrame, str, int] | None:
    """Return the contents of the files, and path and bytes of the first one."""
    files = spark.read.format("binaryFile").load(literal(path))
    relation: Any = files._jdf.queryExecution().analyzed().relation()
    if relation.partitionSchema().length():
        return None
    statuses = relation.location().allFiles()
    # At once: each question to Java takes its time.
    listed = _PATH.findall(str(statuses.mkString("\n")))
    if not listed or len(listed) != statuses.size():
        return None
    sizes = [int(size) for _, size in listed]
    if odd_settings(spark) or odd_sizes(sizes, splits_of(spark)):
        return None
    first, size = min(listed)
    # Summaries that Spark would ask for the columns.
    if first.rpartition("/")[2].startswith("_"):
        return None
    return files.select(CONTENT), first, int(size)


def _own_schema(files: FileSystem, path: str, size: int) -> pa.Schema | None:
    """Return the columns that a file's footer tells; None where we would not write it."""
    tail = files.read_part(path, max(size - _TAIL, 0), min(size, _TAIL))
    needed = int.from_bytes(tail[-_END:-4], "little") + _END
    if needed > len(tail):
        if needed > size:
            return None
        tail = files.read_part(path, size - needed, needed)
    footer = parquet.read_metadata(pa.BufferReader(tail))
    told = footer.metadata or {}
    described, version = told.get(_SCHEMA_KEY), told.get(_VERSION_KEY, b"")
    if (
        described is None
        or version[:2] in (b"", b"1.", b"2.")
        or any(key in told for key in _LEGACY_KEYS)
    ):
        return None
    try:
        schema = st.StructType.fromJson(json.loads(described))
    except (ValueError, KeyError, TypeError, PySparkException):
        return None
    names = [name.lower() for name in schema.fieldNames()]
    plain = is_plain_schema(schema) and not any(field.metadata for field in schema)
    if not names or not plain or len(set(names)) < len(names):
        return None
    return arrow_schema(schema)


@dataclass(frozen=True)
class DecodeParquet:
    """Decodes files whose contents are values.

    Parameters
    ----------
    schema : pyarrow.Schema
        The columns to decode, in the order that they shall have.
    """

    schema: pa.Schema

    def select(self, names: Sequence[str]) -> DecodeParquet:
        """Return what decodes some of the columns."""
        return DecodeParquet(pa.schema([self.schema.field(name) for name in names]))

    def __call__(self, batches: Batches) -> Batches:
        """Yield the rows of the files, texts as dictionaries."""
        for batch in batches:
            for content in batch.column(CONTENT):
                # Files without a byte Spark's reader passes over as well.
                if len(content.as_buffer()):
                    yield from decode_file(
                        content.as_buffer(), self.schema, dictionaries=True, complete=False
                    )
