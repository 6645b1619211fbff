"""Parquet files that tasks encode as a whole, and Spark writes as it writes text.

Row by row, the way from Python to Java and into a file takes longer than encoding the file in
Python. Spark's text writer puts the bytes of a value into a file as they are, and the line's end
behind them; a Parquet file ends with the letters ``PAR1``, and what lies between its row groups
belongs to nobody. So a file is some values, one a row group and the last one the footer, of a text
whose lines end with ``PAR1``. Spark's own committers and file systems bring it where it belongs,
also where a task is run again or twice at a time.
"""

from __future__ import annotations

import json

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from anonspark.engine.files import PublishedFile, literal
from anonspark.engine.parquet_encoding import (
    CODECS,
    MAGIC,
    EncodedFile,
    Encoding,
    nullable,
    spark_description,
)
from anonspark.engine.raw_columns import is_publishable
from anonspark.engine.spark.arrow import spark_schema
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.engine.spark.java_objects import elements_of
from anonspark.engine.spark.python_stage import is_whole_type
from anonspark.engine.tasks import Batches, task_number
from anonspark.errors import PublishingError

KIND = "kind"
VALUES = f"{KIND} string, value string"
"""What a task yields: row groups and footer of its file, and what is to be told of it."""

_CONTENT, _DESCRIPTION = "content", "description"

# Those that bring files where they belong as they are. Spark's own writer knows what to do with
# others.
_COMMITTERS = (
    None,
    "org.apache.parquet.hadoop.ParquetOutputCommitter",
    "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter",
)


_UNPROVABLE = ("bloom.filter", "crypto", "encryption", "writer.version")


def encode_values(encoding: Encoding, row_groups: Batches) -> Batches:
    """Encode a file.

    Parameters
    ----------
    encoding : Encoding
    row_groups : iterator of pyarrow.RecordBatch
        Of the encoding's columns.

    Yields
    ------
    pyarrow.RecordBatch
        Of :data:`VALUES`, one row each; none where there is no row group.
    """
    file = EncodedFile(encoding)
    for part in file.parts(row_groups):
        # Spark writes the last bytes, as the end of a line.
        yield _value(_CONTENT, part.removesuffix(MAGIC))
    if file.size:
        told = {
            "part": task_number(),
            "bytes": file.size,
            "rows": file.rows,
            "sha256": file.sha256,
        }
        yield _value(_DESCRIPTION, json.dumps(told).encode())


def _value(kind: str, content: bytes) -> pa.RecordBatch:
    # No text, so nothing may look at it.
    offsets = pa.array([0, len(content)], pa.int32()).buffers()[1]
    value = pa.StringArray.from_buffers(1, offsets, pa.py_buffer(content))
    return pa.RecordBatch.from_arrays([pa.array([kind]), value], [KIND, "value"])


def find_unprovable_settings(spark: SparkSession) -> list[str]:
    """Return the Hadoop settings of whose files nobody can prove that they hold nothing else.

    Bloom filters, what is encrypted, and pages of the format's second version.
    """
    return [f"parquet.{key}" for key in _hadoop_settings(spark) if key.startswith(_UNPROVABLE)]


def _hadoop_settings(spark: SparkSession) -> list[str]:
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()
    return sorted(map(str, elements_of(hadoop.getPropsWithPrefix("parquet.").keySet())))


def find_encoding(spark: SparkSession, schema: pa.Schema) -> Encoding | str:
    """Return how to encode a table, or why Spark's own writer has to.

    Parameters
    ----------
    spark : SparkSession
        With :data:`anonspark.engine.spark.settings.SQL_SETTINGS`; what else it says of Parquet
        files is kept to.
    schema : pyarrow.Schema
        As :func:`anonspark.engine.spark.arrow.arrow_schema` has it.

    Returns
    -------
    Encoding or str
        In words, the setting or the type of column that only Spark's writer knows.
    """
    odd = {
        own.dataType.simpleString()
        for field, own in zip(schema, spark_schema(schema), strict=True)
        if not (is_whole_type(field) and is_publishable(field.type))
    }
    if odd:
        return f"columns of type {', '.join(sorted(odd))}"
    committer = "spark.sql.parquet.output.committer.class"
    if spark.conf.get(committer, None) not in _COMMITTERS:
        return committer
    for key in _hadoop_settings(spark):
        return f"parquet.{key}"
    codec = (spark.conf.get("spark.sql.parquet.compression.codec", None) or "snappy").lower()
    if codec not in CODECS:
        return "spark.sql.parquet.compression.codec"
    columns = nullable(schema)
    return Encoding(columns, spark_description(columns), codec)


def write_values(values: DataFrame, path: str) -> None:
    """Write what tasks have encoded.

    Parameters
    ----------
    values : DataFrame
        Of :data:`VALUES`; a partition is a file.
    path : str
        Directory for :func:`take_over_files`.
    """
    writer = values.write.partitionBy(KIND).option("lineSep", MAGIC.decode())
    # Whatever the session says of text files.
    writer.option("compression", "none").option("maxRecordsPerFile", 0).text(path)


def take_over_files(
    files: FileSystem, path: str, release: str, directory: str
) -> list[PublishedFile]:
    """Move the files that were written to a directory of a release, and name them.

    Parameters
    ----------
    files : FileSystem
    path : str
        Where :func:`write_values` has written; it is removed.
    release : str
        The release's directory.
    directory : str
        Relative to it; is made.

    Returns
    -------
    list of PublishedFile

    Raises
    ------
    PublishingError
        If files are not as the tasks that wrote them told.

    Notes
    -----
    One small job, which reads what the tasks told. It lies beside the files, and the same attempt
    of a task has written both.
    """
    reader = files.spark.read.schema("value string").option("lineSep", MAGIC.decode())
    rows = reader.text(f"{literal(path)}/{KIND}={_DESCRIPTION}").collect()
    described = {told["part"]: told for told in (json.loads(row.value) for row in rows)}
    content = f"{path}/{KIND}={_CONTENT}"
    # As Spark names them: part-00000-...
    sizes = {int(name.split("-")[1]): (name, size) for name, size in files.files_below(content)}
    if len(described) != len(rows) or {part: size for part, (_, size) in sizes.items()} != {
        part: told["bytes"] for part, told in described.items()
    }:
        raise PublishingError(
            "output.path: the files in the staging directory are not as large as they were "
            "written; nothing was published. Look whether something else writes there, then run "
            "again"
        )
    files.make_directory(f"{release}/{directory}")
    published = []
    for number, part in enumerate(sorted(sizes)):
        told = described[part]
        name = f"{directory}/part-{number:05d}.parquet"
        files.rename(f"{content}/{sizes[part][0]}", f"{release}/{name}")
        published.append(PublishedFile(name, told["bytes"], told["rows"], told["sha256"]))
    files.delete(path)
    return published
