"""Batches in the form that a table says they have, and hashes of their rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from anonspark.engine.columns.hashing import Hashes, content_hash, xxhash64
from anonspark.engine.columns.values import hashed_as


def conform(
    batch: pa.RecordBatch, schema: pa.Schema, *, dictionaries: bool = False
) -> pa.RecordBatch:
    """Return a batch with the columns of a schema, in its order and types.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Its columns may be more, or dictionaries of the values.
    schema : pyarrow.Schema
    dictionaries : bool
        Whether they may stay dictionaries.
    """
    if batch.schema.equals(schema):
        return batch
    columns = []
    for field in schema:
        column = batch.column(field.name)
        found = column.type
        if dictionaries and pa.types.is_dictionary(found):
            found = found.value_type
        columns.append(column if found.equals(field.type) else column.cast(field.type))
    if not columns:
        return batch.select([])
    if dictionaries:
        return pa.RecordBatch.from_arrays(columns, schema.names)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def hash_rows(
    batch: pa.RecordBatch,
    names: Sequence[str],
    key: int | None = None,
    *,
    nulls: bool = True,
    like: pa.Schema | None = None,
) -> Hashes:
    """Return the hash of each row; see :meth:`anonspark.engine.protocol.Table.with_hashes`.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Texts may be dictionaries.
    names : sequence of str
        Of the columns that are hashed.
    key : int or None
    nulls : bool
    like : pyarrow.Schema or None

    Returns
    -------
    int64 ndarray of shape (rows,)
    """
    columns = [batch.column(name) for name in names]
    if like is not None:
        pairs = [
            hashed_as(one, like.field(name).type) for one, name in zip(columns, names, strict=True)
        ]
        # Hashes skip nulls: the first value makes one of nothing at all.
        parts = [part for pair in pairs for part in pair]
        return content_hash(parts, 0, rows=batch.num_rows)
    if nulls:
        return content_hash(columns, key, rows=batch.num_rows)
    return xxhash64(columns)
