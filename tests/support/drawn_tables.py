"""Strategies for tables whose records are counted in memory."""

from __future__ import annotations

import numpy as np
from counted_tables import INT64, Records
from hypothesis import strategies as st
from references import criteria_and_values

from anonspark.core.criteria import Criteria

integers = st.one_of(
    st.integers(0, 2), st.integers(-20, 20), st.integers(INT64.min, INT64.max), st.just(INT64.max)
)
floats = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, 1e308, -1e308, 5e-324, -5e-324]),
    st.floats(allow_nan=False, allow_infinity=False),
)


@st.composite
def drawn_columns(draw: st.DrawFn, n: int) -> list[np.ndarray]:
    columns = []
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            values = draw(
                st.lists(draw(st.sampled_from([floats, st.floats(0, 1)])), min_size=n, max_size=n)
            )
            columns.append(np.array(values, np.float64))
        else:
            pool = draw(st.sampled_from([integers, st.integers(0, 3), st.just(4)]))
            columns.append(np.array(draw(st.lists(pool, min_size=n, max_size=n)), np.int64))
    return columns


@st.composite
def drawn_records(draw: st.DrawFn) -> Records:
    n = draw(st.integers(1, 80))
    columns = draw(drawn_columns(n))
    some_hashes = st.one_of(st.integers(-1, 1), st.integers(INT64.min, INT64.max))
    hashes = np.array(draw(st.lists(some_hashes, min_size=n, max_size=n)), np.int64)
    return Records(columns, hashes, draw(st.integers(1, 4)))


@st.composite
def drawn_records_and_criteria(draw: st.DrawFn) -> tuple[Records, Criteria]:
    """Draw records whose hashes are those of their contents, and criteria that they satisfy."""
    n = draw(st.integers(1, 80))
    columns = draw(drawn_columns(n))
    criteria, values = draw(criteria_and_values(n))
    weights = [
        draw(st.sampled_from([1.0, 0.25, 7.0 if column.dtype.kind == "i" else 0.5]))
        for column in columns
    ]
    partitions = draw(st.integers(1, 4))
    return Records(columns, None, partitions, values=values, weights=weights), criteria
