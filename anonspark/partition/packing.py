"""Key matrices as few large values, which Spark passes on many times faster than many small ones.

A counting pass looks at every record, but only at its keys. Row by row they cost more on the way
from files to Python than to count; one value for a whole batch costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.prepare.encoding import QuasiIdentifier
from anonspark.privacy.criteria import Criteria
from anonspark.record_keys import key_matrix, key_width

__all__ = ["PACKED_SCHEMA", "PackKeys", "unpacked"]

PACKED_SCHEMA = "bytes string, keys array<binary>"
"""One row a batch: a digit for each key, its bytes in every record; and the keys one by one."""

_TYPES = (np.int8, np.int16, np.int32, np.int64)
_PACKED = pa.schema([("bytes", pa.string()), ("keys", pa.list_(pa.binary()))])


@dataclass(frozen=True)
class PackKeys:
    """Packs the records of a task, batch by batch.

    Parameters
    ----------
    quasi_identifiers : tuple of QuasiIdentifier
    criteria : Criteria
    """

    quasi_identifiers: tuple[QuasiIdentifier, ...]
    criteria: Criteria

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one row a batch."""
        for batch in batches:
            if not batch.num_rows:
                continue
            keys = key_matrix(batch, self.quasi_identifiers, self.criteria)
            columns = [column.astype(_smallest_type(column)) for column in keys.T]
            sizes = "".join(str(column.itemsize) for column in columns)
            packed = [column.tobytes() for column in columns]
            yield pa.RecordBatch.from_arrays(
                [pa.array([sizes]), pa.array([packed], _PACKED.field("keys").type)], schema=_PACKED
            )


def unpacked(
    batches: Iterator[pa.RecordBatch], d: int, criteria: Criteria
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the key matrices that :class:`PackKeys` packed.

    Parameters
    ----------
    batches : iterator of pyarrow.RecordBatch
    d : int
        Quasi-identifiers.
    criteria : Criteria

    Yields
    ------
    int64 ndarray of shape (n, width)
        See :func:`anonspark.record_keys.key_matrix`.
    """
    width = key_width(d, criteria)
    for batch in batches:
        for sizes, columns in zip(batch.column("bytes"), batch.column("keys"), strict=True):
            pairs = zip(sizes.as_py(), columns.values, strict=True)
            parts = [np.frombuffer(part.as_buffer(), f"i{size}") for size, part in pairs]
            keys = np.empty((len(parts[0]), width), np.int64)
            for place, part in enumerate(parts):
                keys[:, place] = part
            yield keys


def _smallest_type(column: npt.NDArray[np.int64]) -> type[np.signedinteger]:
    lowest, highest = column.min(), column.max()
    return next(
        one for one in _TYPES if np.iinfo(one).min <= lowest and highest <= np.iinfo(one).max
    )
