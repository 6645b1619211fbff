"""Open tables of any format."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import BinaryIO
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from anonspark.config.input import CATALOG_TABLE, columns_of
from anonspark.engine.data_files import (
    DataFile,
    FileSchemas,
    find_files,
    folder_text,
    require_columns,
    typed_folders,
)
from anonspark.engine.files import Files, literal, open_parts
from anonspark.engine.foreign_formats import refuse_foreign
from anonspark.engine.local.columnar_files import open_columnar
from anonspark.engine.local.opening import table_of_columnar
from anonspark.engine.managed_tables import require_plain_files
from anonspark.engine.raw_columns import UnreadType, WantedColumns
from anonspark.engine.reading_errors import (
    TableAddress,
    not_of_the_format,
    nothing_there,
    type_not_read,
)
from anonspark.engine.spark.arrow import arrow_schema, spark_type
from anonspark.engine.spark.errors import opening_table
from anonspark.engine.spark.fields import with_fields, with_lacking
from anonspark.engine.spark.file_contents import DecodeOrc, SourceFiles
from anonspark.engine.spark.file_schemas import (
    ListedSchemas,
    folder_columns,
    read_file_schemas,
    require_known_calendar,
)
from anonspark.engine.spark.filesystem import files_of, path_for
from anonspark.engine.spark.java_objects import sequence_of, texts_of
from anonspark.engine.spark.named_tables import open_catalog_table
from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.python_stage import PythonStage
from anonspark.engine.spark.settings import folder_names_as_texts, is_of_connect
from anonspark.engine.spark.stored_columns import read_stored_columns
from anonspark.engine.spark.text_files import open_text_files
from anonspark.engine.struct_fields import with_struct_fields
from anonspark.engine.values.text_reader import TEXT_FORMATS
from anonspark.errors import ConfigurationError, DataError

_LOGGER = logging.getLogger("anonspark")

# Bytes of a footer to read at a time.
_FOOTER_BYTES = 1 << 16

_NAMING_COLUMNS = ("parquet", "orc", "avro")

# Sources for which paths are patterns.
_OF_FILES = ("parquet", "csv", "json", "orc", "text", "avro")


@dataclass(frozen=True)
class OpenedTable:
    """An opened table with its files."""

    content: DataFrame | PythonStage
    source: SourceFiles = field(default_factory=SourceFiles)


def open_table(
    spark: SparkSession,
    paths: Sequence[str],
    data_format: str,
    options: Mapping[str, str],
    *,
    path_key: str,
    section: str | None = None,
    texts: Sequence[str] = (),
    selection: WantedColumns | None = None,
) -> OpenedTable:
    """Open a table of any data source. See :meth:`anonspark.engine.protocol.Engine.open_table`.

    Lazy, but text files (CSV, JSON) take a job to infer types, and the schemas of other files are
    read as in :func:`anonspark.engine.spark.file_schemas.read_file_schemas`.
    """
    refuse_foreign(paths, data_format)
    if data_format.lower() == CATALOG_TABLE:
        with opening_table(paths, data_format, path_key, section):
            table = open_catalog_table(spark, paths, options, path_key)
            return OpenedTable(restricted(table, selection))
    files = files_of(spark)
    address = TableAddress(tuple(paths), data_format.lower(), path_key, section)
    if address.data_format in TEXT_FORMATS:
        require_plain_files(files, paths, data_format, path_key)
        with opening_table(paths, data_format, path_key, section):
            return OpenedTable(open_text_files(spark, address, options, texts, selection))
    _require_files(files, address, data_format)
    addresses = [
        literal(path) if data_format in _OF_FILES and files.exists(path) else path
        for path in (path_for(spark, raw_path) for raw_path in paths)
    ]
    if options:
        _LOGGER.info(
            "%s: what the options %s mean is decided by Spark's data source %r",
            path_key if section is None else f"{section}.options",
            ", ".join(sorted(options)),
            data_format,
        )
    with opening_table(paths, data_format, path_key, section), folder_names_as_texts(spark):
        reader = spark.read.format(data_format).options(**options)
        try:
            table = reader.load(addresses)
            listed = read_file_schemas(table, data_format, addresses, options)
        except (PySparkException, Py4JError):
            if (stage := _decoded_orc(spark, address, selection, addresses, options)) is None:
                raise
            return OpenedTable(stage)
        if listed is not None:
            table = _with_columns_of_all(table, reader, listed, addresses, address, selection)
        folders = folder_columns(table, data_format, addresses, options)
        markers = () if selection is None else selection.markers
        source = SourceFiles(listed, addresses, options, markers)
        if listed is not None and (len(listed.schemas) > 1 or any(getattr(listed, "stored", ()))):

            def load(schema: StructType, files: Sequence[str] | None) -> DataFrame:
                part = reader.schema(schema)
                if files is not None and folders:
                    part = part.option("basePath", files[0].rsplit("/", len(folders) + 1)[0])
                return part.load(addresses if files is None else list(map(literal, files)))

            table = read_stored_columns(load, table.schema, listed, selection, path_key)
        typed = with_typed_folders(table, folders, markers)
        part = restricted(typed, selection)
        # Files that tasks decode as a whole have records that a condition excludes.
        return OpenedTable(part, source if part is typed else SourceFiles())


def restricted(table: DataFrame, selection: WantedColumns | None) -> DataFrame:
    """Return the records for which ``input.where`` holds. Spark reads no partition without any.

    Raises ConfigurationError if a column is not there.
    """
    if selection is None or selection.where is None:
        return table
    named, names = columns_of(selection.where), {name.lower() for name in table.columns}
    if lacking := [name for name in named if name.lower() not in names]:
        text = f"input.where: the table has no column {lacking[0]!r}. Correct the name"
        raise ConfigurationError(text)
    return table.where(selection.where)


def _require_files(files: Files, address: TableAddress, data_format: str) -> None:
    """Check that each path has files, that no table's log decides on them, and one has columns.

    Raises DataError, or ConfigurationError because of a log.
    """
    roots = {path: files.matches(path) for path in address.paths}
    problems = [nothing_there(path, address.key) for path, hits in roots.items() if not hits]
    if problems:
        raise DataError(*problems)
    require_plain_files(files, address.paths, data_format, address.key)
    if address.data_format in _NAMING_COLUMNS and all(
        child.rpartition("/")[2].startswith((".", "_"))
        for root in chain.from_iterable(roots.values())
        for child in files.children(root)
    ):
        # Spark would raise the same error, but also print one of its listener.
        reason = "no file has columns"
        raise not_of_the_format(address.paths, data_format, address.key, address.section, reason)


def _with_columns_of_all(
    table: DataFrame,
    reader: DataFrameReader,
    listed: FileSchemas,
    addresses: list[str],
    address: TableAddress,
    selection: WantedColumns | None,
) -> DataFrame:
    """Read a table with the wanted columns of all files, not only of the first, and check them.

    Raises DataError if a file lacks a column, or has it in another type, or in an old calendar.
    """
    if isinstance(listed, ListedSchemas) and listed.schema_of_first is not None:
        # The file system decides which file is listed first.
        table = reader.schema(listed.schema_of_first).load(addresses)
    if selection is None:
        return table
    names = with_struct_fields(arrow_schema(table.schema)).names
    new = require_columns(listed, selection, columns=names, path_key=address.key)
    if new:
        table = reader.schema(with_lacking(table, new, listed.schemas)).load(addresses)
    if "orc" in address.data_format:
        require_known_calendar(with_fields(table), selection, address.where)
    return table


def _decoded_orc(
    spark: SparkSession,
    address: TableAddress,
    selection: WantedColumns | None,
    addresses: Sequence[str],
    options: Mapping[str, str],
) -> PythonStage | None:
    """Decode ORC files in Python if Spark cannot read them because of times with a zone.

    Returns None for other formats. Raises DataError with the first file, also of Parquet, whose
    footer cannot be read.
    """
    is_part = selection is not None and selection.where is not None
    if is_part or address.data_format not in ("parquet", "orc"):
        return None
    files = files_of(spark)
    data_files = find_files(files, address.paths, address.key, selection)

    def content(file: DataFile) -> BinaryIO:
        return open_parts(files, file.address, file.bytes, _FOOTER_BYTES)

    opened = open_columnar(data_files.files, address.data_format, address.where, content)
    if address.data_format == "parquet":
        return None
    schema = table_of_columnar(address, data_files, opened, selection).with_fields().schema
    for column in schema if selection is None else ():
        if isinstance(column.type, UnreadType):
            raise type_not_read(address.where, str(column.type), column=column.name)
    contents = spark.read.format("binaryFile").options(**options).load(list(addresses))
    decode = DecodeOrc(data_files, schema, address.where)
    return PythonStage(contents.select("content", "path"), decode, schema, decode.select)


def with_typed_folders(
    table: DataFrame, folders: Sequence[str], markers: Sequence[str] = ()
) -> DataFrame:
    """Convert columns that are names of folders from texts to the types that our grammar finds.

    Spark's rules differ. ``markers`` are texts that mean missing.
    """
    if not folders:
        return table
    if is_of_connect(table.sparkSession):
        uris = table.inputFiles()
    else:
        uris = texts_of(sequence_of(table.sparkSession, table._jdf.inputFiles()))
    directories = {tuple(unquote(uri).split("/")[:-1][-len(folders) :]) for uri in uris}
    columns = {name: sf.col(quoted(name)) for name in table.columns}
    for index, name in enumerate(folders):
        texts = {directory[index].partition("=")[2] for directory in directories}
        read = columns[name]
        for text in sorted(texts):
            # Spark reads each escaped byte as a letter.
            letters = unquote(text, "latin-1")
            if letters != unquote(text):
                columns[name] = sf.when(read.eqNullSafe(letters), unquote(text)).otherwise(
                    columns[name]
                )
        data_type, missing = typed_folders(map(folder_text, texts), markers)
        if missing:
            marked = columns[name].isin(*missing)
            columns[name] = sf.when(marked, None).otherwise(columns[name])
        columns[name] = columns[name].cast(spark_type(data_type))
    return table.select(*(column.alias(name) for name, column in columns.items()))
