"""Counting different values in memory of a fixed size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from anonspark.engine.values.distinct import Distinct

_LARGEST = 2**64 - 1


def hashes(values: list[int]) -> np.ndarray:
    return np.array(values, np.uint64)


@given(
    some.lists(some.lists(some.integers(0, 40) | some.integers(0, _LARGEST)), min_size=1),
    some.integers(2, 30),
)
def test_parts_in_any_order(parts: list[list[int]], most: int) -> None:
    together, merged = Distinct(most), Distinct(most)
    for part in parts:
        together.add(hashes(part))
    for part in reversed(parts):
        one = Distinct(most)
        one.add(hashes(part))
        merged.add(one.smallest())
    different = sorted({value for part in parts for value in part})
    assert together.smallest().tolist() == merged.smallest().tolist() == different[:most]
    assert together.count() == merged.count()
    if len(different) < most:
        assert together.count() == len(different)


@pytest.mark.parametrize("size", [4095, 4096, 5000, 300_000])
def test_the_estimate_is_near(size: int) -> None:
    random = np.random.default_rng(size)
    drawn = random.integers(0, _LARGEST, size, np.uint64, endpoint=True)
    counted = Distinct(4096)
    for part in np.array_split(np.concatenate([drawn, drawn[::-1]]), 7):
        counted.add(part)
    # Four standard errors.
    assert counted.count() == pytest.approx(size, rel=4 / 64 if size > 4095 else 0)
    assert len(counted.smallest()) == min(size, 4096)
