"""What each file of a table says of its columns: one that a file lacks is no missing value.

Spark takes the columns of a table from one of its files, and gives nulls for those that another
file lacks. Files that tell their columns (Parquet, ORC, Avro) are therefore asked one by one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from anonspark.engine.raw_columns import WantedColumns
from anonspark.errors import DataError
from anonspark.redaction import redact

_NUMBERED = re.compile(r"_col\d+")

# Footers that the driver reads at the same time.
_READERS = 16


@dataclass(frozen=True)
class FileSchemas:
    """The columns of each file of a table.

    Parameters
    ----------
    files : sequence of str
    schemas : sequence of StructType
        The different ones.
    places : sequence of int
        Of each file, the place of its columns among `schemas`.
    folders : sequence of str
        Columns whose values are names of folders.
    """

    files: Sequence[str]
    schemas: Sequence[StructType]
    places: Sequence[int]
    folders: Sequence[str] = ()


def read_file_schemas(
    table: DataFrame, data_format: str, options: Mapping[str, str]
) -> FileSchemas | None:
    """Ask each file of a table for its columns.

    Parameters
    ----------
    table : DataFrame
        As a data source opens it.
    data_format : str
        Of the data source.
    options : mapping of str to str
        Of the data source.

    Returns
    -------
    FileSchemas or None
        None where files tell no columns (CSV, JSON), or the format keeps them elsewhere (Delta).

    Raises
    ------
    PySparkException, Py4JError
        If a file cannot be read.

    Notes
    -----
    No job. The driver reads the footer of each Parquet or ORC file, several at the same time, and
    the header of each Avro file.
    """
    spark = table.sparkSession
    plan = table._jdf.queryExecution().analyzed()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return None
    relation = plan.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    # By the name of the class, for a format may be named by its class, too.
    of_format: Mapping[str, Callable[[], list[Any]]] = {
        "ParquetFileFormat": lambda: _of_parquet(spark, relation, statuses),
        "OrcFileFormat": lambda: _of_orc(spark, relation, statuses),
        "AvroFileFormat": lambda: [
            spark.read.format(data_format).options(**options).load(file).schema for file in files
        ],
    }
    read = of_format.get(relation.fileFormat().getClass().getSimpleName())
    if read is None:
        return None
    statuses = list(_elements(relation.location().allFiles()))
    files = [str(status.getPath().toString()) for status in statuses]
    schemas: dict[str, int] = {}
    described = [one if isinstance(one, str) else one.json() for one in read()]
    places = [schemas.setdefault(one, len(schemas)) for one in described]
    return FileSchemas(
        files,
        [StructType.fromJson(json.loads(one)) for one in schemas],
        places,
        list(relation.partitionSchema().fieldNames()),
    )


def _elements(sequence: Any) -> Any:
    """Yield the elements of a sequence of Scala."""
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _of_parquet(spark: SparkSession, relation: Any, statuses: Sequence[Any]) -> list[str]:
    """Read the footers of Parquet files; return the columns of each, in Spark's JSON."""
    jvm: Any = spark._jvm
    state = spark._jsparkSession.sessionState()
    hadoop = state.newHadoopConfWithOptions(relation.options())
    hadoop.setInt("parquet.metadata.read.parallelism", _READERS)
    wanted = jvm.java.util.ArrayList()
    for status in statuses:
        wanted.add(status)
    reader = jvm.org.apache.parquet.hadoop.ParquetFileReader
    footers = reader.readAllFootersInParallel(hadoop, wanted, True)
    sources = jvm.org.apache.spark.sql.execution.datasources
    converter = sources.parquet.ParquetToSparkSchemaConverter(state.conf())
    # Each different one comes over to Python once.
    different = jvm.java.util.HashMap()
    texts: list[str] = []
    of_file: dict[str, str] = {}
    for footer in footers:
        columns = footer.getParquetMetadata().getFileMetaData().getSchema()
        place = different.putIfAbsent(columns, len(texts))
        if place is None:
            place = len(texts)
            texts.append(str(converter.convert(columns).json()))
        of_file[str(footer.getFile().toString())] = texts[place]
    return [of_file[str(status.getPath().toString())] for status in statuses]


