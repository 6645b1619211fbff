"""Read tables of text files in tasks, by the reader of both engines.

Files up to a size, or that cannot be cut, come as a whole (Spark's source ``binaryFile``). Larger
ones come as lines (its source ``text``), which Spark divides among tasks.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from anonspark.engine.data_files import DataFile, DataFiles, Folders, find_files
from anonspark.engine.files import Files, literal
from anonspark.engine.raw_columns import WantedColumns
from anonspark.engine.reading_errors import TableAddress, different_headers, reading_file
from anonspark.engine.spark.file_contents import largest_whole_file
from anonspark.engine.spark.filesystem import files_of, path_for
from anonspark.engine.spark.python_stage import PythonStage, stage_of
from anonspark.engine.struct_fields import with_struct_fields
from anonspark.engine.tasks import Batches
from anonspark.engine.text_tables import open_reader, read_schema
from anonspark.engine.values.csv_reader import CsvReader
from anonspark.engine.values.text_forms import Forms
from anonspark.engine.values.text_reader import Reader
from anonspark.errors import DataError

# Bytes of lines to read at once, and of a file to read for its first line.
_BLOCK, _BEGINNING = 8 * 2**20, 2**20

_ORIGIN, _CONTENT = "origin", "content"
_FORMS = pa.schema([("forms", pa.string()), ("problem", pa.string())])


def open_text_files(
    spark: SparkSession,
    address: TableAddress,
    options: Mapping[str, str],
    texts: Sequence[str],
    selection: WantedColumns | None,
) -> PythonStage:
    """Open a table of text files. See :func:`anonspark.engine.spark.tables.open_table`.

    The driver lists the files, and reads the first line of the first file and of each large one.
    One job infers the types of columns, unless all are texts.
    """
    system = files_of(spark)
    listed = find_files(system, address.paths, address.key, selection)
    files = listed.files
    reader = open_reader(address, listed, options, texts, selection, partial(first_line, system))
    limit = largest_whole_file(spark, [file.bytes for file in files])
    cut_files = {
        str(index): file
        for index, file in enumerate(files)
        if file.bytes > limit and _comes_as_lines(system, reader, file)
    }
    by_origin = {file.address: file for file in files if file not in cut_files.values()} | cut_files
    rows = _Rows(reader, by_origin, Counter(file.address for file in files))
    contents = _contents(spark, address.paths, files, cut_files, limit)

    def infer() -> Forms:
        collected = stage_of(contents, _InferForms(rows), _FORMS).frame().collect()
        if problems := [row.problem for row in collected if row.problem]:
            # The first message by the name of its file, whichever task ended first.
            raise DataError(min(problems))
        return Forms.of_texts(row.forms for row in collected)

    schema = read_schema(address, reader, infer)
    full_schema = with_struct_fields(listed.schema(schema))
    read = _ReadColumns(rows, schema, DataFiles((), listed.folders), full_schema)
    return PythonStage(contents, read, full_schema, read.select)


def first_line(system: Files, reader: Reader, file: DataFile) -> str:
    """Return the first line of a file, or an empty text."""
    content = system.read_part(file.address, 0, min(file.bytes, _BEGINNING))
    with reading_file(reader.where, file.address):
        return reader.first_line(io.BytesIO(content), file.address)


def _comes_as_lines(system: Files, reader: Reader, file: DataFile) -> bool:
    """Return whether Spark may divide a large file into lines among tasks.

    A task cannot compare the header, so it is compared here. Raises DataError if it names other
    columns than that of the table's first file.
    """
    beginning = system.read_part(file.address, 0, 8)
    # Among divided lines, the one that names the separator would not be seen first.
    if b"sep=" in beginning.lower() or not reader.can_be_cut(file.address, beginning):
        return False
    if not isinstance(reader, CsvReader) or not reader.header:
        return True
    line = first_line(system, reader, file)
    names = [[name.lower() for name in reader.values(text)] for text in (line, reader.header_line)]
    if names[0] != names[1]:
        raise different_headers(reader.where)
    # Tasks recognize a header by its text, which must be that of the first file.
    return line == reader.header_line


def _contents(
    spark: SparkSession,
    paths: Sequence[str],
    files: Sequence[DataFile],
    lines: Mapping[str, DataFile],
    limit: int,
) -> DataFrame:
    """Load whole files as bytes, and large files that can be divided as lines. Lazy.

    :data:`_ORIGIN` is the address of a file, or the key in ``lines`` of the file of a line.
    """
    frames = []
    binary = spark.read.format("binaryFile")
    if any(file.bytes <= limit for file in files):
        # Directories, not each file: Spark lists all files of a directory at once.
        system = files_of(spark)
        listed = binary.option("recursiveFileLookup", "true").load(
            [
                literal(path) if system.exists(path) else path
                for path in (path_for(spark, path) for path in paths)
            ]
        )
        frames.append(listed.where(sf.col("length") <= limit))
    uncut = {f.address for f in files if f.bytes > limit and f not in lines.values()}
    if uncut:
        frames.append(binary.load([literal(address) for address in sorted(uncut)]))
    columns = [frame.select(sf.col("path").alias(_ORIGIN), _CONTENT) for frame in frames]
    columns += [
        spark.read.text(literal(file.address)).select(
            sf.lit(key).alias(_ORIGIN), sf.col("value").cast("binary").alias(_CONTENT)
        )
        for key, file in lines.items()
    ]
    return reduce(DataFrame.union, columns)


@dataclass(frozen=True)
class _Rows:
    """Converts rows of bytes to blocks of whole lines.

    ``files`` has the file of each origin. Rows of other origins are passed over. ``times`` says how
    often a whole file was named, for which Spark has one row.
    """

    reader: Reader
    files: Mapping[str, DataFile]
    times: Mapping[str, int] = field(default_factory=dict)

    def blocks(self, batches: Batches) -> Iterator[tuple[Folders, Iterator[bytes]]]:
        """Yield blocks of a whole file or of adjacent lines, with the values that folders name."""
        waiting: list[bytes] = []
        origin = ""
        for batch in filter(len, batches):
            origins, contents = batch.columns
            first = origins[0].as_py()
            if not first.isdecimal():
                for key, content in zip(origins.to_pylist(), contents, strict=True):
                    for _ in range(self.times.get(key, 1) if key in self.files else 0):
                        yield self.files[key].folders, self._of_file(key, content.as_buffer())
                continue
            if first != origin or sum(map(len, waiting)) > _BLOCK:
                yield from self._of_lines(origin, waiting)
                origin, waiting = first, []
            waiting.append(_joined(contents))
        yield from self._of_lines(origin, waiting)

    def _of_file(self, address: str, content: pa.Buffer) -> Iterator[bytes]:
        """Yield the blocks of a whole file."""
        with reading_file(self.reader.where, address):
            yield from self.reader.blocks(io.BytesIO(content), address)

    def _of_lines(
        self, origin: str, waiting: Sequence[bytes]
    ) -> Iterator[tuple[Folders, Iterator[bytes]]]:
        """Yield the blocks of lines, with the values that their file's folders name."""
        if waiting:
            # Read from byte 1 on: the first line of a file might be taken for its header.
            content = io.BytesIO(b"".join([b"\n", *waiting]))
            file = self.files[origin]
            yield file.folders, self.reader.blocks(content, f"a part of {file.address}", 1)


