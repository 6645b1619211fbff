"""Association with a target, and orders learned from it: by hand, and for any counts."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references import most_values_with_people

from anonspark.core import arrangement
from anonspark.core.arrangement import group_label, learned_hierarchy, learned_order
from anonspark.core.association import association_loss, entropy, removed_uncertainty
from anonspark.core.criteria import enough_pairs, matched_of_attributes, matched_values

ORIGINAL = np.array([[1, 2], [1, 1], [3, 0]])
counts = st.integers(2, 6).flatmap(
    lambda bins: st.lists(
        st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=bins, max_size=bins
    )
)


def test_the_fixture_of_the_specification() -> None:
    released = np.array([[7 / 6, 4 / 3], [7 / 6, 4 / 3], [8 / 3, 1 / 3]])
    classes = np.array([5, 3])
    before = removed_uncertainty(ORIGINAL, ORIGINAL.astype(float), classes)
    after = removed_uncertainty(ORIGINAL, released, classes)
    assert (before, after) == pytest.approx((0.311333, 0.228521), abs=1e-6)
    assert association_loss([before], [after]) == pytest.approx(0.265994, abs=1e-6)


def slowly(original: list[list[int]], released: list[list[Fraction]], classes: list[int]) -> float:
    records = sum(map(sum, original))
    of_target = [sum(row[t] for row in original) for t in range(len(classes))]
    uncertainty = -sum(n / records * log2(Fraction(n, records)) for n in of_target if n)
    total = 0.0
    for own, told in zip(original, released, strict=True):
        for t, n in enumerate(own):
            if n:
                share = Fraction(classes[t] + 1, sum(classes) + len(classes))
                total += n / records * log2((told[t] + share) / (sum(told) + 1))
    return 1 + total / uncertainty


@given(counts, st.data())
def test_it_is_what_fractions_say(original: list[list[int]], data: st.DataObject) -> None:
    shape = np.array(original)
    if (shape.sum(axis=0) > 0).sum() < 2:
        return
    drawn = st.integers(0, 30).map(lambda n: Fraction(n, 4))
    released = [[data.draw(drawn) for _ in row] for row in original]
    classes = [data.draw(st.integers(0, 50)) for _ in range(3)]
    found = removed_uncertainty(
        shape, np.array([[float(one) for one in row] for row in released]), np.array(classes)
    )
    assert found == pytest.approx(slowly(original, released, classes), abs=1e-9)


@given(counts)
def test_names_of_values_and_classes_do_not_count(original: list[list[int]]) -> None:
    shape = np.array(original)
    if (shape.sum(axis=0) > 0).sum() < 2:
        return
    own = removed_uncertainty(shape, shape.astype(float), shape.sum(axis=0))
    mixed = shape[np.random.default_rng(3).permutation(len(shape))][:, ::-1]
    assert removed_uncertainty(mixed, mixed.astype(float), mixed.sum(axis=0)) == pytest.approx(
        own, abs=1e-12
    )


def test_nothing_can_be_said() -> None:
    constant = np.array([[3, 0], [4, 0]])
    assert removed_uncertainty(constant, constant.astype(float), np.array([7, 0])) is None
    assert association_loss([None, None], [None, None]) is None
    assert association_loss([0.0004, 0.0005], [0.0, 0.0]) is None
    assert association_loss([0.5], [-0.25]) == 1.5


def test_a_release_that_tells_nothing_tells_the_shares_of_classes() -> None:
    large = np.array([[40_000, 10_000], [10_000, 40_000]])
    everything = np.full((2, 2), 25_000.0)
    after = removed_uncertainty(large, everything, np.array([50_000, 50_000]))
    assert after == pytest.approx(0, abs=1e-9)


def test_entropy() -> None:
    assert entropy(np.array([1, 1, 2])) == 1.5
    assert entropy(np.array([7, 0])) == 0


@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.integers(2, 4))
def test_a_recoding_tells_no_more_than_its_original(seed: int, bins: int, classes: int) -> None:
    draw = np.random.default_rng(seed)
    records = int(draw.integers(1_000, 4_000))
    value, t = draw.integers(0, bins, records), draw.integers(0, classes, records)
    t = np.where(draw.random(records) < draw.random(), value % classes, t)
    # Every value is published as one of some random sets that hold it.
    covered = draw.random((records // 10, bins)) < draw.random()
    chosen = covered[draw.integers(0, len(covered), records)]
    chosen[np.arange(records), value] = True
    original, released = np.zeros((bins, classes), np.int64), np.zeros((bins, classes))
    np.add.at(original, (value, t), 1)
    for own in range(classes):
        some = chosen[t == own]
        released[:, own] = (some / some.sum(axis=1, keepdims=True)).sum(axis=0)
    before = removed_uncertainty(original, original.astype(float), original.sum(axis=0))
    after = removed_uncertainty(original, released, original.sum(axis=0))
    if before is None or after is None:
        assert before is after is None
        return
    assert after <= before + 0.02


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


values = "abcdefghij"


@st.composite
def counts_of_education(draw: st.DrawFn, classes: int = 2) -> np.ndarray:
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


@given(counts_of_education(), st.integers(1, 30))
def test_the_order_does_not_depend_on_that_of_the_values(found: np.ndarray, least: int) -> None:
    if not found.sum(axis=0).all():
        return
    names = list(values[: len(found)])
    mixed = np.random.default_rng(1).permutation(len(found))
    again = learned_order([names[one] for one in mixed], found[mixed], ["x", "y"], least)
    assert [names[mixed[one]] for one in again] == [
        names[one] for one in learned_order(names, found, ["x", "y"], least)
    ]


@given(counts_of_education())
def test_two_classes_and_more_agree(found: np.ndarray) -> None:
    totals = found.sum(axis=0)
    shares = [Fraction(int(own[1]), int(own.sum())) for own in found]
    if not totals.all() or totals[1] >= totals[0] or len(set(shares)) < len(shares):
        return
    axis = arrangement._first_axis(found, ["class 0", "class 1"], 1)
    if len(set(axis)) == len(axis):
        assert np.argsort(axis).tolist() == np.argsort([float(one) for one in shares]).tolist()


@given(counts_of_education(3), st.integers(1, 60))
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


@given(counts_of_education(2))
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
