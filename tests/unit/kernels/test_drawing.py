"""Draws of records by content against sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.kernels.canon import draw
from anonspark.kernels.paths import priority

INT64 = np.iinfo(np.int64)


def drawn(codes: np.ndarray, hashes: np.ndarray, order: np.ndarray, most: int) -> list[int]:
    n = len(order)
    places = draw(
        codes,
        hashes,
        order,
        hashes[order],
        0,
        n,
        np.uint64(11),
        most,
        np.empty(n, np.uint64),
        np.empty(n, np.int64),
    )
    return [int(record) for record in order[places]]


def expected(codes: np.ndarray, hashes: np.ndarray, most: int) -> list[tuple[int, list[int]]]:
    """Return hash and codes of the records drawn: of equal hashes the first by codes."""
    best: dict[int, list[int]] = {}
    for own, row in zip(hashes.tolist(), codes.tolist(), strict=True):
        best[own] = min(best.get(own, row), row)
    by_priority = sorted(best, key=lambda own: int(priority(own, np.uint64(11))))
    return [(own, best[own]) for own in by_priority[:most]]


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 400),
    contents=st.sampled_from([1, 3, 40, 10**9]),
    most=st.integers(1, 100),
)
def test_the_smallest_priorities_each_hash_once(
    seed: int, n: int, contents: int, most: int
) -> None:
    random = np.random.default_rng(seed)
    hashes = random.integers(0, contents, n) * 7919
    codes = random.integers(0, 3, (n, 2))
    records = drawn(codes, hashes, random.permutation(n), most)
    found = [(int(hashes[record]), codes[record].tolist()) for record in records]
    assert found == expected(codes, hashes, most)


@pytest.mark.parametrize("contents", [20, 2_000, 10**15])
def test_many_records(contents: int) -> None:
    random = np.random.default_rng(contents)
    hashes = random.integers(INT64.min, INT64.max, min(contents, 50_000))
    hashes = hashes[random.integers(0, len(hashes), 50_000)]
    codes = (hashes % 1000)[:, None].copy()
    records = drawn(codes, hashes, np.arange(50_000), 30)
    assert [int(hashes[record]) for record in records] == [
        own for own, _ in expected(codes, hashes, 30)
    ]
