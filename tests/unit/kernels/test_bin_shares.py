"""Intervals spread over bins, beside the shares that a spread tells of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.uniform_mass import Runs, Spread, spread_out
from anonspark.kernels.bin_shares import spread_over_bins

UNIT = 2.0**-30


def units(spread: Spread, edges: Any) -> Any:
    below = spread.shares(np.full(len(edges), -np.inf), edges)
    missing = spread.missing[:, None]
    up_to = np.concatenate([np.zeros((len(missing), 1)), below, 1 - missing], axis=1)
    shares = np.concatenate([np.maximum(np.diff(up_to, axis=1), 0.0), missing], axis=1)
    return np.rint(shares / UNIT).astype(np.int64)


@given(st.data())
def test_sums_are_those_of_shares(data: Any) -> None:
    whole = data.draw(st.booleans())
    value = st.integers(-9, 9).map(float) if whole else st.integers(-90, 90).map(lambda n: n / 7)
    interval = st.tuples(value, value).map(lambda ends: (tuple(sorted(ends)),))
    regions = data.draw(
        st.lists(
            st.builds(Runs, interval, st.booleans()) | st.just(Runs((), missing=True)), min_size=1
        )
    )
    spread = spread_out(regions, whole=whole)
    edges = np.array(sorted(data.draw(st.sets(value, max_size=6))), np.float64)
    numbers = np.array(data.draw(st.lists(st.integers(0, len(regions) - 1), max_size=9)), np.int64)
    counts = np.random.default_rng(len(numbers)).integers(0, 50, (len(numbers), 3))
    sums = np.zeros((len(edges) + 2, 3), np.int64)

    ends = (spread.low, spread.high, spread.points, spread.total, spread.missing)
    spread_over_bins(*ends, edges, numbers, counts, UNIT, sums)

    np.testing.assert_array_equal(sums, units(spread, edges)[numbers].T @ counts)
