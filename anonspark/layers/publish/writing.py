"""The published records."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from anonspark.config import Configuration
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.engine.spark.tasks import Batches, map_batches
from anonspark.layers.generalize.classes import Generalizer
from anonspark.layers.partition.distribution import received_records, send_records
from anonspark.layers.publish.division import Division
from anonspark.layers.publish.files import PublishedFile
from anonspark.layers.publish.parquet_files import (
    VALUES,
    Encoding,
    find_encoding,
    take_over_files,
    write_values,
)
from anonspark.layers.publish.staging import Staging
from anonspark.layers.publish.tables import write_table
from anonspark.release.columns import published_column
from anonspark.staged.columns import CLASS_ID, PAYLOAD_HASH, payload_column
from anonspark.staged.records import Records, bytes_of

__all__ = ["published_names", "write_records"]

_LOGGER = logging.getLogger("anonspark")

# What the records of a row group take before they are encoded: it travels as one value.
_ROW_GROUP_BYTES = 32 * 2**20


def published_names(configuration: Configuration, generalizer: Generalizer) -> list[str]:
    """Return the columns of the release in order: that of the configuration."""
    return [name for name, _ in _published_columns(configuration, generalizer)]


def _published_columns(
    configuration: Configuration, generalizer: Generalizer
) -> list[tuple[str, str]]:
    """Return the name of each published column, and the staged one that holds it."""
    columns = []
    for name, attribute in configuration.attributes.items():
        if attribute.role == "quasi_identifier":
            index = configuration.quasi_identifiers.index(name)
            columns += [
                (column.name, published_column(place))
                for place, column in enumerate(generalizer.columns())
                if column.attribute == index
            ]
        elif name in configuration.published_as_is:
            place = configuration.published_as_is.index(name)
            columns.append((name, payload_column(place)))
    return columns


@dataclass(frozen=True)
class _FileOf:
    """Tells the file of each record, as ``send_records`` asks for it."""

    division: Division

    def __call__(self, records: pa.Table, first: int) -> npt.NDArray[np.int64]:
        names, hashes = (records.column(name).to_numpy() for name in (CLASS_ID, PAYLOAD_HASH))
        return self.division.files_of(names, hashes, first)


@dataclass(frozen=True)
class _InOrder:
    """Puts the records of a task's file in order, and gives their columns the published names.

    Parameters
    ----------
    columns : mapping of str to str
        A column's name in the release, and the staged one.
    encoding : Encoding or None
        How to encode the file; None yields the records.
    most_bytes : int
        What the records take that are handed over together.
    """

    columns: Mapping[str, str]
    encoding: Encoding | None
    most_bytes: int

    def __call__(self, batches: Batches) -> Batches:
        records = received_records(batches)
        if records is None:
            return
        tables = self._in_order(records)
        if self.encoding is not None:
            yield from self.encoding.encode(tables)
            return
        for table in tables:
            yield from table.combine_chunks().to_batches()

    def _in_order(self, records: pa.Table) -> Iterator[pa.Table]:
        names, hashes = (records.column(name).to_numpy() for name in (CLASS_ID, PAYLOAD_HASH))
        # Records equal in both are equal in everything published.
        order = pa.array(np.lexsort((hashes, names)))
        step = max(self.most_bytes * len(records) // bytes_of(records), 1)
        records = records.select(list(self.columns.values())).rename_columns(list(self.columns))
        for start in range(0, len(records), step):
            yield records.take(order[start : start + step])


def write_records(
    finished: Records,
    division: Division,
    configuration: Configuration,
    generalizer: Generalizer,
    files: FileSystem,
    staging: Staging,
) -> list[PublishedFile]:
    """Write the records of all finished classes to the directory ``data`` of a release.

    Parameters
    ----------
    finished : Records
        Of :func:`anonspark.models.model.finished_schema`.
    division : Division
        Which file each record goes to.
    configuration : Configuration
    generalizer : Generalizer
    files : FileSystem
    staging : Staging
        Of the release.

    Returns
    -------
    list of PublishedFile
        Everything in the directory.

    Notes
    -----
    One job with one shuffle. Of Parquet the tasks tell rows, bytes and hash of their files; what
    Spark's own writer writes is read once more, in two jobs.
    """
    columns = dict(_published_columns(configuration, generalizer))
    schema = StructType(
        [StructField(name, finished.schema[own].dataType) for name, own in columns.items()]
    )
    sent = send_records(finished.parcels, _FileOf(division), division.files)
    data_format = configuration.output.format
    if data_format == "parquet":
        encoding = find_encoding(files.spark, schema)
        if isinstance(encoding, Encoding):
            aside = f"{staging.written}/data"
            write_values(
                map_batches(sent, _InOrder(columns, encoding, _ROW_GROUP_BYTES), VALUES), aside
            )
            return take_over_files(files, aside, staging.release, "data")
        _LOGGER.info("data/ is written by Spark's own Parquet writer, because of %s", encoding)
    table = map_batches(sent, _InOrder(columns, None, _ROW_GROUP_BYTES), schema)
    return write_table(table, data_format, files, staging, "data")
