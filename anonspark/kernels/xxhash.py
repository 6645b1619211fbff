"""xxHash64 (Collet 2012) of the values of a record, one after the other, as Spark computes it.

The hash of what comes first is the seed of what comes next, and a null leaves the hash as it is.
"""

from __future__ import annotations

import numpy as np

from anonspark.kernels.compiling import kernel
from anonspark.kernels.signatures import boolean, int32, int64, types, uint8, uint64, void

# What Arrow's buffers are.
_INT32 = types.Array(int32, 1, "C", readonly=True)
_INT64 = types.Array(int64, 1, "C", readonly=True)
_BYTES = types.Array(uint8, 1, "C", readonly=True)
_NUMBERS_OF_BYTES = types.Array(uint8, 2, "C", readonly=True)
_FLAGS = types.Array(boolean, 1, "C", readonly=True)

# Their hashes stay in the first cache of a processor.
_ROWS_AT_ONCE = 1024

_PRIME_1 = 0x9E3779B185EBCA87
_PRIME_2 = 0xC2B2AE3D27D4EB4F
_PRIME_3 = 0x165667B19E3779F9
_PRIME_4 = 0x85EBCA77C2B2AE63
_PRIME_5 = 0x27D4EB2F165667C5


@kernel(uint64(uint64, uint64))
def _rotate(value, bits):
    return (value << bits) | (value >> (uint64(64) - bits))


@kernel(uint64(uint64))
def _finish(state):
    state = (state ^ (state >> uint64(33))) * uint64(_PRIME_2)
    state = (state ^ (state >> uint64(29))) * uint64(_PRIME_3)
    return state ^ (state >> uint64(32))


@kernel(uint64(uint64, uint64))
def _add_word(state, word):
    """Take in 64 bits."""
    word = _rotate(word * uint64(_PRIME_2), uint64(31)) * uint64(_PRIME_1)
    return _rotate(state ^ word, uint64(27)) * uint64(_PRIME_1) + uint64(_PRIME_4)


@kernel(uint64(uint64, uint64))
def _add_half_word(state, half):
    """Take in 32 bits."""
    state ^= half * uint64(_PRIME_1)
    return _rotate(state, uint64(23)) * uint64(_PRIME_2) + uint64(_PRIME_3)


@kernel(uint64(uint64, uint64))
def _add_lane(lane, word):
    """Take 64 bits into one of the four lanes of a long text."""
    return _rotate(lane + word * uint64(_PRIME_2), uint64(31)) * uint64(_PRIME_1)


@kernel(uint64(uint64, uint64))
def _merge_lane(state, lane):
    state ^= _add_lane(uint64(0), lane)
    return state * uint64(_PRIME_1) + uint64(_PRIME_4)


@kernel(uint64(_BYTES, uint64))
def _half_word(data, at):
    return (
        uint64(data[at])
        | (uint64(data[at + uint64(1)]) << uint64(8))
        | (uint64(data[at + uint64(2)]) << uint64(16))
        | (uint64(data[at + uint64(3)]) << uint64(24))
    )


@kernel(uint64(_BYTES, uint64))
def _word(data, at):
    return _half_word(data, at) | (_half_word(data, at + uint64(4)) << uint64(32))


@kernel(uint64(_BYTES, uint64, uint64, uint64))
def _hash_of_bytes(data, at, stop, seed):
    """Return the hash of the bytes from one place up to before another."""
    size = stop - at
    if size >= uint64(32):
        lane_1 = seed + uint64(_PRIME_1) + uint64(_PRIME_2)
        lane_2 = seed + uint64(_PRIME_2)
        lane_3 = seed
        lane_4 = seed - uint64(_PRIME_1)
        while at + uint64(32) <= stop:
            lane_1 = _add_lane(lane_1, _word(data, at))
            lane_2 = _add_lane(lane_2, _word(data, at + uint64(8)))
            lane_3 = _add_lane(lane_3, _word(data, at + uint64(16)))
            lane_4 = _add_lane(lane_4, _word(data, at + uint64(24)))
            at += uint64(32)
        state = _rotate(lane_1, uint64(1)) + _rotate(lane_2, uint64(7))
        state += _rotate(lane_3, uint64(12)) + _rotate(lane_4, uint64(18))
        state = _merge_lane(_merge_lane(state, lane_1), lane_2)
        state = _merge_lane(_merge_lane(state, lane_3), lane_4)
    else:
        state = seed + uint64(_PRIME_5)
    state += size
    while at + uint64(8) <= stop:
        state = _add_word(state, _word(data, at))
        at += uint64(8)
    if at + uint64(4) <= stop:
        state = _add_half_word(state, _half_word(data, at))
        at += uint64(4)
    while at < stop:
        state ^= uint64(data[at]) * uint64(_PRIME_5)
        state = _rotate(state, uint64(11)) * uint64(_PRIME_1)
        at += uint64(1)
    return _finish(state)


