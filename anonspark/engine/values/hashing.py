"""Hash the values in columns of Arrow, with the same result as Spark's ``xxhash64``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.engine.raw_columns import flags, is_bytes, type_name
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

# Spark stores a decimal of so many digits as one 64-bit integer.
_DIGITS_OF_A_WORD = 18


def xxhash64(columns: Sequence[Column], seed: int = _SEED, *, rows: int | None = None) -> Hashes:
    """Hash each row as Spark's function of this name does, int64 (rows,). Skips nulls.

    The columns have one length, and texts may be dictionaries. A row without a value hashes as the
    seed. ``rows`` is only needed without columns. Raises TypeError if Spark has no such type. One
    pass over each column. Nested values take one pass for the first value of each row, one for the
    second, and so on.

    >>> xxhash64([pa.array([39, None])]).tolist()
    [-2936356529320094847, 42]
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
    """Hash the whole content of each record, also which values are null, int64 (rows,).

    The ``key``, a signed integer of 64 bits, is hashed first, so the hash cannot be computed
    without it. ``rows`` is only needed without columns.
    """
    seed = np.full(1, _SEED, np.int64).view(np.uint64)
    if key is not None:
        # Spark types a literal as 32-bit integer if it fits, else as 64: hash the key as the same.
        small = -(2**31) <= key < 2**31
        _add(pa.array([key], pa.int32() if small else pa.int64()), seed)
    hashes = xxhash64(columns, int(seed.view(np.int64)[0]), rows=rows).view(np.uint64)
    # Most columns have no nulls: hash how many there are in a row, without arrays of flags.
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
    """Return a column as one array with one dictionary."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    return column.combine_chunks()


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which values are not null, or an empty array if all are."""
    return flags(column.is_valid()) if column.null_count else _ALL_VALID


def _add(column: pa.Array, hashes: _State) -> None:
    """Update hashes by the values of a column, in place."""
    dtype = column.type
    if pa.types.is_null(dtype):
        return
    if isinstance(column, pa.ExtensionArray):
        _add(column.storage, hashes)
    elif pa.types.is_dictionary(dtype):
        _add_dictionary(column, hashes)
    elif pa.types.is_fixed_size_binary(dtype):
        _add(column.cast(pa.binary()), hashes)
    elif is_bytes(dtype):
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


def _add_dictionary(column: pa.DictionaryArray, hashes: _State) -> None:
    """Update hashes by the values of a dictionary."""
    if not is_bytes(column.type.value_type) or column.dictionary.null_count:
        _add(column.cast(column.type.value_type), hashes)
        return
    offsets, data = _texts(column.dictionary)
    codes, valid = _numbers(column.indices, pa.int32(), np.int32), _valid(column)
    if len(column.dictionary) < len(hashes) and (hashes == hashes[0]).all():
        # All hashes are equal, so this is the first column: hash each different text once.
        text_hashes = np.repeat(hashes[:1], len(column.dictionary))
        hash_texts(offsets, data, _NO_CODES, _ALL_VALID, text_hashes)
        rows = valid if len(valid) else slice(None)
        hashes[rows] = text_hashes[codes[rows]]
        return
    hash_texts(offsets, data, codes, valid, hashes)


def _texts(column: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return the offsets of texts, int64 (n + 1,), and their bytes."""
    large = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    _, stored_offsets, content = column.buffers()
    if len(column) == 0:
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    all_offsets = np.frombuffer(stored_offsets, np.int64 if large else np.int32)
    offsets = all_offsets[column.offset : column.offset + len(column) + 1].astype(np.int64)
    data = np.empty(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)
    return offsets, data


def _add_lists(column: pa.Array, values: Sequence[pa.Array], hashes: _State) -> None:
    """Update hashes by the first value of each list, then by the second, and so on, in place."""
    offsets = column.offsets.to_numpy().astype(np.int64)
    sizes = np.diff(offsets)
    valid = _valid(column)
    if len(valid):
        # A null list may have values behind it, which do not count.
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
    """Update hashes by numbers, booleans, days or moments, as Spark stores them, in place.

    Spark hashes booleans, days and integers of up to 32 bits as 32 bits, and longer ones as 64.
    Raises TypeError for other types.
    """
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
    """Return numbers as they are stored, with any number for a null."""
    if column.type != storage:
        is_index = pa.types.is_integer(column.type) and pa.types.is_integer(storage)
        column = column.cast(storage) if is_index else column.view(storage)
    if len(column) == 0:
        return np.empty(0, dtype)
    size = np.dtype(dtype).itemsize
    values = np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * size)
    return np.require(values, requirements="A")


def _float_bits(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the bits of floats, equal for both zeros and for all NaN.

    >>> _float_bits(np.array([0.0, -0.0])).tolist()
    [0, 0]
    """
    canonical: npt.NDArray[Any] = values + values.dtype.type(0)
    is_nan = np.isnan(canonical)
    if is_nan.any():
        canonical[is_nan] = np.nan
    return canonical.view(np.int32 if values.dtype == np.float32 else np.int64)


def _decimals(column: pa.Array) -> npt.NDArray[np.uint8]:
    """Return unscaled decimals as bytes, uint8 (rows, 16), the lowest byte first."""
    if column.type.bit_width != 128:
        column = column.cast(pa.decimal128(column.type.precision, column.type.scale))
    if len(column) == 0:
        return np.empty((0, 16), np.uint8)
    data = np.frombuffer(column.buffers()[1], np.uint8, 16 * len(column), 16 * column.offset)
    return data.reshape(-1, 16)
