"""The published records."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anonspark.config import Configuration
from anonspark.core.columns import CLASS_ID, PAYLOAD_HASH, payload_column, published_column
from anonspark.engine.files import PublishedFile
from anonspark.engine.tasks import Batches
from anonspark.layers.generalize.classes import Generalizer
from anonspark.layers.partition.distribution import Addressed, received_records, send_records
from anonspark.layers.publish.division import Division
from anonspark.layers.publish.staging import Staging
from anonspark.staged.records import Records, bytes_of

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
    """Sends each record to the task that makes its file."""

    division: Division

    def __call__(self, records: pa.Table, first: int) -> Addressed:
        names, hashes = (records.column(name).to_numpy() for name in (CLASS_ID, PAYLOAD_HASH))
        return Addressed(records, self.division.files_of(names, hashes, first))


@dataclass(frozen=True)
class _InOrder:
    """Puts the records of a task's file in order, and gives their columns the published names.

    Parameters
    ----------
    columns : mapping of str to str
        A column's name in the release, and the staged one.
    most_bytes : int
        What the records take that are handed over together.
    """

    columns: Mapping[str, str]
    most_bytes: int

    def __call__(self, batches: Batches) -> Batches:
        records = received_records(batches)
        if records is None:
            return
        names, hashes = (records.column(name).to_numpy() for name in (CLASS_ID, PAYLOAD_HASH))
        # Records equal in both are equal in everything published.
        order = pa.array(np.lexsort((hashes, names)))
        step = max(self.most_bytes * len(records) // bytes_of(records), 1)
        records = records.select(list(self.columns.values())).rename_columns(list(self.columns))
        for start in range(0, len(records), step):
            taken = records.take(order[start : start + step])
            yield from taken.combine_chunks().to_batches()


def write_records(
    finished: Records,
    division: Division,
    configuration: Configuration,
    generalizer: Generalizer,
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
    staging : Staging
        Of the release.

    Returns
    -------
    list of PublishedFile
        Everything in the directory.

    Notes
    -----
    One job with one shuffle. Of Parquet the tasks tell rows, bytes and hash of their files; what
    the engine's own writer writes is read once more, in two jobs.
    """
    columns = dict(_published_columns(configuration, generalizer))
    schema = pa.schema(
        finished.schema.field(own).with_name(name).with_nullable(True)
        for name, own in columns.items()
    )
    sent = send_records(finished, _FileOf(division), division.files)
    table = sent.map_batches(_InOrder(columns, _ROW_GROUP_BYTES), schema)
    data_format = configuration.output.format
    published = table.publish(data_format, staging.release, "data", staging.written)
    if published.slowly_because_of is not None:
        _LOGGER.info(
            "data/ is written by Spark's own Parquet writer, because of %s",
            published.slowly_because_of,
        )
    return published.files
