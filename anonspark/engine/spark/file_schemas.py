"""Read the columns of each file of a table, for :mod:`anonspark.engine.data_files`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, DateType, StructType, TimestampNTZType, TimestampType

from anonspark.engine.data_files import FileSchemas
from anonspark.engine.files import literal
from anonspark.engine.raw_columns import WantedColumns
from anonspark.engine.reading_errors import old_calendar
from anonspark.engine.spark.arrow import arrow_schema
from anonspark.engine.spark.connect import (
    MountedFiles,
    folder_names,
    input_files,
    read_footers,
    schema_of_file,
    words_of_footer,
)
from anonspark.engine.spark.filesystem import paths_and_sizes
from anonspark.engine.spark.java_objects import (
    elements_of_scala,
    java_class,
    sequence_of,
    texts_of,
)
from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.settings import is_of_connect
from anonspark.engine.values.file_types import FIRST_DAY, FIRST_TIME

# Footers that the driver reads in parallel.
_READERS = 16
# Spark's classes, as a format may be named by its class.
_PARQUET, _ORC, _AVRO = "ParquetFileFormat", "OrcFileFormat", "AvroFileFormat"
_TEXT = "TextFileFormat"
# Through Spark Connect formats are known by their names.
_CONNECT_FORMATS = ("parquet", "orc", "avro")

NO_VALUES, NANOSECONDS = "no values", "timestamp[ns]"
NESTED_NANOSECONDS = "timestamp[ns], inside of others"
"""The types of stored columns that Spark reads as numbers."""

# Words of a footer for a plain column, and for a column with others inside.
_STORED = re.compile(
    r"  \w+ \w+ (.*) \((?:(UNKNOWN)|TIMESTAMP\(NANOS,(true|false)\))\)(?: = \d+)?;"
)
_GROUP = re.compile(r"  \w+ group (.+?)(?: \([A-Z_]+\))?(?: = \d+)? {")


@dataclass(frozen=True)
class ParquetFooters(FileSchemas):
    """The columns and bytes of each Parquet file of a table.

    ``examples`` are indices of files, one for each way in which columns are stored.
    ``old_calendar`` says whether a file may count days and times as Spark 2 did. ``stored`` has,
    for each of ``schemas``, the columns that Spark reads as numbers, and how they are stored.
    """

    sizes: Sequence[int] = ()
    examples: Sequence[int] = ()
    old_calendar: bool = False
    stored: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True)
class ListedSchemas(FileSchemas):
    """The columns of each file of a table for which Spark reads those of the first one listed.

    ``schema_of_first`` has the columns of the first file by name that has any, if Spark took those
    of another one, or is None.
    """

    schema_of_first: StructType | None = None


def folder_columns(
    table: DataFrame, data_format: str, paths: Sequence[str], options: Mapping[str, str]
) -> list[str]:
    """Return the columns of an opened table of files that folders name."""
    if is_of_connect(table.sparkSession):
        plain = data_format.lower() in _CONNECT_FORMATS
        return folder_names(table, paths, options) if plain else []
    relation = _relation(table)
    plain = relation is not None and _kind(relation) in (_PARQUET, _ORC, _AVRO, _TEXT)
    return _folders_of(relation) if plain else []


def read_file_schemas(
    table: DataFrame, data_format: str, paths: Sequence[str], options: Mapping[str, str]
) -> FileSchemas | None:
    """Read the columns of each file of an opened table, in the order of the files' names. No job.

    Returns :class:`ParquetFooters` for Parquet, :class:`ListedSchemas` for ORC and Avro, and None
    if files name no columns (CSV, JSON), or the format stores them elsewhere (Delta). The driver
    reads the footer of each Parquet or ORC file, in parallel, and the header of each Avro file.
    Spark Connect asks the server for the columns of each different Parquet file, and of every ORC
    or Avro file. Raises Spark's error if a file cannot be read.
    """
    spark = table.sparkSession
    if is_of_connect(spark):
        return _by_connect(
            table, data_format.lower(), folder_columns(table, data_format, paths, options)
        )
    relation = _relation(table)
    if relation is None:
        return None
    kind = _kind(relation)
    statuses = relation.location().allFiles()
    listed = paths_and_sizes(statuses)
    if kind == _PARQUET:
        return _of_parquet(spark, relation, statuses, listed)
    files = [file for file, _ in listed]
    of_format: Mapping[str, Callable[[], list[str]]] = {
        _ORC: lambda: _of_orc(spark, relation, statuses),
        _AVRO: lambda: [
            spark.read.format(data_format).options(**options).load(literal(file)).schema.json()
            for file in files
        ],
    }
    if kind not in of_format:
        return None
    merged = str(relation.dataSchema().json())
    return _listed(files, of_format[kind](), merged, _folders_of(relation))


def _listed(
    files: Sequence[str], texts: Sequence[str], merged: str, folders: Sequence[str]
) -> ListedSchemas:
    """Collect the columns of ORC or Avro files from Spark's JSON of each file and of all merged."""
    schemas: dict[str, int] = {}
    # Not all file systems list their files by name.
    described = sorted(zip(files, texts, strict=True))
    schema_of_file = [schemas.setdefault(schema, len(schemas)) for _, schema in described]
    first = next((schema for schema in schemas if json.loads(schema)["fields"]), merged)
    # A schema that no file has was merged, as the user asked for.
    spark_took_other = merged in schemas and first != merged
    return ListedSchemas(
        [file for file, _ in described],
        [_schema_of(schema) for schema in schemas],
        schema_of_file,
        folders,
        schema_of_first=StructType.fromJson(json.loads(first)) if spark_took_other else None,
    )


