"""Bytes that kernels read: labels and hashes, against slow references."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as some
from hypothesis import strategies as st
from references import xxhash64_of_bytes

from anonspark.kernels.label_reading import read_plain_labels
from anonspark.kernels.xxhash import hash_half_words, hash_one_value, hash_texts, hash_words

NUMBER, DAY = r"-?\d+(?:\.\d+)?", r"\d{4}-\d{2}-\d{2}"

digits = st.text("0123456789", min_size=1, max_size=9)
number = st.builds(
    "{}{}{}".format, st.sampled_from(["", "-"]), digits, st.just("") | digits.map(".{}".format)
)
day = st.dates().map(date.isoformat) | st.sampled_from(["2023-02-29", "2024-02-30", "0000-01-01"])
other = st.text("0123456789-./[]*", max_size=12)


def label(value: st.SearchStrategy[str], divider: str) -> st.SearchStrategy[str]:
    interval = st.tuples(value, value).map(lambda ends: f"[{ends[0]}{divider}{ends[1]}]")
    return value | interval | other


def read(value: str, *, days: bool) -> float:
    if days:
        return float(date.fromisoformat(value).toordinal() - date(1970, 1, 1).toordinal())
    if sum(one.isdigit() for one in value) > 15:
        raise ValueError("more digits than are read")
    return float(value)


def ends(text: str, *, days: bool) -> tuple[float, float]:
    value, divider = (DAY, "/") if days else (NUMBER, "-")
    found = re.fullmatch(rf"\[({value}){divider}({value})\]|({value})", text)
    if found is None:
        return np.nan, np.nan
    try:
        low, high = (read(found[one] or found[3], days=days) for one in (1, 2))
    except ValueError:
        return np.nan, np.nan
    return (low, high) if low <= high else (np.nan, np.nan)


@given(data=st.data(), days=st.booleans())
def test_labels_are_read_as_python_reads_them(data: Any, days: bool) -> None:
    own = label(day, "/") if days else label(number, "-")
    labels = data.draw(st.lists(own, max_size=20))
    encoded = [one.encode() for one in labels]
    offsets = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    low, high = np.zeros(len(labels)), np.zeros(len(labels))

    read_plain_labels(np.frombuffer(b"".join(encoded), np.uint8), offsets, days, low, high)

    expected = np.array([ends(one, days=days) for one in labels]).reshape(-1, 2)
    np.testing.assert_array_equal(np.stack([low, high], axis=1), expected)


_ALL = np.empty(0, np.bool_)
_SEEDS = some.integers(0, 2**64 - 1)


@given(some.lists(some.tuples(some.binary(max_size=80), _SEEDS, some.booleans()), max_size=8))
def test_texts_of_any_length(rows: list[tuple[bytes, int, bool]]) -> None:
    texts = [text for text, _, _ in rows]
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    data = np.frombuffer(b"".join(texts), np.uint8)
    hashes = np.array([seed for _, seed, _ in rows], np.uint64)
    valid = np.array([there for _, _, there in rows], np.bool_)
    hash_texts(offsets, data, np.empty(0, np.int32), valid, hashes)
    assert hashes.tolist() == [
        xxhash64_of_bytes(text, seed) if there else seed for text, seed, there in rows
    ]


def test_rows_that_share_texts() -> None:
    offsets, data = np.array([0, 1, 3], np.int64), np.frombuffer(b"abc", np.uint8)
    hashes = np.array([42, 42, 43], np.uint64)
    hash_texts(offsets, data, np.array([1, 0, 1], np.int32), _ALL, hashes)
    assert hashes.tolist() == [
        xxhash64_of_bytes(b"bc", 42),
        xxhash64_of_bytes(b"a", 42),
        xxhash64_of_bytes(b"bc", 43),
    ]


@given(some.lists(some.tuples(some.integers(-(2**63), 2**63 - 1), _SEEDS), max_size=8))
def test_numbers_hash_as_their_bytes(rows: list[tuple[int, int]]) -> None:
    seeds = [seed for _, seed in rows]
    words = np.array([value for value, _ in rows], np.int64)
    halves = words.astype(np.int32)
    hashes = np.array(seeds, np.uint64)
    hash_words(words, _ALL, hashes)
    assert hashes.tolist() == [
        xxhash64_of_bytes(word.tobytes(), seed) for word, seed in zip(words, seeds, strict=True)
    ]
    hashes = np.array(seeds, np.uint64)
    hash_half_words(halves, _ALL, hashes)
    assert hashes.tolist() == [
        xxhash64_of_bytes(half.tobytes(), seed) for half, seed in zip(halves, seeds, strict=True)
    ]


def test_nulls_leave_hashes_as_they_are() -> None:
    hashes = np.array([1, 2], np.uint64)
    hash_words(np.zeros(2, np.int64), np.array([False, False]), hashes)
    hash_half_words(np.zeros(2, np.int32), np.array([False, False]), hashes)
    assert hashes.tolist() == [1, 2]


def test_one_value_some_times_over() -> None:
    hashes, expected = np.array([1, 2], np.uint64), np.array([1, 2], np.uint64)
    hash_one_value(7, 3, hashes)
    for _ in range(3):
        hash_half_words(np.array([7, 7], np.int32), _ALL, expected)
    assert hashes.tolist() == expected.tolist()
