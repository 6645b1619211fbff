"""Hashes of the values in columns of Arrow, equal to those of Spark's ``xxhash64``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.engine.raw_columns import flags, type_name
from anonspark.kernels.xxhash import (
    hash_half_words,
    hash_large_decimals,
    hash_one_value,
    hash_texts,
    hash_words,
)

Column: TypeAlias = pa.Array | pa.ChunkedArray
Hashes: TypeAlias = npt.NDArray[np.int64]
_State: TypeAlias = npt.NDArray[np.uint64]

_SEED = 42

_ALL_VALID = np.empty(0, np.bool_)
_NO_CODES = np.empty(0, np.int32)

# Of a decimal that Spark has as one number of 64 bits.
_DIGITS_OF_A_WORD = 18


def xxhash64(columns: Sequence[Column], seed: int = _SEED, *, rows: int | None = None) -> Hashes:
    """Return the hash of each row, as Spark's function of this name does.

    Parameters
    ----------
    columns : sequence of pyarrow.Array or pyarrow.ChunkedArray
        Of one length. Texts may be dictionaries. Nulls are passed over.
    seed : int
        Of 64 bits, signed: what rows without a value hash as.
    rows : int or None
        Their number, needed only if there are no columns.

    Returns
    -------
    int64 ndarray of shape (rows,)

    Raises
    ------
    TypeError
        If Spark has no such type.

    Notes
    -----
    One pass over each column. Of nested values one over the first of each row, one over the second,
    and so on.
    """
    if rows is None:
        if not columns:
            raise ValueError("the number of rows is needed where there are no columns")
        rows = len(columns[0])
    hashes: _State = np.full(rows, seed, np.int64).view(np.uint64)
    for column in columns:
        _add(_whole(column), hashes)
    return hashes.view(np.int64)


def content_hash(
    columns: Sequence[Column], key: int | None = None, *, rows: int | None = None
) -> Hashes:
    """Return a 64-bit hash of each record's whole content.

    Parameters
    ----------
    columns : sequence of pyarrow.Array or pyarrow.ChunkedArray
        The content. A hash passes over nulls, so which values are null is hashed, too.
    key : int or None
        Of 64 bits, signed. Hashed first, so that only who knows it can compute the hash.
    rows : int or None
        Their number, needed only if there are no columns.

    Returns
    -------
    int64 ndarray of shape (rows,)
    """
    seed = np.full(1, _SEED, np.int64).view(np.uint64)
    if key is not None:
        # As Spark has a number that is written in a query: in 32 bits if it fits.
        small = -(2**31) <= key < 2**31
        _add(pa.array([key], pa.int32() if small else pa.int64()), seed)
    hashes = xxhash64(columns, int(seed.view(np.int64)[0]), rows=rows).view(np.uint64)
    # Of columns without nulls, which are most, no array of flags is made.
    plain = 0
    for column in columns:
        if column.null_count == 0:
            plain += 1
            continue
        hash_one_value(0, plain, hashes)
        hash_half_words(flags(column.is_null()).astype(np.int32), _ALL_VALID, hashes)
        plain = 0
    hash_one_value(0, plain, hashes)
    return hashes.view(np.int64)


def _whole(column: Column) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    return column.combine_chunks()


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    return flags(column.is_valid()) if column.null_count else _ALL_VALID


def _add(column: pa.Array, hashes: _State) -> None:
    """Take the values of a column into hashes, in place."""
    dtype = column.type
    if pa.types.is_null(dtype):
        return
    if isinstance(column, pa.ExtensionArray):
        _add(column.storage, hashes)
    elif pa.types.is_dictionary(dtype):
        _add_dictionary(column, hashes)
    elif pa.types.is_fixed_size_binary(dtype):
        _add(column.cast(pa.binary()), hashes)
    elif _is_bytes(dtype):
        offsets, data = _texts(column)
        hash_texts(offsets, data, _NO_CODES, _valid(column), hashes)
    elif pa.types.is_struct(dtype):
        for field in column.flatten():
            _add(field, hashes)
    elif pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        _add_lists(column, [column.values], hashes)
    elif pa.types.is_map(dtype):
        _add_lists(column, [column.keys, column.items], hashes)
    elif pa.types.is_decimal(dtype) and dtype.precision > _DIGITS_OF_A_WORD:
        hash_large_decimals(_decimals(column), _valid(column), hashes)
    else:
        _add_numbers(column, hashes)


def _is_bytes(dtype: pa.DataType) -> bool:
    return any(
        of(dtype)
        for of in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
        )
    )


def _add_dictionary(column: pa.DictionaryArray, hashes: _State) -> None:
    if not _is_bytes(column.type.value_type) or column.dictionary.null_count:
        _add(column.cast(column.type.value_type), hashes)
        return
    offsets, data = _texts(column.dictionary)
    codes, valid = _numbers(column.indices, pa.int32(), np.int32), _valid(column)
    if len(column.dictionary) < len(hashes) and (hashes == hashes[0]).all():
        # Of the first column: each different text is hashed once.
        text_hashes = np.repeat(hashes[:1], len(column.dictionary))
        hash_texts(offsets, data, _NO_CODES, _ALL_VALID, text_hashes)
        rows = valid if len(valid) else slice(None)
        hashes[rows] = text_hashes[codes[rows]]
        return
    hash_texts(offsets, data, codes, valid, hashes)


def _texts(column: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return where texts begin in their bytes, with the end of the last one, and the bytes."""
    large = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    _, places, content = column.buffers()
    if len(column) == 0:
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    all_places = np.frombuffer(places, np.int64 if large else np.int32)
    offsets = all_places[column.offset : column.offset + len(column) + 1].astype(np.int64)
    data = np.empty(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)
    return offsets, data