def _relation(table: DataFrame) -> Any:
    """Return Spark's relation of a table of files, or None of any other table."""
    plan = table._jdf.queryExecution().analyzed()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return None
    relation = plan.relation()
    return relation if relation.getClass().getSimpleName() == "HadoopFsRelation" else None


def _kind(relation: Any) -> str:
    """Return the class of a relation's format."""
    return str(relation.fileFormat().getClass().getSimpleName())


def _schema_of(described: str) -> pa.Schema:
    """Return Arrow's schema for one in Spark's JSON."""
    return arrow_schema(StructType.fromJson(json.loads(described)))


def _folders_of(relation: Any) -> list[str]:
    """Return the columns of a relation that folders name."""
    return list(relation.partitionSchema().fieldNames())


def _by_connect(table: DataFrame, data_format: str, folders: Sequence[str]) -> FileSchemas | None:
    """Read the columns of each file through Spark Connect, or return None for other formats."""
    if data_format not in _CONNECT_FORMATS:
        return None
    spark, files = table.sparkSession, input_files(table)
    if data_format != "parquet":
        texts = [schema_of_file(spark, data_format, file).json() for file in files]
        inner = {name.lower() for name in folders}
        columns = StructType([field for field in table.schema if field.name.lower() not in inner])
        return _listed(files, texts, columns.json(), folders)
    footers = read_footers(files, _READERS)
    different: dict[str, int] = {}
    footer_of_file = [
        different.setdefault(words_of_footer(footer), len(different)) for footer in footers
    ]
    texts = [
        _described(
            schema_of_file(spark, data_format, files[footer_of_file.index(number)]).json(), words
        )
        for words, number in different.items()
    ]
    entries = chain.from_iterable((footer.metadata or {}).items() for footer in footers)
    old = (_OLD.search(f"{key.decode()}={value.decode()}") for key, value in entries)
    sizes = list(map(MountedFiles(spark).size, files))
    return _footers(files, sizes, footer_of_file, texts, folders, old_calendar=any(old))


# Entries of footers whose days and times are counted as Spark 2 did.
_OLD = re.compile(r"org\.apache\.spark\.(version=[12]\.|legacyDateTime=|legacyINT96=)")


# A footer as Java prints it: its columns, and entries that may differ in each file.
_PRINTED = re.compile(r"schema: (.*?\n\}\n), metadata: \{(.*)", re.DOTALL)
# Footers in one answer of Java, as entries may be long.
_FOOTERS = 1_000


def _of_parquet(
    spark: SparkSession, relation: Any, statuses: Any, listed: Sequence[tuple[str, int]]
) -> ParquetFooters:
    """Read the footers of Parquet files, and let Spark translate each different schema once.

    Java prints the footers, as a call for each part of each footer would take far longer.
    """
    state = spark._jsparkSession.sessionState()
    hadoop = state.newHadoopConfWithOptions(relation.options())
    hadoop.setInt("parquet.metadata.read.parallelism", _READERS)
    reader = java_class(spark, "org.apache.parquet.hadoop.ParquetFileReader")
    converters = java_class(spark, "scala.collection.JavaConverters")
    footers = reader.readAllFootersInParallel(hadoop, converters.seqAsJavaList(statuses), True)
    number_of_schema: dict[str, int] = {}
    schemas: list[Any] = []
    old_calendar = False
    number_of_file: dict[str, int] = {}
    for start in range(0, len(listed), _FOOTERS):
        part = footers.subList(start, min(start + _FOOTERS, len(listed)))
        for index, text in enumerate(texts_of(sequence_of(spark, part.toArray()))):
            printed = _PRINTED.search(text)
            columns, entries = printed.groups() if printed else (text, text)
            if columns not in number_of_schema:
                number_of_schema[columns] = len(schemas)
                metadata = part.get(index).getParquetMetadata().getFileMetaData()
                schemas.append(metadata.getSchema())
            number_of_file[listed[start + index][0]] = number_of_schema[columns]
            old_calendar |= _OLD.search(entries) is not None
    name = "org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter"
    converter = java_class(spark, name)(state.conf())
    texts = [
        _described(str(converter.convert(schema).json()), str(schema.toString()))
        for schema in schemas
    ]
    files, sizes = zip(*sorted(listed), strict=True) if listed else ((), ())
    footer_of_file = [number_of_file[file] for file in files]
    folders = _folders_of(relation)
    return _footers(files, sizes, footer_of_file, texts, folders, old_calendar=old_calendar)


