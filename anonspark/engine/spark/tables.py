"""Opening tables, whatever their format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructType

from anonspark.engine.file_schemas import lacking_columns
from anonspark.engine.files import literal
from anonspark.engine.managed_tables import require_plain_files
from anonspark.engine.raw_columns import WantedColumns, require_distinct_header
from anonspark.engine.reading_errors import no_record, nothing_there
from anonspark.engine.spark.arrow import arrow_schema
from anonspark.engine.spark.errors import opening_table
from anonspark.engine.spark.fields import with_lacking
from anonspark.engine.spark.file_contents import SourceFiles
from anonspark.engine.spark.file_schemas import (
    ListedSchemas,
    asks_first_listed,
    read_file_schemas,
)
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.engine.spark.names import quoted
from anonspark.engine.struct_fields import with_struct_fields
from anonspark.errors import DataError

# Of other sources a path is no pattern.
_OF_FILES = ("parquet", "csv", "json", "orc", "text", "avro")

_MALFORMED = "anonspark_malformed_record"


@dataclass(frozen=True)
class OpenedTable:
    """A table that was opened, and its files."""

    frame: DataFrame
    source: SourceFiles = field(default_factory=SourceFiles)


def open_table(
    spark: SparkSession,
    paths: Sequence[str],
    data_format: str,
    options: Mapping[str, str],
    *,
    path_key: str,
    section: str | None = None,
    schema: str | None = None,
    wanted: WantedColumns | None = None,
) -> OpenedTable:
    """Open a table.

    Parameters
    ----------
    spark : SparkSession
    paths : sequence of str
    data_format : str
        Spark data source.
    options : mapping of str to str
        Of the data source.
    path_key : str
        What named the paths, for messages.
    section : str or None
        The configuration's section with format and options; None where they were found otherwise.
    schema : str or None
        Names and types of the columns, as DDL; None reads or infers them.
    wanted : WantedColumns or None
        What each file has to have; None asks no file.

    Returns
    -------
    OpenedTable
        Lazy; formats without a schema (CSV, JSON) may take a job to infer it. Files with one are
        asked for theirs as in :func:`anonspark.engine.spark.file_schemas.read_file_schemas`.

    Raises
    ------
    DataError
        If a path does not exist or cannot be opened in this format, or a file lacks a column.
    ConfigurationError
        If Spark does not know the format, or the data source does not take its options.
    """
    files = FileSystem(spark)
    problems = [nothing_there(path, path_key) for path in paths if not files.matches(path)]
    if problems:
        raise DataError(*problems)
    require_plain_files(files, paths, data_format, path_key)
    own = [
        literal(path) if data_format in _OF_FILES and files.exists(path) else path for path in paths
    ]
    # A malformed record must not become a row of nulls unseen. Spark's own way to refuse it,
    # FAILFAST, quotes the record in logs and event logs.
    refuses = data_format in ("csv", "json") and "mode" not in {name.lower() for name in options}
    # Where columns are pruned, a record with too few or too many of them passes for sound.
    defaults = {"columnPruning": "false"} if data_format == "csv" else {}
    with opening_table(paths, data_format, path_key, section):
        reader = spark.read.format(data_format).options(**defaults).options(**options)
        if refuses:
            reader = reader.option("columnNameOfCorruptRecord", _MALFORMED)
        if schema is not None:
            reader = reader.schema(schema)
        table = reader.load(own)
        if schema is None and _names_columns(data_format, options) and _may_be_renamed(table):
            lines = spark.read.format(data_format).options(**options).option("header", "false")
            header = lines.option("inferSchema", "false").load(own).first()
            where = f"{path_key}: {', '.join(paths)}"
            require_distinct_header(list(header or ()), wanted, where)
        found = None
        if schema is None and (wanted is not None or asks_first_listed(table)):
            found = read_file_schemas(table, data_format, options)
            if isinstance(found, ListedSchemas) and found.schema_of_first is not None:
                # Which file is listed first is a matter of the file system.
                table = reader.schema(found.schema_of_first).load(own)
        if wanted is not None and found is not None:
            known = with_struct_fields(arrow_schema(table.schema)).names
            new = lacking_columns(found, wanted, columns=known, path_key=path_key)
            if new:
                schema_of_all = with_lacking(table, new, found.schemas)
                table = reader.schema(schema_of_all).load(own)
        if _has_headers(data_format, options) and len(table.inputFiles()) > 1:
            # Spark would take the columns of every file for those of the first, by their places.
            table = reader.option("enforceSchema", "false").schema(table.schema).load(own)
        if not refuses:
            return OpenedTable(table, SourceFiles(found, own, options))
        if table.columns == [_MALFORMED]:
            raise no_record(paths, data_format, path_key, section)
        return OpenedTable(_refusing_malformed(reader, table, own, data_format))


def _has_headers(data_format: str, options: Mapping[str, str]) -> bool:
    """Return whether files say their columns in a first line that nobody told to pass over."""
    given = {name.lower() for name in options}
    return _names_columns(data_format, options) and "enforceschema" not in given


def _names_columns(data_format: str, options: Mapping[str, str]) -> bool:
    """Return whether the first line of a file names the columns."""
    given = {name.lower(): value.lower() for name, value in options.items()}
    return data_format.lower() == "csv" and given.get("header") == "true"


def _may_be_renamed(table: DataFrame) -> bool:
    """Return whether columns may have numbers because their names differ in letter case alone."""
    alike: dict[str, set[str]] = {}
    for place, name in enumerate(table.columns):
        if name.endswith(str(place)):
            own = name.removesuffix(str(place))
            alike.setdefault(own.lower(), set()).add(own)
    return any(len(names) > 1 for names in alike.values())


def _refusing_malformed(
    reader: DataFrameReader, table: DataFrame, paths: list[str], data_format: str
) -> DataFrame:
    """Return a table that fails at a malformed record, without a word of what is in it."""
    others = [name for name in table.columns if name != _MALFORMED]
    if not others:
        return table
    schema = StructType([field for field in table.schema if field.name != _MALFORMED])
    checked = reader.schema(schema.add(_MALFORMED, StringType())).load(paths)
    # Spark refuses to look for malformed records without reading anything of them: the message,
    # one of two that say the same, depends on another column.
    message = f"MALFORMED_RECORD: a record does not fit the columns of the file ({data_format})"
    known = sf.when(sf.col(quoted(others[0])).isNull(), message).otherwise(f"{message}.")
    sound = sf.when(sf.col(_MALFORMED).isNull(), True).otherwise(sf.raise_error(known))
    return checked.where(sound).drop(_MALFORMED)
