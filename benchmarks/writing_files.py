"""What it costs Spark's tasks to write Parquet files that they encoded, by each way that there is.

    .venv/bin/python benchmarks/writing_files.py build/people-5000000        # a folder of Parquet
    .venv/bin/python benchmarks/writing_files.py FOLDER --files 4 --runs 3

Prints the table of docs/measured.md: CPU seconds of driver, Java and workers, which a busy machine
may measure, and whether all ways with the same promise wrote the same bytes. A task reads a file,
decodes it in Python and writes it as one file of one row group.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from serial_seconds import cpu_seconds

from anonspark.engine.parquet_encoding import EncodedFile, Encoding
from anonspark.engine.spark.arrow import spark_schema
from anonspark.engine.spark.filesystem import files_of
from anonspark.engine.spark.parquet_files import (
    VALUES,
    encode_values,
    encoding_of,
    take_over_files,
    write_values,
)
from anonspark.engine.spark.session import open_session
from anonspark.engine.spark.tasks import map_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches = Iterator[pa.RecordBatch]
Write = Callable[[Any, str, str], None]
REPORT = pa.schema({"attempt": pa.string(), "sha256": pa.string()})


@dataclass(frozen=True)
class Rows:
    """Reads the file of each task's number as one batch."""

    files: Sequence[str]

    def __call__(self, batches: Batches) -> Batches:
        """Yield the rows."""
        for batch in batches:
            for task in batch.column(0).to_pylist():
                yield pq.read_table(self.files[task]).combine_chunks().to_batches()[0]


@dataclass(frozen=True)
class Job:
    """Files that tasks read and write."""

    session: SparkSession
    rows: Rows
    encoding: Encoding

    def tasks(self) -> DataFrame:
        """Return a number for each task."""
        count = len(self.rows.files)
        return self.session.range(0, count, 1, count).toDF("task")

    def decoded(self) -> DataFrame:
        """Return the rows, which Spark gets from Python."""
        return map_batches(self.tasks(), self.rows, spark_schema(self.encoding.columns))

    def encoded(self) -> DataFrame:
        """Return the bytes of each file."""
        encode = partial(encoded_bytes, self.rows, self.encoding)
        return map_batches(self.tasks(), encode, "content binary")


def encoded_bytes(rows: Rows, encoding: Encoding, batches: Batches) -> Batches:
    """Yield the parts of a task's file."""
    for part in EncodedFile(encoding).parts(rows(batches)):
        yield pa.RecordBatch.from_pydict({"content": pa.array([part], pa.binary())})


def write_nothing(job: Job, _aside: str, _path: str) -> None:
    """Encode files, and drop them: what all ways but that of rows have in common."""
    job.encoded().write.format("noop").mode("overwrite").save()


def write_text(job: Job, aside: str, path: str) -> None:
    """Write them as we do: texts by Spark's writer, renamed."""
    encode = partial(values_of, job.rows, job.encoding)
    write_values(map_batches(job.tasks(), encode, VALUES), aside)
    take_over_files(files_of(job.session), aside, path, "data")


def values_of(rows: Rows, encoding: Encoding, batches: Batches) -> Batches:
    """Yield the values of a task's file, for Spark's writer of text."""
    yield from encode_values(encoding, rows(batches))


def write_in_tasks(job: Job, aside: str, path: str) -> None:
    """Let each task write a file of its attempt by pyarrow.fs, and rename those that it reports."""
    attempt = partial(written_by_task, job.rows, job.encoding, aside)
    rows = map_batches(job.tasks(), attempt, spark_schema(REPORT)).collect()
    files = files_of(job.session)
    files.make_directory(f"{path}/data")
    names = {f"{aside}/{row.attempt}": f"{path}/data/{row.attempt[:10]}.parquet" for row in rows}
    files.rename_each(names)


def written_by_task(rows: Rows, encoding: Encoding, aside: str, batches: Batches) -> Batches:
    """Write a task's file, and report it."""
    yield pa.RecordBatch.from_pylist(
        [written_file(EncodedFile(encoding), rows(batches), aside)], REPORT
    )


def name_of_attempt() -> str:
    """Return a name for the file of a task, which no other attempt of it has."""
    context = TaskContext.get()
    part, number = (context.partitionId(), context.taskAttemptId()) if context else (0, 0)
    return f"part-{part:05d}-{number}"


def written_file(file: EncodedFile, row_groups: Batches, aside: str) -> dict[str, str]:
    """Write a file under a name that only this attempt has."""
    from pyarrow.fs import FileSystem

    attempt = name_of_attempt()
    # Of Hadoop's addresses pyarrow knows hdfs: and s3:, with credentials of its own.
    system, local = FileSystem.from_uri(f"file://{aside}")
    system.create_dir(local)
    with system.open_output_stream(f"{local}/{attempt}") as stream:
        for content in file.parts(row_groups):
            stream.write(content)
    return {"attempt": attempt, "sha256": file.sha256}


@dataclass
class Written(WriterCommitMessage):
    """What a task says of its file."""

    attempt: str