def _described(schema: str, words: str) -> str:
    """Return a schema in Spark's JSON with the types of stored columns, as one text."""
    return json.dumps([schema, _stored_types(words)])


def _footers(
    files: Sequence[str],
    sizes: Sequence[int],
    footer_of_file: Sequence[int],
    texts: Sequence[str],
    folders: Sequence[str],
    *,
    old_calendar: bool,
) -> ParquetFooters:
    """Collect the columns of Parquet files from different footers, and the footer of each file."""
    # Columns that are one schema for Spark may be stored in several ways.
    schemas: dict[str, int] = {}
    for text in texts:
        schemas.setdefault(text, len(schemas))
    described = [json.loads(text) for text in schemas]
    return ParquetFooters(
        files,
        [_with_types(_schema_of(text), types) for text, types in described],
        [schemas[texts[number]] for number in footer_of_file],
        folders,
        sizes=sizes,
        examples=sorted({number: index for index, number in enumerate(footer_of_file)}.values()),
        old_calendar=old_calendar,
        stored=[{name: kind for name, (kind, _) in types.items()} for _, types in described],
    )


def _stored_types(columns: str) -> dict[str, tuple[str, str]]:
    """Return the storage of columns whose numbers are times, and whether these have a zone.

    ``columns`` is the part of a footer that describes them.

    >>> _stored_types("  optional int64 seen (TIMESTAMP(NANOS,true));")
    {'seen': ('timestamp[ns]', 'true')}
    """
    stored: dict[str, tuple[str, str]] = {}
    outer = ""
    for line in columns.splitlines():
        if (plain := _STORED.fullmatch(line)) is not None:
            stored[plain[1]] = (NO_VALUES if plain[2] else NANOSECONDS, plain[3] or "")
        elif (group := _GROUP.fullmatch(line)) is not None:
            outer = group[1]
        elif "(TIMESTAMP(NANOS," in line:
            stored[outer] = (NESTED_NANOSECONDS, "")
    return stored


def _with_types(schema: pa.Schema, stored: Mapping[str, Sequence[str]]) -> pa.Schema:
    """Return columns that Spark reads as numbers in the types of their values."""
    for index, name in enumerate(schema.names):
        kind, zone = stored.get(name, ("", ""))
        if kind in (NO_VALUES, NANOSECONDS):
            times = pa.timestamp("us", "UTC" if zone == "true" else None)
            read = schema.field(index).with_type(pa.null() if kind == NO_VALUES else times)
            schema = schema.set(index, read)
    return schema


def _of_orc(spark: SparkSession, relation: Any, statuses: Any) -> list[str]:
    """Read the footers of ORC files, and return the columns of each in Spark's JSON."""
    hadoop = spark._jsparkSession.sessionState().newHadoopConfWithOptions(relation.options())
    utilities = java_class(spark, "org.apache.spark.sql.execution.datasources.orc.OrcUtils")
    # Ignore no corrupt file and, by a second flag from Spark 4.3 on, no missing one.
    flags = [False, *[False] * ("readSchema$default$4" in dir(utilities))]
    schemas = utilities.readOrcSchemasInParallel(statuses, hadoop, *flags)
    if schemas.size() == statuses.size():
        return [str(element.json()) for element in elements_of_scala(schemas)]
    # Files without columns, as Hive writes for tasks without records, are not among them.
    nothing = StructType().json()
    texts = []
    for status in elements_of_scala(statuses):
        schema = utilities.readSchema(status.getPath(), hadoop, *flags)
        texts.append(
            str(utilities.toCatalystSchema(schema.get()).json()) if schema.isDefined() else nothing
        )
    return texts


def require_known_calendar(table: DataFrame, selection: WantedColumns, where: str) -> None:
    """Raise DataError if an ORC file has old days without the name of its calendar.

    Spark would shift such days. One job if days or times are wanted. Footers of files with old days
    are read again.
    """
    limits = [
        (field.name, sf.lit(_FIRST[type(field.dataType)]))
        for field in table.schema
        if type(field.dataType) in _FIRST and selection.asks(field.name)
    ]
    if not limits:
        return
    old = [sf.max(sf.col(quoted(name)) < limit) for name, limit in limits]
    for address, *are_old in sorted(table.groupBy(sf.input_file_name()).agg(*old).collect()):
        file = unquote(address).replace("file:///", "file:/")
        for (name, _), is_old in zip(limits, are_old, strict=True):
            if is_old and not _says_calendar(table.sparkSession, file):
                raise old_calendar(where, name, file)


_FIRST: Mapping[type[DataType], date] = {
    DateType: FIRST_DAY,
    TimestampType: FIRST_TIME,
    TimestampNTZType: FIRST_TIME.replace(tzinfo=None),
}


def _says_calendar(spark: SparkSession, file: str) -> bool:
    """Return whether the footer of an ORC file names its calendar."""
    if is_of_connect(spark):
        return False
    orc = java_class(spark, "org.apache.orc.OrcFile")
    path = java_class(spark, "org.apache.hadoop.fs.Path")(file)
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()
    reader = orc.createReader(path, orc.readerOptions(hadoop))
    return bool(reader.getFileTail().getFooter().hasCalendar())
