"""Pairs that tasks keep tell how many values have a person each, however they are shared out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references import most_values_with_people

from anonspark.core.criteria import enough_pairs, matched_of_attributes, matched_values

Pairs = list[tuple[int, int]]


@given(
    pairs=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=14),
    most=st.integers(1, 4),
    tasks=st.integers(1, 3),
)
def test_however_pairs_are_shared_out(pairs: Pairs, most: int, tasks: int) -> None:
    kept = []
    for task in range(tasks):
        own = np.array(pairs[task::tasks], np.int64).reshape(-1, 2)
        values, people = enough_pairs(own[:, 0], own[:, 1], most)
        # Few of them, each one that was there.
        assert len(values) <= 2 * most**2
        assert set(zip(values.tolist(), people.tolist(), strict=True)) <= set(pairs)
        kept.append(np.stack([values, people]))
    together = np.concatenate(kept, axis=1)
    expected = min(most_values_with_people(pairs), most) if pairs else 0
    assert matched_values(together[0], together[1], most) == expected


def test_a_person_with_all_values_is_one() -> None:
    values = np.arange(50)
    assert matched_values(values, np.zeros(50, np.int64), 3) == 1
    kept, _ = enough_pairs(values, np.zeros(50, np.int64), 3)
    assert kept.tolist() == [0, 1, 2]


def test_attributes_are_matched_by_themselves() -> None:
    items, people = np.array([0, 1, 2, 3]), np.array([7, 8, 7, 7])
    assert matched_of_attributes(np.array([0, 2, 4]), [2, 2], items, people) == [2, 1]
    assert matched_of_attributes(np.array([0, 2, 4]), [0, 1], items, people) == [0, 1]


@pytest.mark.parametrize("most", [1, 2, 5])
def test_nothing_has_no_pairs(most: int) -> None:
    none = np.zeros(0, np.int64)
    assert matched_values(none, none, most) == 0
