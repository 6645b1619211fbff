"""Read Parquet files as rows of their bytes, which tasks decode.

Row by row, the way from Java to Python takes longer than all work on records in Python. As one
value each, files take next to no time. Spark's source ``binaryFile`` reads them with Spark's file
systems and credentials, in tasks like those of every other table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

import pyarrow as pa
from py4j.protocol import Py4JError
from pyarrow import parquet
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from anonspark.engine.data_files import (
    DataFile,
    DataFiles,
    FileSchemas,
    folders_of,
    listed_files,
    typed_folders,
)
from anonspark.engine.files import Files, FilesError, literal
from anonspark.engine.local.columnar_files import open_orc, reads_of
from anonspark.engine.parquet_encoding import nullable
from anonspark.engine.raw_columns import is_publishable, type_name
from anonspark.engine.spark.arrow import arrow_schema, spark_schema
from anonspark.engine.spark.file_schemas import ParquetFooters
from anonspark.engine.spark.filesystem import files_of
from anonspark.engine.spark.python_stage import PythonStage
from anonspark.engine.spark.settings import parquet_settings, sizes_of_tasks
from anonspark.engine.struct_fields import struct_fields
from anonspark.engine.tasks import Batches
from anonspark.engine.values.file_types import is_read_as
from anonspark.engine.values.whole_files import Share, decode_file

LARGEST_FILE = 128 * 2**20
"""Bytes of the largest file that one task reads as a whole.

