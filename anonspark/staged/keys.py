"""Staged records as numbers: what they are compared, counted and measured by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from anonspark.core.arrays import Figures, Integers
from anonspark.core.columns import RECORD_HASH, UNIT, code_column, quasi_identifier_column
from anonspark.core.criteria import Criteria, with_units
from anonspark.core.encoding import QuasiIdentifier


def key_matrix(
    batch: pa.RecordBatch | pa.Table,
    quasi_identifiers: Sequence[QuasiIdentifier],
    criteria: Criteria,
    first: int = 0,
) -> Integers:
    """Return what records are compared and counted by.

    Parameters
    ----------
    batch : pyarrow.RecordBatch or pyarrow.Table
        Staged records.
    quasi_identifiers : sequence of QuasiIdentifier
    criteria : Criteria
        Decides which sensitive attributes are looked at.
    first : int
        Number of the first record.

    Returns
    -------
    int64 ndarray of shape (n, d + 2 + s), one column more where people are counted
        Codes of the quasi-identifiers, record hash, number of the record, numbers of the sensitive
        values, those of all attributes numbered through, and the hash of whom the record is about.
    """
    d = len(quasi_identifiers)
    keys = np.zeros((batch.num_rows, key_width(d, criteria)), np.int64)
    coded = is_coded(batch.schema)
    for index, quasi_identifier in enumerate(quasi_identifiers):
        if coded:
            keys[:, index] = batch.column(code_column(index)).to_numpy()
            continue
        column = batch.column(quasi_identifier_column(index))
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        keys[:, index] = quasi_identifier.encode(column)
    keys[:, d] = batch.column(RECORD_HASH).to_numpy()
    keys[:, d + 1] = np.arange(first, first + len(keys))
    for index, attribute in enumerate(criteria.sensitive):
        numbers = attribute.encode(batch.column(attribute.column))
        keys[:, d + 2 + index] = criteria.first_value[index] + numbers
    if criteria.units is not None:
        keys[:, -1] = batch.column(UNIT).to_numpy()
        keys[:, d] = with_units(keys[:, d], keys[:, -1])
    return keys


def is_coded(schema: pa.Schema) -> bool:
    """Return whether staged records hold codes in place of the raw values."""
    return code_column(0) in schema.names


def coded_schema(schema: pa.Schema, quasi_identifiers: Sequence[QuasiIdentifier]) -> pa.Schema:
    """Return the schema of records that hold codes in place of their raw values."""
    if is_coded(schema):
        return schema
    raw = set(map(quasi_identifier_column, range(len(quasi_identifiers))))
    codes = [
        pa.field(code_column(index), identifier.code_type)
        for index, identifier in enumerate(quasi_identifiers)
    ]
    return pa.schema([*codes, *(field for field in schema if field.name not in raw)])


def with_codes(
    records: pa.Table, keys: Integers, quasi_identifiers: Sequence[QuasiIdentifier]
) -> pa.Table:
    """Return records that hold codes in place of their raw values.

    Parameters
    ----------
    records : pyarrow.Table
        Staged records.
    keys : int64 ndarray of shape (n, at least d)
        Their :func:`key_matrix`.
    quasi_identifiers : sequence of QuasiIdentifier
    """
    if is_coded(records.schema):
        return records
    schema = coded_schema(records.schema, quasi_identifiers)
    d = len(quasi_identifiers)
    codes = [
        pa.array(keys[:, index].astype(identifier.code_type.to_pandas_dtype()))
        for index, identifier in enumerate(quasi_identifiers)
    ]
    others = [records.column(name) for name in schema.names[d:]]
    return pa.Table.from_arrays([*codes, *others], schema=schema)


def key_columns(d: int, criteria: Criteria, *, coded: bool) -> list[str]:
    """Return the columns of staged records that :func:`key_matrix` needs."""
    name_of = code_column if coded else quasi_identifier_column
    names = [*map(name_of, range(d)), RECORD_HASH]
    units = [UNIT] if criteria.units is not None else []
    return names + [attribute.column for attribute in criteria.sensitive] + units


def key_width(d: int, criteria: Criteria) -> int:
    """Return the number of columns of :func:`key_matrix`."""
    return d + 2 + len(criteria.sensitive) + (criteria.units is not None)


def positions_of(codes: Integers, quasi_identifiers: Sequence[QuasiIdentifier]) -> Figures:
    """Return where records lie on the real line. See :func:`normalized_positions`."""
    positions = np.empty((len(codes), len(quasi_identifiers)), np.float64)
    for index, quasi_identifier in enumerate(quasi_identifiers):
        positions[:, index] = quasi_identifier.positions(codes[:, index])
    return positions


def normalized_positions(codes: Integers, quasi_identifiers: Sequence[QuasiIdentifier]) -> Figures:
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
