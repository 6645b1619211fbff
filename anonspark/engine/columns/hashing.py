"""Hashes of rows over Arrow's columns, equal to Spark's ``xxhash64``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.kernels.xxhash import hash_bytes, hash_ints, hash_large_decimals, hash_longs

Hashes = npt.NDArray[np.uint64]

_SEED = 42

# Decimals of up to so many digits are hashed as a number of 64 bits.
_DIGITS_OF_LONG = 18


def xxhash64(
    columns: Sequence[pa.Array | pa.ChunkedArray], seed: int = _SEED
) -> npt.NDArray[np.int64]:
    """Hash rows.

    Parameters
    ----------
    columns : sequence of pyarrow.Array
        At least one, of one length n. Nulls are passed over, also inside of nested values.
    seed : int

    Returns
    -------
    int64 ndarray of shape (n,)
        As Spark's ``xxhash64`` has them. Zeros are one, whatever their sign, and so are all NaN.
    """
    hashes = np.full(len(columns[0]), seed, np.int64).view(np.uint64)
    for column in columns:
        _add(_whole(column), hashes)
    return hashes.view(np.int64)


def content_hash(
    columns: Sequence[pa.Array | pa.ChunkedArray],
    key: int | None = None,
    *,
    rows: int | None = None,
) -> npt.NDArray[np.int64]:
    """Hash the whole content of rows, and which values are null.

    Parameters
    ----------
    columns : sequence of pyarrow.Array
        Of one length n.
    key : int or None
        Hashed first, so that only who knows it can compute the hashes.
    rows : int or None
        The length n, where there may be no column; with a key.

    Returns
    -------
    int64 ndarray of shape (n,)
    """
    rows = len(columns[0]) if rows is None else rows
    nulls = [pc.is_null(column) for column in columns]
    # As a literal of SQL: the hashes of a number in 32 bits and in 64 are not the same.
    kind = np.int32 if key is not None and -(2**31) <= key < 2**31 else np.int64
    keys = [] if key is None else [pa.array(np.full(rows, key, kind))]
    return xxhash64([*keys, *columns, *nulls])


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _valid(values: pa.Array) -> npt.NDArray[np.bool_]:
    if not values.null_count:
        return np.ones(len(values), bool)
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False), bool)


def _add(values: pa.Array, hashes: Hashes) -> None:
    """Hash the values of a column on top of what the columns before it gave."""
    own = values.type
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_null(own):
        return
    if isinstance(values, pa.ExtensionArray):
        _add(values.storage, hashes)
    elif pa.types.is_dictionary(own):
        _add_texts(values, hashes)
    elif pa.types.is_struct(own):
        _add_nested(values, [values.field(place) for place in range(own.num_fields)], hashes)
    elif pa.types.is_map(own) or pa.types.is_list(own) or pa.types.is_large_list(own):
        _add_items(values, hashes)
    elif _is_text(own) or _is_binary(own):
        _add_texts(values, hashes)
    elif pa.types.is_decimal(own):
        _add_decimals(values, hashes)
    else:
        numbers, are_short = _numbers(values)
        (hash_ints if are_short else hash_longs)(numbers, _valid(values), hashes)


def _is_text(own: pa.DataType) -> bool:
    return bool(pa.types.is_string(own) or pa.types.is_large_string(own))


def _is_binary(own: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(own)
        or pa.types.is_large_binary(own)
        or pa.types.is_fixed_size_binary(own)
    )


def _numbers(values: pa.Array) -> tuple[npt.NDArray[np.int64], bool]:
    """Return values as integers, and whether they have 32 bits at most."""
    own = values.type
    if pa.types.is_timestamp(own):
        return _filled(values.cast(pa.timestamp("us", own.tz)).view(pa.int64()), pa.int64()), False
    if pa.types.is_date(own):
        return _filled(values.cast(pa.date32()).view(pa.int32()), pa.int64()), True
    if pa.types.is_boolean(own):
        return _filled(values, pa.int64()), True
    if pa.types.is_floating(own):
        bits = np.int32 if own.bit_width <= 32 else np.int64
        wide = pa.float32() if bits is np.int32 else pa.float64()
        # Adding zero makes one of both zeros.
        plain = np.asarray(pc.fill_null(values.cast(wide), 0).to_numpy(zero_copy_only=False)) + 0
        plain = np.where(np.isnan(plain), np.array(np.nan, plain.dtype), plain)
        return np.ascontiguousarray(plain).view(bits).astype(np.int64), bits is np.int32
    if pa.types.is_integer(own):
        return _filled(values, pa.int64()), own.bit_width <= 32
    raise TypeError(f"values of type {own} cannot be hashed")


def _filled(values: pa.Array, target: pa.DataType) -> npt.NDArray[np.int64]:
    plain = values.cast(target)
    plain = pc.fill_null(plain, 0) if plain.null_count else plain
    return np.ascontiguousarray(plain.to_numpy(zero_copy_only=False))


def _add_texts(values: pa.Array, hashes: Hashes) -> None:
    valid = _valid(values)
    if pa.types.is_dictionary(values.type):
        content, starts, ends = _bytes_of(values.dictionary)
        places = np.asarray(pc.fill_null(values.indices, 0).to_numpy(zero_copy_only=False))
        # A null may stand in the dictionary, too.
        valid &= _valid(values.dictionary)[places] if len(starts) else valid
        starts, ends = (starts[places], ends[places]) if len(starts) else (places, places)
    else:
        content, starts, ends = _bytes_of(values)
    hash_bytes(
        content,
        np.ascontiguousarray(starts, np.int64),
        np.ascontiguousarray(ends, np.int64),
        valid,
        hashes,
    )


def _bytes_of(values: pa.Array) -> tuple[npt.NDArray[np.uint8], Any, Any]:
    """Return the bytes of texts, and where each begins and ends."""
    own = values.type
    if pa.types.is_fixed_size_binary(own) or not (_is_text(own) or _is_binary(own)):
        values = values.cast(pa.binary() if pa.types.is_fixed_size_binary(own) else pa.string())
        own = values.type
    wide = pa.types.is_large_string(own) or pa.types.is_large_binary(own)
    _, offsets, data = values.buffers()
    if offsets is None or not len(values):
        none = np.zeros(len(values), np.int64)
        return np.zeros(0, np.uint8), none, none
    kind = np.dtype(np.int64 if wide else np.int32)
    bounds = np.frombuffer(offsets, kind, len(values) + 1, values.offset * kind.itemsize)
    content = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return content, bounds[:-1], bounds[1:]


def _add_decimals(values: pa.Array, hashes: Hashes) -> None:
    precision = values.type.precision
    words = np.frombuffer(values.buffers()[1], np.uint8, 16 * len(values), 16 * values.offset)
    if precision <= _DIGITS_OF_LONG:
        low = np.ascontiguousarray(words.view(np.int64)[::2])
        hash_longs(low, _valid(values), hashes)
    else:
        hash_large_decimals(np.ascontiguousarray(words.reshape(-1, 16)), _valid(values), hashes)


def _add_nested(values: pa.Array, fields: Sequence[pa.Array], hashes: Hashes) -> None:
    """Hash the fields of structures that are there, one after another."""
    rows = np.flatnonzero(_valid(values))
    own = hashes[rows]
    for field in fields:
        _add(field.take(pa.array(rows)), own)
    hashes[rows] = own


def _add_items(values: pa.Array, hashes: Hashes) -> None:
    """Hash the items of lists, or the keys and values of maps, one after another."""
    starts = values.offsets.to_numpy()
    lengths = np.where(_valid(values), np.diff(starts), 0)
    parts = [values.keys, values.items] if pa.types.is_map(values.type) else [values.values]
    for place in range(int(lengths.max(initial=0))):
        rows = np.flatnonzero(lengths > place)
        own = hashes[rows]
        for part in parts:
            _add(part.take(pa.array(starts[rows] + place)), own)
        hashes[rows] = own
