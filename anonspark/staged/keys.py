"""Staged records as numbers: what they are compared, counted and measured by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.columns import RECORD_HASH, quasi_identifier_column
from anonspark.core.criteria import Criteria
from anonspark.core.encoding import QuasiIdentifier

__all__ = ["key_columns", "key_matrix", "key_width", "normalized_positions"]


def key_matrix(
    batch: pa.RecordBatch | pa.Table,
    quasi_identifiers: Sequence[QuasiIdentifier],
    criteria: Criteria,
    first: int = 0,
) -> npt.NDArray[np.int64]:
    """Return what records are compared and counted by.

    Parameters
    ----------
    batch : pyarrow.RecordBatch or pyarrow.Table
        Staged records.
    quasi_identifiers : sequence of QuasiIdentifier
    criteria : Criteria
        Tells which sensitive attributes are looked at.
    first : int
        Number of the first record.

    Returns
    -------
    int64 ndarray of shape (n, d + 2 + s)
        Codes of the quasi-identifiers, record hash, number of the record, and numbers of the
        sensitive values, those of all attributes numbered through.
    """
    d = len(quasi_identifiers)
    keys = np.zeros((batch.num_rows, key_width(d, criteria)), np.int64)
    for index, quasi_identifier in enumerate(quasi_identifiers):
        column = batch.column(quasi_identifier_column(index))
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        keys[:, index] = quasi_identifier.encode(column)
    keys[:, d] = batch.column(RECORD_HASH).to_numpy()
    keys[:, d + 1] = np.arange(first, first + len(keys))
    for index, attribute in enumerate(criteria.sensitive):
        numbers = attribute.encode(batch.column(attribute.column))
        keys[:, d + 2 + index] = criteria.first_value[index] + numbers
    return keys


def key_columns(d: int, criteria: Criteria) -> list[str]:
    """Return the columns of staged records that :func:`key_matrix` needs."""
    names = [*map(quasi_identifier_column, range(d)), RECORD_HASH]
    return names + [attribute.column for attribute in criteria.sensitive]


def key_width(d: int, criteria: Criteria) -> int:
    """Return the number of columns of :func:`key_matrix`."""
    return d + 2 + len(criteria.sensitive)


def normalized_positions(
    codes: npt.NDArray[np.int64], quasi_identifiers: Sequence[QuasiIdentifier]
) -> npt.NDArray[np.float64]:
    """Return where records lie for distances: min-max normalized and weighted.

    Parameters
    ----------
    codes : int64 ndarray of shape (n, at least d)
        Codes of the quasi-identifiers in the first d columns.
    quasi_identifiers : sequence of QuasiIdentifier

    Returns
    -------
    float64 ndarray of shape (n, d)
    """
    normalized = np.empty((len(codes), len(quasi_identifiers)), np.float64)
    for index, quasi_identifier in enumerate(quasi_identifiers):
        positions = quasi_identifier.positions(codes[:, index])
        normalized[:, index] = quasi_identifier.normalized(positions)
    return normalized
