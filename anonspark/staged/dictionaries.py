"""Texts that repeat, as numbers of the different ones, while records travel.

Of columns such as a city or a diagnosis the different texts are few. Kept once, with a number in
place of each, they are packed, sent and reordered in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

# A dictionary is worth it where each of its texts stands for so many records.
_RECORDS_A_TEXT = 8

# The first values of a column tell whether to look at all of them.
_FIRST = 4096


def with_dictionaries(records: pa.Table) -> pa.Table:
    """Return records whose columns of few different texts hold dictionaries.

    Parameters
    ----------
    records : pyarrow.Table
        Some of whose columns may hold dictionaries already.

    Returns
    -------
    pyarrow.Table
        With the same values, each column in one chunk.
    """
    records = records.unify_dictionaries().combine_chunks()
    for index, name in enumerate(records.schema.names):
        column = records.column(index)
        if pa.types.is_dictionary(column.type) and column.num_chunks:
            if len(column.chunk(0).dictionary) * _RECORDS_A_TEXT <= len(column):
                continue
            records = _decoded(records, [index])
            column = records.column(index)
        if not pa.types.is_string(column.type) or not column.num_chunks:
            continue
        first = column.slice(0, _FIRST)
        if len(first.unique()) * _RECORDS_A_TEXT > len(first):
            continue
        encoded = column.chunk(0).dictionary_encode()
        if len(encoded.dictionary) * _RECORDS_A_TEXT <= len(column):
            records = records.set_column(index, name, encoded)
    return records


def without_dictionaries(records: pa.Table) -> pa.Table:
    """Return records whose texts stand for themselves."""
    return _decoded(records, range(records.num_columns))


def worth_dividing(records: pa.Table, parts: int) -> pa.Table:
    """Return records of which each part gets a dictionary, where that is worth it.

    Parameters
    ----------
    records : pyarrow.Table
        Each column in one chunk.
    parts : int
        Into which the records will be divided, each with all of every dictionary.
    """
    large = [
        index
        for index, column in enumerate(records.columns)
        if pa.types.is_dictionary(column.type)
        and column.num_chunks
        and len(column.chunk(0).dictionary) * _RECORDS_A_TEXT * parts > len(column)
    ]
    return _decoded(records, large)


def put_together(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the records of several tables, each column in one chunk.

    Parameters
    ----------
    tables : sequence of pyarrow.Table
        At least one. Of the same columns. One may hold dictionaries in some of them.
    """
    first = tables[0].schema
    alike = [
        all(table.schema.field(index).type == field.type for table in tables)
        for index, field in enumerate(first)
    ]
    if not all(alike):
        odd = [index for index, same in enumerate(alike) if not same]
        tables = [_decoded(table, odd) for table in tables]
    # Dictionaries of several tables differ.
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _decoded(records: pa.Table, indices: Sequence[int]) -> pa.Table:
    for index in indices:
        column = records.column(index)
        if pa.types.is_dictionary(column.type):
            name = records.schema.names[index]
            chunks = [chunk.dictionary_decode() for chunk in column.chunks]
            plain = pa.chunked_array(chunks, column.type.value_type)
            records = records.set_column(index, name, plain)
    return records
