"""Shuffle rows in parcels: each is an Arrow stream, in one value.

Row by row, Java takes longer to take rows from Python, shuffle them and hand them back than our
functions take for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from anonspark.engine.protocol import TASK
from anonspark.engine.tasks import Batches

PARCEL = "parcel"
"""Column of the Arrow streams."""

PARCELS = f"{TASK} int, {PARCEL} binary"

WAITING_ROWS = 1 << 18
"""Rows that wait in a task until they are divided into parcels. They may have some hundred bytes
each, and are copied meanwhile."""

# Without threads, as in anonspark.staged.records: tasks run in parallel already.
_WRITE_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READ_OPTIONS = pa.ipc.IpcReadOptions(use_threads=False)

_SCHEMA = pa.schema([(TASK, pa.int32()), (PARCEL, pa.binary())])


def divide(
    rows: pa.Table, parts: npt.NDArray[np.int64], task_keys: npt.NDArray[np.int32]
) -> Iterator[pa.RecordBatch]:
    """Pack the rows of each part, if it has any, into a parcel, and yield rows of :data:`PARCELS`.

    ``parts`` has the part of each row, int64 (rows,), and ``task_keys`` the key that Spark sends to
    each part, int32 (parts,).
    """
    counts = np.bincount(parts, minlength=len(task_keys))
    if np.count_nonzero(counts) > 1:
        rows = rows.take(pa.array(np.argsort(parts, kind="stable")))
    ends = np.cumsum(counts)
    for part in np.flatnonzero(counts).tolist():
        parcel = rows.slice(ends[part] - counts[part], counts[part])
        yield pa.RecordBatch.from_arrays(
            [pa.array(task_keys[part : part + 1]), pa.array([_packed(parcel)], pa.binary())],
            schema=_SCHEMA,
        )


def _packed(rows: pa.Table) -> bytes:
    """Return rows as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_WRITE_OPTIONS) as stream:
        stream.write_table(rows.combine_chunks())
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


@dataclass(frozen=True)
class SendParcels:
    """Divides rows among the tasks that their column :data:`TASK` names."""

    task_keys: npt.NDArray[np.int32]

    def __call__(self, batches: Batches) -> Batches:
        """Yield the parcels."""
        for waiting in together(batches):
            rows = pa.Table.from_batches(waiting)
            parts = rows.column(TASK).to_numpy().astype(np.int64)
            yield from divide(rows, parts, self.task_keys)


@dataclass(frozen=True)
class Unpack:
    """Yields the batches of the parcels that a task receives."""

    def __call__(self, batches: Batches) -> Batches:
        """Yield the batches."""
        for batch in batches:
            for parcel in batch.column(PARCEL):
                with pa.ipc.open_stream(parcel.as_buffer(), options=_READ_OPTIONS) as stream:
                    yield from stream


def together(batches: Batches, rows: int = WAITING_ROWS) -> Iterator[list[pa.RecordBatch]]:
    """Collect batches until they have a number of rows. Leaves out empty ones.

    >>> batch = pa.record_batch({"age": [39, 41]})
    >>> [len(batches) for batches in together(iter([batch] * 3), rows=3)]
    [2, 1]
    """
    waiting: list[pa.RecordBatch] = []
    waiting_rows = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            waiting_rows += batch.num_rows
        if waiting_rows >= rows:
            yield waiting
            waiting, waiting_rows = [], 0
    if waiting:
        yield waiting


def shuffled(parcels: DataFrame, parts: int | None = None) -> DataFrame:
    """Bring parcels of equal keys into one task.

    Without a number of parts Spark chooses it, and joins small ones.
    """
    return parcels.repartition(TASK) if parts is None else parcels.repartition(parts, TASK)
