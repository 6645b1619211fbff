"""The stable sort against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.kernels.sorting import sort_stably


def places(values: np.ndarray) -> list[int]:
    order = np.empty(len(values), np.int64)
    sort_stably(values, order)
    return [int(place) for place in order]


@given(
    st.lists(
        st.one_of(st.sampled_from([0.0, -0.0, 1.0, -1.5]), st.floats(allow_nan=False)), max_size=300
    )
)
def test_any_numbers(values: list[float]) -> None:
    assert places(np.array(values, np.float64)) == sorted(
        range(len(values)), key=values.__getitem__
    )


@pytest.mark.parametrize("n", [1, 2, 16, 17, 255, 256, 257, 1000, 5000])
@pytest.mark.parametrize("kinds", [1, 3, 10**9])
def test_many_numbers(n: int, kinds: int) -> None:
    random = np.random.default_rng(n + kinds)
    for values in (
        random.integers(0, kinds, n) / 7,
        # One far value: all others are in one bucket.
        np.append(random.integers(0, kinds, n - 1) / 7, 1e300),
        np.arange(n)[::-1] / 3.0,
    ):
        assert places(values) == np.argsort(values, kind="stable").tolist()
