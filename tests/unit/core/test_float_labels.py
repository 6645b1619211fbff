"""Labels of floats: Arrow writes most of them, and all are what NumPy writes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.labels import value_labels


def expected(values: np.ndarray) -> list[str]:
    return [str(value).removesuffix(".0") for value in values]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_of_64_bits(numbers: list[float]) -> None:
    values = np.array(numbers)
    assert value_labels(pa.array(values), "float").to_pylist() == expected(values)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_of_32_bits(numbers: list[float]) -> None:
    values = np.array(numbers, np.float32)
    assert value_labels(pa.array(values), "float").to_pylist() == expected(values)


@pytest.mark.parametrize("width", [np.float32, np.float64])
def test_numbers_around_the_ends_of_what_arrow_writes_alike(width: type[np.floating]) -> None:
    random = np.random.default_rng(0)
    ends = np.array([1e-4, 1e-3, 0.1, 1.0, 1e5, 1e6, 1e7, 1e15, 1e16, 0.0], width)
    near = [np.nextafter(ends, width(sign * np.inf)) for sign in (-1, 1)]
    sizes = np.exp(random.uniform(np.log(1e-5), np.log(1e7), 20_000))
    rounded = np.round(sizes, 2)
    values = np.concatenate([ends, *near, sizes, rounded]).astype(width)
    values[::2] *= -1
    assert value_labels(pa.array(values), "float").to_pylist() == expected(values)