The task holds it about four times: in Java, on the way, and in Python. If all tasks reach the disk
of a larger file, each reads row groups of it, a buffer of each column at a time.
"""

_LOGGER = logging.getLogger("anonspark")

_FAILURES = (PySparkException, Py4JError, FilesError, OSError, pa.ArrowException)

# If fewer than one in so many bytes of a file are of wanted columns, Spark, which reads only these,
# is as fast.
_BYTES_FOR_ONE = 4

# Spark's reader divides a file by row groups, and rows take three times as long as a whole file. So
# it is no faster with up to so many row groups, as with files of Spark, which mostly have one.
_FEW_ROW_GROUPS = 3

# Options that decide which files are read, but not how.
_HARMLESS = ("modifiedafter", "modifiedbefore", "pathglobfilter", "recursivefilelookup")

# More bytes than most footers have, and the bytes of a footer's length and the magic.
_TAIL, _END = 1 << 16, 8

# Entries in the footers of our files: their columns, and Spark's version.
_SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"
_VERSION_KEY = b"org.apache.spark.version"
# Entries of files that count days and times by the Julian calendar.
_LEGACY_KEYS = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


@dataclass(frozen=True)
class SourceFiles:
    """The files of an opened table, with the options of its format and texts that mean missing.

    ``level`` is that of the log's line about why rows are handed over. The reason may be sizes,
    which ``select`` shows only in a debug log.
    """

    files: FileSchemas | None = None
    paths: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    markers: Sequence[str] = ()
    level: int = logging.DEBUG

    def select(self, frame: DataFrame, columns: Mapping[str, str]) -> PythonStage | None:
        """Return columns under new names, decoded by our tasks, or None if Spark must read them.

        The reason for None is logged.
        """
        schema = arrow_schema(frame.schema)
        chosen = pa.schema(map(schema.field, dict.fromkeys(columns.values())))
        session, names = frame.sparkSession, self.files.folders if self.files else ()
        stored = pa.schema([column for column in chosen if column.name not in names])
        reason = find_reason_for_rows(session, self.files, self.options, stored)
        listed = [] if reason else listed_files(files_of(session), self.paths)
        if reason is None and not self._are_as_they_were(listed):
            # Reading by Spark raises the error of a file that vanished.
            reason = "files that changed since the table was opened"
        missing = dict.fromkeys(names, frozenset[str]())
        for name in missing.keys() & set(schema.names) if reason is None else ():
            texts = {file.folders.get(name) for file in listed}
            data_type, missing[name] = typed_folders(texts, self.markers)
            if schema.field(name).type != data_type:
                reason = "columns that are names of folders"
        if names and any(list(file.folders) != list(names) for file in listed):
            reason = reason or "columns that are names of folders"
        if reason is not None:
            _LOGGER.log(self.level, "the input is handed over row by row, because of %s", reason)
            return None

        def contents() -> DataFrame:
            files = session.read.format("binaryFile").options(**self.options)
            return files.load(list(self.paths))

        decode = DecodeParquet(chosen, folders=missing)
        return decoded(session, listed, contents, decode, lambda: frame).select(columns)

    def _are_as_they_were(self, listed: Sequence[DataFile]) -> bool:
        """Return whether all files still have their sizes: Spark lists them again."""
        if not isinstance(self.files, ParquetFooters):
            return False
        bytes_of_file = {file.address: file.bytes for file in listed}
        sizes = zip(self.files.files, self.files.sizes, strict=True)
        return all(bytes_of_file.get(file) == size for file, size in sizes)


def decoded(
    session: SparkSession,
    files: Sequence[DataFile],
    contents: Callable[[], DataFrame],
    decode: DecodeParquet,
    rows: Callable[[], DataFrame],
) -> PythonStage:
    """Decode Parquet files in tasks of ours, which read one file each, or divide large files.

    ``contents`` opens the files with Spark's source ``binaryFile``, ``rows`` with Spark's reader.
    """
    sizes = [file.bytes for file in files]
    is_local = all(file.address.startswith("file:") for file in files)
    if not is_local or max(sizes, default=0) <= largest_whole_file(session, sizes):
        source = contents().select("content", "path")
    else:
        decode = replace(decode, shares=_shares(files, *sizes_of_tasks(session)))
        tasks = len(decode.shares)
        source = session.range(0, tasks, 1, tasks).toDF("task")
    return PythonStage(source, decode, decode.schema, decode.select, rows)


def _shares(files: Sequence[DataFile], opening: int, limit: int, tasks: int) -> list[list[Share]]:
    """Return the shares that each task reads, with as many bytes as Spark would give it."""
    total = sum(file.bytes + opening for file in files)
    of_task = min(limit, max(opening, total // tasks))
    shares: list[list[Share]] = []
    bytes_of_last = of_task
    for file in files:
        parts = max(round(file.bytes / of_task), 1)
        for part in range(parts):
            bytes_of_last += file.bytes // parts + opening
            if bytes_of_last > of_task:
                shares.append([])
                bytes_of_last = file.bytes // parts + opening
            shares[-1].append(Share(file.address, file.bytes, part, parts))
    return shares


def find_reason_for_rows(
    session: SparkSession,
    files: FileSchemas | None,
    options: Mapping[str, str],
    columns: pa.Schema,
) -> str | None:
    """Return why tasks of ours cannot decode the files of a table, or None if they can.

    ``columns`` are those to read, with Spark's types.
    """
    if not isinstance(files, ParquetFooters):
        return "a table of another kind than Parquet files"
    if unknown := sorted(name for name in options if name.lower() not in _HARMLESS):
        return f"input.options.{unknown[0]}"
    if files.old_calendar and any(pa.types.is_temporal(column.type) for column in columns):
        return "days or times that may be those of an old calendar"
    if reason := find_odd_setting(session) or find_odd_size(session, files.sizes, files.files):
        return reason
    try:
        # A file of each kind, and the largest.
        largest = max(range(len(files.sizes)), key=files.sizes.__getitem__)
        footers = [
            read_footer(files_of(session), files.files[index], files.sizes[index])
            for index in (largest, *files.examples)
        ]
    except _FAILURES:
        return "a footer that cannot be read"
    if reason := find_odd_size(session, files.sizes, files.files, footers[0].num_row_groups):
        return reason
    return find_odd_column(footers, columns) or find_odd_share(footers[0], columns.names)


def find_odd_setting(session: SparkSession) -> str | None:
    """Return a setting, beyond ours, that decides how Spark reads Parquet files, or None."""
    if keys := parquet_settings(session):
        return keys[0]
    key = "spark.sql.sources.binaryFile.maxLength"
    return key if int(session.conf.get(key, None) or LARGEST_FILE) < LARGEST_FILE else None


def find_odd_size(
    session: SparkSession, sizes: Sequence[int], addresses: Sequence[str], row_groups: int = 0
) -> str | None:
    """Return what prevents decoding files in tasks of ours, or None if nothing does.

    On a disk files have any size: tasks read parts of them. Elsewhere one task reads a file as a
    whole, so it must fit into memory and not delay the others (:func:`largest_whole_file`). With
    few ``row_groups`` in the largest file (0: unknown), Spark's own reader would be no faster.
    """
    if not any(sizes):
        return "a table without files"
    if all(address.startswith("file:") for address in addresses):
        return None
    if max(sizes) > LARGEST_FILE:
        return f"a file of more than {LARGEST_FILE // 2**20} MiB"
    if row_groups > _FEW_ROW_GROUPS and max(sizes) > largest_whole_file(session, sizes):
        return "files that are too few, or of too different sizes, for the tasks that there can be"
    return None


def largest_whole_file(session: SparkSession, sizes: Sequence[int]) -> int:
    """Return the bytes of the largest file that one task may read without delaying the others.

    Spark would divide a larger one among more than two tasks, given the sizes of a table's files.
    """
    opening, limit, tasks = sizes_of_tasks(session)
    of_task = min(limit, max(opening, (sum(sizes) + len(sizes) * opening) // tasks))
    return min(LARGEST_FILE, 2 * of_task)


def find_odd_column(footers: Iterable[parquet.FileMetaData], columns: pa.Schema) -> str | None:
    """Return a column that Arrow reads differently from Spark, or not at all, or None."""
    for footer in footers:
        types = {column.name.lower(): column.type for column in footer.schema.to_arrow_schema()}
        stored_columns = map(footer.schema.column, range(len(footer.schema)))
        old = {column.path.lower() for column in stored_columns if column.physical_type == "INT96"}
        for column in columns:
            name = column.name
            stored = types.get(name.lower())
            if stored is None:
                return f"a file without the column {name!r}"
            if column.metadata or name.lower() in old or not is_read_as(stored, column.type):
                return f"the column {name!r} of type {type_name(column.type)}, stored as {stored}"
    return None


def find_odd_share(footer: parquet.FileMetaData, names: Sequence[str]) -> str | None:
    """Return a reason if the first row group is mostly of columns that are not read, or None."""
    if not footer.num_row_groups:
        return None
    group = footer.row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    selected = {name.lower() for name in names}
    read = sum(
        chunk.total_compressed_size
        for chunk in chunks
        if chunk.path_in_schema.partition(".")[0].lower() in selected
    )
    is_wasteful = read * _BYTES_FOR_ONE < sum(chunk.total_compressed_size for chunk in chunks)
    return "the bytes of columns that are not listed" if is_wasteful else None


def read_footer(files: Files, path: str, size: int) -> parquet.FileMetaData:
    """Read the footer of a Parquet file of a size.

    Raises errors of Arrow and of the file system.
    """
    tail = files.read_part(path, max(size - _TAIL, 0), min(size, _TAIL))
    needed = int.from_bytes(tail[-_END:-4], "little") + _END
    if len(tail) < needed <= size:
        tail = files.read_part(path, size - needed, needed)
    return parquet.read_metadata(pa.BufferReader(tail))


def open_published_parquet(spark: SparkSession, path: str) -> PythonStage | None:
    """Open Parquet files that we wrote to a directory, to decode them in Python. No job.

    Returns None if only Spark's reader can read them: there are no files, one is too large or
    damaged, or they have columns or footers that we do not write. The driver lists the files and
    reads the footer of the first one by name, as Spark's reader does. The types of the others are
    checked when they are decoded.
    """
    files = files_of(spark)
    if not files.exists(path):
        return None
    try:
        sizes = {
            name: size for name, size in files.files_below(path) if not name.startswith((".", "_"))
        }
        if any("/" in name for name in sizes):
            return None
        root = files.qualified(path)
        listed = [DataFile(f"{root}/{name}", size) for name, size in sizes.items()]
        addresses = [file.address for file in listed]
        if not sizes or find_odd_setting(spark):
            return None
        first = min(sizes)
        footer = read_footer(files, f"{path}/{first}", sizes[first])
        schema, groups = _published_schema(footer), footer.num_row_groups
        if schema is None or find_odd_size(spark, [*sizes.values()], addresses, groups):
            return None

        def contents() -> DataFrame:
            return spark.read.format("binaryFile").load(literal(path))

        def rows() -> DataFrame:
            return spark.read.schema(spark_schema(schema)).parquet(literal(path))

        return decoded(spark, listed, contents, DecodeParquet(schema, published=True), rows)
    except _FAILURES:
        return None


def _published_schema(footer: parquet.FileMetaData) -> pa.Schema | None:
    """Return the columns of a file's footer, or None if we do not write such footers."""
    entries = footer.metadata or {}
    version = entries.get(_VERSION_KEY, b"")
    if (
        _SCHEMA_KEY not in entries
        or version[:2] in (b"", b"1.", b"2.")
        or any(key in entries for key in _LEGACY_KEYS)
    ):
        return None
    schema = nullable(footer.schema.to_arrow_schema())
    names = {name.lower() for name in schema.names}
    if not names or len(names) < len(schema) or arrow_schema(spark_schema(schema)) != schema:
        return None
    return schema if all(is_publishable(column.type) for column in schema) else None


