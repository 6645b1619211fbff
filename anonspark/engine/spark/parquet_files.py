"""Write Parquet files that tasks encode as a whole, by Spark's writer of text.

Row by row, the way from Python to Java and into a file takes longer than encoding the file in
Python. Spark's text writer writes the bytes of a value unchanged, and then the line's end. A
Parquet file ends with the letters ``PAR1``, and bytes between its row groups have no meaning. So a
file is a text of lines that end with ``PAR1``: each is a row group, and the last one the footer.
Spark's committers and file systems move it to its path, also if a task runs again, or twice at the
same time.

Tried for it (``benchmarks/writing_files.py``, docs/measured.md), in CPU seconds of this way:

- The task's own file by pyarrow.fs, 0.5 to 0.9, has neither Hadoop's credentials nor a commit
  protocol, and HDFS needs libhdfs, which no wheel has. A worker has no gateway to its Java.
- A Python data source of the bytes, 1.4 to 1.6, or of rows, 2.5 to 3.4, has a commit protocol. But
  its writer runs in such a worker, too.
- Spark's Parquet writer, 2.0 to 2.6, has encryption and filters, but its bytes differ by version.
- RDDs write SequenceFiles, 1.6 to 1.9, which no reader of Parquet reads, or texts, which Java
  decodes. Spark's source ``binaryFile`` only reads.
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
)
from anonspark.engine.spark.connect import MountedFiles
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.engine.spark.settings import parquet_settings
from anonspark.engine.tasks import Batches, task_number
from anonspark.errors import PublishingError

KIND = "kind"
VALUES = f"{KIND} string, value string"
"""The output of a task: row groups and footer of its file, and its facts."""

_CONTENT, _DESCRIPTION = "content", "description"

# Settings that would hide data from readers, or that ask for another form of files.
_NOT_FOLLOWED = ("bloom.filter", "crypto", "encryption", "writer.version")
_CODEC = "spark.sql.parquet.compression.codec"


def encode_values(encoding: Encoding, row_groups: Batches) -> Batches:
    """Encode row groups as a file, and yield its values as rows of :data:`VALUES`.

    Yields nothing if there is no row group.
    """
    file = EncodedFile(encoding)
    for part in file.parts(row_groups):
        # Spark writes the magic bytes, as the end of a line.
        yield _value(_CONTENT, part.removesuffix(MAGIC))
    if file.size:
        description = {
            "part": task_number(),
            "bytes": file.size,
            "rows": file.rows,
            "sha256": file.sha256,
        }
        yield _value(_DESCRIPTION, json.dumps(description).encode())


def _value(kind: str, content: bytes) -> pa.RecordBatch:
    """Return a row of :data:`VALUES` with some bytes."""
    # Bytes in the type of texts, so nothing may decode them.
    offsets = pa.array([0, len(content)], pa.int32()).buffers()[1]
    value = pa.StringArray.from_buffers(1, offsets, pa.py_buffer(content))
    return pa.RecordBatch.from_arrays([pa.array([kind]), value], [KIND, "value"])


def find_unknown_settings(spark: SparkSession) -> list[str]:
    """Return the settings of Parquet files that our encoder cannot follow, and must not ignore."""
    unknown = [
        key
        for key in parquet_settings(spark)
        if key.removeprefix("parquet.").startswith(_NOT_FOLLOWED)
    ]
    return unknown + [_CODEC] * (_codec(spark) not in CODECS)


def _codec(spark: SparkSession) -> str:
    """Return the codec that the session is set to."""
    return (spark.conf.get(_CODEC, None) or "snappy").lower()


def encoding_of(spark: SparkSession, schema: pa.Schema) -> Encoding:
    """Return the encoding of a table, with the codec that the session is set to."""
    return Encoding.of(schema, _codec(spark))


def write_values(values: DataFrame, path: str) -> None:
    """Write the values that tasks encoded, for :func:`take_over_files`. A partition is a file."""
    writer = values.write.partitionBy(KIND).option("lineSep", MAGIC.decode())
    # The session may have other options for text files.
    writer.option("compression", "none").option("maxRecordsPerFile", 0).text(path)


def take_over_files(
    files: FileSystem | MountedFiles, path: str, release: str, directory: str
) -> list[PublishedFile]:
    """Move the files of :func:`write_values` to a new directory of a release, and name them.

    Removes the old path. One small job, which reads the reports of the tasks: the same attempt of a
    task wrote a file and its report. Raises PublishingError if files differ from the reports.
    """
    reader = files.spark.read.schema("value string").option("lineSep", MAGIC.decode())
    rows = reader.text(f"{literal(path)}/{KIND}={_DESCRIPTION}").collect()
    reports = {report["part"]: report for report in (json.loads(row.value) for row in rows)}
    content = f"{path}/{KIND}={_CONTENT}"
    # Spark's names: part-00000-...
    sizes = {int(name.split("-")[1]): (name, size) for name, size in files.files_below(content)}
    if len(reports) != len(rows) or {part: size for part, (_, size) in sizes.items()} != {
        part: report["bytes"] for part, report in reports.items()
    }:
        raise PublishingError(
            "output.path: the files in the staging directory are not as large as they were "
            "written. Nothing was published. Look whether something else writes there, then run "
            "again"
        )
    files.make_directory(f"{release}/{directory}")
    names = {
        part: f"{directory}/part-{number:05d}.parquet" for number, part in enumerate(sorted(sizes))
    }
    files.rename_each(
        {f"{content}/{sizes[part][0]}": f"{release}/{name}" for part, name in names.items()}
    )
    files.delete(path)
    return [
        PublishedFile(name, report["bytes"], report["rows"], report["sha256"])
        for name, report in ((name, reports[part]) for part, name in names.items())
    ]