def _add_lists(column: pa.Array, values: Sequence[pa.Array], hashes: _State) -> None:
    """Take in the first value of each list, then the second, and so on."""
    offsets = column.offsets.to_numpy().astype(np.int64)
    sizes = np.diff(offsets)
    valid = _valid(column)
    if len(valid):
        # What stands behind a null does not count.
        sizes = np.where(valid, sizes, 0)
    rows = np.flatnonzero(sizes)
    position = 0
    while len(rows):
        hashes_of_rows = hashes[rows]
        for value in values:
            _add(value.take(pa.array(offsets[rows] + position)), hashes_of_rows)
        hashes[rows] = hashes_of_rows
        position += 1
        rows = rows[sizes[rows] > position]


def _add_numbers(column: pa.Array, hashes: _State) -> None:
    dtype, valid = column.type, _valid(column)
    if pa.types.is_boolean(dtype) or pa.types.is_int8(dtype) or pa.types.is_int16(dtype):
        hash_half_words(_numbers(column.cast(pa.int32()), pa.int32(), np.int32), valid, hashes)
    elif pa.types.is_int32(dtype) or pa.types.is_date32(dtype):
        hash_half_words(_numbers(column, pa.int32(), np.int32), valid, hashes)
    elif pa.types.is_float32(dtype):
        hash_half_words(_float_bits(_numbers(column, dtype, np.float32)), valid, hashes)
    elif pa.types.is_float64(dtype):
        hash_words(_float_bits(_numbers(column, dtype, np.float64)), valid, hashes)
    elif pa.types.is_decimal(dtype):
        words = _decimals(column).view(np.int64)[:, 0]
        hash_words(np.ascontiguousarray(words), valid, hashes)
    elif pa.types.is_timestamp(dtype):
        micros = column.cast(pa.timestamp("us", dtype.tz))
        hash_words(_numbers(micros, pa.int64(), np.int64), valid, hashes)
    elif pa.types.is_int64(dtype):
        hash_words(_numbers(column, pa.int64(), np.int64), valid, hashes)
    else:
        raise TypeError(f"values of type {type_name(dtype)} cannot be hashed as Spark hashes them")


def _numbers(column: pa.Array, storage: pa.DataType, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """Return numbers as they lie in memory, with any number in the place of a null."""
    if column.type != storage:
        is_index = pa.types.is_integer(column.type) and pa.types.is_integer(storage)
        column = column.cast(storage) if is_index else column.view(storage)
    if len(column) == 0:
        return np.empty(0, dtype)
    size = np.dtype(dtype).itemsize
    values = np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * size)
    return np.require(values, requirements="A")


def _float_bits(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the bits of floats, the same for equal ones and for all NaN."""
    canonical: npt.NDArray[Any] = values + values.dtype.type(0)
    odd = np.isnan(canonical)
    if odd.any():
        canonical[odd] = np.nan
    return canonical.view(np.int32 if values.dtype == np.float32 else np.int64)


def _decimals(column: pa.Array) -> npt.NDArray[np.uint8]:
    """Return decimals without their points as (rows, 16) bytes, the lowest first."""
    if column.type.bit_width != 128:
        column = column.cast(pa.decimal128(column.type.precision, column.type.scale))
    if len(column) == 0:
        return np.empty((0, 16), np.uint8)
    data = np.frombuffer(column.buffers()[1], np.uint8, 16 * len(column), 16 * column.offset)
    return data.reshape(-1, 16)
