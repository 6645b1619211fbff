"""Asking each file of a table for its columns, for :mod:`anonspark.engine.file_schemas`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from anonspark.engine.file_schemas import FileSchemas
from anonspark.engine.spark.arrow import arrow_schema

# Footers that the driver reads at the same time.
_READERS = 16


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
        [arrow_schema(StructType.fromJson(json.loads(one))) for one in schemas],
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
