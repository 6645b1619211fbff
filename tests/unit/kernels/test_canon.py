"""Canon's kernel against the slow reference, and its guarantees."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import references
from counted_tables import contents_by_name
from drawn_numbers import order
from hypothesis import given
from hypothesis import strategies as st
from references import (
    Table,
    attribute_of,
    content_hashes,
    k_alone,
    may_be_a_group,
    one_of_each_kind,
    read_adult,
    sizes_of_halving,
    table_of,
    table_under,
    tables,
    tables_and_criteria,
)

from anonspark.core.criteria import Criteria
from anonspark.core.criterion import Criterion
from anonspark.kernels.canon import cut_by_distance
from anonspark.kernels.paths import root_path
from anonspark.kernels.vantage_points import distance_key, order_by_spread, widest_spread

INT64 = np.iinfo(np.int64)
ROOT = 77

both_rules = pytest.mark.parametrize("spread", [True, False], ids=["spread", "random"])


def cut(
    table: Table, criteria: Criteria, *, spread: bool, path: int = ROOT
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Run the kernel; return the records group by group, the groups' starts and their names."""
    result: tuple[np.ndarray, np.ndarray, np.ndarray] = cut_by_distance(
        table.codes,
        table.normalized,
        table.hashes,
        table.values,
        np.uint64(path),
        criteria.requirements,
        spread,
    )
    return result


def groups_of(table: Table, criteria: Criteria, *, spread: bool) -> list[tuple[int, ...]]:
    order, starts, _ = cut(table, criteria, spread=spread)
    assert sorted(order.tolist()) == list(range(len(table)))
    return [tuple(order[start:stop].tolist()) for start, stop in itertools.pairwise(starts)]


def named_contents(table: Table, criteria: Criteria, *, spread: bool) -> dict[int, object]:
    return contents_by_name(table, cut(table, criteria, spread=spread))


def expected_contents(table: Table, criteria: Criteria, *, spread: bool) -> dict[int, object]:
    groups = references.canon(table, criteria, ROOT, spread=spread)
    return {path: table.records(group) for path, group in groups.items()}


# The same groups ----------------------------------------------------------------------------------


@given(drawn=tables_and_criteria(most=45), alone=st.booleans())
def test_same_groups_and_names_as_the_reference(drawn: tuple[Table, Criteria], alone: bool) -> None:
    table, criteria = drawn
    if alone:
        criteria = replace(criteria, criteria=())
    for spread in (True, False):
        found = named_contents(table, criteria, spread=spread)
        assert found == expected_contents(table, criteria, spread=spread)
        groups = groups_of(table, criteria, spread=spread)
        if len(table) >= criteria.k:
            # The whole table satisfies the criteria, and so does every group.
            assert all(may_be_a_group(criteria, table.values, group) for group in groups)


@given(drawn=tables_and_criteria(), data=st.data())
def test_independent_of_the_order_of_records(
    drawn: tuple[Table, Criteria], data: st.DataObject
) -> None:
    table, criteria = drawn
    shuffled = table.taken(order(data.draw, len(table)))
    for spread in (True, False):
        found = named_contents(shuffled, criteria, spread=spread)
        assert found == named_contents(table, criteria, spread=spread)


@given(table=tables(), k=st.integers(1, 8))
def test_sizes_follow_from_the_number_of_records(table: Table, k: int) -> None:
    for spread in (True, False):
        groups = groups_of(table, k_alone(k), spread=spread)
        assert list(map(len, groups)) == sizes_of_halving(len(table), k)


@both_rules
@pytest.mark.parametrize("k", [1, 4, 25])
def test_random_tables_against_the_reference(spread: bool, k: int) -> None:
    # More records than samples, more contents than candidates, and many equal distances.
    random = np.random.default_rng(k)
    n = 300
    columns = [random.integers(17, 91, n), random.integers(0, 3, n), random.normal(size=n)]
    hashes = random.integers(INT64.min, INT64.max, n)
    for used in (columns, columns[:2], columns[1:2]):
        table = table_of(used, hashes, weights=[2.0, 0.5, 1.0][: len(used)])
        found = named_contents(table, k_alone(k), spread=spread)
        assert found == expected_contents(table, k_alone(k), spread=spread)


@both_rules
@pytest.mark.parametrize("criterion", one_of_each_kind(0.12), ids=lambda one: one.kind)
def test_random_tables_against_the_reference_under_criteria(
    spread: bool, criterion: Criterion
) -> None:
    table, criteria = table_under(criterion, 250)
    found = named_contents(table, criteria, spread=spread)
    assert found == expected_contents(table, criteria, spread=spread)
    assert 1 < len(found) < len(named_contents(table, k_alone(3), spread=spread))


# Duplicates and small tables ----------------------------------------------------------------------


@both_rules
@pytest.mark.parametrize("hashes", [np.arange(1000), np.zeros(1000, np.int64)])
def test_records_equal_in_every_quasi_identifier(spread: bool, hashes: np.ndarray) -> None:
    table = table_of([np.zeros(1000, np.int64), np.full(1000, 0.5)], hashes)
    groups = groups_of(table, k_alone(3), spread=spread)
    assert list(map(len, groups)) == sizes_of_halving(1000, 3)
    # Halves by hash, all the way down.
    firsts = [sorted(hashes[list(group)].tolist()) for group in groups]
    assert list(itertools.chain.from_iterable(firsts)) == sorted(hashes.tolist())


