"""Write the published records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anonspark.config import Configuration
from anonspark.core.arrays import Integers
from anonspark.core.columns import (
    CLASS_ID,
    PAYLOAD_HASH,
    UNIT,
    is_published,
    payload_column,
    published_column,
)
from anonspark.core.pseudonyms import PSEUDONYM, pseudonyms_of
from anonspark.engine.files import PublishedFile
from anonspark.engine.tasks import Batches
from anonspark.kernels.canonical_order import sort_groups
from anonspark.layers.generalize.classes import Generalizer
from anonspark.layers.partition.distribution import (
    SENT,
    Addressed,
    pack_by_task,
    received_tables,
)
from anonspark.layers.publish.file_assignment import Division
from anonspark.layers.publish.staging import Staging
from anonspark.release.derived_manifest import columns_section
from anonspark.staged.dictionaries import put_together, without_dictionaries
from anonspark.staged.records import Records, bytes_of, bytes_of_each, unpack_batches

# Bytes of the records of a row group before they are encoded: it travels as one value.
_ROW_GROUP_BYTES = 32 * 2**20


def published_columns(configuration: Configuration, generalizer: Generalizer) -> dict[str, str]:
    """Return the published columns in order, and the staged column of each."""
    described = [identifier.describe() for identifier in generalizer.quasi_identifiers]
    names = columns_section(configuration.public_dict(), described)["columns"]
    staged = {
        column.name: published_column(index) for index, column in enumerate(generalizer.columns())
    }
    as_is = enumerate(configuration.published_as_is)
    staged |= {name: payload_column(index) for index, name in as_is}
    staged |= dict.fromkeys(configuration.output.pseudonyms.values(), UNIT)
    return {name: staged[name] for name in names}


@dataclass(frozen=True)
class _SendToFiles:
    """Sends records, and published ``labels`` of their classes, to the tasks that write files."""

    division: Division
    labels: list[str]

    def __call__(self, packed: Batches) -> Batches:
        classes: list[pa.Table] = []
        yield from pack_by_task(self._records(packed, classes), self.division.files)
        yield from pack_by_task(map(self._with_files, classes), self.division.files)

    def _records(self, packed: Batches, classes: list[pa.Table]) -> Iterator[Addressed]:
        """Yield the records of a task, and add its classes to a list."""
        for first, table in unpack_batches(packed):
            if PAYLOAD_HASH not in table.column_names:
                classes.append(table.select(self.labels))
                continue
            names, hashes = (table.column(name).to_numpy() for name in (CLASS_ID, PAYLOAD_HASH))
            yield Addressed(table, self.division.files_of(names, hashes, first))

    def _with_files(self, classes: pa.Table) -> Addressed:
        indices, files = self.division.files_with(classes.column(CLASS_ID).to_numpy())
        return Addressed(classes.take(pa.array(indices)), files)


@dataclass(frozen=True)
class _WriteInOrder:
    """Orders the records of a task's file, and gives their columns the published names.

    ``columns`` maps published names to staged ones. ``suppressed`` is a class that is not among
    those sent. About ``most_bytes`` are handed over together. ``key`` is that of the pseudonyms, or
    None without any.
    """

    columns: Mapping[str, str]
    suppressed: pa.Table | None
    most_bytes: int
    key: bytes | None = None

    def __call__(self, batches: Batches) -> Batches:
        """Yield the records of a file in the order of classes and hashes, with their labels."""
        tables_received = list(received_tables(batches))
        tables = [table for table in tables_received if PAYLOAD_HASH in table.column_names]
        if not tables:
            return
        records = put_together(tables)
        labels = [table for table in tables_received if PAYLOAD_HASH not in table.column_names]
        classes = pa.concat_tables([*labels, *filter(None, [self.suppressed])]).combine_chunks()
        class_ids, hashes = (records.column(name).to_numpy() for name in (CLASS_ID, PAYLOAD_HASH))
        order, starts = _ordered(class_ids, hashes)
        all_ids = classes.column(CLASS_ID).to_numpy()
        owners = np.repeat(_positions_of(class_ids[order[starts[:-1]]], all_ids), np.diff(starts))
        # Arrow takes by 32-bit indices twice as fast.
        order, owners = order.astype(np.int32), owners.astype(np.int32)
        step = max(self.most_bytes * len(records) // self._bytes(records, classes, owners), 1)
        for start in range(0, len(records), step):
            rows = without_dictionaries(records.take(pa.array(order[start : start + step])))
            if self.key is not None:
                rows = _with_pseudonyms(rows, self.key)
            labels_of_rows = classes.take(pa.array(owners[start : start + step]))
            arrays = [
                (labels_of_rows if is_published(staged) else rows).column(staged)
                for staged in self.columns.values()
            ]
            columns = pa.Table.from_arrays(arrays, list(self.columns))
            yield from columns.combine_chunks().to_batches()

    def _bytes(self, records: pa.Table, classes: pa.Table, owners: Integers) -> int:
        """Return the published size of the records before they are compressed."""
        sizes = np.bincount(owners, minlength=len(classes))
        labels = (
            classes.column(name).chunk(0) for name in filter(is_published, classes.column_names)
        )
        return bytes_of(records) + sum(int(sizes @ bytes_of_each(label)) for label in labels)


def _ordered(names: Integers, hashes: Integers) -> tuple[Integers, Integers]:
    """Order records by name and hash. Also return where each name begins, and the end of the last.

    Records equal in both are equal in everything published. A class mostly arrives together.

    >>> order, starts = _ordered(np.array([5, 3, 5]), np.array([9, 1, 2]))
    >>> order.tolist(), starts.tolist()
    ([1, 2, 0], [0, 1, 3])
    """
    begins = np.flatnonzero(np.append(True, names[1:] != names[:-1]))
    by_name = np.argsort(names[begins], kind="stable")
    sizes = np.diff(begins, append=len(names))[by_name]
    ends = np.cumsum(sizes)
    order = np.arange(len(names)) + np.repeat(begins[by_name] - ends + sizes, sizes)
    runs = names[begins[by_name]]
    starts = np.append((ends - sizes)[np.append(True, runs[1:] != runs[:-1])], len(names))
    sort_groups(np.empty((len(names), 0), np.int64), hashes.copy(), order, starts)
    return order, starts


def _with_pseudonyms(records: pa.Table, key: bytes) -> pa.Table:
    """Replace the hashes of people by pseudonyms."""
    pseudonyms = pseudonyms_of(records.column(UNIT).to_numpy(), key)
    return records.set_column(records.schema.get_field_index(UNIT), UNIT, pseudonyms)


def _positions_of(names: Integers, ids: Integers) -> Integers:
    """Return the positions of names in ``ids``, or raise ValueError if one is not there."""
    order = np.argsort(ids)
    indices: Integers = order[np.searchsorted(ids, names, sorter=order).clip(max=len(ids) - 1)]
    if not np.array_equal(ids[indices], names):
        raise ValueError("the class of a record was not sent to the record's file")
    return indices


def write_records(
    finished: Records,
    classes: Records,
    suppressed: pa.Table | None,
    division: Division,
    configuration: Configuration,
    generalizer: Generalizer,
    staging: Staging,
    key: bytes | None = None,
) -> list[PublishedFile]:
    """Write the records of all finished classes to the directory ``data`` of a release.

    ``suppressed`` are the labels of :class:`anonspark.models.model.Suppressed`, ``division``
    decides on the file of each record, and ``key`` is that of
    :func:`anonspark.core.pseudonyms.release_key`, or None without pseudonyms. Returns all files of
    the directory.

    One job with one shuffle. For Parquet the tasks report rows, bytes and hash of their files.
    Files of other formats are read once more, in two jobs.
    """
    columns = published_columns(configuration, generalizer)
    fields = {UNIT: pa.field(UNIT, PSEUDONYM)}
    schema = pa.schema(
        fields.get(staged, (classes if is_published(staged) else finished).schema.field(staged))
        .with_name(name)
        .with_nullable(True)
        for name, staged in columns.items()
    )
    labels = [CLASS_ID, *(name for name in classes.schema.names if is_published(name))]
    packed = finished.packed.union(classes.packed)
    sent = packed.repartition(_SendToFiles(division, labels), SENT, division.files)
    table = sent.map_batches(_WriteInOrder(columns, suppressed, _ROW_GROUP_BYTES, key), schema)
    return table.publish(configuration.output.format, staging.release, "data", staging.written)