def _reader(content: pa.Buffer, _: DataFile) -> pa.BufferReader:
    """Return a stream of a file's content."""
    return pa.BufferReader(content)


@dataclass(frozen=True)
class DecodeOrc:
    """Decodes columns of ORC files whose contents are values, also types that Spark cannot read."""

    files: DataFiles
    schema: pa.Schema
    where: str

    def select(self, names: Sequence[str]) -> DecodeOrc:
        """Return the decoder of some of the columns."""
        return replace(self, schema=pa.schema(map(self.schema.field, names)))

    def __call__(self, batches: Batches) -> Batches:
        """Yield the rows of the files."""
        inner = [name.lower() for name in struct_fields(self.schema)]
        files = {file.address: file for file in self.files.files}
        pairs = (zip(*batch.columns, strict=True) for batch in batches)
        for content, path in chain.from_iterable(pairs):
            if (file := files.get(str(path))) is not None:
                opened = open_orc(file, partial(_reader, content.as_buffer()))
                for read in reads_of(opened, self.files, self.schema.names, inner, self.where):
                    yield from read(self.schema)


@dataclass(frozen=True)
class DecodeParquet:
    """Decodes columns of Parquet files whose contents are values. Texts may be dictionaries.

    In ``published`` files all texts become dictionaries, a column that a file lacks is null, and an
    empty file is passed over, as Spark's reader does. ``folders`` are the columns that a file's
    innermost folders name, with the texts that mean missing there. ``shares`` are those of each
    task, if the values are numbers of tasks.
    """

    schema: pa.Schema
    published: bool = False
    folders: Mapping[str, frozenset[str]] = field(default_factory=dict)
    shares: Sequence[Sequence[Share]] = ()

    def select(self, names: Sequence[str]) -> DecodeParquet:
        """Return the decoder of some of the columns."""
        return replace(self, schema=pa.schema(map(self.schema.field, names)))

    def __call__(self, batches: Batches) -> Batches:
        """Yield the rows of the files."""
        for batch in batches:
            if self.shares:
                for task in batch.column(0).to_pylist():
                    for share in self.shares[task]:
                        yield from self._rows(share, share.address)
                continue
            for content, name in zip(*batch.columns, strict=True):
                yield from self._rows(content.as_buffer(), str(name))

    def _rows(self, source: pa.Buffer | Share, name: str) -> Batches:
        """Yield the rows of a file, or of a share, at an address."""
        if self.published and not (source.bytes if isinstance(source, Share) else source.size):
            return
        texts = folders_of(name.split("/")[-1 - len(self.folders) : -1]) or {}
        types = [self.schema.field(name) for name in self.folders if name in self.schema.names]
        values = {n: None if text in self.folders[n] else text for n, text in texts.items()}
        yield from decode_file(
            source,
            self.schema,
            dictionaries=self.published,
            complete=not self.published,
            constants=DataFiles((), pa.schema(types)).constants(values),
            name=name,
        )
