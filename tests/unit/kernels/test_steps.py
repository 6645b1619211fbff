"""Numbers between steps, beside a search for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.kernels.steps import count_between

NUMBERS = {
    "few": st.integers(-3, 3).map(float),
    "any": st.floats(allow_infinity=False, allow_nan=False),
    "near each other": st.floats(0, 1e-300),
}


@pytest.mark.parametrize("kind", NUMBERS)
@given(data=st.data())
def test_each_number_is_at_its_step(data: Any, kind: str) -> None:
    numbers = np.array(data.draw(st.lists(NUMBERS[kind] | st.just(np.nan), max_size=30)), float)
    steps = np.array(sorted(data.draw(st.sets(NUMBERS[kind], min_size=1, max_size=9))), float)
    classes = np.arange(len(numbers)) % 3
    wanted = np.arange(len(steps)) % 2 == 0
    sums = np.zeros((len(steps), 2), np.int64)

    near = count_between(numbers, classes, steps, wanted, sums)

    places = np.searchsorted(steps, numbers)
    counted = ~np.isnan(numbers) & (classes < 2) & (places < len(steps))
    expected = np.zeros_like(sums)
    np.add.at(expected, (places[counted], classes[counted]), 1)
    np.testing.assert_array_equal(sums, expected)
    expected_near = [one for one in np.flatnonzero(counted) if wanted[places[one]]]
    assert near.tolist() == expected_near
