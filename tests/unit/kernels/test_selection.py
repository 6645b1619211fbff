"""Order statistics against sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.kernels.selection import select, select_float

INT64 = np.iinfo(np.int64)

few_values = st.integers(-2, 2)
all_values = st.one_of(few_values, st.integers(INT64.min, INT64.max))


@given(st.lists(all_values, min_size=1, max_size=200), st.data())
def test_every_rank_of_integers_as_sorted(values: list[int], data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, len(values) - 1))
    assert select(np.array(values, np.int64), 0, len(values), rank) == sorted(values)[rank]


@given(
    st.lists(
        st.one_of(st.sampled_from([0.0, 1.0, -1.5]), st.floats(allow_nan=False)),
        min_size=1,
        max_size=200,
    ),
    st.data(),
)
def test_every_rank_of_floats_as_sorted(values: list[float], data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, len(values) - 1))
    assert select_float(np.array(values), 0, len(values), rank) == sorted(values)[rank]


@given(st.lists(all_values, min_size=2, max_size=60), st.data())
def test_only_the_slice_counts_and_is_permuted(values: list[int], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(values) - 1))
    stop = data.draw(st.integers(start + 1, len(values)))
    rank = data.draw(st.integers(0, stop - start - 1))
    scratch = np.array(values, np.int64)
    assert select(scratch, start, stop, rank) == sorted(values[start:stop])[rank]
    assert scratch[:start].tolist() == values[:start]
    assert scratch[stop:].tolist() == values[stop:]
    assert sorted(scratch[start:stop].tolist()) == sorted(values[start:stop])


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(np.zeros(300_000, np.int64), id="all equal"),
        pytest.param(np.arange(300_000), id="ascending"),
        pytest.param(np.arange(300_000)[::-1], id="descending"),
        pytest.param(np.abs(np.arange(300_000) - 150_000), id="valley"),
        pytest.param(np.arange(300_000) % 2, id="two values"),
        pytest.param(np.repeat([INT64.min, INT64.max], 150_000), id="the extremes"),
    ],
)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0], ids=["smallest", "median", "largest"])
def test_large_arrays(values: np.ndarray, share: float) -> None:
    rank = int(share * (len(values) - 1))
    assert select(values.astype(np.int64), 0, len(values), rank) == np.sort(values)[rank]
