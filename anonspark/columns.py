"""Names of the columns of staged tables.

Staged columns are numbered, so that no name of the input (dots, blanks, clashes) can break a plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.prepare.encoding import QuasiIdentifier
from anonspark.privacy.criteria import Criteria

__all__ = [
    "CLASS_ID",
    "CLASS_SUMMARY",
    "OCCURRENCE",
    "PART",
    "RECORD_HASH",
    "Part",
    "key_matrix",
    "key_width",
    "normalized_positions",
    "payload_column",
    "published_column",
    "quasi_identifier_column",
    "quoted",
]

RECORD_HASH = "record_hash"
"""64-bit keyed hash of a record's whole content."""

OCCURRENCE = "occurrence"
"""Number of a record among those equal in every column; only staged where a cut needs it."""

PART = "part"
"""Which part of a round's result a row belongs to; one of :class:`Part`."""

CLASS_ID = "class_id"
"""64-bit name of a finished class, made from the round and the path in the tree."""

CLASS_SUMMARY = "class_summary"
"""Figures of a class, in the part that tells of the classes only."""


class Part(StrEnum):
    """The parts of a round's result, staged side by side."""

    FINISHED = "finished"
    """Records of finished classes, generalized."""
    LEFT_OVER = "left_over"
    """Records of the next round, as they came."""
    CLASSES = "classes"
    """One row a finished class, with its figures."""
    SUPPRESSED = "suppressed"
    """Records that no round found a class for, all their quasi-identifiers suppressed."""


def quasi_identifier_column(index: int) -> str:
    """Return the staged column of a quasi-identifier's raw values."""
    return f"quasi_identifier_{index}"


def payload_column(index: int) -> str:
    """Return the staged column of a sensitive or insensitive attribute."""
    return f"payload_{index}"


def published_column(index: int) -> str:
    """Return the staged column of a generalized quasi-identifier."""
    return f"published_{index}"


def quoted(name: str) -> str:
    """Return a column name as Spark reads it whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def key_matrix(
    batch: pa.RecordBatch | pa.Table,
    quasi_identifiers: Sequence[QuasiIdentifier],
    criteria: Criteria,
) -> npt.NDArray[np.int64]:
    """Return what records are compared and counted by.

    Parameters
    ----------
    batch : pyarrow.RecordBatch or pyarrow.Table
        Staged records.
    quasi_identifiers : sequence of QuasiIdentifier
    criteria : Criteria
        Tells which sensitive attributes are looked at.

    Returns
    -------
    int64 ndarray of shape (n, d + 2 + s)
        Codes of the quasi-identifiers, record hash, occurrence number (0 where not staged), and
        numbers of the sensitive values, those of all attributes numbered through.
    """
    d = len(quasi_identifiers)
    keys = np.zeros((batch.num_rows, key_width(d, criteria)), np.int64)
    for index, quasi_identifier in enumerate(quasi_identifiers):
        column = batch.column(quasi_identifier_column(index))
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        keys[:, index] = quasi_identifier.encode(column)
    keys[:, d] = batch.column(RECORD_HASH).to_numpy()
    if OCCURRENCE in batch.schema.names:
        keys[:, d + 1] = batch.column(OCCURRENCE).to_numpy()
    for index, attribute in enumerate(criteria.sensitive):
        numbers = attribute.encode(batch.column(attribute.column))
        keys[:, d + 2 + index] = criteria.first_value[index] + numbers
    return keys


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