@both_rules
def test_records_equal_in_everything_are_shared_out(spread: bool) -> None:
    # 400 times one content, 300 times another one, three others.
    column = np.array([5] * 400 + [9] * 300 + [1, 2, 3])
    table = table_of([column], content_hashes(column))
    contents = named_contents(table, k_alone(4), spread=spread)
    assert contents == expected_contents(table, k_alone(4), spread=spread)
    random = np.random.default_rng(0)
    for _ in range(3):
        shuffled = table.taken(random.permutation(len(table)))
        assert named_contents(shuffled, k_alone(4), spread=spread) == contents


@both_rules
@pytest.mark.parametrize(("n", "k"), [(1, 1), (1, 5), (2, 1), (3, 2), (9, 5), (9, 100)])
def test_fewer_than_2k_records_stay_together(spread: bool, n: int, k: int) -> None:
    table = table_of([np.arange(n)], np.arange(n))
    order, starts, paths = cut(table, k_alone(k), spread=spread)
    if n < max(2 * k, 2):
        assert starts.tolist() == [0, n]
        assert paths.tolist() == [ROOT]
    else:
        assert starts.tolist() == [0, 1, 2]
    assert sorted(order.tolist()) == list(range(n))


@both_rules
def test_a_table_that_violates_a_criterion_is_not_cut(spread: bool) -> None:
    values = np.array([[0], [1]] * 10)
    table = table_of([np.arange(20)], np.arange(20), values=values)
    criteria = Criteria(2, (Criterion("s", "distinct", 3),), (attribute_of("s", [10, 10, 10]),))
    assert list(map(len, groups_of(table, criteria, spread=spread))) == [20]


def test_another_vantage_point_where_halves_violate() -> None:
    # Nearest to either end are four records of one value; nearest to the middle are two of each.
    values = np.array([0, 0, 0, 0, 1, 1, 1, 1])[:, None]
    table = table_of([np.arange(8)], np.arange(8), values=values)
    criteria = Criteria(4, (Criterion("s", "distinct", 2),), (attribute_of("s", [4, 4]),))
    for spread in (True, False):
        groups = groups_of(table, criteria, spread=spread)
        assert [len(group) for group in groups] == [4, 4]
        assert set(groups[0]) in ({1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6})
        alone = groups_of(table, k_alone(4), spread=True)
        assert Counter(map(frozenset, alone)) == Counter(
            [frozenset(range(4)), frozenset(range(4, 8))]
        )


def test_other_roots_give_other_groups() -> None:
    random = np.random.default_rng(9)
    table = table_of([random.normal(size=500) for _ in range(2)], random.integers(0, 2**60, 500))
    names = [int(root_path(seed, 1)) for seed in range(4)]
    for spread in (True, False):
        cuts = [cut(table, k_alone(5), spread=spread, path=name) for name in names]
        groups = [
            frozenset(
                frozenset(order[start:stop].tolist()) for start, stop in itertools.pairwise(starts)
            )
            for order, starts, _ in cuts
        ]
        assert len(set(groups)) == len(names)


# Distances ----------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=1, max_size=6))
def test_distances_are_whole_multiples_of_a_small_unit(pairs: list[tuple[float, float]]) -> None:
    record, point = (np.array(side) for side in zip(*pairs, strict=True))
    key = distance_key(record[None, :].copy(), 0, point[None, :].copy(), 0)
    total = 0.0
    for difference in (record - point).tolist():
        total += difference * difference
    assert key == int(np.sqrt(total) * 2**44)
    assert key / 2**44 == pytest.approx(float(np.linalg.norm(record - point)), abs=1e-12)


@pytest.mark.parametrize("weight", [1e-3, 1.0, 1000.0])
@pytest.mark.parametrize("d", [1, 2, 100])
def test_distances_of_all_weights_fit(weight: float, d: int) -> None:
    # Missing numbers lie at twice the weight.
    points = np.array([[0.0] * d, [weight / 2] * d, [weight] * d, [2 * weight] * d])
    keys = [distance_key(points, record, points, 0) for record in range(4)]
    assert keys[0] == 0
    assert [key / keys[2] for key in keys] == pytest.approx([0, 0.5, 1, 2])


def test_the_candidate_with_the_largest_spread_comes_first() -> None:
    # From an end the distances are 0 to 9; from the middle no two differ by more than 5.
    samples = np.arange(10.0)[:, None]
    candidates = np.array([[5.0], [9.0], [4.0], [0.0], [100.0]])
    # Far away they vary as much as from an end: on a tie in the order given.
    assert order_by_spread(candidates, samples).tolist() == [1, 3, 4, 0, 2]


@given(
    seed=st.integers(0, 2**32),
    c=st.integers(1, 30),
    m=st.integers(1, 100),
    values=st.sampled_from([1, 2, 5, 10**6]),
)
def test_the_widest_spread_is_found_without_the_others(
    seed: int, c: int, m: int, values: int
) -> None:
    random = np.random.default_rng(seed)
    candidates = random.integers(0, values, (c, 3)) / 7
    samples = random.integers(0, values, (m, 3)) / 7
    assert widest_spread(candidates, samples) == order_by_spread(candidates, samples)[0]
    spreads = []
    for candidate in candidates:
        distances = []
        for sample in samples:
            total = 0.0
            for difference in (sample - candidate).tolist():
                total += difference * difference
            distances.append(math.sqrt(total))
        median = sorted(distances)[m // 2]
        spreads.append(sum(abs(distance - median) for distance in distances))
    assert order_by_spread(candidates, samples).tolist() == sorted(
        range(c), key=lambda candidate: -spreads[candidate]
    )


def test_adult_sample_is_that_of_the_reference(adult_path: Path) -> None:
    adult = read_adult(adult_path)
    sample = adult.taken(np.arange(0, len(adult), 60))
    for spread in (True, False):
        found = named_contents(sample, k_alone(5), spread=spread)
        assert found == expected_contents(sample, k_alone(5), spread=spread)
