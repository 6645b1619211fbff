"""Association with a target: by hand, beside sums of fractions, and what must change nothing."""

from __future__ import annotations

from fractions import Fraction
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references import most_values_with_people

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