class EncodingSource(DataSource):
    """A Python data source that writes Parquet files, from rows or from bytes."""

    @classmethod
    def name(cls) -> str:
        """Return its format."""
        return "encoded"

    def writer(self, schema: Any, overwrite: bool) -> EncodingWriter:  # noqa: ARG002
        """Return the writer of a table."""
        return EncodingWriter(dict(self.options), schema)


@dataclass
class EncodingWriter(DataSourceArrowWriter):
    """Writes a file in each task, and renames those of the tasks that Spark committed."""

    options: dict[str, str]
    schema: Any

    def write(self, iterator: Batches) -> Written:
        """Write the rows of a task, as one row group, or its bytes."""
        batches = list(iterator)
        if batches[0].schema.names != ["content"]:
            table = pa.Table.from_batches(batches).combine_chunks()
            file = EncodedFile(Encoding.of(table.schema))
            whole = iter(table.to_batches())
            return Written(written_file(file, whole, self.options["aside"])["attempt"])
        attempt = name_of_attempt()
        Path(self.options["aside"]).mkdir(parents=True, exist_ok=True)
        with Path(self.options["aside"], attempt).open("wb") as stream:
            for batch in batches:
                for content in batch.column(0):
                    stream.write(content.as_buffer())
        return Written(attempt)

    def commit(self, messages: Sequence[Any]) -> None:
        """Give the files their names. Runs in a process of Python, not in the driver's."""
        path = Path(self.options["target"], "data")
        path.mkdir(parents=True)
        for message in messages:
            name = f"{message.attempt[:10]}.parquet"
            Path(self.options["aside"], message.attempt).rename(path / name)


def write_source_of_bytes(job: Job, aside: str, path: str) -> None:
    """Hand encoded files to a Python data source: to Java, and back to another worker."""
    _save(job.encoded(), aside, path)


def write_source_of_rows(job: Job, aside: str, path: str) -> None:
    """Hand rows to a Python data source, which encodes them."""
    _save(job.decoded(), aside, path)


def _save(frame: DataFrame, aside: str, path: str) -> None:
    frame.sparkSession.dataSource.register(EncodingSource)
    options = {"aside": aside, "target": path}
    frame.write.format("encoded").options(**options).mode("append").save()


def write_rows(job: Job, aside: str, path: str) -> None:
    """Hand rows to Spark's own writer of Parquet, and rename the files."""
    job.decoded().write.parquet(aside)
    files = files_of(job.session)
    files.make_directory(f"{path}/data")
    names = sorted(name for name, _ in files.files_below(aside) if name.startswith("part-"))
    renamed = {f"{aside}/{name}": f"{path}/data/{name[:10]}.parquet" for name in names}
    files.rename_each(renamed)


def write_sequence(job: Job, aside: str, _path: str) -> None:
    """Hand encoded files to Hadoop's SequenceFile, which no reader of Parquet reads."""
    pairs = job.encoded().rdd.map(lambda row: (row[0], None))
    pairs.saveAsNewAPIHadoopFile(
        aside,
        "org.apache.hadoop.mapreduce.lib.output.SequenceFileOutputFormat",
        keyClass="org.apache.hadoop.io.BytesWritable",
        valueClass="org.apache.hadoop.io.NullWritable",
    )


WAYS: dict[str, Write] = {
    "encoded, not written": write_nothing,
    "text source (ours)": write_text,
    "tasks, by pyarrow.fs": write_in_tasks,
    "Python data source, of bytes": write_source_of_bytes,
    "Python data source, of rows": write_source_of_rows,
    "Spark's Parquet writer": write_rows,
    "Hadoop's SequenceFile, by an RDD": write_sequence,
}


def sum_of(folder: Path) -> str:
    """Return a hash of the names and bytes of the files in a folder."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.parquet")):
        digest.update(file.name.encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:8] if folder.exists() else ""


def main() -> None:
    """Measure each way, in turns, and print a line of each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    files = sorted(map(str, options.folder.resolve().glob("*.parquet")))[: options.files]
    with open_session("local[2]") as spark, tempfile.TemporaryDirectory() as folder:
        encoding = encoding_of(spark, pq.read_schema(files[0]).remove_metadata())
        used: dict[str, list[float]] = {name: [] for name in WAYS}
        clock: dict[str, list[float]] = {name: [] for name in WAYS}
        sums: dict[str, str] = {}
        # The first of several turns warms up Java and the workers.
        for turn in range(0 if options.runs > 1 else 1, options.runs + 1):
            job = Job(spark, Rows(files if turn else files[:2]), encoding)
            for name, write in WAYS.items():
                aside, path = f"{folder}/aside", f"{folder}/release"
                before, start = sum(cpu_seconds()), time.monotonic()
                write(job, aside, path)
                if turn:
                    used[name].append(sum(cpu_seconds()) - before)
                    clock[name].append(time.monotonic() - start)
                    sums[name] = sum_of(Path(path, "data"))
                for written in (aside, path):
                    shutil.rmtree(written, ignore_errors=True)
        ours = statistics.median(used["text source (ours)"])
        for name, seconds in used.items():
            cpu = statistics.median(seconds)
            figures = {"cpu": round(cpu, 2), "of ours": round(cpu / ours, 2)}
            least = round(min(clock[name]), 2)
            print(json.dumps({"way": name, **figures, "clock": least, "bytes": sums[name]}))
        print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
