"""Learned orders and hierarchies: Adult's education by hand, and what holds for any counts."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core import arrangement
from anonspark.core.arrangement import group_label, learned_hierarchy, learned_order
from anonspark.core.association import entropy

values = "abcdefghij"


@st.composite
def counts(draw: st.DrawFn, classes: int = 2) -> np.ndarray:
    rows = draw(st.integers(1, 10))
    cell = st.integers(0, 40)
    row = st.lists(cell, min_size=classes, max_size=classes).filter(any)
    return np.array(draw(st.lists(row, min_size=rows, max_size=rows)), np.int64)


def order_of(found: np.ndarray, least: int = 1) -> list[str]:
    names = list(values[: len(found)])
    classes = [f"class {t}" for t in range(found.shape[1])]
    return [names[one] for one in learned_order(names, found, classes, least)]


def test_by_the_share_of_the_rarer_class() -> None:
    # Of a, b and c a half, a fifth and a third are of the second class, which is the rarer one.
    assert order_of(np.array([[5, 5], [8, 2], [4, 2]])) == ["b", "c", "a"]
    # The class that comes last of two that are as frequent.
    assert order_of(np.array([[5, 5], [8, 2], [2, 8]])) == ["b", "a", "c"]


def test_rare_values_stand_where_nothing_is_told() -> None:
    found = np.array([[90, 10], [0, 2], [50, 50], [3, 0]])
    # All four: 62 of 205; b and d would be at the ends.
    assert order_of(found, least=5) == ["a", "b", "d", "c"]
    assert order_of(found, least=1) == ["d", "a", "c", "b"]


@given(counts(), st.integers(1, 30))
def test_the_order_does_not_depend_on_that_of_the_values(found: np.ndarray, least: int) -> None:
    if not found.sum(axis=0).all():
        return
    names = list(values[: len(found)])
    mixed = np.random.default_rng(1).permutation(len(found))
    again = learned_order([names[one] for one in mixed], found[mixed], ["x", "y"], least)
    assert [names[mixed[one]] for one in again] == [
        names[one] for one in learned_order(names, found, ["x", "y"], least)
    ]


@given(counts())
def test_two_classes_and_more_agree(found: np.ndarray) -> None:
    totals = found.sum(axis=0)
    shares = [Fraction(int(own[1]), int(own.sum())) for own in found]
    if not totals.all() or totals[1] >= totals[0] or len(set(shares)) < len(shares):
        return
    axis = arrangement._first_axis(found, ["class 0", "class 1"], 1)
    if len(set(axis)) == len(axis):
        assert np.argsort(axis).tolist() == np.argsort([float(one) for one in shares]).tolist()


@given(counts(3), st.integers(1, 60))
def test_levels_of_a_hierarchy(found: np.ndarray, least: int) -> None:
    hierarchy = learned_hierarchy(found, least)
    every = list(range(len(found)))
    before = [[one] for one in every]
    for level in hierarchy.levels:
        assert [place for group in level for place in group] == every
        assert min(int(found[group].sum()) for group in level) >= least
        assert len(level) < len(before)
        # Every group is made of whole groups of the level before.
        starts = {group[0] for group in before}
        assert all(group[0] in starts for group in level)
        before = level
    sizes = [len(level) for level in hierarchy.levels]
    assert all(one > 1 for one in sizes)
    whole = found.sum(axis=0)
    told = whole.sum() * entropy(whole) - sum(own.sum() * entropy(own) for own in found)
    assert len(hierarchy.joined) == len(found) - 1
    assert sum(one.cost for one in hierarchy.joined) == pytest.approx(told, abs=1e-6)


@given(counts(2))
def test_joins_are_those_of_looking_at_all_neighbours(found: np.ndarray) -> None:
    def bits(own: np.ndarray) -> float:
        return float(own.sum() * entropy(own)) if own.sum() else 0.0

    groups = [[place] for place in range(len(found))]
    for joined in learned_hierarchy(found, 1).joined:
        costs = [
            round(
                bits(found[left + right].sum(axis=0))
                - bits(found[left].sum(axis=0))
                - bits(found[right].sum(axis=0)),
                9,
            )
            for left, right in pairwise(groups)
        ]
        assert joined.cost == pytest.approx(min(costs), abs=1e-8)
        place = next(i for i, left in enumerate(groups) if left[0] == joined.values[0])
        assert joined.values == groups[place] + groups[place + 1]
        groups[place : place + 2] = [joined.values]


def test_ten_thousand_values_are_joined() -> None:
    draw = np.random.default_rng(5)
    found = draw.integers(0, 50, (10_000, 2)) + 1
    hierarchy = learned_hierarchy(found, 10)
    assert len(hierarchy.joined) == 9_999
    assert [len(level) for level in hierarchy.levels][-1] == 2


def test_labels() -> None:
    assert group_label(["a"]) == "a"
    assert group_label(["a", "b"]) == "{a, b}"
    many = [f"value {one}" for one in range(19)]
    assert group_label(many).startswith("{value 0, value 1, .. 17 more #")
    assert group_label(many) != group_label([*many[:-1], "another"])


def test_an_order_of_very_many_records() -> None:
    few = np.array([[1, 5, 2], [7, 1, 1], [2, 2, 9]], np.int64)
    names, classes = ["a", "b", "c"], ["x", "y", "z"]
    assert learned_order(names, few * 2**31, classes, 1) == learned_order(names, few, classes, 1)
