"""Values of Parquet's pages against a slow reference."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonspark.kernels.parquet_pages import count_runs, sum_texts

Runs = list[tuple[bool, list[int]]]


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def encode(runs: Runs, width: int) -> bytes:
    """Encode runs: packed into bits, the last byte filled with zeros, or a number repeated."""
    encoded = b""
    for packed, numbers in runs:
        if packed:
            groups = -(-len(numbers) // 8)
            bits = sum(number << width * place for place, number in enumerate(numbers))
            encoded += varint(groups << 1 | 1) + bits.to_bytes(groups * width, "little")
        else:
            encoded += varint(len(numbers) << 1) + numbers[0].to_bytes(-(-width // 8), "little")
    return encoded


def repeated(pair: tuple[int, int]) -> list[int]:
    return [pair[0]] * pair[1]


@st.composite
def encoded_runs(draw: st.DrawFn) -> tuple[int, Runs]:
    width = draw(st.integers(1, 12))
    number = st.integers(0, 2**width - 1)
    runs = draw(
        st.lists(
            st.one_of(
                st.tuples(st.just(True), st.lists(number, min_size=8, max_size=8)),
                st.tuples(st.just(False), st.tuples(number, st.integers(1, 999)).map(repeated)),
            ),
            max_size=6,
        )
    )  # fmt: skip
    last = draw(st.lists(number, max_size=7))
    return width, [*runs, (True, last)] if last else runs


@given(encoded_runs(), st.binary(max_size=3))
def test_runs(made: tuple[int, Runs], behind: bytes) -> None:
    width, runs = made
    encoded = encode(runs, width)
    numbers = [number for _, found in runs for number in found]
    page = np.frombuffer(b"x" + encoded + behind, np.uint8)
    counts = np.zeros(2**width, np.int64)
    assert count_runs(page, 1, width, len(numbers), counts) == 1 + len(encoded)
    assert counts.tolist() == np.bincount(numbers, minlength=2**width).tolist()
    if numbers:
        few = np.zeros(max(numbers), np.int64)
        assert count_runs(page, 1, width, len(numbers), few) == -1
        assert count_runs(page[: len(encoded)], 1, width, len(numbers), counts) == -1


def test_what_stands_behind_the_last_number() -> None:
    """In the bits that fill its byte, or in a run that is too long."""
    counts = np.zeros(4, np.int64)
    for runs, values in (([(True, [1, 2, 3, 1])], 3), ([(False, [1, 1, 1])], 2)):
        page = np.frombuffer(encode(runs, 2), np.uint8)
        assert count_runs(page, 0, 2, values, counts) == -1


@given(st.lists(st.tuples(st.binary(max_size=4), st.integers(0, 3))))
def test_texts(texts: list[tuple[bytes, int]]) -> None:
    page = b"xy" + b"".join(len(one).to_bytes(4, "little") + one for one, _ in texts)
    counts = np.array([count for _, count in texts], np.int64)
    content = np.frombuffer(page, np.uint8)
    assert sum_texts(content, 2, counts) == sum(len(one) * count for one, count in texts)
    assert sum_texts(np.frombuffer(page + b"x", np.uint8), 2, counts) == -1
    if texts:
        assert sum_texts(content[:-1], 2, counts) == -1
