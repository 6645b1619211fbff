"""Parquet files that tasks encode as a whole, and Spark writes as it writes text.

Row by row, the way from Python to Java and into a file takes longer than encoding the file in
Python. Spark's text writer puts the bytes of a value into a file as they are, and the line's end
behind them. A Parquet file ends with the letters ``PAR1``, and what lies between its row groups has
no meaning. So a file is some values, one a row group and the last one the footer, of a text whose
lines end with ``PAR1``. Spark's own committers and file systems bring it where it belongs, also
where a task is run again or twice at a time.
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

# What would be hidden from readers, or what they are asked to find in another form.
_NOT_FOLLOWED = ("bloom.filter", "crypto", "encryption", "writer.version")
_CODEC = "spark.sql.parquet.compression.codec"


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
        Of :data:`VALUES`, one row each. None where there is no row group.
    """
    file = EncodedFile(encoding)
    for part in file.parts(row_groups):
        # Spark writes the last bytes, as the end of a line.
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
    # No text, so nothing may look at it.
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
    return (spark.conf.get(_CODEC, None) or "snappy").lower()


def encoding_of(spark: SparkSession, schema: pa.Schema) -> Encoding:
    """Return how to encode a table: as Spark does, with its configured codec."""
    return Encoding.of(schema, _codec(spark))


def write_values(values: DataFrame, path: str) -> None:
    """Write what tasks have encoded.

    Parameters
    ----------
    values : DataFrame
        Of :data:`VALUES`. A partition is a file.
    path : str
        Directory for :func:`take_over_files`.
    """
    writer = values.write.partitionBy(KIND).option("lineSep", MAGIC.decode())
    # Whatever the session says of text files.
    writer.option("compression", "none").option("maxRecordsPerFile", 0).text(path)


def take_over_files(
    files: FileSystem | MountedFiles, path: str, release: str, directory: str
) -> list[PublishedFile]:
    """Move the files that were written to a directory of a release, and name them.

    Parameters
    ----------
    files : FileSystem or MountedFiles
    path : str
        Where :func:`write_values` has written. It is removed.
    release : str
        The release's directory.
    directory : str
        Relative to it. Is made.

    Returns
    -------
    list of PublishedFile

    Raises
    ------
    PublishingError
        If files differ from the reports of the tasks that wrote them.

    Notes
    -----
    One small job, which reads the reports of the tasks. It lies beside the files, and the same
    attempt of a task has written both.
    """
    reader = files.spark.read.schema("value string").option("lineSep", MAGIC.decode())
    rows = reader.text(f"{literal(path)}/{KIND}={_DESCRIPTION}").collect()
    described = {about["part"]: about for about in (json.loads(row.value) for row in rows)}
    content = f"{path}/{KIND}={_CONTENT}"
    # As Spark names them: part-00000-...
    sizes = {int(name.split("-")[1]): (name, size) for name, size in files.files_below(content)}
    if len(described) != len(rows) or {part: size for part, (_, size) in sizes.items()} != {
        part: about["bytes"] for part, about in described.items()
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
        PublishedFile(name, about["bytes"], about["rows"], about["sha256"])
        for name, about in ((name, described[part]) for part, name in names.items())
    ]
