"""Strategies for tables whose records are counted in memory."""

from __future__ import annotations

import numpy as np
from counted_tables import INT64, Records
from drawn_numbers import of, of_few, one_of, some_hashes, wide
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


_column = one_of(
    of_few(integers),
    of(0, 1, 2, 3),
    of(4),
    wide,
    of_few(floats),
    lambda draw, n: wide(draw, n, 54) / 2**53,
)
_rows, _one_to_four = st.integers(1, 80), st.integers(1, 4)
_weights = {"i": st.sampled_from([1.0, 0.25, 7.0]), "f": st.sampled_from([1.0, 0.25, 0.5])}


@st.composite
def drawn_columns(draw: st.DrawFn, n: int) -> list[np.ndarray]:
    return [_column(draw, n) for _ in range(draw(_one_to_four))]


@st.composite
def drawn_records(draw: st.DrawFn) -> Records:
    n = draw(_rows)
    columns = draw(drawn_columns(n))
    return Records(columns, some_hashes(draw, n), draw(_one_to_four))


@st.composite
def drawn_records_and_criteria(draw: st.DrawFn) -> tuple[Records, Criteria]:
    """Draw records whose hashes are those of their contents, and criteria that they satisfy."""
    n = draw(_rows)
    columns = draw(drawn_columns(n))
    criteria, values = draw(criteria_and_values(n))
    weights = [draw(_weights[column.dtype.kind]) for column in columns]
    partitions = draw(_one_to_four)
    return Records(columns, None, partitions, values=values, weights=weights), criteria
