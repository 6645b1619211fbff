"""Staged records as arrays of numbers, by which they are compared, counted and measured."""

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
    """Encode staged records as int64 rows of shape (n, d + 2 + s), or a column more with units.

    The columns are the codes of the d quasi-identifiers, the record hash, the record's number from
    ``first`` on, the values of the s sensitive attributes of the criteria, whose numbers are unique
    across attributes, and the hash of the unit (person, household) if criteria count units.
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
    """Return whether staged records hold codes in place of raw values.

    >>> is_coded(pa.schema([(code_column(0), pa.int32())]))
    True
    """
    return code_column(0) in schema.names


def coded_schema(schema: pa.Schema, quasi_identifiers: Sequence[QuasiIdentifier]) -> pa.Schema:
    """Replace the columns of raw values in a schema of staged records by columns of codes."""
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
    """Replace the raw values of staged records by the codes in the first columns of their keys.

    ``keys`` is the :func:`key_matrix` of the records, or its first d columns.
    """
    if is_coded(records.schema):
        return records
    schema = coded_schema(records.schema, quasi_identifiers)
    d = len(quasi_identifiers)
    codes = [
        pa.array(keys[:, index].astype(identifier.code_type.to_pandas_dtype()))
        for index, identifier in enumerate(quasi_identifiers)
    ]
    columns = [records.column(name) for name in schema.names[d:]]
    return pa.Table.from_arrays([*codes, *columns], schema=schema)


def key_columns(d: int, criteria: Criteria, *, coded: bool) -> list[str]:
    """List the columns of staged records that :func:`key_matrix` reads."""
    column_name = code_column if coded else quasi_identifier_column
    names = [*map(column_name, range(d)), RECORD_HASH]
    units = [UNIT] if criteria.units is not None else []
    return names + [attribute.column for attribute in criteria.sensitive] + units


def key_width(d: int, criteria: Criteria) -> int:
    """Return the number of columns of :func:`key_matrix`."""
    return d + 2 + len(criteria.sensitive) + (criteria.units is not None)


def positions_of(codes: Integers, quasi_identifiers: Sequence[QuasiIdentifier]) -> Figures:
    """Return where records lie on the real line, float64 (n, d), not normalized or weighted."""
    positions = np.empty((len(codes), len(quasi_identifiers)), np.float64)
    for index, quasi_identifier in enumerate(quasi_identifiers):
        positions[:, index] = quasi_identifier.positions(codes[:, index])
    return positions


def normalized_positions(codes: Integers, quasi_identifiers: Sequence[QuasiIdentifier]) -> Figures:
    """Return where records lie for distances, float64 (n, d): min-max normalized and weighted.

    The first d columns of ``codes`` are those of the quasi-identifiers.
    """
    normalized = np.empty((len(codes), len(quasi_identifiers)), np.float64)
    for index, quasi_identifier in enumerate(quasi_identifiers):
        positions = quasi_identifier.positions(codes[:, index])
        normalized[:, index] = quasi_identifier.normalized(positions)
    return normalized