def _of_orc(spark: SparkSession, relation: Any, statuses: Sequence[Any]) -> list[str]:
    """Read the footers of ORC files; return the columns of each, in Spark's JSON."""
    jvm: Any = spark._jvm
    hadoop = spark._jsparkSession.sessionState().newHadoopConfWithOptions(relation.options())
    utilities = jvm.org.apache.spark.sql.execution.datasources.orc.OrcUtils
    found = utilities.readOrcSchemasInParallel(relation.location().allFiles(), hadoop, False)
    if found.size() == len(statuses):
        return [str(one.json()) for one in _elements(found)]
    # Files without any column, as Hive leaves for tasks without records, are not among them.
    nothing = StructType().json()
    texts = []
    for status in statuses:
        one = utilities.readSchema(status.getPath(), hadoop, False)
        texts.append(
            str(utilities.toCatalystSchema(one.get()).json()) if one.isDefined() else nothing
        )
    return texts


def lacking_columns(
    found: FileSchemas, wanted: WantedColumns, *, columns: Sequence[str], path_key: str
) -> list[StructField]:
    """Check that every file has every column that is wanted, in one type.

    Parameters
    ----------
    found : FileSchemas
    wanted : WantedColumns
        A column that no file has is not looked for here.
    columns : sequence of str
        Those that Spark knows of the table.
    path_key : str
        What named the table's paths, for messages.

    Returns
    -------
    list of StructField
        Columns that some files have and Spark knows nothing of, where nulls are allowed.

    Raises
    ------
    DataError
        Naming each column that a file lacks or has in another type, and one such file.
    """
    # Spark finds columns of files whatever the case of their letters.
    known = {name.lower() for name in (*columns, *found.folders)}
    folders = {name.lower() for name in found.folders}
    fields = [_by_name(schema) for schema in found.schemas]
    problems: list[str] = []
    unknown: list[StructField] = []
    for name, is_read in wanted.names.items():
        if name.lower() in folders:
            continue
        own = [one.get(name.lower(), []) for one in fields]
        # Files that have no column at all have no records; Hive's old ones number their columns.
        exempt = [all(_NUMBERED.fullmatch(column) for column in one) for one in fields]
        there = [place for place, one in enumerate(own) if one]
        lacking = [place for place, one in enumerate(own) if not one and not exempt[place]]
        if not there:
            continue
        problems += [
            f"{path_key}: {_a_file(found, [place])} has {len(own[place])} columns that Spark "
            f"cannot tell apart, {', '.join(repr(field.name) for field in own[place])}; rename one"
            for place in there
            if len(own[place]) > 1
        ]
        if lacking and wanted.missing == "error":
            problems.append(_lacks(found, name, lacking, path_key, wanted.key))
        types: dict[str, int] = {}
        for place in there:
            types.setdefault(own[place][0].dataType.simpleString(), place)
        if is_read and len(types) > 1:
            # In the order of the files, whichever was looked at first.
            one, other = sorted(types.items(), key=lambda own: _a_file(found, [own[1]]))[:2]
            problems.append(
                f"{path_key}: the column {name!r} has type {one[0]} in {_a_file(found, [one[1]])} "
                f"and {other[0]} in {_a_file(found, [other[1]])}; expected one type in all files; "
                "write the column anew in one of them"
            )
        if name.lower() not in known:
            unknown.append(StructField(name, own[there[0]][0].dataType))
    if problems:
        raise DataError(*problems)
    return unknown


def _by_name(schema: StructType) -> dict[str, list[StructField]]:
    fields: dict[str, list[StructField]] = {}
    for field in schema:
        fields.setdefault(field.name.lower(), []).append(field)
    return fields


def _files_of(found: FileSchemas, places: Sequence[int]) -> list[str]:
    return sorted(
        redact(file)
        for file, place in zip(found.files, found.places, strict=True)
        if place in places
    )


def _a_file(found: FileSchemas, places: Sequence[int]) -> str:
    return _files_of(found, places)[0]


def _lacks(
    found: FileSchemas, name: str, places: Sequence[int], path_key: str, key: str | None
) -> str:
    files = _files_of(found, places)
    more = f" (and {len(files) - 1:,} more of {len(found.files):,} files)" if files[1:] else ""
    remedy = "" if key is None else f", or set {key} to null to read missing values there"
    return (
        f"{path_key}: {files[0]}{more} lacks the column {name!r}, which other files have; expected "
        f"it in all of them; complete the files{remedy}"
    )