def _joined(lines: pa.Array) -> bytes:
    r"""Join lines, with a line feed behind each.

    >>> _joined(pa.array([b"39,m", b"41,f"]))
    b'39,m\n41,f\n'
    """
    ended = pc.binary_join_element_wise(lines, b"", b"\n")
    _, offsets, data = ended.buffers()
    ends = np.frombuffer(offsets, np.int32)
    return bytes(memoryview(data)[ends[ended.offset] : ends[ended.offset + len(ended)]])


@dataclass(frozen=True)
class _InferForms:
    """Infers the forms of values in the rows of a task, and yields these and the first error."""

    rows: _Rows

    def __call__(self, batches: Batches) -> Batches:
        forms, problems = Forms(), []
        for folders, blocks in self.rows.blocks(batches):
            try:
                forms |= self.rows.reader.in_folders(folders).infer(blocks)
            except DataError as error:
                problems.append(str(error))
        row = {"forms": forms.to_text(), "problem": min(problems, default=None)}
        yield pa.RecordBatch.from_pylist([row], _FORMS)


@dataclass(frozen=True)
class _ReadColumns:
    """Reads ``columns`` of text files, of the files' schema, of folders, or fields of structs."""

    rows: _Rows
    schema: pa.Schema
    folders: DataFiles
    columns: pa.Schema

    def select(self, names: Sequence[str]) -> _ReadColumns:
        """Return the reader of some of the columns."""
        return replace(self, columns=pa.schema(map(self.columns.field, names)))

    def __call__(self, batches: Batches) -> Batches:
        for folders, blocks in self.rows.blocks(batches):
            yield from self.folders.read(
                self.rows.reader, folders, blocks, self.schema, self.columns
            )
