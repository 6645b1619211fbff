"""xxHash64 of values of a column, each on top of what the columns before it gave.

Spark hashes a row so: the hash of a column's value is the seed of the next column's, and a null
leaves it as it is. Values of up to 32 bits are hashed as four bytes, longer numbers as eight.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, int64, types, uint8, uint64, void

from anonspark.kernels.compiling import kernel

# Arrow's memory must not be written to.
_INTEGERS = types.Array(int64, 1, "C", readonly=True)
_BYTES = types.Array(uint8, 1, "C", readonly=True)
_WORDS = types.Array(uint8, 2, "C", readonly=True)

_PRIME_1 = np.uint64(0x9E3779B185EBCA87)
_PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_PRIME_3 = np.uint64(0x165667B19E3779F9)
_PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
_PRIME_5 = np.uint64(0x27D4EB2F165667C5)


@kernel(uint64(uint64, int64))
def _rotated(value, bits):
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@kernel(uint64(uint64))
def _mixed(value):
    value ^= value >> np.uint64(33)
    value *= _PRIME_2
    value ^= value >> np.uint64(29)
    value *= _PRIME_3
    return value ^ (value >> np.uint64(32))


@kernel(uint64(uint64, uint64))
def _with_word(state, word):
    state ^= _rotated(word * _PRIME_2, 31) * _PRIME_1
    return _rotated(state, 27) * _PRIME_1 + _PRIME_4


@kernel(uint64(_BYTES, int64))
def _word_at(content, place):
    word = np.uint64(0)
    for byte in range(8):
        word |= np.uint64(content[place + byte]) << np.uint64(8 * byte)
    return word


@kernel(uint64(uint64, uint64))
def _lane(state, word):
    return _rotated(state + word * _PRIME_2, 31) * _PRIME_1


@kernel(uint64(_BYTES, int64, int64, uint64))
def _of_bytes(content, start, end, seed):
    place = start
    if end - start >= 32:
        first = seed + _PRIME_1 + _PRIME_2
        second = seed + _PRIME_2
        third = seed
        fourth = seed - _PRIME_1
        while place <= end - 32:
            first = _lane(first, _word_at(content, place))
            second = _lane(second, _word_at(content, place + 8))
            third = _lane(third, _word_at(content, place + 16))
            fourth = _lane(fourth, _word_at(content, place + 24))
            place += 32
        state = (
            _rotated(first, 1) + _rotated(second, 7) + _rotated(third, 12) + _rotated(fourth, 18)
        )
        for lane in (first, second, third, fourth):
            state ^= _rotated(lane * _PRIME_2, 31) * _PRIME_1
            state = state * _PRIME_1 + _PRIME_4
    else:
        state = seed + _PRIME_5
    state += np.uint64(end - start)
    while place <= end - 8:
        state = _with_word(state, _word_at(content, place))
        place += 8
    if place <= end - 4:
        half = np.uint64(0)
        for byte in range(4):
            half |= np.uint64(content[place + byte]) << np.uint64(8 * byte)
        state = _rotated(state ^ (half * _PRIME_1), 23) * _PRIME_2 + _PRIME_3
        place += 4
    while place < end:
        state = _rotated(state ^ (np.uint64(content[place]) * _PRIME_5), 11) * _PRIME_1
        place += 1
    return _mixed(state)


@kernel(void(_INTEGERS, boolean[::1], uint64[::1]))
def hash_ints(values, valid, hashes):
    """Hash values of up to 32 bits.

    Parameters
    ----------
    values : int64 ndarray of shape (n,)
        Of each the lower 32 bits count.
    valid : bool ndarray of shape (n,)
        Whether each is there.
    hashes : uint64 ndarray of shape (n,)
        Seeds; replaced by the hashes, but for nulls.
    """
    for row in range(len(values)):
        if valid[row]:
            word = np.uint64(values[row]) & np.uint64(0xFFFFFFFF)
            state = (hashes[row] + _PRIME_5 + np.uint64(4)) ^ (word * _PRIME_1)
            hashes[row] = _mixed(_rotated(state, 23) * _PRIME_2 + _PRIME_3)


@kernel(void(_INTEGERS, boolean[::1], uint64[::1]))
def hash_longs(values, valid, hashes):
    """Hash values of 64 bits; as :func:`hash_ints`."""
    for row in range(len(values)):
        if valid[row]:
            state = hashes[row] + _PRIME_5 + np.uint64(8)
            hashes[row] = _mixed(_with_word(state, np.uint64(values[row])))


@kernel(void(_BYTES, _INTEGERS, _INTEGERS, boolean[::1], uint64[::1]))
def hash_bytes(content, starts, ends, valid, hashes):
    """Hash runs of bytes; as :func:`hash_ints`.

    Parameters
    ----------
    content : uint8 ndarray
    starts, ends : int64 ndarray of shape (n,)
        Where each value begins and ends in it.
    valid : bool ndarray of shape (n,)
    hashes : uint64 ndarray of shape (n,)
    """
    for row in range(len(starts)):
        if valid[row]:
            hashes[row] = _of_bytes(content, starts[row], ends[row], hashes[row])


@kernel(void(_WORDS, boolean[::1], uint64[::1]))
def hash_large_decimals(values, valid, hashes):
    """Hash decimals of more than 18 digits; as :func:`hash_ints`.

    Parameters
    ----------
    values : uint8 ndarray of shape (n, 16)
        The unscaled number, little-endian. Hashed are as many of its bytes as it needs,
        big-endian, as Java has them.
    valid : bool ndarray of shape (n,)
    hashes : uint64 ndarray of shape (n,)
    """
    content = np.empty(16, np.uint8)
    for row in range(len(values)):
        if not valid[row]:
            continue
        for byte in range(16):
            content[byte] = values[row, 15 - byte]
        start = 0
        # A byte that only repeats the sign is not needed.
        while start < 15 and (
            (content[start] == 0 and content[start + 1] < 128)
            or (content[start] == 255 and content[start + 1] >= 128)
        ):
            start += 1
        hashes[row] = _of_bytes(content, start, 16, hashes[row])