@kernel(uint64(uint64, uint64))
def _hash_of_half_word(half, seed):
    return _finish(_add_half_word(seed + uint64(_PRIME_5) + uint64(4), half))


@kernel(void(_INT32, _FLAGS, uint64[::1]))
def hash_half_words(values, valid, hashes):
    """Take 32-bit values into hashes, in place.

    Parameters
    ----------
    values : int32 ndarray of shape (n,)
    valid : bool ndarray of shape (n,) or (0,)
        Whether each value is present. Empty if all are.
    hashes : uint64 ndarray of shape (n,)
    """
    for row in range(values.shape[0]):
        if valid.shape[0] == 0 or valid[row]:
            half = uint64(values[row]) & uint64(0xFFFFFFFF)
            hashes[row] = _hash_of_half_word(half, hashes[row])


@kernel(void(_INT64, _FLAGS, uint64[::1]))
def hash_words(values, valid, hashes):
    """Take 64-bit values into hashes, in place. See :func:`hash_half_words`."""
    for row in range(values.shape[0]):
        if valid.shape[0] == 0 or valid[row]:
            seed = hashes[row] + uint64(_PRIME_5) + uint64(8)
            hashes[row] = _finish(_add_word(seed, uint64(values[row])))


@kernel(void(_INT64, _BYTES, _INT32, _FLAGS, uint64[::1]))
def hash_texts(offsets, data, codes, valid, hashes):
    """Take texts, or bytes, into hashes, in place.

    Parameters
    ----------
    offsets : int64 ndarray of shape (m + 1,)
        Where each text begins in ``data``, and where the last one ends.
    data : uint8 ndarray
    codes : int32 ndarray of shape (n,) or (0,)
        The text of each row. Empty if row i has text i.
    valid : bool ndarray of shape (n,) or (0,)
        Whether each row has a text. Empty if all have.
    hashes : uint64 ndarray of shape (n,)
    """
    for row in range(hashes.shape[0]):
        if valid.shape[0] == 0 or valid[row]:
            text = row if codes.shape[0] == 0 else int64(codes[row])
            start, stop = uint64(offsets[text]), uint64(offsets[text + 1])
            hashes[row] = _hash_of_bytes(data, start, stop, hashes[row])


@kernel(void(int64, int64, uint64[::1]))
def hash_one_value(value, times, hashes):
    """Take one 32-bit value into all hashes, some times over, in place.

    Parameters
    ----------
    value : int
        From 0 on.
    times : int
    hashes : uint64 ndarray of shape (n,)
    """
    half = uint64(value)
    # Some rows at a time: what one hash waits for, the others do not.
    for start in range(0, hashes.shape[0], _ROWS_AT_ONCE):
        for _ in range(times):
            for row in range(start, min(start + _ROWS_AT_ONCE, hashes.shape[0])):
                hashes[row] = _hash_of_half_word(half, hashes[row])


@kernel(void(_NUMBERS_OF_BYTES, _FLAGS, uint64[::1]))
def hash_large_decimals(values, valid, hashes):
    """Take decimals of more than 18 digits into hashes, in place.

    Parameters
    ----------
    values : uint8 ndarray of shape (n, 16)
        The numbers without their points, little-endian. Hashed are as many of the bytes as each
        needs, big-endian, as Java's ``BigInteger`` has them.
    valid : bool ndarray of shape (n,) or (0,)
        Whether each is present. Empty if all are.
    hashes : uint64 ndarray of shape (n,)
    """
    content = np.empty(16, np.uint8)
    for row in range(values.shape[0]):
        if valid.shape[0] and not valid[row]:
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
        hashes[row] = _hash_of_bytes(content, uint64(start), uint64(16), hashes[row])
