"""Dictionaries of Arrow for columns of few different texts, while records travel.

A column such as a city or a diagnosis has few different texts. With each stored once, and its
number in every record, it is packed, sent and reordered in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

# A dictionary saves time if each of its texts stands for so many records on average.
_RECORDS_A_TEXT = 8

# If so many first values of a column differ too much, the others are not looked at.
_FIRST = 4096


def with_dictionaries(records: pa.Table) -> pa.Table:
    """Encode columns of few different texts as dictionaries, and decode large dictionaries.

    Returns equal values, each column in one chunk.

    >>> with_dictionaries(pa.table({"city": ["Oakport", "Ashford"] * 8})).schema.types
    [DictionaryType(dictionary<values=string, indices=int32, ordered=0>)]
    >>> with_dictionaries(pa.table({"city": ["Oakport", "Ashford"]})).schema.types
    [DataType(string)]
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
    """Decode all dictionaries: each record has its text again.

    >>> coded = with_dictionaries(pa.table({"city": ["Oakport"] * 8}))
    >>> without_dictionaries(coded).schema.types
    [DataType(string)]
    """
    return _decoded(records, range(records.num_columns))


def worth_dividing(records: pa.Table, parts: int) -> pa.Table:
    """Decode dictionaries that are too large for records that will be divided into parts.

    Each part gets a copy of every dictionary. Takes columns of one chunk.
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
    """Concatenate tables of the same columns, at least one, with each column in one chunk.

    A column that only has a dictionary in some tables is decoded.

    >>> plain = pa.table({"city": ["Ashford"]})
    >>> put_together([plain, with_dictionaries(pa.table({"city": ["Oakport"] * 8}))]).num_rows
    9
    """
    first = tables[0].schema
    has_one_type = [
        all(table.schema.field(index).type == field.type for table in tables)
        for index, field in enumerate(first)
    ]
    if not all(has_one_type):
        mixed = [index for index, is_same in enumerate(has_one_type) if not is_same]
        tables = [_decoded(table, mixed) for table in tables]
    # The tables have different dictionaries for a column, and a chunk has one.
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _decoded(records: pa.Table, indices: Sequence[int]) -> pa.Table:
    """Decode those of some columns that have dictionaries."""
    for index in indices:
        column = records.column(index)
        if pa.types.is_dictionary(column.type):
            name = records.schema.names[index]
            chunks = [chunk.dictionary_decode() for chunk in column.chunks]
            plain = pa.chunked_array(chunks, column.type.value_type)
            records = records.set_column(index, name, plain)
    return records
